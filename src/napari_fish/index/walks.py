"""The kernel of guided search over sorted arrays; see :mod:`napari_fish.index.guided`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import UNIVERSE, Barcodes
from napari_fish.index.hamming import row_distance
from napari_fish.index.results import append, sorted_by_distance
from napari_fish.index.sortedkeys import lower_bound


@njit(nogil=True, cache=True)
def nearest_row(
    start: int, stop: int, barcodes: Barcodes, slides: NDArray[np.int32], query: Barcodes,
    allowed: NDArray[np.bool_], mask: int,
) -> Any:  # fmt: skip
    """Return (distance, row) of the nearest allowed mosaic of those under a key; row -1 where there is none."""
    best, best_row = np.int32(2**30), np.int64(-1)
    for row in range(start, stop):
        if len(allowed) and not allowed[mask, slides[row]]:
            continue
        distance = row_distance(barcodes, row, query)
        if distance < best:
            best, best_row = distance, np.int64(row)
    return best, best_row


@njit(nogil=True, cache=True)
def _every_row(
    start: int, stop: int, first: int, barcodes: Barcodes, slides: NDArray[np.int32], query: Barcodes,
    allowed: NDArray[np.bool_], mask: int, most: int, found: Any,
) -> Any:  # fmt: skip
    """Add all allowed mosaics of a key within the threshold."""
    for row in range(start, stop):
        if len(allowed) and not allowed[mask, slides[row]]:
            continue
        distance = row_distance(barcodes, row, query)
        if distance <= most:
            found = append(found, first + row, distance)
    return found


@njit(nogil=True, cache=True)
def _nearest_accepted(accepted: NDArray[np.int64], n: int, start: int, direction: int) -> Any:
    """Return the accepted key that a walk starting at ``start`` meets first, or -1."""
    stop = np.int64(-1)
    if direction > 0:
        for i in range(n):
            if accepted[i] >= start and (stop < 0 or accepted[i] < stop):
                stop = accepted[i]
    else:
        for i in range(n):
            if accepted[i] <= start and accepted[i] > stop:
                stop = accepted[i]
    return stop


@njit(nogil=True, cache=True)
def _search_one(
    main: Any, delta: Any, key: int, query: Barcodes, allowed: NDArray[np.bool_], mask: int,
    walks: NDArray[np.int64], numbers: NDArray[np.int64], accepted: NDArray[np.int64],
    rows: NDArray[np.int64], distances: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Run all walks of one query; return how many keys were accepted, and how many walks were cut short.

    Tuples are taken apart here, once: in the inner loop each access would count references.
    """
    paper, limit, most, most_skips = numbers[0], numbers[1], numbers[2], numbers[4]
    keys, offsets, barcodes, slides, directory = main
    more_keys, more_offsets, more_barcodes, more_slides, more_directory = delta
    n, more_n, first_more = len(keys), len(more_keys), np.int64(len(barcodes))
    n_accepted, cut = 0, 0
    up, down = np.int64(-1), np.int64(UNIVERSE)
    for walk in range(len(walks)):
        seed, step = key + walks[walk, 0], walks[walk, 1]
        if seed < 0 or seed >= UNIVERSE:
            continue
        low = seed + 1 if step > 0 and not (paper and walks[walk, 0] == 0) else seed
        at = lower_bound(keys, directory, low) - (step < 0)
        more_at = lower_bound(more_keys, more_directory, low) - (step < 0)
        visited, skipped, stop = 0, 0, np.int64(-1)
        while visited < limit:
            here, there = 0 <= at < n, 0 <= more_at < more_n
            if not here and not there:
                break
            current = keys[at] if here else more_keys[more_at]
            if here and there:
                other_key = more_keys[more_at]
                here, there = (current - other_key) * step <= 0, (other_key - current) * step <= 0
                current = current if here else other_key
            if visited + skipped == 0:
                if paper and ((step > 0 and current <= up) or (step < 0 and current >= down)):
                    break
                if not paper:
                    stop = _nearest_accepted(accepted, n_accepted, current, step)
            if current == stop:
                break
            best, row = np.int32(2**30), np.int64(-1)
            if here:
                best, row = nearest_row(offsets[at], offsets[at + 1], barcodes, slides, query, allowed, mask)
                at += step
            if there:
                other, other_row = nearest_row(
                    more_offsets[more_at], more_offsets[more_at + 1], more_barcodes, more_slides, query,
                    allowed, mask,
                )  # fmt: skip
                more_at += step
                if other < best:
                    best, row = other, first_more + other_row
            if row < 0:
                if skipped == most_skips:
                    cut += 1
                    break
                skipped += 1
                continue
            visited += 1
            if best <= most:
                accepted[n_accepted], rows[n_accepted], distances[n_accepted] = current, row, best
                n_accepted += 1
                if step > 0:
                    up = current
                else:
                    down = current
    return n_accepted, cut


@njit(nogil=True, cache=True)
def _with_every_row(
    main: Any, delta: Any, accepted: NDArray[np.int64], n: int, query: Barcodes, allowed: NDArray[np.bool_],
    mask: int, most: int, found: Any,
) -> Any:  # fmt: skip
    """Look under all accepted keys again and return every mosaic within the threshold."""
    found[2][0] = 0
    for i in range(n):
        first = 0
        for part in (main, delta):
            keys, offsets, barcodes, slides, directory = part
            at = lower_bound(keys, directory, accepted[i])
            if at < len(keys) and keys[at] == accepted[i]:
                found = _every_row(
                    offsets[at], offsets[at + 1], first, barcodes, slides, query, allowed, mask, most, found
                )
            first += len(barcodes)
    return found


@njit(nogil=True, cache=True)
def search_many(
    main: Any, delta: Any, keys: NDArray[np.int64], queries: Barcodes, allowed: NDArray[np.bool_],
    which: NDArray[np.int64], walks: NDArray[np.int64], numbers: NDArray[np.int64],
) -> Any:  # fmt: skip
    """Search for each query; a part is (keys, offsets, barcodes, slides, directory)."""
    capacity = len(walks) * numbers[1]
    accepted = np.empty(capacity, np.int64)
    found = (np.empty(capacity, np.int64), np.empty(capacity, np.int32), np.zeros(1, np.int64))
    every = (np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64))
    lists = (np.empty(1024, np.int64), np.empty(1024, np.int32), np.zeros(1, np.int64))
    offsets = np.zeros(len(keys) + 1, np.int64)
    cut = np.zeros(len(keys), np.int32)
    for q in range(len(keys)):
        n, cut[q] = _search_one(
            main, delta, keys[q], queries[q], allowed, which[q], walks, numbers, accepted, found[0], found[1]
        )
        found[2][0] = n
        if numbers[3]:
            every = _with_every_row(
                main, delta, accepted, n, queries[q], allowed, which[q], numbers[2], every
            )
            lists = sorted_by_distance(every, lists, numbers[2])
        else:
            lists = sorted_by_distance(found, lists, numbers[2])
        offsets[q + 1] = lists[2][0]
    return offsets, lists[0][: lists[2][0]], lists[1][: lists[2][0]], cut
