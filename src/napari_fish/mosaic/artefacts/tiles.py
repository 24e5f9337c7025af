"""What is measured on the parts of a patch: texture, colour and sharpness of tiles 128 µm wide."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from napari_fish.mosaic.artefacts.edges import DENSITY, EDGE_FEATURES, edge_features, lightest
from napari_fish.mosaic.artefacts.measure import LEAST_ROTATION, RGB

TILE = 64
"""Side of a tile in px at 5x."""
GLASS_DENSITY = 0.35
"""Optical density (natural logarithm, summed over red, green and blue) below which a pixel is glass."""
NOISE = 0.3
"""Variance in grey levels that JPEG and the sensor leave on the flattest tissue."""
ROUNDING = 0.05
"""Variance in grey levels that rounding to whole numbers leaves."""
_CODES = np.unique(LEAST_ROTATION)
_DENSITY = DENSITY.astype(np.float64)
_BINS_PER_DENSITY = 20
_QUANTILE_BINS = 320
_GLASS_BINS = round(GLASS_DENSITY * _BINS_PER_DENSITY)

FEATURES: tuple[str, ...] = (
    *(f"pattern {code}" for code in _CODES),
    *(f"mean density {c}" for c in "RGB"),
    *(f"spread of density {c}" for c in "RGB"),
    *(f"mean density of tissue {c}" for c in "RGB"),
    *(f"hue {c}" for c in "RGB"),
    *("10 % density", "median density", "90 % density", "98 % density"),
    *(f"density {c} of the lightest tenth" for c in "RGB"),
    *(f"density {c} of the darkest tenth" for c in "RGB"),
    *("share of tissue", "sharpness", "contrast at 2 µm", "contrast at 4 to 8 µm", "contrast at 16 µm"),
    *("steps of darkness", "steps of darkness one way", "steps of hue", "steps of hue one way"),
    *EDGE_FEATURES,
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
        # Rows of their own, counted from 0: else the compiler cannot know that no index is negative, and takes px one by one.
        above, below = source[max(0, i - step)], source[min(rows - 1, i + step)]
        here, own = source[i], line[i]
        for j in range(columns):
            own[j] = quarter * (above[j] + below[j]) + half * here[j]
    for i in range(rows):
        for j in range(step):
            last = columns - 1 - j
            result[i, j] = quarter * (line[i, 0] + line[i, j + step]) + half * line[i, j]
            result[i, last] = quarter * (line[i, last - step] + line[i, columns - 1]) + half * line[i, last]
        left, middle, right, out = line[i], line[i, step:], line[i, 2 * step :], result[i, step:]
        for j in range(columns - 2 * step):
            out[j] = quarter * (left[j] + right[j]) + half * middle[j]
    return result


@numba.njit(nogil=True, cache=True)
def _bands(grey: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return the squared detail of an image at one px, at two and four px, and at eight (à-trous wavelets)."""
    whole = grey.astype(np.float32)
    first = _softened(whole, 1)
    third = _softened(_softened(first, 2), 4)
    # Two octaves at once, so that something is left to compare with when an image is very blurred.
    # What is that smooth is all there in every second px.
    small = third[::2, ::2].copy()
    return (whole - first) ** 2, (first - third) ** 2, (small - _softened(small, 4)) ** 2


@numba.njit(nogil=True, cache=True)
def _quantile(counts: NDArray[np.int64], share: float) -> float:
    """Return a quantile of sums of densities counted in bins."""
    wanted = share * counts.sum()
    below = 0
    for k in range(len(counts)):
        below += counts[k]
        if below >= wanted:
            return (k + 0.5) / _BINS_PER_DENSITY
    return len(counts) / _BINS_PER_DENSITY


@numba.njit(nogil=True, cache=True)
def _tenth(counts: NDArray[np.int64], sums: NDArray[np.float64], colour: NDArray[np.float64]) -> None:
    """Write the mean colour of the first tenth of the pixels, or a little more, that were counted in bins."""
    wanted = 0.1 * counts.sum()
    seen = 0
    for k in range(len(counts)):
        seen += counts[k]
        for c in range(3):
            colour[c] += sums[k, c]
        if seen >= wanted:
            break
    for c in range(3):
        colour[c] /= seen


@numba.njit(nogil=True, cache=True)
def _steps(colours: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return how steeply the lightest pixels of squares 8 µm wide change within each tile, and how much one way.

    Under ink and in a fold even the lightest pixels are dark, from one line on; tissue changes every way.
    """
    rows, columns = colours.shape[:2]
    light = np.empty((2, rows, columns))
    for i in range(rows):
        for j in range(columns):
            light[0, i, j] = colours[i, j, 0] + colours[i, j, 1] + colours[i, j, 2]
            light[1, i, j] = colours[i, j, 0] - colours[i, j, 2]
    side = TILE // 4
    down, across = rows // side, columns // side
    result = np.zeros((down * across, 4))
    for tile in range(down * across):
        top, left = tile // across * side, tile % across * side
        for k in range(2):
            along = crossed = energy = 0.0
            for i in range(max(2, top), min(rows - 2, top + side)):
                for j in range(max(2, left), min(columns - 2, left + side)):
                    a = light[k, i, j + 2] - light[k, i, j - 2]
                    b = light[k, i + 2, j] - light[k, i - 2, j]
                    along += a * a - b * b
                    crossed += 2 * a * b
                    energy += a * a + b * b
            result[tile, 2 * k] = np.log2(energy / side**2 + 0.003)
            result[tile, 2 * k + 1] = np.sqrt(along**2 + crossed**2) / (energy + 0.5)
    return result


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
    rows, columns = (n // TILE * TILE for n in rgb.shape[:2])
    light = lightest(np.ascontiguousarray(rgb[:rows, :columns]))
    return np.concatenate([_texture_and_colour(rgb, grey, patterns, light), edge_features(light)], axis=1)


@numba.njit(nogil=True, cache=True)
def _texture_and_colour(
    rgb: RGB, grey: NDArray[np.uint8], patterns: NDArray[np.uint8], light: NDArray[np.float32]
) -> NDArray[np.float64]:
    down, across = rgb.shape[0] // TILE, rgb.shape[1] // TILE
    result = np.zeros((down * across, 67))
    steps = _steps(light)
    fine, coarse, coarser = _bands(grey)
    pixels = TILE * TILE
    for tile in range(down * across):
        top, left = tile // across * TILE, tile % across * TILE
        row = result[tile]
        counts = np.zeros(_QUANTILE_BINS, np.int64)
        sums = np.zeros((_QUANTILE_BINS, 3))
        codes = np.zeros(256, np.int64)
        red = green = blue = red_squares = green_squares = blue_squares = 0.0
        fine_sum = coarse_sum = coarser_sum = 0.0
        for i in range(top, top + TILE):
            for j in range(left, left + TILE):
                codes[patterns[i, j]] += 1
                r, g, b = _DENSITY[rgb[i, j, 0]], _DENSITY[rgb[i, j, 1]], _DENSITY[rgb[i, j, 2]]
                red, green, blue = red + r, green + g, blue + b
                red_squares, green_squares, blue_squares = (
                    red_squares + r * r,
                    green_squares + g * g,
                    blue_squares + b * b,
                )
                level = min(_QUANTILE_BINS - 1, int((r + g + b) * _BINS_PER_DENSITY))
                counts[level] += 1
                sums[level, 0] += r
                sums[level, 1] += g
                sums[level, 2] += b
            fine_sum += fine[i, left : left + TILE].sum()
            coarse_sum += coarse[i, left : left + TILE].sum()
            coarser_sum += 2 * coarser[i // 2, left // 2 : (left + TILE) // 2].sum()
        for k in range(len(_CODES)):
            row[k] = codes[_CODES[k]] / pixels
        row[36], row[37], row[38] = red / pixels, green / pixels, blue / pixels
        row[39] = np.sqrt(max(0.0, red_squares / pixels - row[36] ** 2))
        row[40] = np.sqrt(max(0.0, green_squares / pixels - row[37] ** 2))
        row[41] = np.sqrt(max(0.0, blue_squares / pixels - row[38] ** 2))
        tissue = counts[_GLASS_BINS:].sum()
        for c in range(3):
            row[42 + c] = sums[_GLASS_BINS:, c].sum() / tissue if tissue > 20 else 0.0
        weight = row[42] + row[43] + row[44] + 0.05
        for c in range(3):
            row[45 + c] = row[42 + c] / weight
        for k, share in enumerate((0.1, 0.5, 0.9, 0.98)):
            row[48 + k] = _quantile(counts, share)
        _tenth(counts, sums, row[52:55])
        _tenth(counts[::-1], sums[::-1], row[55:58])
        row[58] = tissue / pixels
        fine_sum, coarse_sum = fine_sum / pixels + NOISE, coarse_sum / pixels + NOISE
        row[59] = 0.5 * np.log2(fine_sum / coarse_sum)
        row[60], row[61], row[62] = (
            np.log2(fine_sum),
            np.log2(coarse_sum),
            np.log2(coarser_sum / pixels + NOISE),
        )
        row[63:67] = steps[tile]
    return result


def sharpness(tiles: NDArray[np.float64]) -> float:
    """Return the median over the tiles that are mostly tissue of log2(contrast at 2 µm / at 4 to 8 µm)."""
    share = tiles[:, TISSUE_SHARE]
    fine, coarse = tiles[share >= min(0.5, float(share.max()))][:, [FINE, COARSE]].T
    # An image blurred beyond all detail has only rounding errors left; they must not count as detail.
    detail = np.maximum(2.0**fine - NOISE, 0) + ROUNDING
    return float(np.median(0.5 * (np.log2(detail) - coarse)))
