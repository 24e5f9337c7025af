"""Area averaging with exact geometry, and transparency over white."""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from napari_fish.slides.protocol import RGB

# Positions closer than this to a pixel edge are on it: keeps 1e-13 of rounding error from pulling
# in a further row of pixels with weight zero.
EDGE = 1e-6


def footprint(start: float, step: float, count: int) -> range:
    """Return the source pixels under ``count`` result pixels of ``step`` source px from ``start``.

    When enlarging, one more pixel on either side is needed to interpolate.
    """
    margin = 0.0 if step >= 1 else 0.5
    first = math.floor(start - margin + EDGE)
    last = math.ceil(start + count * step + margin - EDGE)
    return range(first, max(last, first + 1))


def resample(
    source: RGB, shape: tuple[int, int], start: tuple[float, float], step: tuple[float, float]
) -> RGB:
    """Resample an RGB image by area averaging, or bilinearly when enlarging.

    Parameters
    ----------
    source : ndarray of uint8, shape (rows, columns, 3)
        Pixels; pixel ``i`` covers positions ``i`` to ``i + 1``. Outside of them everything is white.
    shape : tuple of int
        Rows and columns of the result.
    start : tuple of float
        Source position (y, x) of the result's top left corner.
    step : tuple of float
        Source px (y, x) per px of the result.

    Returns
    -------
    ndarray of uint8, shape (*shape, 3)
        The resampled image; every source pixel weighs as much as the area it shares with the result.
    """
    if all(abs(s - 1) < EDGE for s in step) and all(abs(o - round(o)) < EDGE for o in start):
        top, left = round(start[0]), round(start[1])
        if min(top, left) >= 0 and top + shape[0] <= source.shape[0] and left + shape[1] <= source.shape[1]:
            return source[top : top + shape[0], left : left + shape[1]]
    row_first, row_weights = _weights(start[0], step[0], shape[0], source.shape[0])
    column_first, column_weights = _weights(start[1], step[1], shape[1], source.shape[1])
    source = np.ascontiguousarray(source)
    return _separable(source, row_first, row_weights, column_first, column_weights)  # type: ignore[no-any-return]


def over_white(rgba: NDArray[np.uint8]) -> RGB:
    """Lay an RGBA image of shape (rows, columns, 4) over white and drop its alpha."""
    return _over_white(np.ascontiguousarray(rgba))  # type: ignore[no-any-return]


def _weights(
    start: float, step: float, count: int, length: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return, for each result pixel along one axis, its first source pixel and the weights from there.

    Weights are shares of the result pixel: they sum to less than 1 where it sticks out of the ``length``
    source pixels.
    """
    index = np.arange(count)
    if step >= 1:
        begin, end = start + index * step, start + (index + 1) * step
    else:
        centre = start + (index + 0.5) * step
        begin, end = centre - 0.5, centre + 0.5
    first = np.floor(begin + EDGE).astype(np.int64)
    taps = int(np.clip(np.max(np.ceil(end - EDGE) - first, initial=1), 1, length))
    # Windows at the ends may hold fewer source pixels than others: begin them inside, with weights 0.
    first = np.clip(first, 0, length - taps)
    pixel = first[:, None] + np.arange(taps)
    share = np.minimum(pixel + 1, end[:, None]) - np.maximum(pixel, begin[:, None])
    return first, (np.clip(share, 0, None) / (end - begin)[:, None]).astype(np.float32)


@numba.njit(nogil=True, cache=True, fastmath=True)
def _separable(
    source: NDArray[np.uint8],
    row_first: NDArray[np.int64],
    row_weights: NDArray[np.float32],
    column_first: NDArray[np.int64],
    column_weights: NDArray[np.float32],
) -> NDArray[np.uint8]:
    rows, columns = len(row_first), len(column_first)
    width = source.shape[1]
    flat = source.reshape(source.shape[0], width * 3)
    line = np.empty(width * 3, np.float32)
    result = np.empty((rows, columns, 3), np.uint8)
    for i in range(rows):
        first = row_first[i]
        covered = row_weights[i].sum()
        weight = row_weights[i, 0]
        row = flat[first]
        for j in range(width * 3):
            line[j] = weight * row[j]
        for tap in range(1, row_weights.shape[1]):
            weight = row_weights[i, tap]
            if weight != 0:
                row = flat[first + tap]
                for j in range(width * 3):
                    line[j] += weight * row[j]
        for j in range(columns):
            red = green = blue = np.float32(0.5) + 255 * max(
                np.float32(0), 1 - covered * column_weights[j].sum()
            )
            at = column_first[j] * 3
            for tap in range(column_weights.shape[1]):
                weight = column_weights[j, tap]
                red += weight * line[at]
                green += weight * line[at + 1]
                blue += weight * line[at + 2]
                at += 3
            result[i, j, 0] = np.uint8(red)
            result[i, j, 1] = np.uint8(green)
            result[i, j, 2] = np.uint8(blue)
    return result


@numba.njit(nogil=True, cache=True)
def _over_white(rgba: NDArray[np.uint8]) -> NDArray[np.uint8]:
    rows, columns = rgba.shape[:2]
    result = np.empty((rows, columns, 3), np.uint8)
    for i in range(rows):
        for j in range(columns):
            alpha = np.int32(rgba[i, j, 3])
            if alpha == 255:
                result[i, j, 0] = rgba[i, j, 0]
                result[i, j, 1] = rgba[i, j, 1]
                result[i, j, 2] = rgba[i, j, 2]
            else:
                for c in range(3):
                    result[i, j, c] = (rgba[i, j, c] * alpha + 255 * (255 - alpha) + 127) // 255
    return result
