"""Patches that hold much tissue and leave little of it out: a grid over each piece, then what the grid misses."""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.tissue import Tissue

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
        self.sums = _sums(tissue.labels > 0)
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

    def take(self, x: int, y: int) -> None:
        """Choose a patch."""
        self.chosen.append((x, y))
        (left,), (right,) = self.edges(np.array([x]), 0)
        (top,), (bottom,) = self.edges(np.array([y]), 1)
        self.covered[top:bottom, left:right] = True


def _cover(area: _Area, label: int, box: tuple[slice, ...], least: float) -> None:
    """Choose the patches of one piece of tissue."""
    xs, on_grid_x = _positions(area, box[1], 0)
    ys, on_grid_y = _positions(area, box[0], 1)
    # Only the piece's own surroundings are looked at, however large the slide.
    top, left = int(area.edges(ys[:1], 1)[0][0]), int(area.edges(xs[:1], 0)[0][0])
    bottom, right = int(area.edges(ys[-1:], 1)[1][0]), int(area.edges(xs[-1:], 0)[1][0])
    near = (slice(top, bottom), slice(left, right))
    own = area.labels[near] == label
    shares = _counted(area.sums, area, xs, ys) / area.full
    held = _counted(_sums(own), area, xs, ys, (left, top))
    enough = min(least, OF_BEST * float(shares[2 * held >= held.max()].max()))
    for i, j in np.argwhere(np.outer(on_grid_y, on_grid_x) & (held > 0) & (shares >= enough)).tolist():
        area.take(int(xs[j]), int(ys[i]))
    missing = own & ~area.covered[near]
    # Thin ends of a large piece have no patch that is good enough; better a poor one than none.
    for limit, wanted in ((enough, ENOUGH), (enough / 2, NEEDED), (0.0, NEEDED)):
        allowed = int((1 - wanted) * own.sum())
        _fill(area, missing, (left, top), (xs, ys), shares >= limit, allowed, int(0.1 * own.sum()))


def _fill(
    area: _Area,
    missing: NDArray[np.bool_],
    origin: tuple[int, int],
    places: tuple[NDArray[np.int64], NDArray[np.int64]],
    good: NDArray[np.bool_],
    allowed: int,
    tolerable: int,
) -> None:
    """Choose the patches that hold most of what is missing, until no more than ``allowed`` px are."""
    xs, ys = places
    left_out = int(missing.sum())
    if left_out <= allowed:
        return
    gains = _counted(_sums(missing), area, xs, ys, origin)
    heap = [(-int(gains[i, j]), i, j) for i, j in np.argwhere((gains > 0) & good).tolist()]
    heapq.heapify(heap)
    while heap and left_out > allowed:
        promised, row, column = heapq.heappop(heap)
        (first_x,), (last_x,) = (edge - origin[0] for edge in area.edges(xs[column : column + 1], 0))
        (first_y,), (last_y,) = (edge - origin[1] for edge in area.edges(ys[row : row + 1], 1))
        gain = int(missing[first_y:last_y, first_x:last_x].sum())
        if gain < -promised:
            if gain:
                heapq.heappush(heap, (-gain, row, column))
            continue
        if left_out <= tolerable and gain < LEAST_GAIN * area.full:
            break
        area.take(int(xs[column]), int(ys[row]))
        missing[first_y:last_y, first_x:last_x] = False
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


def _sums(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many pixels are set above and to the left of each corner."""
    return np.pad(mask.astype(np.int64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))


def _counted(
    sums: NDArray[np.int64],
    area: _Area,
    xs: NDArray[np.int64],
    ys: NDArray[np.int64],
    origin: tuple[int, int] = (0, 0),
) -> NDArray[np.int64]:
    """Return how many pixels are set in each patch, shape (rows, columns)."""
    left, right = (edge - origin[0] for edge in area.edges(xs, 0))
    top, bottom = (edge - origin[1] for edge in area.edges(ys, 1))
    return np.asarray(
        sums[bottom][:, right] - sums[top][:, right] - sums[bottom][:, left] + sums[top][:, left], np.int64
    )
