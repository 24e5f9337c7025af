"""What the searches of this room have in common: arrays as kernels want them, masks, lists of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.errors import DatabaseError

#: Keys lie below this: the key of a patch is at most 812 832 512 130 048.
UNIVERSE = 1 << 50

Barcodes = NDArray[np.uint64]
Keys = NDArray[np.int64]
Rows = NDArray[np.int64]
Distances = NDArray[np.int32]
Mask = NDArray[np.bool_]
_T = TypeVar("_T")


def frozen(array: ArrayLike, dtype: type[np.generic], ndim: int = 1) -> NDArray[Any]:
    """Return a read-only, C-ordered view (a copy only where it must be).

    Memory-mapped and ordinary arrays become the same type, so that a kernel is compiled once.
    """
    if type(array) is np.ndarray and array.dtype == dtype and array.ndim == ndim and array.flags.c_contiguous:
        if not array.flags.writeable:
            return array
        plain = array[...]
    else:
        plain = np.ascontiguousarray(np.asarray(array), dtype=dtype).view(np.ndarray)[...]
    if plain.ndim != ndim:
        raise DatabaseError(f"Expected an array of {ndim} dimensions, got shape {plain.shape}.")
    plain.flags.writeable = False
    return plain


@dataclass(frozen=True, eq=False)
class NeighbourLists:
    """One list of neighbours for each query patch, nearest first.

    Attributes
    ----------
    offsets : int64, shape (n_queries + 1,)
        List ``i`` is ``rows[offsets[i]:offsets[i + 1]]``.
    rows : int64, shape (n_hits,)
        Row numbers: first those of the main segment, then those of the delta.
    distances : int32, shape (n_hits,)
        Hamming distances in bits.
    cut : int32, shape (n_queries,)
        Walks that ended because too many excluded keys had to be skipped.
    slides : int32, shape (n_hits,)
        The slide of each hit, where a store was asked; an index alone does not say.
    """

    offsets: NDArray[np.int64]
    rows: Rows
    distances: Distances
    cut: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    slides: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> tuple[Rows, Distances]:
        at = slice(self.offsets[i], self.offsets[i + 1])
        return self.rows[at], self.distances[at]

    def __iter__(self) -> Iterator[tuple[Rows, Distances]]:
        return (self[i] for i in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many hits each query has."""
        return np.diff(self.offsets)

    @classmethod
    def joined(cls, parts: Sequence[NeighbourLists]) -> NeighbourLists:
        """Put the lists of several batches of queries one after the other."""
        lengths = np.concatenate([[0], *(part.lengths for part in parts)])
        columns = ("rows", "distances", "cut", "slides")
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in columns)
        return cls(np.cumsum(lengths, dtype=np.int64), *joined)

    def in_order(self, order: NDArray[np.int64]) -> NeighbourLists:
        """Return the lists in another order, given by their numbers."""
        lengths = self.lengths[order]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = np.repeat(self.offsets[order] - offsets[:-1], lengths) + np.arange(offsets[-1])
        slides = self.slides[at] if len(self.slides) else self.slides
        return NeighbourLists(offsets, self.rows[at], self.distances[at], self.cut[order], slides)

    def split(self, sizes: Sequence[int]) -> list[NeighbourLists]:
        """Take the lists of several batches of queries apart again."""
        edges = np.cumsum([0, *sizes]).tolist()
        parts = []
        for a, b in pairwise(edges):
            hits = slice(self.offsets[a], self.offsets[b])
            offsets = self.offsets[a : b + 1] - self.offsets[a]
            columns = self.rows[hits], self.distances[hits], self.cut[a:b], self.slides[hits]
            parts.append(NeighbourLists(offsets, *columns))
        return parts

    @classmethod
    def from_table(cls, rows: Rows, distances: Distances, counts: NDArray[np.int64]) -> NeighbourLists:
        """Take the first ``counts[i]`` entries of each line of a table of shape (n_queries, k)."""
        used = np.arange(rows.shape[1]) < counts[:, None]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(offsets, rows[used], distances[used], np.zeros(len(counts), np.int32))


_NO_MASK = frozen(np.ones((0, 0), np.bool_), np.bool_, 2)


@lru_cache(maxsize=8)
def _no_choice(n: int) -> NDArray[np.int64]:
    return frozen(np.zeros(n, np.int64), np.int64)


@dataclass(frozen=True, eq=False)
class Masks:
    """Which slides may be returned, for each query.

    Attributes
    ----------
    allowed : bool, shape (n_masks, n_slides)
        True where a slide may be returned; no masks at all means every slide may.
    which : int64, shape (n_queries,)
        The mask each query goes by.
    """

    allowed: NDArray[np.bool_]
    which: NDArray[np.int64]

    @classmethod
    def over(cls, mask: Mask | None, n_queries: int, which: ArrayLike | None = None) -> Masks:
        """Make one mask for all queries, or a table of masks and which of them each query uses."""
        if mask is None:
            return cls(_NO_MASK, _no_choice(n_queries))
        table = np.atleast_2d(np.asarray(mask, np.bool_))
        chosen = np.zeros(n_queries, np.int64) if which is None else np.asarray(which, np.int64)
        if len(chosen) != n_queries or (len(table) and n_queries and chosen.max(initial=0) >= len(table)):
            raise ValueError("Each query needs a mask of the table.")
        return cls(frozen(table, np.bool_, 2), frozen(chosen, np.int64))


def as_barcodes(barcodes: ArrayLike, words: int) -> Barcodes:
    """Check query barcodes, shape (n, words) or (words,), against the width of the database's."""
    queries = np.asarray(barcodes)
    queries = queries[None] if queries.ndim == 1 else queries
    if queries.dtype != np.uint64 or queries.ndim != 2 or queries.shape[1] != words:
        raise DatabaseError(
            f"The query's barcodes are {queries.dtype} of shape {queries.shape}, the database's are uint64 "
            f"with {words} words ({64 * words} bits): query and database must use the same encoder."
        )
    return frozen(queries, np.uint64, 2)


def in_threads(work: Callable[[int, int], _T], n: int, threads: int) -> list[_T]:
    """Call ``work(start, stop)`` on equal parts of ``range(n)``; kernels release the GIL."""
    parts = max(1, min(threads, n))
    if parts == 1:
        return [work(0, n)]
    edges = [n * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(work, edges[:-1], edges[1:]))
