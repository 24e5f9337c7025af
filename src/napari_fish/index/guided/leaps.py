"""Walks of guided search from one listed row to the next; see :mod:`napari_fish.index.guided.slide_rows`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes
from napari_fish.index.barcodes import code_distance


@njit(nogil=True, cache=True)
def nearest_row(
    start: int, stop: int, head: Barcodes, tail: Barcodes, place: NDArray[np.int32],
    slides: NDArray[np.int32], query: Barcodes,
    allowed: NDArray[np.bool_], mask: int,
) -> Any:  # fmt: skip
    """Return (distance, row) of the nearest allowed patch of those under a key; row -1 where there is none."""
    best, best_row = np.int32(2**30), np.int64(-1)
    for row in range(start, stop):
        if len(allowed) and not allowed[mask, slides[row]]:
            continue
        distance = code_distance(head, tail, place, row, query)
        if distance < best:
            best, best_row = distance, np.int64(row)
    return best, best_row


@njit(nogil=True, cache=True)
def key_of(offsets: NDArray[np.int32], low: int, high: int, row: int) -> Any:
    """Return the key, of ``low:high``, under which a row lies."""
    # With one row a key, as most have, the first guess is right.
    guess = low + row - offsets[low]
    if guess < high and offsets[guess] <= row < offsets[guess + 1]:
        return guess
    while high - low > 1:
        middle = (low + high) >> 1
        if offsets[middle] <= row:
            low = middle
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def _next_listed(offsets: NDArray[np.int32], at: int, far: int, step: int, listed: NDArray[np.int32]) -> Any:
    """Return the first key from ``at`` to before ``far`` under which a listed row lies, or ``far``."""
    if step > 0:
        i = np.searchsorted(listed, offsets[at])
        if i < len(listed) and listed[i] < offsets[far]:
            return key_of(offsets, at, far, listed[i])
    else:
        i = np.searchsorted(listed, offsets[at + 1]) - 1
        if i >= 0 and listed[i] >= offsets[far + 1]:
            return key_of(offsets, far + 1, at + 1, listed[i])
    return far


@njit(nogil=True, cache=True)
def run_listed(
    keys: NDArray[np.int64], offsets: NDArray[np.int32], head: Barcodes, tail: Barcodes, place: NDArray[np.int32],
    slides: NDArray[np.int32],
    at: int, end: int, step: int, query: Barcodes, allowed: NDArray[np.bool_], mask: int, listed: NDArray[np.int32],
    most: int, limits: NDArray[np.int64], state: NDArray[np.int64], accepted: NDArray[np.int64],
    rows: NDArray[np.int64], distances: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Visit keys as a walk along all keys does, where all allowed rows are listed: what lies between them is not looked at."""
    while at != end and state[1] < limits[0]:
        may_skip = limits[1] - state[2]
        far = at + step * min(abs(end - at), may_skip + 1)
        found = _next_listed(offsets, at, far, step, listed)
        if abs(found - at) > may_skip:
            state[2], state[3] = limits[1], 1
            return at + step * may_skip
        state[2] += abs(found - at)
        at = found
        if at != end:
            best, row = nearest_row(
                offsets[at], offsets[at + 1], head, tail, place, slides, query, allowed, mask
            )
            state[1] += 1
            if best <= most:
                n = state[0]
                accepted[n], rows[n], distances[n] = keys[at], row, best
                state[0] = n + 1
            at += step
    return at
