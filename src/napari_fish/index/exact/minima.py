"""The nearest row of each slide to each query."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Barcodes, Distances, as_barcodes, frozen, in_threads
from napari_fish.index.hamming import distances_into


@njit(nogil=True, cache=True)
def _minima(
    barcodes: Barcodes, starts: NDArray[np.int64], first: int, last: int, queries: Barcodes, near: Distances, out: NDArray[np.int32]
) -> None:  # fmt: skip
    for group in range(first, last):
        n = starts[group + 1] - starts[group]
        for q in range(len(queries)):
            distances_into(barcodes, starts[group], starts[group + 1], queries[q], 0, near)
            best = out[group, q]
            for i in range(n):
                best = min(best, near[i])
            out[group, q] = best


def minima(barcodes: ArrayLike, starts: ArrayLike, queries: ArrayLike, threads: int = 1) -> NDArray[np.int32]:
    """Return the distance of the nearest row of each group from each query, in bits, shape (n_groups, n_queries).

    Parameters
    ----------
    barcodes : uint64, shape (n_rows, words)
        Rows, those of one group after those of another.
    starts : int64, shape (n_groups + 1,)
        Group ``g`` is rows ``starts[g]:starts[g + 1]``; an empty one is farther than any row.
    queries : uint64, shape (n_queries, words)
        Query barcodes.
    threads
        Threads that share the groups.
    """
    rows, edges = frozen(barcodes, np.uint64, 2), frozen(starts, np.int64)
    words = as_barcodes(queries, rows.shape[1])
    out = np.full((len(edges) - 1, len(words)), 64 * rows.shape[1] + 1, np.int32)
    longest = int(np.diff(edges).max(initial=0))

    def work(first: int, last: int) -> None:
        _minima(rows, edges, first, last, words, np.empty(longest, np.int32), out)

    in_threads(work, len(out), threads)
    return out
