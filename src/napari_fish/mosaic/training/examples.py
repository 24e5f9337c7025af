"""Slides made of fields of clean tissue, each its own laboratory's, some patches painted over."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.artefacts.measure import RGB
from napari_fish.mosaic.training.hard_tissue import HardTissue
from napari_fish.mosaic.training.painting import PAINTERS, Mask, a_pen, ink

Floats = NDArray[np.float64]
SIDE = 256
"""Side of a patch in px as it is measured."""
MPP = 2.0
"""µm per px of a patch as it is measured."""
OFTEN = (
    "ink",
    "ink",
    "ink",
    "fold",
    "fold",
    "fold",
    "dust",
    "dust",
    "bubble",
    "bubble",
    "edge",
    "blur",
    "blur",
)
"""What is painted, as often as it stands here: ink and folds have most faces."""
HARD = 0.4
"""Share of slides with tissue that is easily taken for an artefact."""
LEAST_CHANGE = 18.0
"""Mean change of brightness, of 255, below which paint is not worth learning."""
FIELD_MPP: dict[str, float] = {"breakhis": 0.25, "ebhi": 0.25, "osteosarcoma": 1.0}
"""µm per px of the sets of tissue; 0.5 for all others."""
HAEMATOXYLIN_EOSIN = np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11]])
STAINS: tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...] = (
    ((0.65, 0.70, 0.29), (0.27, 0.57, 0.78)),
    ((0.60, 0.62, 0.50), (0.18, 0.93, 0.32)),
    ((0.80, 0.58, 0.15), (0.10, 0.74, 0.66)),
    ((0.75, 0.60, 0.28), (0.45, 0.85, 0.28)),
    ((0.30, 0.80, 0.52), (0.85, 0.50, 0.17)),
    ((0.55, 0.60, 0.58), (0.50, 0.62, 0.60)),
)
"""Pairs of stains as absorptions of red, green and blue: haematoxylin with DAB, PAS, eosin gone orange,
Giemsa, trichrome, silver."""


@dataclass(frozen=True)
class Example:
    """A patch of shape (256, 256, 3) at 5x, what was painted on it, and where."""

    rgb: RGB
    kind: str = ""
    where: Mask | None = None


def read_field(path: Path) -> RGB:
    """Read an image."""
    from PIL import Image

    with Image.open(path) as file:
        return np.asarray(file.convert("RGB"))


def example_slide(fields: Sequence[Path | RGB], mpp: float, rng: np.random.Generator) -> Iterator[Example]:
    """Yield the patches of a slide made of some of a laboratory's images, none, some or most of them painted over."""
    count = int(rng.integers(8, 20)) if rng.random() < 0.85 else int(rng.integers(1, 8))
    if rng.random() < 0.6:
        start = int(rng.integers(len(fields)))
        chosen = [fields[(start + i) % len(fields)] for i in range(count)]
    else:
        chosen = [fields[i] for i in rng.integers(len(fields), size=count)]
    resample = _Resampling(mpp, rng)
    small = (resample(f if isinstance(f, np.ndarray) else read_field(f)) for f in chosen)
    yield from dirtied(small, rng)


def dirtied(patches: Iterator[RGB], rng: np.random.Generator) -> Iterator[Example]:
    """Stain the patches of a slide otherwise, paint on some, and take the picture again."""
    dirt = _Dirt(rng)
    hard = HardTissue.of_slide(rng) if rng.random() < HARD else None
    stain = _Stain(rng)
    softness = rng.uniform(0.3, 1.1) if rng.random() < 0.3 else 0.0
    quality = int(rng.integers(50, 96)) if rng.random() < 0.6 else 0
    uneven = rng.random() < 0.25
    for rgb in patches:
        if hard is not None and rng.random() < hard.share:
            rgb = hard(rgb, MPP, rng)
        rgb = stain(rgb, rng.uniform(0.85, 1.18) * rng.uniform(0.95, 1.05, 3) if uneven else np.ones(3))
        if softness:
            rgb = _rounded(ndimage.gaussian_filter(rgb.astype(np.float32), (softness, softness, 0)))
        kind, where = "", None
        if rng.random() < dirt.share:
            kind, painted, where = dirt(rgb, rng)
            if kind != "blur" and not _visible(rgb, painted, where):
                continue
            rgb = painted
        yield Example(compressed(rgb, quality) if quality else rgb, kind, where)


def _visible(rgb: RGB, painted: RGB, where: Mask) -> bool:
    """Say whether a person would see what was painted: pale ink on dark tissue teaches nothing."""
    change = np.abs(painted[where].astype(np.int16) - rgb[where])
    return bool(change.size and change.mean() >= LEAST_CHANGE)


class _Dirt:
    """What is wrong with a slide: how many of its patches, mostly with what, and the pen that marked it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.share = 0.0
        if rng.random() < 0.65:
            self.share = rng.uniform(0.08, 0.45) if rng.random() < 0.7 else rng.uniform(0.45, 0.95)
        self.mostly = str(rng.choice(OFTEN))
        self.pen = a_pen(rng)

    def __call__(self, rgb: RGB, rng: np.random.Generator) -> tuple[str, RGB, Mask]:
        kind = self.mostly if rng.random() < 0.6 else str(rng.choice(OFTEN))
        if kind == "ink" and rng.random() < 0.8:
            return kind, *ink(rgb, MPP, rng, self.pen)
        return kind, *PAINTERS[kind](rgb, MPP, rng)


class _Stain:
    """What another laboratory makes of the same tissue: another strength, white balance, or pair of stains."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.turn: Floats | None = None
        self.least = 0.0
        if rng.random() < 0.25:
            pair = np.asarray(STAINS[int(rng.integers(len(STAINS)))]) + rng.normal(0, 0.04, (2, 3))
            # The second stain is often sparse: an immunostain marks some cells, and nothing else.
            self.least = rng.uniform(0, 0.5)
            self.turn = _with_residual(pair) * rng.uniform(0.6, 1.3, (3, 1))
        self.apart = np.linalg.inv(_with_residual(HAEMATOXYLIN_EOSIN))
        self.strength = (
            rng.uniform(0.5, 1.6) * rng.uniform(0.85, 1.15, 3) if rng.random() < 0.7 else np.ones(3)
        )
        self.glass = rng.uniform(0.82, 1.0) * rng.uniform(0.94, 1.0, 3) if rng.random() < 0.4 else np.ones(3)

    def __call__(self, rgb: RGB, factor: Floats) -> RGB:
        density = -np.log((rgb.astype(np.float32) + 1) / 256)
        if self.turn is not None:
            amounts = np.maximum(density @ self.apart.astype(np.float32), 0)
            amounts[..., 1] = np.maximum(amounts[..., 1] - self.least, 0) * (1 + self.least)
            amounts[..., 2] *= 0.3
            density = amounts @ self.turn.astype(np.float32)
        density = density * (self.strength * factor).astype(np.float32)
        return _rounded(256 * self.glass.astype(np.float32) * np.exp(-density) - 0.5)


def _with_residual(pair: Floats) -> Floats:
    """Return two stains and what is neither, each of length 1."""
    rows = np.vstack([pair, np.abs(np.cross(*pair))])
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


class _Resampling:
    """How fields become patches at 5x on one slide: at which scale, how sharp, mirrored or tiled."""

    def __init__(self, mpp: float, rng: np.random.Generator) -> None:
        self.rng = rng
        scale = 1.0 if rng.random() < 0.4 else 2 ** rng.uniform(-1, 1)
        self.mpp = float(np.clip(mpp * scale, 0.2, 1.2))
        self.way = str(rng.choice(["area", "area", "area", "nearest", "bicubic", "soft"]))
        self.fill = "symmetric" if rng.random() < 0.7 else "wrap"

    def __call__(self, rgb: RGB) -> RGB:
        """Return a patch of shape (256, 256, 3)."""
        return filled(resized(rgb, self.mpp / MPP, self.way), SIDE, self.fill, self.rng)


def resized(rgb: RGB, scale: float, way: str = "area") -> RGB:
    """Resample an image."""
    from PIL import Image

    ways = {"area": 4, "soft": 4, "nearest": 0, "bicubic": 3}
    size = [max(8, round(n * scale)) for n in rgb.shape[1::-1]]
    image = Image.fromarray(rgb)
    if way == "soft":
        image = image.resize([max(4, round(0.7 * n)) for n in size], Image.Resampling.BOX)
        return np.asarray(image.resize(size, Image.Resampling.BICUBIC))
    return np.asarray(image.resize(size, Image.Resampling(ways[way])))


def filled(rgb: RGB, side: int, fill: str, rng: np.random.Generator | None = None) -> RGB:
    """Cut a square out of an image, which is mirrored or tiled where it is smaller."""
    rows, columns = (max(0, side - n) for n in rgb.shape[:2])
    if rows or columns:
        rgb = np.pad(rgb, ((0, rows), (0, columns), (0, 0)), mode=fill)  # type: ignore[call-overload]
    y, x = (0 if rng is None else int(rng.integers(n - side + 1)) for n in rgb.shape[:2])
    return np.ascontiguousarray(rgb[y : y + side, x : x + side])


def compressed(rgb: RGB, quality: int) -> RGB:
    """Return what JPEG leaves of an image."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def _rounded(values: NDArray[np.float32]) -> RGB:
    return np.asarray(np.clip(values + 0.5, 0, 255), np.uint8)
