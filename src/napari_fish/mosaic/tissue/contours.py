"""Outlines of tissue as polygons with holes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numba
import numpy as np
from numpy.typing import NDArray

Ring = tuple[tuple[float, float], ...]
"""Corners (x, y) of a polygon in level-0 px; the last is not repeated."""
TOLERANCE = 0.6
"""How far a simplified outline may stray, in px of the overview."""


@dataclass(frozen=True)
class Contour:
    """Outline of one piece of tissue.

    Attributes
    ----------
    outer : tuple of (float, float)
        Corners (x, y) in level-0 px.
    holes : tuple of rings
        Outlines of the holes, in the same form.
    area_um2 : float
        Area of the tissue without its holes in µm².
    """

    outer: Ring
    holes: tuple[Ring, ...]
    area_um2: float


def trace(
    piece: NDArray[np.bool_], box: tuple[slice, ...], scale: tuple[float, float], mpp: float
) -> Contour:
    """Trace a piece of tissue.

    Parameters
    ----------
    piece : ndarray of bool, shape (rows, columns)
        The piece, cut out of an overview; connected, also over corners.
    box : tuple of slice
        Where it was cut out: rows and columns of the overview.
    scale : tuple of float
        Level-0 px per px of the overview, along x and y.
    mpp : float
        µm per level-0 px.
    """
    from skimage.measure import find_contours

    lines = find_contours(np.pad(piece, 1).astype(np.float32), 0.5, fully_connected="high")
    lines.sort(key=lambda line: -abs(_area(line)))
    rings = []
    for line in lines:
        simple = line[simplified(line, TOLERANCE)]
        if len(simple) < 4:
            simple = line
        # find_contours counts from pixel centres, a level-0 position from the pixel's corner; the
        # padding of one pixel is taken off again.
        y = (simple[:-1, 0] - 0.5 + box[0].start) * scale[1]
        x = (simple[:-1, 1] - 0.5 + box[1].start) * scale[0]
        rings.append(tuple((round(float(a), 1), round(float(b), 1)) for a, b in zip(x, y, strict=True)))
    area = float(piece.sum()) * scale[0] * scale[1] * mpp**2
    return Contour(rings[0], tuple(rings[1:]), round(area, 1))


@numba.njit(nogil=True, cache=True)
def simplified(line: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
    """Return which points of a line, shape (n, 2), stay where none may stray by more than a tolerance.

    Douglas and Peucker's rule; scikit-image's, which is not compiled, took longer than finding the tissue.
    """
    stays = np.zeros(len(line), np.bool_)
    stays[0] = stays[-1] = True
    stack = [(0, len(line) - 1)]
    while stack:
        start, end = stack.pop()
        y, x = line[start]
        down, across = line[end, 0] - y, line[end, 1] - x
        length = np.hypot(down, across)
        farthest, place = tolerance, -1
        for i in range(start + 1, end):
            dy, dx = line[i, 0] - y, line[i, 1] - x
            along = dy * down + dx * across
            if 0 < along < length * length:
                distance = abs(dy * across - dx * down) / length
            else:
                distance = min(np.hypot(dy, dx), np.hypot(dy - down, dx - across))
            if distance > farthest:
                farthest, place = distance, i
        if place >= 0:
            stays[place] = True
            stack.append((place, end))
            stack.append((start, place))
    return stays


def within(contours: Sequence[Contour], dimensions: tuple[int, int]) -> tuple[Contour, ...]:
    """Return outlines that do not leave the slide: the last px of an overview reaches beyond its border."""
    width, height = dimensions

    def inside(ring: Ring) -> Ring:
        return tuple((min(max(x, 0.0), width), min(max(y, 0.0), height)) for x, y in ring)

    return tuple(replace(c, outer=inside(c.outer), holes=tuple(map(inside, c.holes))) for c in contours)


def _area(line: NDArray[np.float64]) -> float:
    """Signed area of a closed line of shape (n, 2)."""
    y, x = line[:, 0], line[:, 1]
    return float(np.sum(y[:-1] * x[1:] - y[1:] * x[:-1]) / 2)
