"""Polygons in level-0 px: how large they are, and which px of a picture they cover."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Polygon = Sequence[ArrayLike]
"""Rings of corners (x, y) in level-0 px: the outline, then its holes."""
Points = NDArray[np.float64]
FARTHEST = 2.0**31
"""Level-0 px: no slide is as large as this."""


def as_points(ring: ArrayLike) -> Points:
    """Return the corners of a ring, shape (n, 2); a ValueError where they cannot be those of a slide."""
    points = np.asarray(ring, np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ValueError("a ring must be a list of finite x, y pairs")
    if np.abs(points).max(initial=0) > FARTHEST:
        raise ValueError("a corner lies farther out than any slide is large")
    return points


def draw(polygons: Sequence[Polygon], dimensions: tuple[int, int], step: float) -> NDArray[np.bool_]:
    """Draw polygons, holes left out, on a picture of the slide with ``step`` level-0 px a px."""
    width, height = (max(1, math.ceil(side / step)) for side in dimensions)
    result = np.zeros((height, width), bool)
    for polygon in polygons:
        rings = [as_points(ring) / step for ring in polygon]
        if not rings or len(rings[0]) < 3:
            continue
        covered, (top, left) = _filled(rings[0], (height, width))
        if not covered.any():
            _mark_middle(result, rings[0])
            continue
        for hole in (ring - (left, top) for ring in rings[1:] if len(ring) >= 3):
            empty, (row, column) = _filled(hole, covered.shape)
            covered[row : row + empty.shape[0], column : column + empty.shape[1]] &= ~empty
        rows, columns = covered.shape
        result[top : top + rows, left : left + columns] |= covered
    return result


def _mark_middle(picture: NDArray[np.bool_], ring: Points) -> None:
    """Mark the px around a polygon that is smaller than one: what somebody marked must not vanish."""
    column, row = np.floor(ring.mean(axis=0)).astype(np.int64).tolist()
    if 0 <= row < picture.shape[0] and 0 <= column < picture.shape[1]:
        picture[row, column] = True


def _filled(ring: Points, shape: tuple[int, ...]) -> tuple[NDArray[np.bool_], tuple[int, int]]:
    """Return the px whose middle lies within a ring, cut out around it, and the row and column of the cut."""
    x, y = ring.T
    other_x, other_y = np.roll(x, -1), np.roll(y, -1)
    # Edges cross the rows whose middle lies between their ends; each crossing turns inside into outside.
    low = np.ceil(np.minimum(y, other_y) - 0.5).clip(0, shape[0]).astype(np.int64)
    high = np.ceil(np.maximum(y, other_y) - 0.5).clip(0, shape[0]).astype(np.int64)
    top, bottom = int(low.min()), int(high.max())
    left, right = (int(np.clip(math.ceil(end - 0.5), 0, shape[1])) for end in (x.min(), x.max()))
    turns = np.zeros((max(0, bottom - top), max(0, right - left) + 1), np.uint8)
    counts = high - low
    edge = np.repeat(np.arange(len(x)), counts)
    row = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts) + low[edge]
    share = (row + 0.5 - y[edge]) / (other_y[edge] - y[edge])
    column = np.ceil(x[edge] + share * (other_x[edge] - x[edge]) - 0.5).clip(left, right).astype(np.int64)
    np.bitwise_xor.at(turns, (row - top, column - left), np.uint8(1))
    return np.bitwise_xor.accumulate(turns, axis=1)[:, :-1].astype(bool), (top, left)


def share_inside(polygons: Sequence[Polygon], dimensions: tuple[int, int]) -> float:
    """Return how much of the area of polygons, holes not regarded, lies on the slide: 0 to 1."""
    total = inside = 0.0
    size = np.asarray(dimensions, np.float64)
    for polygon in polygons:
        ring = as_points(polygon[0]) if len(polygon) else np.empty((0, 2))
        if len(ring) < 3:
            continue
        area = _area(ring)
        total += area
        if ((ring >= 0) & (ring <= size)).all():
            inside += area
        elif (ring.max(axis=0) > 0).all() and (ring.min(axis=0) < size).all():
            inside += _area(_clipped(ring, dimensions))
    return inside / total if total else 1.0


def _clipped(ring: Points, dimensions: tuple[int, int]) -> Points:
    """Return what of a ring lies on the slide, cut along one border after the other."""
    width, height = dimensions
    for axis, border, sign in ((0, 0, 1), (0, width, -1), (1, 0, 1), (1, height, -1)):
        depth = sign * (ring[:, axis] - border)
        after, depth_after = np.roll(ring, -1, axis=0), np.roll(depth, -1)
        crosses = (depth >= 0) != (depth_after >= 0)
        share = np.divide(depth, depth - depth_after, out=np.zeros_like(depth), where=crosses)
        crossings = ring + share[:, None] * (after - ring)
        kept = np.stack([depth >= 0, crosses], axis=1)
        ring = np.stack([ring, crossings], axis=1)[kept]
    return ring


def _area(ring: Points) -> float:
    if len(ring) < 3:
        return 0.0
    x, y = (ring - ring[0]).T
    return abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))) / 2
