"""Slides in memory made of images of tissue, clean or with artefacts painted on every third patch.

The painters here are not those of the training: simpler, at 20x, in flat colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.training.examples import FIELD_MPP, filled, read_field, resized
from napari_fish.slides.base import PyramidSlide
from napari_fish.slides.mpp import Mpp, MppSource
from napari_fish.slides.protocol import RGB, SeriesInfo

PATCH = 1024
MPP = 0.5
ACROSS, DOWN = 4, 4
"""Patches of a slide."""
Mask = NDArray[np.bool_]


class ArraySlide(PyramidSlide):
    """A slide whose levels are arrays, each the one before averaged two by two."""

    backend = "array"

    def __init__(self, rgb: RGB, mpp: float = MPP, name: str = "memory.tif") -> None:
        self.levels = [rgb]
        for _ in range(3):
            last = self.levels[-1]
            rows, columns = (n // 2 * 2 for n in last.shape[:2])
            blocks = last[:rows, :columns].reshape(rows // 2, 2, columns // 2, 2, 3)
            self.levels.append((blocks.sum(axis=(1, 3), dtype=np.uint16) // 4).astype(np.uint8))
        sizes = tuple((level.shape[1], level.shape[0]) for level in self.levels)
        series = (SeriesInfo(0, "memory", "slide", *sizes[0]),)
        super().__init__(Path(name), sizes, Mpp(mpp, MppSource.USER), series=series)

    def _decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        return self.levels[level][y : y + height, x : x + width]

    def _release(self) -> None:
        pass

    def _hash(self) -> str:
        return "memory"


def sets_in(data: Path) -> dict[str, list[Path]]:
    """Find SET/CLASS/IMAGE or SET/IMAGE in a folder."""
    found = {}
    for folder in sorted(p for p in data.iterdir() if p.is_dir()):
        images = sorted(p for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".tif"))
        if images:
            found[folder.name] = images
    return found


def patch_of(path: Path, name: str) -> RGB:
    """Return an image at 0.5 µm per px, mirrored up to a patch where it is smaller."""
    rgb = read_field(path)
    scale = FIELD_MPP.get(name, MPP) / MPP
    return filled(rgb if scale == 1 else resized(rgb, scale, "bicubic"), PATCH, "symmetric")


def grids(images: Sequence[Path], name: str, most: int) -> Iterator[list[RGB]]:
    """Yield the patches of each slide: images as far apart in the set as can be, `most` slides at the most."""
    size = ACROSS * DOWN
    count = min(most, math.ceil(len(images) / size))
    for number in range(count):
        chosen = [images[i] for i in range(number, len(images), count)][:size]
        chosen += [chosen[i % len(chosen)] for i in range(size - len(chosen))]
        yield [patch_of(path, name) for path in chosen]


def slide_of(patches: Sequence[RGB]) -> ArraySlide:
    """Lay patches out in rows."""
    rows = [np.hstack(patches[i : i + ACROSS]) for i in range(0, len(patches), ACROSS)]
    return ArraySlide(np.vstack(rows))


def _stripe(rng: np.random.Generator, share: float) -> Mask:
    """Return a straight band over about this share of the patch."""
    y, x = np.ogrid[:PATCH, :PATCH]
    angle = rng.uniform(0, math.pi)
    along = (x - PATCH / 2) * math.cos(angle) + (y - PATCH / 2) * math.sin(angle)
    middle = rng.uniform(-80, 80)
    return np.asarray(np.abs(along - middle) < share * PATCH / 2)


def _blend(rgb: RGB, where: Mask, other: NDArray[np.floating], soft: float = 2.0) -> RGB:
    alpha = ndimage.gaussian_filter(where.astype(np.float32), soft)[..., None]
    return np.clip(rgb + alpha * (other - rgb) + 0.5, 0, 255).astype(np.uint8)


def ink(rgb: RGB, rng: np.random.Generator) -> RGB:
    """Draw with a marker in one of five colours, 55 to 100 % opaque."""
    colours = ((20, 20, 25), (25, 50, 160), (20, 120, 60), (190, 25, 35), (90, 30, 120))
    colour = np.asarray(colours[int(rng.integers(5))], np.float32)
    opaque = rng.uniform(0.55, 1.0)
    return _blend(rgb, _stripe(rng, rng.uniform(0.4, 0.8)), opaque * colour + (1 - opaque) * rgb)


def fold(rgb: RGB, rng: np.random.Generator) -> RGB:
    """Double the tissue: its own light, through tissue once more."""
    other = rgb[:, ::-1] if rng.random() < 0.5 else np.roll(rgb, 300, axis=1)
    other = np.minimum(other, np.median(rgb, axis=(0, 1)))
    return _blend(rgb, _stripe(rng, rng.uniform(0.4, 0.7)), rgb.astype(np.float32) * other / 245)


def bubble(rgb: RGB, rng: np.random.Generator) -> RGB:
    """Lay a pale disc with a black ring over it."""
    y, x = np.ogrid[:PATCH, :PATCH]
    radius = rng.uniform(360, 480)
    gap = np.hypot(y - PATCH / 2 - rng.uniform(-60, 60), x - PATCH / 2 - rng.uniform(-60, 60)) - radius
    soft = ndimage.gaussian_filter(rgb.astype(np.float32), (4, 4, 0))
    pale = _blend(rgb, gap < 0, soft + rng.uniform(0.35, 0.65) * (235 - soft))
    return _blend(pale, np.abs(gap) < rng.uniform(10, 24), np.full(3, rng.uniform(10, 80)))


def dust(rgb: RGB, rng: np.random.Generator) -> RGB:
    """Strew blots of thresholded noise over two fifths of the patch."""
    noise = ndimage.zoom(
        ndimage.gaussian_filter(rng.standard_normal((256, 256)), rng.uniform(3, 8)), 4, order=1
    )
    return _blend(rgb, noise > np.quantile(noise, 0.6), rng.uniform(15, 90) + rng.uniform(-10, 10, 3))


def edge(rgb: RGB, rng: np.random.Generator) -> RGB:
    """Put half of the patch beyond the coverslip: grey, dull, soft; a dark line between."""
    y, x = np.ogrid[:PATCH, :PATCH]
    angle = rng.uniform(0, 2 * math.pi)
    along = (x - PATCH / 2) * math.cos(angle) + (y - PATCH / 2) * math.sin(angle) + rng.uniform(-80, 80)
    soft = ndimage.gaussian_filter(rgb.astype(np.float32), (7, 7, 0))
    side = _blend(rgb, along > 0, 0.75 * soft + 0.25 * rng.uniform(120, 200))
    return _blend(side, np.abs(along) < rng.uniform(10, 30), np.full(3, rng.uniform(20, 90)))


def blur(rgb: RGB, rng: np.random.Generator) -> RGB:
    """Put all of the patch out of focus by 3 to 6 µm."""
    sigma = rng.uniform(3, 6) / MPP
    return ndimage.gaussian_filter(rgb.astype(np.float32), (sigma, sigma, 0), truncate=2.5).astype(np.uint8)


KINDS: dict[str, Callable[[RGB, np.random.Generator], RGB]] = {
    "ink": ink,
    "fold": fold,
    "bubble": bubble,
    "dust": dust,
    "edge": edge,
    "blur": blur,
}
"""Each covers more than a third of a patch of shape (1024, 1024, 3)."""
