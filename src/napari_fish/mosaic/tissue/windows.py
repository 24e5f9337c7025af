"""What is measured in a square around every pixel of an overview; compiled, each pixel read once or twice."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]


@numba.njit(nogil=True, cache=True, inline="always")
def _mirrored(place: int, count: int) -> int:
    """Return the place inside an axis that one outside of it mirrors."""
    while place < 0 or place >= count:
        place = -place - 1 if place < 0 else 2 * count - place - 1
    return place


@numba.njit(nogil=True, cache=True)
def mean_and_texture(rgb: NDArray[np.uint8], table: Floats, side: int) -> tuple[Floats, Floats]:
    """Return mean, shape (rows, columns, 3), and standard deviation, shape (rows, columns), of ``table[rgb]`` in squares.

    The border is mirrored; the variance is averaged over red, green and blue.

    Parameters
    ----------
    rgb : ndarray of uint8, shape (rows, columns, 3)
        The overview.
    table : ndarray of float32, shape (256,)
        What an intensity stands for.
    side : int
        Px of a square; odd.
    """
    rows, columns = rgb.shape[:2]
    half, area = side // 2, float(side * side)
    mean = np.empty((rows, columns, 3), np.float32)
    texture = np.empty((rows, columns), np.float32)
    values = table.astype(np.float64)
    sums = np.zeros((columns, 4))
    total = np.empty(4)
    for i in range(-half, rows + half):
        new = _mirrored(i, rows)
        old = _mirrored(i - side, rows)
        for j in range(columns):
            for channel in range(3):
                value = values[rgb[new, j, channel]]
                gone = values[rgb[old, j, channel]] if i - side >= -half else 0.0
                sums[j, channel] += value - gone
                sums[j, 3] += value * value - gone * gone
        row = i - half
        if row < 0:
            continue
        total[:] = 0
        for j in range(-half, columns + half):
            total += sums[_mirrored(j, columns)]
            if j - side >= -half:
                total -= sums[_mirrored(j - side, columns)]
            column = j - half
            if column >= 0:
                variance = total[3] / area
                for channel in range(3):
                    average = total[channel] / area
                    mean[row, column, channel] = average
                    variance -= average * average
                texture[row, column] = np.sqrt(max(variance / 3, 0.0))
    return mean, texture


@numba.njit(nogil=True, cache=True)
def densities(rgb: NDArray[np.uint8], table: Floats, light: NDArray[np.float64]) -> tuple[Floats, Floats]:
    """Return how much darker than the light on it each px is, shape (rows, columns, 3), and the most of the three.

    Parameters
    ----------
    rgb : ndarray of uint8, shape (rows, columns, 3)
        The overview.
    table : ndarray of float32, shape (256,)
        Logarithm of the light of an intensity.
    light : ndarray of float64, shape (6, 3)
        Logarithm of the light without tissue: factors of 1, y, x, y², x², xy, where y and x run from -1 to 1.
    """
    rows, columns = rgb.shape[:2]
    density = np.empty((rows, columns, 3), np.float32)
    dark = np.empty((rows, columns), np.float32)
    for i in range(rows):
        y = 2.0 * i / max(1, rows - 1) - 1
        for j in range(columns):
            x = 2.0 * j / max(1, columns - 1) - 1
            most = np.float32(-np.inf)
            for c in range(3):
                start = light[0, c] + y * (light[1, c] + y * light[3, c])
                field = start + x * (light[2, c] + y * light[5, c] + x * light[4, c])
                value = np.float32(field - table[rgb[i, j, c]])
                density[i, j, c] = value
                most = max(most, value)
            dark[i, j] = most
    return density, dark


@numba.njit(nogil=True, cache=True)
def _any_within(mask: Mask, before: int, after: int, wanted: bool) -> Mask:
    """Return where any px from ``before`` px up and left to ``after`` px down and right is as wanted."""
    rows, columns = mask.shape
    across = np.empty((rows, columns), np.bool_)
    for i in range(rows):
        last = -1 - before
        for j in range(-after, columns):
            if j + after < columns and mask[i, j + after] == wanted:
                last = j + after
            if j >= 0:
                across[i, j] = last >= j - before
    result = np.empty((rows, columns), np.bool_)
    counts = np.zeros(columns, np.int32)
    for i in range(-after, rows):
        if i + after < rows:
            for j in range(columns):
                counts[j] += across[i + after, j]
        if i - before - 1 >= 0:
            for j in range(columns):
                counts[j] -= across[i - before - 1, j]
        if i >= 0:
            for j in range(columns):
                result[i, j] = counts[j] > 0
    return result


def grown(mask: Mask, side: int) -> Mask:
    """Return where any px of a square of ``side`` px around is set; of an even square the middle lies right of centre."""
    return np.asarray(_any_within(mask, side // 2, (side - 1) // 2, True))


def closed(mask: Mask, side: int) -> Mask:
    """Close gaps up to ``side`` px; the border closes nothing."""
    padded = _any_within(np.pad(mask, side, mode="edge"), side // 2, (side - 1) // 2, True)
    result = ~_any_within(padded, (side - 1) // 2, side // 2, False)
    return np.asarray(result[side:-side, side:-side] | mask)


def opened(mask: Mask, side: int) -> Mask:
    """Leave out what is narrower than ``side`` px; the border cuts nothing."""
    padded = ~_any_within(np.pad(mask, side, mode="edge"), side // 2, (side - 1) // 2, False)
    result = _any_within(padded, (side - 1) // 2, side // 2, True)
    return np.asarray(result[side:-side, side:-side] & mask)


@numba.njit(nogil=True, cache=True)
def tightened(mask: Mask, dark: Floats, share: float) -> Mask:
    """Leave out what at the rim is paler than ``share`` of the darkest of two px around."""
    rows, columns = mask.shape
    rim = _any_within(mask, 2, 2, False)
    result = mask.copy()
    for i in range(rows):
        for j in range(columns):
            if mask[i, j] and rim[i, j]:
                most = dark[i, j]
                for y in range(max(0, i - 2), min(rows, i + 3)):
                    for x in range(max(0, j - 2), min(columns, j + 3)):
                        most = max(most, dark[y, x])
                result[i, j] = dark[i, j] >= share * most
    return result
