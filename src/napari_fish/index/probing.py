"""The kernel of clustered search; see :mod:`napari_fish.index.clustered`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes
from napari_fish.index.hamming import BLOCK, eight_words, keep_if_near, prefetch, row_distance
from napari_fish.index.sketches import expect_cell, near_sketches, sketch_into
from napari_fish.index.words import lowest

# Centres compared in full: so many for each cell that is wanted, and never fewer than so many.
CENTRES_A_PROBE, FEWEST_CENTRES = 4, 64
# Rows lie anywhere in memory. So many wait to be compared in full; they are asked for so many rows before that.
WAITING, AHEAD = 256, 32
# First halves compared before the second ones of those that are left.
HALVES = 64


@njit(nogil=True, cache=True)
def _nearest_centres(
    planes: NDArray[np.uint64], sketch: NDArray[np.uint64], wanted: int, tally: NDArray[np.int64],
    cells: NDArray[np.int64], near: NDArray[np.int32], block: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Write the cells whose centres have the nearest sketches to ``cells``; return how many, at least those wanted."""
    n, within, reach = 0, 0, len(tally) - 1
    tally[:] = 0
    for begin in range(0, planes.shape[1], 64):
        hits = near_sketches(planes, begin, min(begin + 64, planes.shape[1]), sketch, reach, block)
        while hits:
            i = lowest(hits)
            hits &= hits - 1
            cells[n], near[n] = begin + i, block[i]
            n += 1
            tally[block[i]] += 1
            within += 1
        # Enough are nearer than this: from here on only nearer ones count.
        while within - tally[reach] >= wanted:
            within -= tally[reach]
            reach -= 1
    kept = 0
    for i in range(n):
        cells[kept] = cells[i]
        kept += near[i] <= reach
    return kept


@njit(nogil=True, cache=True)
def _nearest_first(
    cells: NDArray[np.int64], near: NDArray[np.int32], n: int, wanted: int, starts: NDArray[np.int64],
    order: NDArray[np.int64],
) -> None:  # fmt: skip
    """Write the nearest of n cells to ``order``, nearest first, equal ones as they come."""
    low, high = near[:n].min(), near[:n].max()
    starts[low : high + 2] = 0
    for i in range(n):
        starts[near[i] + 1] += 1
    for d in range(low + 1, high + 1):
        starts[d] += starts[d - 1]
    for i in range(n):
        at = starts[near[i]]
        starts[near[i]] += 1
        if at < wanted:
            order[at] = cells[i]


@njit(nogil=True, cache=True)
def _shortlist(
    of_row: NDArray[np.int32], planes: NDArray[np.uint64], slides: NDArray[np.int32], first: int, start: int, stop: int, sketch: NDArray[np.uint64], allowed: NDArray[np.bool_], mask: int, reach: int,
    rows: NDArray[np.int64], near: NDArray[np.int32], n: int, block: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Add the rows of one cell whose sketches are within reach; return the list's length."""
    for begin in range(start, stop, 64):
        hits = near_sketches(planes, begin, min(begin + 64, stop), sketch, reach, block)
        while hits:
            i = lowest(hits)
            hits &= hits - 1
            row = np.int64(of_row[begin + i])
            if len(allowed) and not allowed[mask, slides[row]]:
                continue
            rows[n], near[n] = row + first, block[i]
            n += 1
    return n


@njit(nogil=True, cache=True)
def _sort(
    rows: NDArray[np.int64], near: NDArray[np.int32], n: int, starts: NDArray[np.int64],
    sorted_rows: NDArray[np.int64], sorted_near: NDArray[np.int32],
) -> None:  # fmt: skip
    """Write rows to other arrays in the order of their sketches' distances."""
    starts[:] = 0
    for i in range(n):
        starts[near[i] + 1] += 1
    for d in range(1, len(starts)):
        starts[d] += starts[d - 1]
    for i in range(n):
        at = starts[near[i]]
        starts[near[i]] += 1
        sorted_rows[at], sorted_near[at] = rows[i], near[i]


@njit(nogil=True, cache=True)
def _compare(
    main: Barcodes, delta: Barcodes, query: Barcodes, rows: NDArray[np.int64], near: NDArray[np.int32], n: int,
    reaches: NDArray[np.int64], half_reaches: NDArray[np.int64], radius: int, best: NDArray[np.int32],
    best_rows: NDArray[np.int64], count: int,
) -> Any:  # fmt: skip
    """Offer rows to the k best, as long as their sketches are within a reach that shrinks; return how many there are.

    The second half of a barcode is read only where the first leaves a chance.
    """
    k, in_main, in_halves = len(best), len(main), main.shape[1] == 16
    bound = best[k - 1] if count == k else radius
    for i in range(min(AHEAD, n)):
        if rows[i] < in_main:
            prefetch(main, rows[i], 0)
    for begin in range(0, n, HALVES):
        reach, half_reach, left = reaches[bound], half_reaches[bound], begin
        for i in range(begin, min(begin + HALVES, n)):
            ahead = rows[min(i + AHEAD, n - 1)]
            if ahead < in_main:
                prefetch(main, ahead, 0)
            if near[i] > reach:
                continue
            row = rows[i]
            if not in_halves or row >= in_main:
                if row < in_main:
                    distance = row_distance(main, row, query)
                else:
                    distance = row_distance(delta, row - in_main, query)
                count = keep_if_near(distance, row, best, best_rows, count, radius)
                continue
            # No branch: whether a row is left cannot be guessed.
            half = eight_words(main, row, 0, query)
            rows[left], near[left] = row, half
            is_left = np.int64(half <= half_reach)
            prefetch(main, row, 8 * is_left)
            left += int(is_left)
        for i in range(begin, left):
            distance = near[i] + eight_words(main, rows[i], 8, query)
            if distance < best[k - 1]:
                count = keep_if_near(distance, rows[i], best, best_rows, count, radius)
        bound = best[k - 1] if count == k else radius
    return count


@njit(nogil=True, cache=True)
def search_many(
    centres: Barcodes, centre_planes: NDArray[np.uint64], bits: NDArray[np.int32], main: Any, delta: Any,
    queries: Barcodes, allowed: NDArray[np.bool_], which: NDArray[np.int64], probes: int,
    reaches: NDArray[np.int64], half_reaches: NDArray[np.int64], radius: int, k: int,
) -> Any:  # fmt: skip
    """Search for each query; a part is (cell starts, rows, sketches, barcodes, slides).

    Cells come nearest first, and what is found in one shrinks the reach in the next.
    """
    starts, of_row, planes, barcodes, slides = main
    more_starts, more_of_row, more_planes, more_barcodes, more_slides = delta
    n, first_more, n_cells = len(queries), len(barcodes), len(centres)
    best = np.full((n, k), radius + 1, np.int32)
    best_rows = np.zeros((n, k), np.int64)
    counts = np.zeros(n, np.int64)
    sketches = np.zeros((len(planes), n), np.uint64)
    sketch_into(queries, np.arange(n).astype(np.int32), bits, sketches)
    row_table = of_row.reshape((1, len(of_row)))
    probes = min(probes, n_cells)
    wanted = min(n_cells, max(FEWEST_CENTRES, CENTRES_A_PROBE * probes))
    cells, from_centre = np.empty(n_cells, np.int64), np.empty(n_cells, np.int32)
    order = np.empty(probes, np.int64)
    buckets, tally = np.empty(64 * centres.shape[1] + 2, np.int64), np.empty(len(bits) + 2, np.int64)
    block = np.empty(64, np.int32)
    rows, near = np.empty(2 * BLOCK, np.int64), np.empty(2 * BLOCK, np.int32)
    sorted_rows, sorted_near = np.empty(2 * BLOCK, np.int64), np.empty(2 * BLOCK, np.int32)
    for q in range(n):
        query, sketch, mask = queries[q], np.ascontiguousarray(sketches[:, q]), which[q]
        some = _nearest_centres(centre_planes, sketch, wanted, tally, cells, from_centre, block)
        for i in range(some):
            from_centre[i] = row_distance(centres, cells[i], query)
        _nearest_first(cells, from_centre, some, probes, buckets, order)
        length, count = 0, 0
        for i in range(probes):
            cell = order[i]
            if i + 1 < probes:
                expect_cell(planes, row_table, starts[order[i + 1]], starts[order[i + 1] + 1])
            size = starts[cell + 1] - starts[cell] + more_starts[cell + 1] - more_starts[cell]
            if length + size > len(rows):
                rows, near = _grown(rows, near, length, 2 * (length + size))
                sorted_rows, sorted_near = np.empty(len(rows), np.int64), np.empty(len(rows), np.int32)
            reach = reaches[best[q, k - 1] if count == k else radius]
            length = _shortlist(
                of_row, planes, slides, 0, starts[cell], starts[cell + 1], sketch, allowed, mask, reach, rows, near,
                length, block,
            )  # fmt: skip
            if more_starts[cell + 1] > more_starts[cell]:
                length = _shortlist(
                    more_of_row, more_planes, more_slides, first_more, more_starts[cell], more_starts[cell + 1],
                    sketch, allowed, mask, reach, rows, near, length, block,
                )  # fmt: skip
            if length < WAITING and 0 < i < probes - 1:
                continue
            if i == 0:
                # The nearest sketches first: they shrink the reach.
                _sort(rows, near, length, tally, sorted_rows, sorted_near)
                rows, near, sorted_rows, sorted_near = sorted_rows, sorted_near, rows, near
            count = _compare(
                barcodes, more_barcodes, query, rows, near, length, reaches, half_reaches, radius, best[q],
                best_rows[q], count,
            )  # fmt: skip
            length = 0
        counts[q] = count
    return best_rows, best, counts


@njit(nogil=True, cache=True)
def _grown(rows: NDArray[np.int64], near: NDArray[np.int32], n: int, room: int) -> Any:
    """Return the first n of a list with more room."""
    more_rows, more_near = np.empty(room, np.int64), np.empty(room, np.int32)
    more_rows[:n], more_near[:n] = rows[:n], near[:n]
    return more_rows, more_near
