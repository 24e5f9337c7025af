"""Pyramid levels as arrays that napari can slice: read when shown, never before."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Any

import numpy as np

from napari_fish._napari.reader.lazy_slide import LazySlide
from napari_fish.slides.protocol import RGB
from napari_fish.slides.resample import footprint, resample

CHUNK = 256
"""Px; napari widens what it asks for to multiples of this, so that small moves read nothing."""
OVERVIEW_PX = 2048
"""Longer side of a level that may be held in memory as a whole, as napari does with the coarsest."""
REDUCTION = 4
"""Px of a level under one px of a level that is computed because the slide does not store it."""
CACHED_TILES = 400
"""Computed tiles kept for each computed level: 75 MB."""


class LevelArray(ABC):
    """One level of a slide: a read-only RGB array of shape (rows, columns, 3).

    Parameters
    ----------
    slide
        Where the pixels come from.
    width, height
        Of the level, in px.
    """

    dtype = np.dtype(np.uint8)
    ndim = 3

    def __init__(self, slide: LazySlide, width: int, height: int) -> None:
        self.slide = slide
        self.shape = (height, width, 3)
        self.size = height * width * 3
        self.chunks = (CHUNK, CHUNK, 3)

    @abstractmethod
    def read(self, x: int, y: int, width: int, height: int) -> RGB:
        """Return the pixels of a region, which may lie outside the level (white there)."""

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:, :].astype(dtype or self.dtype, copy=False)

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, columns, channels = _three(key)
        top, height, pick_rows = _span(rows, self.shape[0])
        left, width, pick_columns = _span(columns, self.shape[1])
        if not width or not height:
            pixels = np.empty((height, width, 3), np.uint8)
        else:
            pixels = self.read(left, top, width, height)
        return pixels[pick_rows, :, :][..., pick_columns, :][..., channels]


class StoredLevel(LevelArray):
    """A level that the file holds."""

    def __init__(self, slide: LazySlide, level: int) -> None:
        super().__init__(slide, *_shown_size(slide, level))
        self.level = level

    def read(self, x: int, y: int, width: int, height: int) -> RGB:
        """Read stored pixels."""
        return self.slide.read_level(self.level, x, y, width, height)


class ComputedLevel(LevelArray):
    """A level that the file does not hold, averaged tile by tile from the next finer one."""

    def __init__(self, finer: LevelArray) -> None:
        rows, columns, _ = finer.shape
        super().__init__(finer.slide, -(-columns // REDUCTION), -(-rows // REDUCTION))
        self.finer = finer
        # Not exactly 4: napari derives a level's scale from the shapes, and so must the pixels.
        self._step = (rows / self.shape[0], columns / self.shape[1])
        self._tiles: OrderedDict[tuple[int, int], RGB] = OrderedDict()
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: object) -> ComputedLevel:
        """Share the tiles, which nobody changes."""
        return self

    def read(self, x: int, y: int, width: int, height: int) -> RGB:
        """Compute pixels, or find them computed already."""
        result = np.full((height, width, 3), 255, np.uint8)
        for i in range(max(y, 0) // CHUNK, -(-min(y + height, self.shape[0]) // CHUNK)):
            for j in range(max(x, 0) // CHUNK, -(-min(x + width, self.shape[1]) // CHUNK)):
                tile = self._tile(i, j)
                top, left = i * CHUNK - y, j * CHUNK - x
                part = tile[max(-top, 0) : height - top, max(-left, 0) : width - left]
                row, column = max(top, 0), max(left, 0)
                result[row : row + part.shape[0], column : column + part.shape[1]] = part
        return result

    def _tile(self, i: int, j: int) -> RGB:
        with self._lock:
            if (i, j) in self._tiles:
                self._tiles.move_to_end((i, j))
                return self._tiles[i, j]
        high = min(CHUNK, self.shape[0] - i * CHUNK)
        wide = min(CHUNK, self.shape[1] - j * CHUNK)
        y, x = i * CHUNK * self._step[0], j * CHUNK * self._step[1]
        rows, columns = footprint(y, self._step[0], high), footprint(x, self._step[1], wide)
        source = self.finer.read(columns.start, rows.start, len(columns), len(rows))
        tile = resample(source, (high, wide), (y - rows.start, x - columns.start), self._step)
        with self._lock:
            self._tiles[i, j] = tile
            while len(self._tiles) > CACHED_TILES:
                self._tiles.popitem(last=False)
        return tile


def pyramid(slide: LazySlide) -> list[LevelArray]:
    """Return a slide's levels, finest first, down to one that is small enough to be held in memory."""
    levels: list[LevelArray] = [StoredLevel(slide, i) for i in range(len(slide.level_dimensions))]
    while max(levels[-1].shape) > OVERVIEW_PX:
        levels.append(ComputedLevel(levels[-1]))
    return levels


def _shown_size(slide: LazySlide, level: int) -> tuple[int, int]:
    """Return width and height under which a stored level is shown.

    napari takes the ratio of the shapes for a level's downsample, but scanners shrink by whole factors
    and cut off the rest: 13835 px become 864 at 16x. One px more or less, where that comes closer,
    keeps every pixel within half a px (of its level) of its true place.
    """
    shown = []
    for full, stored in zip(slide.level_dimensions[0], slide.level_dimensions[level], strict=True):
        nearest = round(full / slide.level_downsamples[level])
        shown.append(nearest if abs(nearest - stored) == 1 and nearest > 0 else stored)
    return shown[0], shown[1]


def _three(key: Any) -> tuple[Any, Any, Any]:
    """Return an index as one entry for each of the three axes."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (4 - len(parts))
    parts += [slice(None)] * (3 - len(parts))
    if len(parts) != 3:
        raise IndexError(f"a slide has 3 axes (rows, columns, channels), not {len(parts)}")
    return parts[0], parts[1], parts[2]


def _span(part: Any, length: int) -> tuple[int, int, Any]:
    """Return start and length of what an index needs along an axis, and the index into that."""
    if isinstance(part, slice):
        wanted = range(*part.indices(length))
        if not wanted:
            return 0, 0, slice(None)
        first, last = min(wanted[0], wanted[-1]), max(wanted[0], wanted[-1])
        return first, last - first + 1, slice(None, None, wanted.step)
    try:
        index = range(length)[part]
    except TypeError:
        raise TypeError(f"a slide is indexed by integers and slices, not by {part!r}") from None
    return index, 1, 0
