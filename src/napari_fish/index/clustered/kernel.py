"""The kernel of clustered search; see :mod:`napari_fish.index.clustered.search`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes
from napari_fish.index.barcodes import AHEAD, code_distance
from napari_fish.index.hamming import distance_from, keep_if_near, near_rows, row_distance
from napari_fish.index.simd import eight_columns, popcount, prefetch
from napari_fish.index.veb.words import lowest

# Centres compared in full: so many for each cluster that is wanted, and never fewer than so many.
CENTRES_A_PROBE, FEWEST_CENTRES = 4, 64
# Rows of a cluster whose second halves are compared at once.
STRETCH = 1024
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
    clusters: NDArray[np.int64], near: NDArray[np.int32], block: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Write the clusters whose centres are nearest, by a few words, to ``clusters``; return how many, at least those wanted."""
    n, within, reach = 0, 0, 64 * len(planes)
    tally[:] = 0
    for begin in range(0, planes.shape[1], 64):
        hits = _near_columns(planes, begin, min(begin + 64, planes.shape[1]), query, first, reach, block)
        while hits:
            i = lowest(hits)
            hits &= hits - 1
            clusters[n], near[n] = begin + i, block[i]
            n += 1
            tally[block[i]] += 1
            within += 1
        # Enough are nearer than this: from here on only nearer ones count.
        while within - tally[reach] >= wanted:
            within -= tally[reach]
            reach -= 1
    kept = 0
    for i in range(n):
        clusters[kept] = clusters[i]
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
    head: Barcodes, query: Barcodes, rows: NDArray[np.int64], near: NDArray[np.int32], n: int, is_sorted: bool,
    reaches: NDArray[np.int64], radius: int, best: NDArray[np.int32], best_rows: NDArray[np.int64], count: int,
) -> Any:  # fmt: skip
    """Add first halves to the distances of second ones where these are within a reach that shrinks; return how many are kept.

    Where rows come nearest first, memory is asked for the next ones here; else it was asked when they were found.
    """
    k = len(best)
    reach = reaches[min(best[k - 1], radius)]
    for i in range(n):
        if near[i] > reach:
            if is_sorted:
                break
            continue
        if is_sorted:
            prefetch(head, rows[min(i + AHEAD, n - 1)], 0)
        distance = near[i] + distance_from(head, rows[i], query, 0)
        if distance < best[k - 1]:
            count = keep_if_near(distance, rows[i], best, best_rows, count, radius)
            reach = reaches[min(best[k - 1], radius)]
    return count


@njit(nogil=True, cache=True)
def _read(
    head: Barcodes, tail: Barcodes, of_place: NDArray[np.int32], slides: NDArray[np.int32], start: int, stop: int,
    query: Barcodes, mine: NDArray[np.bool_], reach: int, is_bound: bool, rows: NDArray[np.int64],
    near: NDArray[np.int32], n: int, out: NDArray[np.int32], hits: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Add the rows of a cluster whose second halves are within reach to a list; return its length.

    Where little is within reach, memory is asked for the first halves of it.
    """
    words = head.shape[1]
    for begin in range(start, stop, STRETCH):
        end = min(begin + STRETCH, stop)
        found = near_rows(tail, begin, end, query, words, reach, out, hits)
        for i in range(found):
            row = np.int64(of_place[begin + hits[i]])
            rows[n], near[n] = row, out[hits[i]]
            if is_bound:
                prefetch(head, row, 0)
            n += 1 if not len(mine) else int(mine[slides[row]])
    return n


@njit(nogil=True, cache=True)
def search_many(
    centres: Barcodes, planes: NDArray[np.uint64], main: Any, delta: Any, queries: Barcodes,
    allowed: NDArray[np.bool_], which: NDArray[np.int64], probes: int, depth: float, reaches: NDArray[np.int64],
    radius: int, k: int,
) -> Any:  # fmt: skip
    """Search for each query; a part is (cluster starts, rows in cluster order, head, tail, place, slides).

    Clusters come nearest first, and what is found in one shrinks the reach in later ones. The tails of the main part lie in
    cluster order. First halves of rows are compared after the next cluster was read: by then they have come from memory.
    """
    starts, of_place, head, tail, _, slides = main
    more_starts, more_of_place, more_head, more_tail, more_place, more_slides = delta
    n, first_more, n_clusters = len(queries), len(head), len(centres)
    best = np.full((n, k), radius + 1, np.int32)
    best_rows = np.zeros((n, k), np.int64)
    counts = np.zeros(n, np.int64)
    probes = min(probes, n_clusters)
    wanted = min(n_clusters, max(FEWEST_CENTRES, CENTRES_A_PROBE * probes))
    clusters, from_centre = np.empty(n_clusters, np.int64), np.empty(n_clusters, np.int32)
    order, order_near = np.empty(probes, np.int64), np.empty(probes, np.int32)
    buckets, tally = np.empty(64 * centres.shape[1] + 2, np.int64), np.empty(64 * len(planes) + 2, np.int64)
    block, hits = np.empty(STRETCH, np.int32), np.empty(STRETCH, np.int32)
    largest = 1
    for cluster in range(n_clusters):
        largest = max(largest, starts[cluster + 1] - starts[cluster])
    # The rows of two clusters, and one more that is written but not kept.
    rows, near = np.empty(2 * largest + 1, np.int64), np.empty(2 * largest + 1, np.int32)
    sorted_rows, sorted_near = np.empty(largest, np.int64), np.empty(largest, np.int32)
    for q in range(n):
        query, count, waiting = queries[q], 0, 0
        mine = allowed[which[q]] if len(allowed) else _NO_MASK
        some = _nearest_centres(planes, query, head.shape[1], wanted, tally, clusters, from_centre, block)
        for i in range(some):
            from_centre[i] = row_distance(centres, clusters[i], query)
        _nearest_first(clusters, from_centre, some, probes, buckets, order, order_near)
        for i in range(probes):
            cluster = order[i]
            # The farthest from the centre lie first.
            first = starts[cluster] + np.int64((1 - depth) * (starts[cluster + 1] - starts[cluster]))
            reach = reaches[min(best[q, k - 1], radius)]
            length = _read(
                head, tail, of_place, slides, first, starts[cluster + 1], query, mine, reach, count == k, rows, near,
                waiting, block, hits,
            )  # fmt: skip
            if count < k and waiting == 0 and length:
                # The nearest second halves first: they shrink the reach.
                _nearest_first(rows, near, length, length, buckets, sorted_rows, sorted_near)
                count = _compare(
                    head, query, sorted_rows, sorted_near, length, True, reaches, radius, best[q], best_rows[q], count
                )  # fmt: skip
                length = 0
            done = waiting if i + 1 < probes else length
            count = _compare(
                head, query, rows, near, done, False, reaches, radius, best[q], best_rows[q], count
            )
            waiting = max(length - done, 0)
            for j in range(waiting):
                rows[j], near[j] = rows[done + j], near[done + j]
            for at in range(more_starts[cluster], more_starts[cluster + 1]):
                row = more_of_place[at]
                if not len(mine) or mine[more_slides[row]]:
                    distance = code_distance(more_head, more_tail, more_place, row, query)
                    count = keep_if_near(distance, first_more + row, best[q], best_rows[q], count, radius)
        counts[q] = count
    return best_rows, best, counts
