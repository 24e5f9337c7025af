"""What is measured on the parts of a patch: texture, colour and sharpness of tiles 128 µm wide."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from napari_fish.mosaic.measure import LEAST_ROTATION, RGB

TILE = 64
"""Side of a tile in px at 5x."""
GLASS_DENSITY = 0.35
"""Optical density (natural logarithm, summed over red, green and blue) below which a pixel is glass."""
NOISE = 0.3
"""Variance in grey levels that JPEG and the sensor leave on the flattest tissue."""
ROUNDING = 0.05
"""Variance in grey levels that rounding to whole numbers leaves."""
_CODES = np.unique(LEAST_ROTATION)
_CODE_NUMBER = np.zeros(256, np.int64)
_CODE_NUMBER[_CODES] = np.arange(len(_CODES))
_DENSITY = (-np.log((np.arange(256) + 1) / 256)).astype(np.float64)
_QUANTILE_BINS = 160

FEATURES: tuple[str, ...] = (
    *(f"pattern {code}" for code in _CODES),
    *(f"mean density {c}" for c in "RGB"),
    *(f"spread of density {c}" for c in "RGB"),
    *(f"mean density of tissue {c}" for c in "RGB"),
    *(f"hue {c}" for c in "RGB"),
    *("10 % density", "median density", "90 % density", "98 % density"),
    *("share of tissue", "sharpness", "contrast at 2 µm", "contrast at 4 to 8 µm", "contrast at 16 µm"),
)
"""Names of the columns of :func:`tile_features`."""
FINE, COARSE = FEATURES.index("contrast at 2 µm"), FEATURES.index("contrast at 4 to 8 µm")
TISSUE_SHARE = FEATURES.index("share of tissue")


@numba.njit(nogil=True, cache=True)
def _softened(source: NDArray[np.float32], step: int) -> NDArray[np.float32]:
    """Average with neighbours ``step`` px away, weighted 1-2-1."""
    rows, columns = source.shape
    line = np.empty((rows, columns), np.float32)
    result = np.empty((rows, columns), np.float32)
    quarter, half = np.float32(0.25), np.float32(0.5)
    for i in range(rows):
        up, down = max(0, i - step), min(rows - 1, i + step)
        for j in range(columns):
            line[i, j] = quarter * (source[up, j] + source[down, j]) + half * source[i, j]
    for i in range(rows):
        for j in range(columns):
            left, right = max(0, j - step), min(columns - 1, j + step)
            result[i, j] = quarter * (line[i, left] + line[i, right]) + half * line[i, j]
    return result


@numba.njit(nogil=True, cache=True)
def _bands(grey: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return the squared detail of an image at one px, at two and four px, and at eight (à-trous wavelets)."""
    whole = grey.astype(np.float32)
    first = _softened(whole, 1)
    third = _softened(_softened(first, 2), 4)
    # Two octaves at once, so that something is left to compare with when an image is very blurred.
    return (whole - first) ** 2, (first - third) ** 2, (third - _softened(third, 8)) ** 2


@numba.njit(nogil=True, cache=True)
def _quantile(counts: NDArray[np.int64], share: float) -> float:
    """Return a quantile of sums of densities counted in bins of 0.1."""
    wanted = share * counts.sum()
    below = 0
    for k in range(len(counts)):
        below += counts[k]
        if below >= wanted:
            return 0.1 * (k + 0.5)
    return 0.1 * len(counts)


@numba.njit(nogil=True, cache=True)
def tile_features(rgb: RGB, grey: NDArray[np.uint8], patterns: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Describe each tile of a patch.

    Parameters
    ----------
    rgb : ndarray of uint8, shape (rows, columns, 3)
        The patch at 5x; rows and columns beyond a multiple of `TILE` are left out.
    grey, patterns : ndarray of uint8, shape (rows, columns)
        Its grey and its local binary patterns.

    Returns
    -------
    ndarray of float64, shape (tiles, len(FEATURES))
        Row by row.
    """
    down, across = rgb.shape[0] // TILE, rgb.shape[1] // TILE
    result = np.zeros((down * across, 57))
    fine, coarse, coarser = _bands(grey)
    pixels = TILE * TILE
    for tile in range(down * across):
        top, left = tile // across * TILE, tile % across * TILE
        row = result[tile]
        counts = np.zeros(_QUANTILE_BINS, np.int64)
        squares = np.zeros(3)
        tissue = 0
        fine_sum = coarse_sum = coarser_sum = 0.0
        for i in range(top, top + TILE):
            for j in range(left, left + TILE):
                row[_CODE_NUMBER[patterns[i, j]]] += 1
                fine_sum += fine[i, j]
                coarse_sum += coarse[i, j]
                coarser_sum += coarser[i, j]
                total = 0.0
                for c in range(3):
                    density = _DENSITY[rgb[i, j, c]]
                    row[36 + c] += density
                    squares[c] += density * density
                    total += density
                counts[min(_QUANTILE_BINS - 1, int(total * 10))] += 1
                if total > GLASS_DENSITY:
                    tissue += 1
                    for c in range(3):
                        row[42 + c] += _DENSITY[rgb[i, j, c]]
        for k in range(39):
            row[k] /= pixels
        for c in range(3):
            row[39 + c] = np.sqrt(max(0.0, squares[c] / pixels - row[36 + c] ** 2))
            row[42 + c] = row[42 + c] / tissue if tissue > 20 else 0.0
        weight = row[42] + row[43] + row[44] + 0.05
        for c in range(3):
            row[45 + c] = row[42 + c] / weight
        for k, share in enumerate((0.1, 0.5, 0.9, 0.98)):
            row[48 + k] = _quantile(counts, share)
        row[52] = tissue / pixels
        fine_sum, coarse_sum = fine_sum / pixels + NOISE, coarse_sum / pixels + NOISE
        row[53] = 0.5 * np.log2(fine_sum / coarse_sum)
        row[54], row[55], row[56] = np.log2(fine_sum), np.log2(coarse_sum), np.log2(coarser_sum / pixels + NOISE)
    return result


def sharpness(tiles: NDArray[np.float64]) -> float:
    """Return the median over the tiles that are mostly tissue of log2(contrast at 2 µm / at 4 to 8 µm)."""
    share = tiles[:, TISSUE_SHARE]
    fine, coarse = tiles[share >= min(0.5, float(share.max()))][:, [FINE, COARSE]].T
    # An image blurred beyond all detail has only rounding errors left; they must not count as detail.
    detail = np.maximum(2.0**fine - NOISE, 0) + ROUNDING
    return float(np.median(0.5 * (np.log2(detail) - coarse)))
