"""Straight edges: lines from which on even the lightest pixels are darker, as under ink, in a fold or beyond a coverslip.

Tissue has borders, too, but they bend and fray: along a straight line the one side is darker here, the other there.
"""

from __future__ import annotations

import math
from functools import cache

import numba
import numpy as np
from numpy.typing import NDArray

from napari_fish.mosaic.artefacts.measure import RGB

Light = NDArray[np.float32]
SQUARE = 4
"""Side in px of the squares whose lightest pixels are looked at: 8 µm at 5x."""
TILE_SQUARES = 16
"""Squares along a tile."""
BAND = 4
"""Squares on either side of a line that are compared."""
PARTS = 4
"""An edge must be seen in each of so many parts of its length."""
WINDOW_ANGLES, PATCH_ANGLES = 16, 32
DENSITY = (-np.log((np.arange(256) + 1) / 256)).astype(np.float32)
"""Optical density (natural logarithm) of each grey level."""

EDGE_FEATURES: tuple[str, ...] = (
    *("edge", "edge on average", "evenness of the edge", "sharpness of the edge"),
    *(f"share of {c} in the edge" for c in "RGB"),
    *("line", "line beside others", "line back", "line back beside others", "other lines"),
)
"""Names of the columns of :func:`edge_features`."""
_OF_WINDOW = 7


def edge_features(light: Light) -> NDArray[np.float64]:
    """Describe the straightest edges in windows of two by two tiles, and the longest across the patch.

    Parameters
    ----------
    light : ndarray of float32, shape (rows, columns, 3)
        As :func:`lightest` gives it, with whole tiles.

    Returns
    -------
    ndarray of float64, shape (tiles, len(EDGE_FEATURES))
        Row by row; a tile has the values of the window with the clearest edge, and those of its patch.
    """
    down, across = (n // TILE_SQUARES for n in light.shape[:2])
    span = 2 if min(down, across) > 1 else 1
    result = np.full((down, across, len(EDGE_FEATURES)), -1.0)
    places, counts = _parts_of_lines(span * TILE_SQUARES)
    _windows(light, span, places, counts, result)
    places, counts = _lines(min(light.shape[:2]))
    result[..., _OF_WINDOW:] = _longest(light, places, counts)
    return result.reshape(down * across, -1)


@numba.njit(nogil=True, cache=True)
def lightest(rgb: RGB) -> Light:
    """Return the optical densities of the lightest red, green and blue in each square, shape (rows, columns, 3)."""
    rows, columns = rgb.shape[0] // SQUARE, rgb.shape[1] // SQUARE
    light = np.empty((rows, columns, 3), np.float32)
    for i in range(rows):
        for j in range(columns):
            r = g = b = 0
            for y in range(SQUARE * i, SQUARE * i + SQUARE):
                for x in range(SQUARE * j, SQUARE * j + SQUARE):
                    r, g, b = max(r, rgb[y, x, 0]), max(g, rgb[y, x, 1]), max(b, rgb[y, x, 2])
            light[i, j, 0], light[i, j, 1], light[i, j, 2] = DENSITY[r], DENSITY[g], DENSITY[b]
    return light


def _offsets(side: int, angles: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return on which parallel line each square lies for each angle, and how far along it, from -0.5 to 0.5."""
    y, x = (a.ravel() - (side - 1) / 2 for a in np.mgrid[:side, :side])
    turn = np.pi * np.arange(angles)[:, None] / angles
    across = np.floor(x * np.cos(turn) + y * np.sin(turn)).astype(np.int64)
    return across - across.min(axis=1, keepdims=True), (y * np.cos(turn) - x * np.sin(turn)) / side


def _counted(places: NDArray[np.int64]) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
    """Return places and how many squares share each."""
    most = int(places.max()) + 1
    counts = np.stack([np.bincount(row, minlength=most) for row in places])
    return places.astype(np.uint16), counts.astype(np.float32)


@cache
def _parts_of_lines(side: int) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
    lines, along = _offsets(side, WINDOW_ANGLES)
    parts = np.clip(np.floor((along + 0.5) * PARTS), 0, PARTS - 1).astype(np.int64)
    places, counts = _counted(lines * PARTS + parts)
    spare = -counts.shape[1] % PARTS
    return places, np.pad(counts, ((0, 0), (0, spare)))


@cache
def _lines(side: int) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
    return _counted(_offsets(side, PATCH_ANGLES)[0])


@numba.njit(nogil=True, cache=True)
def _summed(values: Light, places: NDArray[np.uint16], sums: Light) -> None:
    sums[:] = 0
    for p in range(len(values)):
        sums[places[p]] += values[p]


@numba.njit(nogil=True, cache=True)
def _change(sums: Light, counts: Light, line: int, part: int) -> float:
    """Return how much darker it is beyond a line than before it; NaN where too little of it is seen."""
    before = beyond = np.float32(0)
    n_before = n_beyond = np.float32(0)
    for o in range(line - BAND, line):
        before += sums[o * PARTS + part]
        n_before += counts[o * PARTS + part]
    for o in range(line, line + BAND):
        beyond += sums[o * PARTS + part]
        n_beyond += counts[o * PARTS + part]
    if min(n_before, n_beyond) < PARTS * BAND / 2:
        return np.nan
    return float(beyond / n_beyond - before / n_before)


@numba.njit(nogil=True, cache=True)
def _clearest(window: Light, places: NDArray[np.uint16], counts: Light, out: NDArray[np.float64]) -> None:
    """Describe the edge of a window, shape (4, squares), whose least clear part is clearest."""
    best, angle, line = -1.0, -1, -1
    sums = np.empty(counts.shape[1], np.float32)
    for k in range(len(places)):
        _summed(window[0], places[k], sums)
        for m in range(BAND, counts.shape[1] // PARTS - BAND + 1):
            least, most = np.inf, -np.inf
            for part in range(PARTS):
                change = _change(sums, counts[k], m, part)
                if not (change > best or -change > best):
                    least, most = -np.inf, np.inf
                    break
                least, most = min(least, change), max(most, change)
            clear = max(least, -most)
            if clear > best:
                best, angle, line = clear, k, m
    out[:] = 0
    if angle < 0:
        return
    mean, sign = 0.0, 1.0
    for colour in range(4):
        _summed(window[colour], places[angle], sums)
        total = most = near = 0.0
        for part in range(PARTS):
            change = _change(sums, counts[angle], line, part)
            total += change / PARTS
            most = max(most, abs(change))
            here, last = line * PARTS + part, (line - 1) * PARTS + part
            if counts[angle, here] > 0 and counts[angle, last] > 0:
                near += (sums[here] / counts[angle, here] - sums[last] / counts[angle, last]) / PARTS
        if colour == 0:
            mean, sign = abs(total), np.sign(total)
            out[0], out[1], out[2], out[3] = best, mean, best / (most + 0.05), sign * near / (mean + 0.05)
        else:
            out[3 + colour] = sign * total / (mean + 0.05)


@numba.njit(nogil=True, cache=True)
def _windows(
    light: Light, span: int, places: NDArray[np.uint16], counts: Light, result: NDArray[np.float64]
) -> None:
    """Write the edges of all windows of ``span`` by ``span`` tiles to the tiles they hold."""
    side = span * TILE_SQUARES
    window = np.empty((4, side * side), np.float32)
    found = np.zeros(_OF_WINDOW)
    for a in range(result.shape[0] - span + 1):
        for b in range(result.shape[1] - span + 1):
            p = 0
            for i in range(a * TILE_SQUARES, a * TILE_SQUARES + side):
                for j in range(b * TILE_SQUARES, b * TILE_SQUARES + side):
                    for c in range(3):
                        window[c + 1, p] = light[i, j, c]
                    window[0, p] = light[i, j, 0] + light[i, j, 1] + light[i, j, 2]
                    p += 1
            _clearest(window, places, counts, found)
            for i in range(a, a + span):
                for j in range(b, b + span):
                    if found[0] > result[i, j, 0]:
                        result[i, j, :_OF_WINDOW] = found


@numba.njit(nogil=True, cache=True)
def _longest(light: Light, places: NDArray[np.uint16], counts: Light) -> NDArray[np.float64]:
    """Describe the strongest straight line across a patch: its step, the step back, and both beside all other lines'."""
    side = min(light.shape[0], light.shape[1])
    total = np.empty(side * side, np.float32)
    for i in range(side):
        for j in range(side):
            total[i * side + j] = light[i, j, 0] + light[i, j, 1] + light[i, j, 2]
    angles, lines = counts.shape
    sums = np.empty(lines, np.float32)
    steps = np.full((angles, lines), np.nan, np.float32)
    best, angle, line = -1.0, -1, -1
    for k in range(angles):
        _summed(total, places[k], sums)
        for m in range(BAND, lines - BAND + 1):
            n_before, n_beyond = counts[k, m - BAND : m].sum(), counts[k, m : m + BAND].sum()
            if min(n_before, n_beyond) < BAND * side / 2:
                continue
            steps[k, m] = sums[m : m + BAND].sum() / n_beyond - sums[m - BAND : m].sum() / n_before
            if abs(steps[k, m]) > best:
                best, angle, line = abs(steps[k, m]), k, m
    result = np.zeros(len(EDGE_FEATURES) - _OF_WINDOW)
    if angle < 0:
        return result
    # A band has a second edge, nearly parallel, where it becomes light again.
    back = 0.0
    for turn in range(-2, 3):
        k = (angle + turn) % angles
        towards = np.sign(steps[angle, line]) * (1 if 0 <= angle + turn < angles else -1)
        for m in range(lines):
            if abs(m - line) > BAND and -towards * steps[k, m] > back:
                back = -towards * steps[k, m]
    squares, seen = 0.0, 0
    for k in range(angles):
        apart = min(abs(k - angle), angles - abs(k - angle))
        for m in range(lines):
            if apart >= angles // 5 and not math.isnan(steps[k, m]):
                squares += steps[k, m] ** 2
                seen += 1
    spread = math.sqrt(squares / max(1, seen))
    result[:] = best, best / (spread + 0.02), back, back / (spread + 0.02), spread
    return result
