"""All barcodes, each read once for a whole batch of queries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import (
    Barcodes,
    Distances,
    Mask,
    Masks,
    NeighbourLists,
    Rows,
    as_barcodes,
    frozen,
    in_threads,
)
from napari_fish.index.hamming import BLOCK, keep_if_near, near_rows, row_distance

# Below this many rows a thread costs more than it saves.
ROWS_A_THREAD = 4096
# From this share of wanted rows on, a block is compared as a whole.
WHOLE = 0.5


@njit(nogil=True, cache=True)
def k_best(
    barcodes: Barcodes,
    slides: NDArray[np.int32],
    start: int,
    stop: int,
    first_row: int,
    queries: Barcodes,
    wanted: NDArray[np.bool_],
    allowed: NDArray[np.bool_],
    which: NDArray[np.int64],
    radius: int,
    best: NDArray[np.int32],
    best_rows: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Offer rows ``start:stop`` to every query's k best; where few rows are ``wanted`` by any, only they are read."""
    near, hits = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    picked = np.empty(BLOCK, np.int64)
    k = best.shape[1]
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        n = end - begin
        if len(wanted):
            n = 0
            for row in range(begin, end):
                picked[n] = row
                n += wanted[slides[row]]
        # Reading on is faster than leaping over a few.
        whole = n >= WHOLE * (end - begin)
        for q in range(len(queries)):
            query = queries[q]
            bound = best[q, k - 1] - 1 if counts[q] == k else radius
            if whole:
                n = near_rows(barcodes, begin, end, query, bound, near, hits)
            else:
                for i in range(n):
                    hits[i] = picked[i] - begin
                    near[hits[i]] = row_distance(barcodes, picked[i], query)
            for i in range(n):
                row = begin + hits[i]
                if near[hits[i]] <= bound and (not len(allowed) or allowed[which[q], slides[row]]):
                    counts[q] = keep_if_near(
                        near[hits[i]], first_row + row, best[q], best_rows[q], counts[q], radius
                    )
                    bound = best[q, k - 1] - 1 if counts[q] == k else radius


def exact_neighbours(
    blocks: Iterable[tuple[ArrayLike, ArrayLike]],
    queries: ArrayLike,
    *,
    k: int = 50,
    radius: int | None = None,
    mask: Mask | None = None,
    which: ArrayLike | None = None,
    threads: int = 1,
) -> NeighbourLists:
    """Find each query's nearest neighbours among all rows.

    Parameters
    ----------
    blocks
        Barcodes (n, words) and slides (n,) of consecutive rows; memory-mapped arrays are read in place.
    queries : uint64, shape (n_queries, words)
        Query barcodes.
    k
        At most this many neighbours a query.
    radius
        Largest distance in bits, itself included; None for no limit.
    mask : bool, shape (n_slides,) or (n_masks, n_slides)
        Slides that may be returned; applied during the search, so that k counts allowed rows only.
    which : int, shape (n_queries,)
        With several masks: the one each query uses.
    threads
        Threads that share the rows.

    Returns
    -------
    NeighbourLists
        Sorted by distance, equal distances by row.
    """
    codes = np.atleast_2d(np.asarray(queries))
    n = len(codes)
    masks = Masks.over(mask, n, which)
    union: Mask = np.logical_or.reduce(masks.allowed, axis=0)
    wanted = frozen(union[:0] if union.all() else union, np.bool_)
    reach = 64 * codes.shape[1] if radius is None else int(radius)
    found: list[tuple[Distances, Rows, NDArray[np.int64]]] = []
    first = 0
    for block, of_slides in blocks:
        rows, slides = frozen(block, np.uint64, 2), frozen(of_slides, np.int32)
        words = as_barcodes(codes, rows.shape[1])

        def scan(
            start: int,
            stop: int,
            rows: Barcodes = rows,
            slides: NDArray[np.int32] = slides,
            words: Barcodes = words,
            first: int = first,
        ) -> tuple[Distances, Rows, NDArray[np.int64]]:
            best = np.full((n, k), reach + 1, np.int32)
            best_rows = np.zeros((n, k), np.int64)
            counts = np.zeros(n, np.int64)
            k_best(
                rows,
                slides,
                start,
                stop,
                first,
                words,
                wanted,
                masks.allowed,
                masks.which,
                reach,
                best,
                best_rows,
                counts,
            )
            return best, best_rows, counts  # fmt: skip

        found += in_threads(scan, len(rows), min(threads, 1 + len(rows) // ROWS_A_THREAD))
        first += len(rows)
    return merged(found, n, k)


def merged(
    found: list[tuple[Distances, Rows, NDArray[np.int64]]], n_queries: int, k: int
) -> NeighbourLists:  # fmt: skip
    """Merge tables of k best, given in row order, into one list a query."""
    if not found:
        nothing = np.zeros((n_queries, 0), np.int64)
        return NeighbourLists.from_table(nothing, nothing.astype(np.int32), np.zeros(n_queries, np.int64))
    if len(found) == 1:
        return NeighbourLists.from_table(found[0][1], found[0][0], found[0][2])
    near = np.concatenate([part[0] for part in found], axis=1)
    rows = np.concatenate([part[1] for part in found], axis=1)
    counts = sum((part[2] for part in found), np.zeros(n_queries, np.int64))
    # Unused entries lie past the radius, so a stable sort puts them last.
    order = np.argsort(near, axis=1, kind="stable")[:, :k]
    return NeighbourLists.from_table(
        np.take_along_axis(rows, order, 1), np.take_along_axis(near, order, 1), np.minimum(counts, k)
    )
