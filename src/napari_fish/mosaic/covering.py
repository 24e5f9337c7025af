"""Patches that hold much tissue and leave little of it out: a grid over each piece, then what the grid misses."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.tissue.find import Tissue

STEPS = 4
"""Positions along a patch at which another may begin."""
ENOUGH = 0.98
"""Share of a piece of tissue that patches should cover; beyond it no patch is added."""
NEEDED = 0.97
"""Share for which patches with little tissue are taken, where others do not reach it."""
LEAST_GAIN = 0.03
"""Share of a patch that must be new tissue, once nine tenths of a piece are covered."""
OF_BEST = 0.8
"""A thin piece has no patch that is half tissue; those with this share of its best one are good enough."""


def covering_patches(
    tissue: Tissue, size: int, dimensions: tuple[int, int], least: float
) -> list[NDArray[np.int64]]:
    """Return the corners of patches that cover the tissue.

    Parameters
    ----------
    tissue : Tissue
        Where there is tissue.
    size : int
        Side of a patch in level-0 px.
    dimensions : tuple of int
        Width and height of the slide in level-0 px; no patch reaches beyond it, unless it is smaller than a patch.
    least : float
        Share of a patch that must be tissue, where the piece of tissue has such patches.

    Returns
    -------
    list of ndarray of int64, each of shape (n, 2)
        Corners x, y in level-0 px. Those of one array lie on one grid of ``size`` px.
    """
    area = _Area(tissue, size, dimensions)
    for label, box in enumerate(ndimage.find_objects(tissue.labels), start=1):
        _cover(area, label, box, least)
    found = np.array(area.chosen, np.int64).reshape(-1, 2)
    _, grids = np.unique(found % size, axis=0, return_inverse=True)
    grids = grids.ravel()
    result = []
    for grid in range(grids.max() + 1):
        corners = np.unique(found[grids == grid], axis=0)
        result.append(corners[np.lexsort((corners[:, 0], corners[:, 1]))])
    return result


class _Area:
    """Tissue, and what of it patches cover so far."""

    def __init__(self, tissue: Tissue, size: int, dimensions: tuple[int, int]) -> None:
        self.labels, self.scale = tissue.labels, tissue.scale
        self.size, self.dimensions = size, dimensions
        self.covered = np.zeros(tissue.labels.shape, bool)
        self.chosen: list[tuple[int, int]] = []
        self.full = (size / tissue.scale[0]) * (size / tissue.scale[1])

    def inside(self, places: NDArray[np.float64], axis: int) -> NDArray[np.int64]:
        """Move positions so that patches lie inside the slide; each once."""
        most = max(0, self.dimensions[axis] - self.size)
        return np.asarray(np.unique(np.clip(np.floor(places), 0, most)), np.int64)

    def edges(self, places: NDArray[np.int64], axis: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where patches begin and end on the overview."""
        count = self.labels.shape[1 - axis]
        first = np.round(places / self.scale[axis]).astype(np.int64)
        last = np.round((places + self.size) / self.scale[axis]).astype(np.int64)
        return np.minimum(first, count), np.clip(last, 0, count)


@dataclass(frozen=True, eq=False)
class _Places:
    """Where patches over a piece may lie: their corners, and the px of the overview that they begin and end at."""

    xs: NDArray[np.int64]
    ys: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    top: NDArray[np.int64]
    bottom: NDArray[np.int64]

    def counted(self, mask: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return how many px are set in each patch, shape (rows, columns); the mask begins where the first patch does."""
        sums = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1), np.int32)
        np.cumsum(mask, axis=0, dtype=np.int32, out=sums[1:, 1:])
        np.cumsum(sums[1:, 1:], axis=1, out=sums[1:, 1:])
        below, above = sums[self.bottom - self.top[0]], sums[self.top - self.top[0]]
        between = below - above
        return np.asarray(between[:, self.right - self.left[0]] - between[:, self.left - self.left[0]])

    def take(self, area: _Area, row: int, column: int) -> None:
        """Choose a patch."""
        area.chosen.append((int(self.xs[column]), int(self.ys[row])))
        area.covered[self.top[row] : self.bottom[row], self.left[column] : self.right[column]] = True


def _cover(area: _Area, label: int, box: tuple[slice, ...], least: float) -> None:
    """Choose the patches of one piece of tissue."""
    xs, on_grid_x = _positions(area, box[1], 0)
    ys, on_grid_y = _positions(area, box[0], 1)
    places = _Places(xs, ys, *area.edges(xs, 0), *area.edges(ys, 1))
    # Only the piece's own surroundings are looked at, however large the slide.
    near = (slice(places.top[0], places.bottom[-1]), slice(places.left[0], places.right[-1]))
    own = area.labels[near] == label
    shares = places.counted(area.labels[near] > 0) / area.full
    held = places.counted(own)
    enough = min(least, OF_BEST * float(shares[2 * held >= held.max()].max()))
    for i, j in np.argwhere(np.outer(on_grid_y, on_grid_x) & (held > 0) & (shares >= enough)).tolist():
        places.take(area, i, j)
    missing = own & ~area.covered[near]
    size = int(np.count_nonzero(own))
    # Thin ends of a large piece have no patch that is good enough; better a poor one than none.
    for limit, wanted in ((enough, ENOUGH), (enough / 2, NEEDED), (0.0, NEEDED)):
        _fill(area, missing, places, shares >= limit, int((1 - wanted) * size), int(0.1 * size))


def _fill(
    area: _Area,
    missing: NDArray[np.bool_],
    places: _Places,
    good: NDArray[np.bool_],
    allowed: int,
    tolerable: int,
) -> None:
    """Choose the patches that hold most of what is missing, until no more than ``allowed`` px are."""
    left_out = int(np.count_nonzero(missing))
    if left_out <= allowed:
        return
    gains = places.counted(missing)
    heap = [(-int(gains[i, j]), i, j) for i, j in np.argwhere((gains > 0) & good).tolist()]
    heapq.heapify(heap)
    while heap and left_out > allowed:
        promised, row, column = heapq.heappop(heap)
        y, x = places.top[0], places.left[0]
        inside = missing[
            places.top[row] - y : places.bottom[row] - y, places.left[column] - x : places.right[column] - x
        ]
        gain = int(np.count_nonzero(inside))
        if gain < -promised:
            if gain:
                heapq.heappush(heap, (-gain, row, column))
            continue
        if left_out <= tolerable and gain < LEAST_GAIN * area.full:
            break
        places.take(area, row, column)
        inside[:] = False
        left_out -= gain


def _positions(area: _Area, span: slice, axis: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where patches over a piece may begin along an axis, and which of these are the grid's."""
    first, last = span.start * area.scale[axis], span.stop * area.scale[axis]
    count = max(1, math.ceil((last - first) / area.size - 1e-6))
    # As few patches as can be are moved for the slide's edge: those that stay on one grid are read together.
    start = np.clip(
        (first + last - count * area.size) / 2, 0, max(0, area.dimensions[axis] - count * area.size)
    )
    grid = area.inside(start + area.size * np.arange(count), axis)
    every = start + area.size / STEPS * np.arange(1 - STEPS, STEPS * count)
    places = np.union1d(area.inside(every, axis), grid)
    return places, np.isin(places, grid)
