"""The nearest of all barcodes: compared one and all, or in clusters, where most can be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

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
from napari_fish.index.barcodes import SplitBarcodes, code_distance, near_codes
from napari_fish.index.exact.kernel import k_best_in_clusters
from napari_fish.index.hamming import keep_if_near
from napari_fish.index.kmeans import ClusterPart

# Rows compared with all queries before the next ones are read: 32 KB of barcodes stay in cache.
BLOCK = 256
# Below this many rows a thread costs more than it saves.
ROWS_A_THREAD = 4096
# From this share of wanted rows on, a block is compared as a whole.
WHOLE = 0.5
# Where masks leave so few slides, leaping from one of their rows to the next is faster than leaving out clusters.
NARROW = 1 / 50
# Entries of a table of distances between queries and centres: they bound the memory a batch takes.
AWAY = 1 << 22


NO_CENTRES: Barcodes = np.empty((0, 0), np.uint64)
#: Distances and rows of the k best of each query, and how many there are.
_Best = tuple[Distances, Rows, NDArray[np.int64]]


class Block(NamedTuple):
    """Consecutive rows, and how they lie in clusters where they do.

    Attributes
    ----------
    codes
        Their barcodes; an array of shape (n, words) will do.
    slides : int32, shape (n,)
        The slide of each.
    centres : uint64, shape (n_clusters, words)
        Of the clusters in whose order the second halves of the barcodes lie.
    clusters
        The rows in cluster order.
    """

    codes: SplitBarcodes | ArrayLike
    slides: NDArray[np.int32]
    centres: Barcodes = NO_CENTRES
    clusters: ClusterPart | None = None


@njit(nogil=True, cache=True)
def k_best(
    head: Barcodes, tail: Barcodes, place: NDArray[np.int32], slides: NDArray[np.int32], start: int, stop: int,
    first_row: int, queries: Barcodes, wanted: NDArray[np.bool_], allowed: NDArray[np.bool_],
    which: NDArray[np.int64], radius: int, best: NDArray[np.int32], best_rows: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:  # fmt: skip
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
            bound = best[q, k - 1] - 1
            if not whole:
                for i in range(n):
                    hits[i] = picked[i] - begin
                    near[hits[i]] = code_distance(head, tail, place, picked[i], query)
            else:
                n = near_codes(head, tail, place, begin, end, query, bound, near, hits)
            for i in range(n):
                row = begin + hits[i]
                if near[hits[i]] <= bound and (not len(allowed) or allowed[which[q], slides[row]]):
                    counts[q] = keep_if_near(
                        near[hits[i]], first_row + row, best[q], best_rows[q], counts[q], radius
                    )
                    bound = best[q, k - 1] - 1


def exact_neighbours(
    blocks: Iterable[Block | tuple[SplitBarcodes | ArrayLike, NDArray[np.int32]]],
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
        Consecutive rows; memory-mapped arrays are read in place.
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
    masks = Masks.over(mask, len(codes), which)
    bits = 64 * codes.shape[1]
    asked = _Asked(codes, masks, k, bits if radius is None else min(int(radius), bits), threads)
    narrow = len(masks.allowed) > 0 and masks.allowed.any(axis=0).mean() < NARROW
    found: list[_Best] = []
    first = 0
    for block in (Block(*some) for some in blocks):
        found += (
            asked.of_clusters(block, first) if block.clusters and not narrow else asked.of_rows(block, first)
        )
        first += len(block.slides)
    return merged(found, len(codes), k)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked of every block: query barcodes, the masks they go by, how many rows, how far, by how many threads."""

    queries: Barcodes
    masks: Masks
    k: int
    reach: int
    threads: int

    def of_rows(self, block: Block, first: int) -> list[_Best]:
        """Compare all rows, those of other slides than wanted excepted."""
        codes, slides = SplitBarcodes.whole(block.codes), frozen(block.slides, np.int32)
        queries = as_barcodes(self.queries, codes.words)
        union: Mask = np.logical_or.reduce(self.masks.allowed, axis=0)
        wanted = frozen(union[:0] if union.all() else union, np.bool_)

        def scan(start: int, stop: int, best: _Best) -> None:
            k_best(
                *codes.arrays, slides, start, stop, first, queries, wanted, self.masks.allowed, self.masks.which,
                self.reach, *best,
            )  # fmt: skip

        return self._in_threads(scan, len(codes), len(codes))

    def of_clusters(self, block: Block, first: int) -> list[_Best]:
        """Compare all rows that may be near enough."""
        codes, slides, clusters = (
            SplitBarcodes.whole(block.codes),
            frozen(block.slides, np.int32),
            block.clusters,
        )
        assert clusters is not None
        queries, centres = as_barcodes(self.queries, codes.words), frozen(block.centres, np.uint64, 2)

        def look(start: int, stop: int, best: _Best) -> None:
            some = max(1, AWAY // (stop - start))
            for at in (slice(i, i + some) for i in range(0, len(queries), some)):
                k_best_in_clusters(
                    codes.head, codes.tail, clusters.rows, clusters.starts, clusters.far, centres, slides, start, stop, first,
                    queries[at], self.masks.allowed, self.masks.which[at], self.reach, *(table[at] for table in best),
                )  # fmt: skip

        return self._in_threads(look, len(centres), len(codes))

    def _in_threads(self, work: Callable[[int, int, _Best], None], size: int, rows: int) -> list[_Best]:
        """Do parts of the work in threads, each with k best of its own."""
        n, k = len(self.queries), self.k

        def one(start: int, stop: int) -> _Best:
            best = (
                np.full((n, k), self.reach + 1, np.int32),
                np.zeros((n, k), np.int64),
                np.zeros(n, np.int64),
            )
            if stop > start:
                work(start, stop, best)
            return best

        return in_threads(one, size, min(self.threads, 1 + rows // ROWS_A_THREAD))


def merged(found: list[_Best], n_queries: int, k: int) -> NeighbourLists:
    """Merge tables of k best into one list a query, sorted by distance, equal ones by row."""
    if not found:
        nothing = np.zeros((n_queries, 0), np.int64)
        return NeighbourLists.from_table(nothing, nothing.astype(np.int32), np.zeros(n_queries, np.int64))
    if len(found) == 1:
        return NeighbourLists.from_table(found[0][1], found[0][0], found[0][2])
    near = np.concatenate([part[0] for part in found], axis=1)
    rows = np.concatenate([part[1] for part in found], axis=1)
    counts = sum((part[2] for part in found), np.zeros(n_queries, np.int64))
    # Unused entries lie past the radius, which puts them last.
    order = np.lexsort((rows, near), axis=1)[:, :k]
    return NeighbourLists.from_table(
        np.take_along_axis(rows, order, 1), np.take_along_axis(near, order, 1), np.minimum(counts, k)
    )
