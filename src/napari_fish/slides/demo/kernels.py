"""Compiled loops: random numbers of a place, throwing cells, combing fibres, stamping nuclei."""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

COLUMNS = (
    "x",
    "y",
    "long",
    "short",
    "cos",
    "sin",
    "dark",
    "vesicular",
    "nucleolus",
    "seed",
    "cell_long",
    "cell_short",
    "tint",
    "red",
)
"""Columns of a table of cells; lengths in µm."""


compiled = numba.njit(nogil=True, cache=True, fastmath=True, error_model="numpy")


@compiled
def place_hash(i: int, j: int, seed: int) -> float:
    """Return a random number in [0, 1) that depends on nothing but the place and the seed."""
    h = (i * 374761393 + j * 668265263 + seed * 2246822519) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 2246822519) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 3266489917) & 0xFFFFFFFF
    return (h ^ (h >> 16)) * 2.3283064365386963e-10


@compiled
def place_noise(knots: Array, x: float, y: float) -> float:
    """Interpolate a table of 256 x 256 random knots, repeated without end, smoothly between whole numbers."""
    i, j = math.floor(x), math.floor(y)
    u, v = x - i, y - j
    u, v = u * u * (3 - 2 * u), v * v * (3 - 2 * v)
    i, j = i & 255, j & 255
    right, below = (i + 1) & 255, (j + 1) & 255
    top = knots[j, i] + (knots[j, right] - knots[j, i]) * u
    low = knots[below, i] + (knots[below, right] - knots[below, i]) * u
    return float(top + (low - top) * v)


@compiled
def step_between(low: float, high: float, value: float) -> float:
    """Rise smoothly from 0 at ``low`` to 1 at ``high``."""
    t = min(1.0, max(0.0, (value - low) / (high - low)))
    return t * t * (3 - 2 * t)


@compiled
def throw(
    x: Array, y: Array, long_um: Array, short_um: Array, cos: Array, sin: Array, width: float, height: float
) -> npt.NDArray[np.bool_]:
    """Keep, in order, each ellipse that does not come too close to one kept before."""
    bin_um = 2.0
    for n in range(len(x)):
        bin_um = max(bin_um, 2.0 * long_um[n])
    columns, rows = int(width / bin_um) + 1, int(height / bin_um) + 1
    head = np.full((rows, columns), -1, np.int64)
    following = np.full(len(x), -1, np.int64)
    kept = np.zeros(len(x), np.bool_)
    for n in range(len(x)):
        column = min(max(int(x[n] / bin_um), 0), columns - 1)
        row = min(max(int(y[n] / bin_um), 0), rows - 1)
        clear = True
        for r in range(max(row - 1, 0), min(row + 2, rows)):
            for c in range(max(column - 1, 0), min(column + 2, columns)):
                m = head[r, c]
                while m >= 0 and clear:
                    dx, dy = x[m] - x[n], y[m] - y[n]
                    u, v = dx * cos[n] + dy * sin[n], dy * cos[n] - dx * sin[n]
                    s, t = dx * cos[m] + dy * sin[m], dy * cos[m] - dx * sin[m]
                    mine = (u / (2 * long_um[n])) ** 2 + (v / (2 * short_um[n])) ** 2
                    theirs = (s / (2 * long_um[m])) ** 2 + (t / (2 * short_um[m])) ** 2
                    clear = mine + theirs > 2.0
                    m = following[m]
        if clear:
            kept[n] = True
            following[n] = head[row, column]
            head[row, column] = n
    return kept


@compiled
def comb(
    flow_cos: Array, flow_sin: Array, ratio: float, noise: Array, wanted: npt.NDArray[np.bool_], strides: int
) -> Array:
    """Average noise along the flow, whose px are ``ratio`` noise px wide: a line integral convolution."""
    rows, columns = noise.shape
    out = np.zeros(noise.shape, np.float32)
    coarser = np.float32(1 / ratio)
    last_row, last_column = flow_cos.shape[0] - 1, flow_cos.shape[1] - 1
    for i in range(rows):
        ci = min(int((i + 0.5) * coarser), last_row)
        for j in range(columns):
            cj = min(int((j + 0.5) * coarser), last_column)
            if not wanted[ci, cj]:
                continue
            total = noise[i, j]
            for way in range(2):
                c, s = flow_cos[ci, cj], flow_sin[ci, cj]
                if way == 1:
                    c, s = -c, -s
                x, y = np.float32(j + 0.5), np.float32(i + 0.5)
                for _ in range(strides):
                    x += c
                    y += s
                    if x < 0 or y < 0 or x >= columns or y >= rows:
                        break
                    total += noise[int(y), int(x)]
                    ni, nj = min(int(y * coarser), last_row), min(int(x * coarser), last_column)
                    next_c, next_s = flow_cos[ni, nj], flow_sin[ni, nj]
                    if next_c * c + next_s * s < 0:
                        next_c, next_s = -next_c, -next_s
                    c, s = next_c, next_s
            out[i, j] = total
    return out


@compiled
def stamp(
    cells: Array,
    top: int,
    mpp: float,
    knots: Array,
    nuclei: Array,
    red: Array,
    nearest: Array,
    second: Array,
    tint: Array,
) -> None:
    """Draw cells into a band whose first row is ``top`` (px).

    ``nuclei`` and ``red`` receive dye; ``nearest`` and ``second`` the distances (µm) to the two
    nearest cells in their own metric; ``tint`` the tint of the nearest.
    """
    rows, columns = nuclei.shape
    soft_um = 0.28 + 0.35 * mpp
    for n in range(len(cells)):
        x, y, long_um, short_um, cos, sin = (
            cells[n, 0],
            cells[n, 1],
            cells[n, 2],
            cells[n, 3],
            cells[n, 4],
            cells[n, 5],
        )
        dark, vesicular, nucleolus, seed = cells[n, 6], cells[n, 7], cells[n, 8], int(cells[n, 9])
        cell_long, cell_short, is_red = cells[n, 10], cells[n, 11], cells[n, 13] > 0
        reach = max(1.25 * long_um + 1.0, cell_long)
        i0, i1 = max(0, int((y - reach) / mpp) - top), min(rows, int((y + reach) / mpp) + 2 - top)
        j0, j1 = max(0, int((x - reach) / mpp)), min(columns, int((x + reach) / mpp) + 2)
        shift = 256.0 * place_hash(seed, 0, 5)
        spot_u = (place_hash(seed, 1, 5) - 0.5) * long_um
        spot_v = (place_hash(seed, 2, 5) - 0.5) * short_um
        bend = (place_hash(seed, 3, 5) - 0.5) * 0.5 / long_um
        taper = (place_hash(seed, 4, 5) - 0.5) * 0.5 / long_um
        for i in range(i0, i1):
            dy = (i + top + 0.5) * mpp - y
            for j in range(j0, j1):
                dx = (j + 0.5) * mpp - x
                u, v = dx * cos + dy * sin, dy * cos - dx * sin
                if cell_long > 0:
                    q = math.sqrt((u / cell_long) ** 2 + (v / cell_short) ** 2) * cell_short
                    if q < cell_short:
                        if q < nearest[i, j]:
                            second[i, j] = nearest[i, j]
                            nearest[i, j] = q
                            tint[i, j] = cells[n, 12]
                        elif q < second[i, j]:
                            second[i, j] = q
                if abs(u) > 1.3 * long_um + 0.8:
                    continue
                v = (v + bend * u * u) * (1 + taper * u)
                r = math.sqrt((u / long_um) ** 2 + (v / short_um) ** 2)
                if r > 1.4:
                    continue
                if is_red:
                    edge = step_between(1.08, 0.92, r)
                    dye = edge * dark * (0.72 + 0.28 * step_between(0.1, 0.8, r))
                    red[i, j] = max(red[i, j], np.float32(dye))
                    continue
                wobble = place_noise(knots, u / 2.6 + shift, v / 2.6) - 0.5
                inside = (1.0 - r * (1 + 0.24 * wobble)) * short_um
                if inside < -soft_um:
                    continue
                chromatin = place_noise(knots, u / 0.95 + shift, v / 0.95 + 91) - 0.5
                clump = place_noise(knots, u / 1.9 + shift, v / 1.9 + 177) - 0.5
                rim = step_between(1.5, 0.3, inside)
                mottle = (0.6 + 0.6 * vesicular) * (0.9 * chromatin + 0.8 * clump)
                body = 0.97 - vesicular * (0.55 - 0.50 * rim) + mottle
                if nucleolus > 0:
                    away = math.sqrt((u - spot_u) ** 2 + (v - spot_v) ** 2)
                    body += 0.75 * step_between(nucleolus + 0.35, nucleolus - 0.25, away)
                dye = dark * max(0.15, body) * step_between(-soft_um, soft_um, inside)
                before = nuclei[i, j]
                nuclei[i, j] = before + dye - np.float32(0.65) * min(before, dye)


@compiled
def halve(rgb: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8]) -> None:
    """Average blocks of 2 x 2 px."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            for k in range(3):
                total = np.int32(rgb[2 * i, 2 * j, k]) + rgb[2 * i, 2 * j + 1, k]
                total += np.int32(rgb[2 * i + 1, 2 * j, k]) + rgb[2 * i + 1, 2 * j + 1, k]
                out[i, j, k] = np.uint8((total + 2) >> 2)
