"""The kernel of clustered search; see :mod:`napari_fish.index.clustered`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes
from napari_fish.index.hamming import (
    BLOCK,
    distances_into,
    keep_if_near,
    popcount,
    prefetch,
    row_distance,
)

# Rows are asked for so many rows before they are compared: they lie anywhere in memory.
AHEAD = 16


@njit(nogil=True, cache=True)
def sketch_into(barcodes: Barcodes, rows: NDArray[np.int32], bits: NDArray[np.int32], out: NDArray[np.uint64]) -> None:  # fmt: skip
    """Write one column of sketch words for each row."""
    for i in range(len(rows)):
        for first in range(0, len(bits), 64):
            word = np.uint64(0)
            for b in range(first, min(first + 64, len(bits))):
                bit = (barcodes[rows[i], bits[b] >> 6] >> np.uint64(bits[b] & 63)) & np.uint64(1)
                word |= bit << np.uint64(b - first)
            out[first >> 6, i] = word


@njit(nogil=True, cache=True)
def _sketch_distances(
    sketches: NDArray[np.uint64], start: int, stop: int, query: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:  # fmt: skip
    n = stop - start
    if len(sketches) == 4:
        a, b = sketches[0, start:stop], sketches[1, start:stop]
        c, d = sketches[2, start:stop], sketches[3, start:stop]
        for i in range(n):
            out[i] = (
                popcount(a[i] ^ query[0]) + popcount(b[i] ^ query[1])
                + popcount(c[i] ^ query[2]) + popcount(d[i] ^ query[3])
            )  # fmt: skip
        return
    out[:n] = 0
    for word in range(len(sketches)):
        plane = sketches[word, start:stop]
        for i in range(n):
            out[i] += popcount(plane[i] ^ query[word])


@njit(nogil=True, cache=True)
def _expect_cell(sketches: NDArray[np.uint64], start: int, stop: int) -> None:
    """Ask memory for the sketches of a cell that comes next."""
    for word in range(len(sketches)):
        for i in range(start, min(stop, start + BLOCK), 8):
            prefetch(sketches, word, i)


@njit(nogil=True, cache=True)
def _nearest_first(near: NDArray[np.int32], n: int, bits: int) -> Any:
    """Return the n nearest cells, nearest first, equal ones by number."""
    starts = np.zeros(bits + 2, np.int64)
    for c in range(len(near)):
        starts[near[c] + 1] += 1
    for d in range(1, len(starts)):
        starts[d] += starts[d - 1]
    order = np.empty(n, np.int64)
    for c in range(len(near)):
        at = starts[near[c]]
        starts[near[c]] += 1
        if at < n:
            order[at] = c
    return order


@njit(nogil=True, cache=True)
def _shortlist(
    part: Any, number_first: int, start: int, stop: int, sketch: NDArray[np.uint64], allowed: NDArray[np.bool_],
    mask: int, rerank: int, tally: NDArray[np.int64], state: NDArray[np.int64], rows: NDArray[np.int64],
    near: NDArray[np.int32], block: NDArray[np.uint64],
) -> None:  # fmt: skip
    """Add to the shortlist what is near enough in one cell; state is (reach, rows within it, length)."""
    of_row, sketches, slides = part[1], part[2], part[4]
    reach, within, n = state[0], state[1], state[2]
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        _sketch_distances(sketches, begin, end, sketch, block)
        for i in range(end - begin):
            distance = np.int64(block[i])
            if distance > reach:
                continue
            row = np.int64(of_row[begin + i])
            if len(allowed) and not allowed[mask, slides[row]]:
                continue
            rows[n], near[n] = row + number_first, distance
            n += 1
            tally[distance] += 1
            within += 1
            # Enough rows are nearer than this: from here on only nearer ones count.
            while within - tally[reach] >= rerank:
                within -= tally[reach]
                reach -= 1
    state[0], state[1], state[2] = reach, within, n


@njit(nogil=True, cache=True)
def _compare_in_full(
    main: Barcodes, delta: Barcodes, query: Barcodes, rows: NDArray[np.int64], near: NDArray[np.int32], n: int, reach: int
) -> Any:  # fmt: skip
    """Replace the sketch distances of rows within reach by full ones; return how many there are."""
    kept = 0
    for i in range(n):
        rows[kept] = rows[i]
        kept += near[i] <= reach
    for i in range(kept):
        if i + AHEAD < kept and rows[i + AHEAD] < len(main):
            for word in range(0, main.shape[1], 8):
                prefetch(main, rows[i + AHEAD], word)
        if rows[i] < len(main):
            near[i] = row_distance(main, rows[i], query)
        else:
            near[i] = row_distance(delta, rows[i] - len(main), query)
    return kept


@njit(nogil=True, cache=True)
def search_many(
    centres: Barcodes, bits: NDArray[np.int32], main: Any, delta: Any, queries: Barcodes,
    allowed: NDArray[np.bool_], which: NDArray[np.int64], probes: int, rerank: int, radius: int, k: int,
) -> Any:  # fmt: skip
    """Search for each query; a part is (cell starts, rows, sketches, barcodes, slides)."""
    n = len(queries)
    best = np.full((n, k), radius + 1, np.int32)
    best_rows = np.zeros((n, k), np.int64)
    counts = np.zeros(n, np.int64)
    sketches = np.zeros((len(main[2]), n), np.uint64)
    sketch_into(queries, np.arange(n).astype(np.int32), bits, sketches)
    from_centre = np.empty(len(centres), np.int32)
    block = np.empty(BLOCK, np.uint64)
    tally = np.empty(len(bits) + 1, np.int64)
    state = np.empty(3, np.int64)
    rows, near = np.empty(0, np.int64), np.empty(0, np.int32)
    starts, more_starts, first_more = main[0], delta[0], len(main[3])
    for q in range(n):
        query = queries[q]
        distances_into(centres, 0, len(centres), query, from_centre)
        order = _nearest_first(from_centre, min(probes, len(centres)), 64 * centres.shape[1])
        room = 0
        for cell in order:
            room += starts[cell + 1] - starts[cell] + more_starts[cell + 1] - more_starts[cell]
        if room > len(rows):
            rows, near = np.empty(2 * room, np.int64), np.empty(2 * room, np.int32)
        sketch = np.ascontiguousarray(sketches[:, q])
        tally[:] = 0
        state[0], state[1], state[2] = len(bits), 0, 0
        for i in range(len(order)):
            cell = order[i]
            if i + 1 < len(order):
                _expect_cell(main[2], starts[order[i + 1]], starts[order[i + 1] + 1])
            _shortlist(
                main, 0, starts[cell], starts[cell + 1], sketch, allowed, which[q], rerank, tally, state, rows,
                near, block,
            )  # fmt: skip
            if more_starts[cell + 1] > more_starts[cell]:
                _shortlist(
                    delta, first_more, more_starts[cell], more_starts[cell + 1], sketch, allowed, which[q],
                    rerank, tally, state, rows, near, block,
                )  # fmt: skip
        kept = _compare_in_full(main[3], delta[3], query, rows, near, state[2], state[0])
        for i in range(kept):
            counts[q] = keep_if_near(near[i], rows[i], best[q], best_rows[q], counts[q], radius)
    return best_rows, best, counts
