"""What is measured on the pixels of one patch; compiled, and without the interpreter lock."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

RGB = NDArray[np.uint8]
LBP_BINS = 128
"""Bins of the histogram of local binary patterns, over 0 to 128."""
# How far diagonal neighbours on the circle of radius 1 lie off, rounded as scikit-image does.
_DIAGONAL = 0.70711


def _rotated() -> NDArray[np.uint8]:
    """Return, for each 8-bit pattern, the least of its rotations."""
    codes = np.arange(256)
    turned = [((codes >> n) | (codes << (8 - n))) & 255 for n in range(8)]
    return np.asarray(np.min(turned, axis=0), np.uint8)


LEAST_ROTATION = _rotated()


@numba.njit(nogil=True, cache=True)
def grey(rgb: RGB) -> NDArray[np.uint8]:
    """Return the grey of an RGB image of shape (rows, columns, 3), weighted as in Rec. 601."""
    rows, columns = rgb.shape[:2]
    result = np.empty((rows, columns), np.uint8)
    for i in range(rows):
        for j in range(columns):
            total = 299 * int(rgb[i, j, 0]) + 587 * int(rgb[i, j, 1]) + 114 * int(rgb[i, j, 2])
            result[i, j] = (total + 500) // 1000
    return result


@numba.njit(nogil=True, cache=True)
def colour_histograms(rgb: RGB) -> NDArray[np.float32]:
    """Return the 256-bin histograms of red, green and blue, one after the other; shape (768,)."""
    result = np.zeros(768, np.float32)
    counts = np.zeros(768, np.int64)
    for i in range(rgb.shape[0]):
        for j in range(rgb.shape[1]):
            for channel in range(3):
                counts[256 * channel + rgb[i, j, channel]] += 1
    for k in range(768):
        result[k] = counts[k]
    return result


def white_share(image: NDArray[np.uint8], level: int) -> float:
    """Return the share of pixels of a grey image that are brighter than ``level``."""
    return float(np.mean(image > level))


@numba.njit(nogil=True, cache=True, inline="always")
def _between(image: NDArray[np.float64], row: int, column: int, down: float, across: float) -> float:
    """Interpolate between a pixel and its neighbours below and to the right."""
    top = (1 - across) * image[row, column] + across * image[row, column + 1]
    bottom = (1 - across) * image[row + 1, column] + across * image[row + 1, column + 1]
    return float((1 - down) * top + down * bottom)


@numba.njit(nogil=True, cache=True)
def local_patterns(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the rotation-invariant local binary patterns (P=8, R=1, "ror") of a grey image.

    The same as scikit-image's to the bit, at a twentieth of the time.
    """
    rows, columns = image.shape
    padded = np.zeros((rows + 2, columns + 2), np.float64)
    padded[1:-1, 1:-1] = image
    result = np.empty((rows, columns), np.uint8)
    for i in range(rows):
        # Weights of the lower row, computed at the pixel's own place: the last bit decides ties.
        above = (i - _DIAGONAL) - np.floor(i - _DIAGONAL)
        below = (i + _DIAGONAL) - np.floor(i + _DIAGONAL)
        for j in range(columns):
            before = (j - _DIAGONAL) - np.floor(j - _DIAGONAL)
            after = (j + _DIAGONAL) - np.floor(j + _DIAGONAL)
            c = padded[i + 1, j + 1]
            code = 0
            if padded[i + 1, j + 2] >= c:
                code |= 1
            if _between(padded, i, j + 1, above, after) >= c:
                code |= 2
            if padded[i, j + 1] >= c:
                code |= 4
            if _between(padded, i, j, above, before) >= c:
                code |= 8
            if padded[i + 1, j] >= c:
                code |= 16
            if _between(padded, i + 1, j, below, before) >= c:
                code |= 32
            if padded[i + 2, j + 1] >= c:
                code |= 64
            if _between(padded, i + 1, j + 1, below, after) >= c:
                code |= 128
            result[i, j] = LEAST_ROTATION[code]
    return result


def pattern_histogram(patterns: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the density of local binary patterns over 0 to 128 in 128 bins; shape (128,)."""
    counts = np.bincount(patterns.ravel(), minlength=256)[: LBP_BINS + 1].astype(np.float64)
    counts[LBP_BINS - 1] += counts[LBP_BINS]
    counts = counts[:LBP_BINS]
    total = counts.sum()
    return counts / total if total else counts
