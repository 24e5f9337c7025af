"""Slides in memory, with tissue where the test wants it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.slides.base import PyramidSlide
from napari_fish.slides.mpp import Mpp, MppSource
from napari_fish.slides.protocol import RGB, SeriesInfo

GLASS = 243


class ArraySlide(PyramidSlide):
    """A slide whose levels are arrays, each half as large as the one before."""

    backend = "array"

    def __init__(self, rgb: RGB, mpp: float | None = 0.5, kind: str = "slide", levels: int = 3) -> None:
        self.levels = [rgb]
        for _ in range(levels - 1):
            last = self.levels[-1]
            rows, columns = (max(1, n // 2) for n in last.shape[:2])
            self.levels.append(np.ascontiguousarray(last[: rows * 2 : 2, : columns * 2 : 2]))
        sizes = tuple((a.shape[1], a.shape[0]) for a in self.levels)
        source = MppSource.USER if mpp else MppSource.UNKNOWN
        series = (SeriesInfo(0, "memory", kind, *sizes[0]),)
        super().__init__(Path("memory.tif"), sizes, Mpp(mpp, source), series=series)

    def _decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        return self.levels[level][y : y + height, x : x + width]

    def _release(self) -> None:
        pass

    def _hash(self) -> str:
        return "memory"


def glass(height: int, width: int) -> RGB:
    """An empty slide."""
    return np.full((height, width, 3), GLASS, np.uint8)


def stain(
    rgb: RGB, where: NDArray[np.bool_], colour: tuple[int, int, int] = (190, 110, 170), seed: int = 0
) -> RGB:
    """Put grainy tissue where the mask says."""
    grain = np.random.default_rng(seed).integers(-25, 26, (64, 64, 1))
    swatch = np.clip(np.asarray(colour) + grain, 0, 255).astype(np.uint8)
    rows, columns = rgb.shape[:2]
    tissue = np.tile(swatch, (rows // 64 + 1, columns // 64 + 1, 1))[:rows, :columns]
    np.copyto(rgb, tissue, where=where[..., None])
    return rgb


def disc(height: int, width: int, y: float, x: float, radius: float) -> NDArray[np.bool_]:
    """A disc in px."""
    rows, columns = np.ogrid[:height, :width]
    return np.asarray((rows - y) ** 2 + (columns - x) ** 2 < radius**2)


def tissue_slide(height: int = 1024, width: int = 1280, mpp: float = 2.0, margin: int = 75) -> ArraySlide:
    """A slide full of tissue of four colours but for a margin of glass."""
    rgb = glass(height, width)
    colours = [(190, 110, 170), (150, 80, 160), (220, 150, 190), (170, 60, 120)]
    for number, colour in enumerate(colours):
        where = np.zeros((height, width), bool)
        left = margin + number * (width - 2 * margin) // 4
        where[margin : height - margin, left : left + (width - 2 * margin) // 4] = True
        stain(rgb, where, colour, number)
    return ArraySlide(rgb, mpp)
