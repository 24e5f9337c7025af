"""Tissue that is easily taken for an artefact, painted into fields of other tissue: bone, blood, keratin, mucin and others.

Few collections have them, and a filter that never saw bone calls it red ink.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_fish.mosaic.artefacts.measure import RGB
from napari_fish.mosaic.training.painting import Field, clouds, crossing, darkened, density, smooth

Look = Callable[["HardTissue", tuple[int, ...], float, np.random.Generator], Field]


@dataclass(frozen=True)
class HardTissue:
    """How one kind looks on one slide: its colour as optical density, and how coarse and strong its pattern is."""

    kind: str
    colour: NDArray[np.float32]
    grain: float
    contrast: float
    share: float

    @classmethod
    def of_slide(cls, rng: np.random.Generator) -> HardTissue:
        """Choose what a slide has."""
        kind = str(rng.choice(list(KINDS)))
        low, high, strength, grain = KINDS[kind][0]
        colour = rng.uniform(low, high) * rng.uniform(*strength)
        return cls(
            kind, colour.astype(np.float32), rng.uniform(*grain), rng.uniform(0.3, 1.0), rng.uniform(0.1, 0.7)
        )

    def __call__(self, rgb: RGB, mpp: float, rng: np.random.Generator) -> RGB:
        """Let it grow into a patch, or take all of it, with a border as tissue has: never straight."""
        shape = rgb.shape[:2]
        form = rng.random()
        if form < 0.45:
            inside = crossing(shape, mpp, rng) + rng.uniform(10, 60) * clouds(
                shape, rng, rng.uniform(120, 400) / mpp
            )
        elif form < 0.9:
            inside = rng.uniform(40, 120) * (
                clouds(shape, rng, rng.uniform(150, 500) / mpp) - rng.uniform(-0.5, 0.8)
            )
        else:
            inside = np.full(shape, 100, np.float32)
        inside = inside + rng.uniform(0, 4) * clouds(shape, rng, 25 / mpp)
        gap = rng.uniform(5, 30) if rng.random() < 0.35 else 0.0
        own = self.colour * (KINDS[self.kind][1](self, shape, mpp, rng))[..., None]
        cover = smooth(np.asarray(inside, np.float32), rng.uniform(1, 6))[..., None]
        bare = 1 - smooth(np.asarray(inside + gap, np.float32), 3.0)[..., None] if gap else 1 - cover
        return darkened(np.full_like(rgb, 255), bare * density(rgb) + cover * own)


def _fibres(look: HardTissue, shape: tuple[int, ...], mpp: float, rng: np.random.Generator) -> Field:
    """Return layers or fibres that run one way, bent."""
    along = crossing(shape, mpp, rng) + 12 * clouds(shape, rng, 200 / mpp)
    waves = np.sin(2 * math.pi * along / look.grain + clouds(shape, rng, 60 / mpp))
    return np.asarray(1 + 0.35 * look.contrast * waves + 0.06 * clouds(shape, rng, 6 / mpp), np.float32)


def _layers(look: HardTissue, shape: tuple[int, ...], mpp: float, rng: np.random.Generator) -> Field:
    """Return fibres with clefts between."""
    fibres = _fibres(look, shape, mpp, rng)
    return np.asarray(
        fibres * (clouds(shape, rng, look.grain / mpp) > -1.5 - 0.5 * look.contrast), np.float32
    )


def _grains(look: HardTissue, shape: tuple[int, ...], mpp: float, rng: np.random.Generator) -> Field:
    """Return grains or cells, close together."""
    noise = clouds(shape, rng, look.grain / mpp)
    return np.asarray(
        1 - 0.5 * look.contrast + 0.8 * look.contrast * smooth(20 * (noise + 0.4), 8.0), np.float32
    )


def _haze(look: HardTissue, shape: tuple[int, ...], mpp: float, rng: np.random.Generator) -> Field:
    """Return something nearly smooth."""
    slow, fine = clouds(shape, rng, 8 * look.grain / mpp), clouds(shape, rng, look.grain / mpp)
    return np.asarray(np.clip(1 + 0.2 * look.contrast * slow + 0.05 * fine, 0, None), np.float32)


def _walls(look: HardTissue, shape: tuple[int, ...], mpp: float, rng: np.random.Generator) -> Field:
    """Return thin walls around nothing."""
    inside = np.asarray(40 * (0.12 - np.abs(clouds(shape, rng, look.grain / mpp))), np.float32)
    return np.asarray(0.05 + smooth(inside, 4.0), np.float32)


Span = tuple[float, float]
Colour = tuple[float, float, float]
KINDS: dict[str, tuple[tuple[Colour, Colour, Span, Span], Look]] = {
    "bone": (((0.04, 0.9, 0.15), (0.3, 1.1, 0.75), (0.5, 2.0), (8, 40)), _fibres),
    "keratin": (((0.04, 0.9, 0.15), (0.3, 1.1, 0.7), (0.4, 1.8), (8, 30)), _layers),
    "colloid": (((0.04, 0.9, 0.15), (0.3, 1.1, 0.6), (0.3, 1.3), (6, 20)), _haze),
    "blood": (((0.08, 0.9, 0.5), (0.35, 1.1, 0.85), (0.5, 1.8), (7, 12)), _grains),
    "lymphoid": (((0.7, 0.9, 0.35), (1.0, 1.1, 0.6), (0.5, 1.6), (9, 14)), _grains),
    "necrosis": (((0.15, 0.9, 0.3), (0.5, 1.1, 0.6), (0.3, 1.2), (5, 9)), _grains),
    "mucin": (((0.5, 0.7, 0.2), (1.0, 1.0, 0.5), (0.1, 0.5), (10, 40)), _haze),
    "cartilage": (((0.4, 0.8, 0.2), (0.8, 1.0, 0.5), (0.15, 0.6), (15, 40)), _haze),
    "fat": (((0.1, 0.8, 0.3), (0.3, 1.0, 0.5), (0.3, 0.9), (80, 160)), _walls),
}
"""Lowest and highest optical density of red, green and blue, how strong the stain is, how coarse the pattern in µm; and
the pattern."""
