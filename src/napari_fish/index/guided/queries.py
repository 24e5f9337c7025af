"""Guided search for one query and for many; see :mod:`napari_fish.index.guided.search`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes
from napari_fish.index.barcodes import code_distance
from napari_fish.index.growing_lists import append, sorted_by_distance
from napari_fish.index.guided.kernel import STRETCH_ROWS, search_one
from napari_fish.index.guided.sorted_keys import lower_bound


@njit(nogil=True, cache=True)
def every_row(
    start: int, stop: int, first: int, head: Barcodes, tail: Barcodes, place: NDArray[np.int32],
    slides: NDArray[np.int32], query: Barcodes,
    allowed: NDArray[np.bool_], mask: int, most: int, found: Any,
) -> Any:  # fmt: skip
    """Add all allowed patches of a key within the threshold."""
    for row in range(start, stop):
        if len(allowed) and not allowed[mask, slides[row]]:
            continue
        distance = code_distance(head, tail, place, row, query)
        if distance <= most:
            found = append(found, first + row, distance)
    return found


@njit(nogil=True, cache=True)
def _with_every_row(
    main: Any, delta: Any, accepted: NDArray[np.int64], n: int, query: Barcodes, allowed: NDArray[np.bool_],
    mask: int, most: int, found: Any,
) -> Any:  # fmt: skip
    """Look under all accepted keys again and return every patch within the threshold."""
    found[2][0] = 0
    for i in range(n):
        first = 0
        for part in (main, delta):
            keys, offsets, head, tail, place, slides, directory = part
            at = lower_bound(keys, directory, accepted[i])
            if at < len(keys) and keys[at] == accepted[i]:
                found = every_row(
                    offsets[at],
                    offsets[at + 1],
                    first,
                    head,
                    tail,
                    place,
                    slides,
                    query,
                    allowed,
                    mask,
                    most,
                    found,
                )
            first += len(head)
    return found


@njit(nogil=True, cache=True)
def search_many(
    main: Any, delta: Any, keys: NDArray[np.int64], queries: Barcodes, allowed: NDArray[np.bool_],
    which: NDArray[np.int64], listed: NDArray[np.int32], spans: NDArray[np.int64], walks: NDArray[np.int64],
    numbers: NDArray[np.int64], accepted: NDArray[np.int64], found_rows: NDArray[np.int64], found_distances: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Search for each query; a part is (keys, offsets, head, tail, place, slides, directory).

    ``walks`` and ``numbers`` are the plan of :meth:`~napari_fish.index.guided.search.GuidedParams.settings`. Where a mask leaves few rows, these are ``listed[spans[mask, 0]:spans[mask, 1]]``; a mask without a list has -1. The last
    three are room for as many keys as all walks may accept.
    """
    found = (found_rows, found_distances, np.zeros(1, np.int64))
    every = (np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64))
    lists = (np.empty(1024, np.int64), np.empty(1024, np.int32), np.zeros(1, np.int64))
    near, hits = np.empty(STRETCH_ROWS, np.int32), np.empty(STRETCH_ROWS, np.int32)
    offsets = np.zeros(len(keys) + 1, np.int64)
    cut = np.zeros(len(keys), np.int32)
    for q in range(len(keys)):
        span = min(which[q], len(spans) - 1)
        begin, end = spans[span, 0], spans[span, 1]
        n, cut[q] = search_one(
            main, delta, keys[q], queries[q], allowed, which[q], begin >= 0, listed[max(begin, 0) : end], walks,
            numbers, accepted, found_rows, found_distances, near, hits,
        )  # fmt: skip
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


@njit(nogil=True, cache=True)
def search_single(
    main: Any, delta: Any, key: int, query: Barcodes, allowed: NDArray[np.bool_], listed: NDArray[np.int32],
    spans: NDArray[np.int64], walks: NDArray[np.int64], numbers: NDArray[np.int64], accepted: NDArray[np.int64], found_rows: NDArray[np.int64],
    found_distances: NDArray[np.int32], rows: NDArray[np.int64], distances: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Search for one query into given arrays: handing new ones to Python costs more than a walk."""
    near, hits = np.empty(STRETCH_ROWS, np.int32), np.empty(STRETCH_ROWS, np.int32)
    n, cut = search_one(
        main, delta, key, query, allowed, 0, spans[0, 0] >= 0, listed, walks, numbers, accepted, found_rows,
        found_distances, near, hits,
    )  # fmt: skip
    found = (found_rows, found_distances, np.full(1, n))
    sorted_by_distance(found, (rows, distances, np.zeros(1, np.int64)), numbers[2])
    return n, cut
