"""The kernel of clustered search; see :mod:`napari_fish.index.clustered`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes
from napari_fish.index.codes import code_distance
from napari_fish.index.hamming import distance_from, keep_if_near, near_rows, row_distance
from napari_fish.index.vectors import eight_columns, popcount, prefetch
from napari_fish.index.words import lowest

# Centres compared in full: so many for each cell that is wanted, and never fewer than so many.
CENTRES_A_PROBE, FEWEST_CENTRES = 4, 64
# First halves lie anywhere in memory: they are asked for so many rows before they are compared.
AHEAD = 24
# Rows of a cell whose second halves are compared at once, and how many are asked for before the cell is reached.
STRETCH, EXPECTED = 1024, 256
_NO_MASK = np.empty(0, np.bool_)


@njit(nogil=True, cache=True)
def _near_columns(
    planes: NDArray[np.uint64], start: int, stop: int, query: Barcodes, first: int, most: int, out: NDArray[np.int32]
) -> Any:  # fmt: skip
    """Compare at most 64 columns with a query's words; return bit i set where ``start + i`` is at most so far."""
    near, column = np.int64(0), start
    while len(planes) == 4 and column + 8 <= stop:
        near |= eight_columns(planes, column, query, first, out, column - start, most) << (column - start)
        column += 8
    while column < stop:
        distance = np.uint64(0)
        for word in range(len(planes)):
            distance += popcount(planes[word, column] ^ query[first + word])
        out[column - start] = distance
        near |= np.int64(np.int64(distance) <= most) << (column - start)
        column += 1
    return near


@njit(nogil=True, cache=True)
def _nearest_centres(
    planes: NDArray[np.uint64], query: Barcodes, first: int, wanted: int, tally: NDArray[np.int64],
    cells: NDArray[np.int64], near: NDArray[np.int32], block: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Write the cells whose centres are nearest, by a few words, to ``cells``; return how many, at least those wanted."""
    n, within, reach = 0, 0, 64 * len(planes)
    tally[:] = 0
    for begin in range(0, planes.shape[1], 64):
        hits = _near_columns(planes, begin, min(begin + 64, planes.shape[1]), query, first, reach, block)
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
    items: NDArray[np.int64], near: NDArray[np.int32], n: int, wanted: int, starts: NDArray[np.int64],
    order: NDArray[np.int64], order_near: NDArray[np.int32],
) -> None:  # fmt: skip
    """Write the nearest of n items to ``order``, nearest first, equal ones as they come, and how near they are."""
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
            order[at], order_near[at] = items[i], near[i]


@njit(nogil=True, cache=True)
def _compare(
    head: Barcodes, query: Barcodes, rows: NDArray[np.int64], near: NDArray[np.int32], n: int,
    reaches: NDArray[np.int64], radius: int, best: NDArray[np.int32], best_rows: NDArray[np.int64], count: int,
) -> Any:  # fmt: skip
    """Add first halves to the distances of second ones, as long as these are within a reach that shrinks."""
    k = len(best)
    reach = reaches[best[k - 1] if count == k else radius]
    for i in range(min(AHEAD, n)):
        prefetch(head, rows[i], 0)
    for i in range(n):
        if i + AHEAD < n:
            prefetch(head, rows[i + AHEAD], 0)
        if near[i] > reach:
            continue
        distance = near[i] + distance_from(head, rows[i], query, 0)
        if distance < best[k - 1]:
            count = keep_if_near(distance, rows[i], best, best_rows, count, radius)
            reach = reaches[best[k - 1] if count == k else radius]
    return count


@njit(nogil=True, cache=True)
def _look_into(
    head: Barcodes, tail: Barcodes, of_place: NDArray[np.int32], slides: NDArray[np.int32], start: int, stop: int,
    query: Barcodes, mine: NDArray[np.bool_], is_first: bool, reaches: NDArray[np.int64], radius: int,
    best: NDArray[np.int32], best_rows: NDArray[np.int64], count: int, room: Any,
) -> Any:  # fmt: skip
    """Offer the rows of one cell to the k best; return how many there are."""
    out, hits, rows, near, sorted_rows, sorted_near, starts = room
    k, words = len(best), head.shape[1]
    for begin in range(start, stop, STRETCH):
        end = min(begin + STRETCH, stop)
        reach = reaches[best[k - 1] if count == k else radius]
        found, n = near_rows(tail, begin, end, query, words, reach, out, hits), 0
        for i in range(found):
            row = np.int64(of_place[begin + hits[i]])
            rows[n], near[n] = row, out[hits[i]]
            n += 1 if not len(mine) else int(mine[slides[row]])
        if is_first and n:
            # The nearest second halves first: they shrink the reach.
            _nearest_first(rows, near, n, n, starts, sorted_rows, sorted_near)
            count = _compare(
                head, query, sorted_rows, sorted_near, n, reaches, radius, best, best_rows, count
            )
        else:
            count = _compare(head, query, rows, near, n, reaches, radius, best, best_rows, count)
    return count


@njit(nogil=True, cache=True)
def search_many(
    centres: Barcodes, planes: NDArray[np.uint64], main: Any, delta: Any, queries: Barcodes,
    allowed: NDArray[np.bool_], which: NDArray[np.int64], probes: int, reaches: NDArray[np.int64], radius: int, k: int,
) -> Any:  # fmt: skip
    """Search for each query; a part is (cell starts, rows in cell order, head, tail, place, slides).

    Cells come nearest first, and what is found in one shrinks the reach in the next. The tails of the main part lie in
    cell order.
    """
    starts, of_place, head, tail, _, slides = main
    more_starts, more_of_place, more_head, more_tail, more_place, more_slides = delta
    n, first_more, n_cells = len(queries), len(head), len(centres)
    best = np.full((n, k), radius + 1, np.int32)
    best_rows = np.zeros((n, k), np.int64)
    counts = np.zeros(n, np.int64)
    probes = min(probes, n_cells)
    wanted = min(n_cells, max(FEWEST_CENTRES, CENTRES_A_PROBE * probes))
    cells, from_centre = np.empty(n_cells, np.int64), np.empty(n_cells, np.int32)
    order, order_near = np.empty(probes, np.int64), np.empty(probes, np.int32)
    buckets, tally = np.empty(64 * centres.shape[1] + 2, np.int64), np.empty(64 * len(planes) + 2, np.int64)
    block = np.empty(64, np.int32)
    room = (
        np.empty(STRETCH, np.int32), np.empty(STRETCH, np.int32), np.empty(STRETCH + 1, np.int64),
        np.empty(STRETCH + 1, np.int32), np.empty(STRETCH, np.int64), np.empty(STRETCH, np.int32), buckets,
    )  # fmt: skip
    for q in range(n):
        query, count = queries[q], 0
        mine = allowed[which[q]] if len(allowed) else _NO_MASK
        some = _nearest_centres(planes, query, head.shape[1], wanted, tally, cells, from_centre, block)
        for i in range(some):
            from_centre[i] = row_distance(centres, cells[i], query)
        _nearest_first(cells, from_centre, some, probes, buckets, order, order_near)
        for i in range(probes):
            cell = order[i]
            if i + 1 < probes:
                next_start = starts[order[i + 1]]
                for place in range(next_start, min(next_start + EXPECTED, starts[order[i + 1] + 1])):
                    prefetch(tail, place, 0)
            count = _look_into(
                head, tail, of_place, slides, starts[cell], starts[cell + 1], query, mine, i == 0, reaches, radius,
                best[q], best_rows[q], count, room,
            )  # fmt: skip
            for at in range(more_starts[cell], more_starts[cell + 1]):
                row = more_of_place[at]
                if not len(mine) or mine[more_slides[row]]:
                    distance = code_distance(more_head, more_tail, more_place, row, query)
                    count = keep_if_near(distance, first_more + row, best[q], best_rows[q], count, radius)
        counts[q] = count
    return best_rows, best, counts
