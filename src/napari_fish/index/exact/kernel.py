"""The kernel of exact search in clusters: those that cannot hold anything near enough are not read.

A row is at least as far from a query as its cluster's centre is, less its own distance from the centre (the triangle
inequality). Rows of a cluster lie farthest from the centre first, so what may be near enough is the beginning of a cluster, or
nothing of it. The same holds for each half of the barcodes: where the second half of a row was compared, the centre says how near the
first can be at best.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes
from napari_fish.index.barcodes import AHEAD
from napari_fish.index.hamming import distance_from, distances_into, keep_if_near, near_rows
from napari_fish.index.simd import popcount, prefetch

# Clusters that are looked into first, for each query: what is found there leaves out most of the others.
FIRST = 8
# From so many queries on that a cluster cannot be left out for, its barcodes are put together once for all of them.
SHARED = 4
# Rows compared at once.
STRETCH = 512
# Of a cluster that is done.
_DONE = 2**30
_NO_MASK = np.empty(0, np.bool_)


@njit(nogil=True, cache=True)
def _nearest(distances: NDArray[np.int32], n: int, order: NDArray[np.int64]) -> Any:
    """Write the clusters with the least distances to ``order``, nearest first; return how many."""
    found, last = 0, len(order) - 1
    for cluster in range(n):
        if found > last and distances[cluster] >= distances[order[last]]:
            continue
        at = min(found, last)
        found = min(found + 1, last + 1)
        while at > 0 and distances[order[at - 1]] > distances[cluster]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = cluster
    return found


@njit(nogil=True, cache=True)
def _not_nearer(far: NDArray[np.uint16], start: int, stop: int, least: int) -> Any:
    """Return where the rows end that are at least so far from the centre; farther ones come first."""
    while start < stop:
        middle = (start + stop) >> 1
        if far[middle] >= least:
            start = middle + 1
        else:
            stop = middle
    return start


@njit(nogil=True, cache=True)
def _offer(
    distance: int, row: int, mine: NDArray[np.bool_], slides: NDArray[np.int32], best: NDArray[np.int32],
    best_rows: NDArray[np.int64], count: int, radius: int, first_row: int,
) -> Any:  # fmt: skip
    if len(mine) and not mine[slides[row]]:
        return count
    return keep_if_near(distance, first_row + row, best, best_rows, count, radius)


@njit(nogil=True, cache=True)
def _apart(left: Barcodes, right: Barcodes, words: int) -> Any:
    """Count the bits in which the first words of two barcodes differ."""
    total = np.uint64(0)
    for word in range(words):
        total += popcount(left[word] ^ right[word])
    return np.int32(total)


@njit(nogil=True, cache=True)
def _look_into(
    head: Barcodes, tail: Barcodes, of_place: NDArray[np.int32], far: NDArray[np.uint16], slides: NDArray[np.int32],
    start: int, stop: int, centre: Barcodes, query: Barcodes, mine: NDArray[np.bool_], first_row: int,
    radius: int, best: NDArray[np.int32], best_rows: NDArray[np.int64], count: int, near: NDArray[np.int32], hits: NDArray[np.int32],
    from_centre: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Offer some rows of a cluster to one query's k best; first halves are fetched where the second ones leave a chance."""
    k, words = len(best), head.shape[1]
    away = _apart(centre, query, words)
    for begin in range(start, stop, STRETCH):
        end = min(begin + STRETCH, stop)
        bound = min(best[k - 1], radius)
        some = near_rows(tail, begin, end, query, words, bound, near, hits)
        if some:
            distances_into(tail, begin, end, centre, words, from_centre)
        found = 0
        for hit in hits[:some]:
            # How far the first half is from the centre's, and how near to the query's it can be.
            out = np.int32(far[begin + hit]) - from_centre[hit]
            hits[found] = hit
            found += near[hit] + abs(away - out) <= bound
        for i in range(min(AHEAD, found)):
            prefetch(head, of_place[begin + hits[i]], 0)
        for i in range(found):
            if i + AHEAD < found:
                prefetch(head, of_place[begin + hits[i + AHEAD]], 0)
            row = np.int64(of_place[begin + hits[i]])
            distance = near[hits[i]] + distance_from(head, row, query, 0)
            if distance <= bound:
                count = _offer(distance, row, mine, slides, best, best_rows, count, radius, first_row)
                bound = min(best[k - 1], radius)
    return count


@njit(nogil=True, cache=True)
def _whole_rows(
    head: Barcodes, tail: Barcodes, of_place: NDArray[np.int32], begin: int, end: int, whole: Barcodes
) -> None:  # fmt: skip
    """Write the whole barcodes of some rows of a cluster."""
    words = head.shape[1]
    for place in range(begin, end):
        prefetch(head, of_place[min(place + AHEAD, end - 1)], 0)
        row = of_place[place]
        for word in range(words):
            whole[place - begin, word] = head[row, word]
        for word in range(tail.shape[1]):
            whole[place - begin, words + word] = tail[place, word]


@njit(nogil=True, cache=True)
def k_best_in_clusters(
    head: Barcodes, tail: Barcodes, of_place: NDArray[np.int32], starts: NDArray[np.int32], far: NDArray[np.uint16],
    centres: Barcodes, slides: NDArray[np.int32], first_cluster: int, last_cluster: int, first_row: int, queries: Barcodes,
    allowed: NDArray[np.bool_], which: NDArray[np.int64], radius: int, best: NDArray[np.int32],
    best_rows: NDArray[np.int64], counts: NDArray[np.int64],
) -> None:  # fmt: skip
    """Offer the rows of clusters ``first_cluster:last_cluster`` to every query's k best."""
    n, n_clusters, k = len(queries), last_cluster - first_cluster, best.shape[1]
    near, hits = np.empty(STRETCH, np.int32), np.empty(STRETCH, np.int32)
    from_centre = np.empty(STRETCH, np.int32)
    away = np.empty((n_clusters, n), np.int32)
    distances, order = np.empty(n_clusters, np.int32), np.empty(min(FIRST, n_clusters), np.int64)
    for q in range(n):
        mine = allowed[which[q]] if len(allowed) else _NO_MASK
        distances_into(centres, first_cluster, last_cluster, queries[q], 0, distances)
        away[:, q] = distances
        for i in range(_nearest(distances, n_clusters, order)):
            cluster = first_cluster + order[i]
            bound = min(best[q, k - 1], radius)
            end = _not_nearer(far, starts[cluster], starts[cluster + 1], away[order[i], q] - bound)
            counts[q] = _look_into(
                head, tail, of_place, far, slides, starts[cluster], end, centres[cluster], queries[q], mine,
                first_row, radius, best[q], best_rows[q], counts[q], near, hits, from_centre,
            )  # fmt: skip
            away[order[i], q] = _DONE
    whole = np.empty((STRETCH if n >= SHARED else 0, centres.shape[1]), np.uint64)
    asking, ends = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n_clusters):
        start, stop = starts[first_cluster + i], starts[first_cluster + i + 1]
        if start == stop:
            continue
        some, longest, widest = 0, start, np.int64(far[start])
        for q in range(n):
            bound = min(best[q, k - 1], radius)
            if away[i, q] - widest <= bound:
                asking[some], ends[some] = q, _not_nearer(far, start, stop, away[i, q] - bound)
                longest = max(longest, ends[some])
                some += 1
        if some < SHARED:
            for j in range(some):
                q = asking[j]
                mine = allowed[which[q]] if len(allowed) else _NO_MASK
                counts[q] = _look_into(
                    head, tail, of_place, far, slides, start, ends[j], centres[first_cluster + i], queries[q], mine,
                    first_row, radius, best[q], best_rows[q], counts[q], near, hits, from_centre,
                )  # fmt: skip
            continue
        for begin in range(start, longest, STRETCH):
            end = min(begin + STRETCH, longest)
            _whole_rows(head, tail, of_place, begin, end, whole)
            for j in range(some):
                q = asking[j]
                if ends[j] <= begin:
                    continue
                mine = allowed[which[q]] if len(allowed) else _NO_MASK
                bound = min(best[q, k - 1], radius)
                found = near_rows(whole, 0, min(end, ends[j]) - begin, queries[q], 0, bound, near, hits)
                for hit in hits[:found]:
                    row = np.int64(of_place[begin + hit])
                    counts[q] = _offer(
                        near[hit], row, mine, slides, best[q], best_rows[q], counts[q], radius, first_row
                    )
