"""Guided search over a van Emde Boas tree and a hash table: the paper's own structure.

The tree leads from key to key, the table from a key to its patches, which are those of the segments themselves. Slower than
sorted arrays, because a walk jumps from key to key and from patch to patch, but the same results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import (
    UNIVERSE,
    Barcodes,
    Mask,
    Masks,
    NeighbourLists,
    as_barcodes,
    frozen,
    in_threads,
)
from napari_fish.index.growing_lists import append, sorted_by_distance
from napari_fish.index.guided.leaps import nearest_row
from napari_fish.index.guided.params import GuidedParams
from napari_fish.index.guided.queries import every_row
from napari_fish.index.segment import Segment
from napari_fish.index.veb.tree import VebTree, contains, predecessor, successor
from napari_fish.index.veb.words import BITS, find, place

_LOW = (1 << 24) - 1


@njit(nogil=True, cache=True)
def _place_all(keys: NDArray[np.int64], table: Any) -> None:
    """Say under which number each key is found."""
    for i in range(len(keys)):
        place(table[0], table[1], keys[i] >> 24, keys[i] & _LOW, i)


@njit(nogil=True, cache=True)
def _search_one(
    tree: Any, table: Any, main: Any, delta: Any, at: NDArray[np.int32], key: int, query: Barcodes,
    allowed: NDArray[np.bool_], mask: int, walks: NDArray[np.int64], numbers: NDArray[np.int64],
    accepted: NDArray[np.bool_], taken: NDArray[np.int64], found: Any,
) -> Any:  # fmt: skip
    """Run Algorithms 1-3 as they are printed, one successor at a time."""
    paper, limit, most, every, most_skips = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    offsets, head, tail, codes_at, slides = main
    more_offsets, more_head, more_tail, more_codes_at, more_slides = delta
    first_more = np.int64(len(head))
    cut, n = 0, 0
    for walk in range(len(walks)):
        seed, step = key + walks[walk, 0], walks[walk, 1]
        if seed >= UNIVERSE or (seed < 0 and (paper or step < 0)):
            continue
        current = max(seed, np.int64(0))
        visited, skipped = 0, 0
        own = (seed < 0 or (paper and walks[walk, 0] == 0)) and contains(tree, current)
        while visited < limit:
            if own:
                own = False
            elif step > 0:
                current = successor(tree, np.int64(0), np.int64(BITS), current)
            else:
                current = predecessor(tree, np.int64(0), np.int64(BITS), current)
            if current < 0:
                break
            number = find(table[0], table[1], current >> 24, current & _LOW)
            if accepted[number]:
                break
            begin, end, more_begin, more_end = 0, 0, 0, 0
            if at[number, 0] >= 0:
                begin, end = offsets[at[number, 0]], offsets[at[number, 0] + 1]
            if at[number, 1] >= 0:
                more_begin, more_end = more_offsets[at[number, 1]], more_offsets[at[number, 1] + 1]
            best, nearest = nearest_row(begin, end, head, tail, codes_at, slides, query, allowed, mask)
            other, later = nearest_row(
                more_begin, more_end, more_head, more_tail, more_codes_at, more_slides, query, allowed, mask
            )
            # Of equally near patches that of the main part counts.
            if other < best:
                best, nearest = other, first_more + later
            if nearest < 0:
                if skipped == most_skips:
                    cut += 1
                    break
                skipped += 1
                continue
            visited += 1
            if best > most:
                continue
            accepted[number] = True
            taken[n] = number
            n += 1
            if not every:
                found = append(found, nearest, best)
                continue
            found = every_row(begin, end, 0, head, tail, codes_at, slides, query, allowed, mask, most, found)
            found = every_row(
                more_begin, more_end, first_more, more_head, more_tail, more_codes_at, more_slides, query, allowed,
                mask, most, found,
            )  # fmt: skip
    for i in range(n):
        accepted[taken[i]] = False
    return found, cut


@njit(nogil=True, cache=True)
def _search_many(
    tree: Any, table: Any, main: Any, delta: Any, at: NDArray[np.int32], keys: NDArray[np.int64], queries: Barcodes,
    allowed: NDArray[np.bool_], which: NDArray[np.int64], walks: NDArray[np.int64], numbers: NDArray[np.int64],
    accepted: NDArray[np.bool_],
) -> Any:  # fmt: skip
    found = (np.empty(1024, np.int64), np.empty(1024, np.int32), np.zeros(1, np.int64))
    lists = (np.empty(1024, np.int64), np.empty(1024, np.int32), np.zeros(1, np.int64))
    taken = np.empty(len(walks) * numbers[1], np.int64)
    offsets = np.zeros(len(keys) + 1, np.int64)
    cut = np.zeros(len(keys), np.int32)
    for q in range(len(keys)):
        found[2][0] = 0
        found, cut[q] = _search_one(
            tree, table, main, delta, at, keys[q], queries[q], allowed, which[q], walks, numbers, accepted, taken, found
        )  # fmt: skip
        lists = sorted_by_distance(found, lists, numbers[2])
        offsets[q + 1] = lists[2][0]
    return offsets, lists[0][: lists[2][0]], lists[1][: lists[2][0]], cut


class VebIndex:
    """A van Emde Boas tree over the keys of a main segment and a small later one.

    Parameters
    ----------
    main, delta
        Rows of ``delta`` are numbered after those of ``main``.
    """

    def __init__(self, main: Segment, delta: Segment | None = None) -> None:
        self.main = main
        self.delta = delta if delta is not None else Segment.empty(main.words)
        keys = np.union1d(self.main.keys, self.delta.keys)
        self.tree = VebTree(keys)
        slots = 2 << len(keys).bit_length()
        self._table = np.full(slots, -1, np.int64), np.empty(slots, np.int64)
        _place_all(keys, self._table)
        # Where the patches of each key begin, in the main segment and in the later one; -1 where there are none.
        self._at = np.full((len(keys), 2), -1, np.int32)
        for part, segment in enumerate((self.main, self.delta)):
            self._at[np.searchsorted(keys, segment.keys), part] = np.arange(len(segment.keys))
        self._parts = tuple(
            (part.offsets, *part.codes.arrays, part.slides) for part in (self.main, self.delta)
        )

    def search(
        self,
        keys: ArrayLike,
        barcodes: ArrayLike,
        params: GuidedParams | None = None,
        *,
        mask: Mask | None = None,
        which: ArrayLike | None = None,
        threads: int = 1,
    ) -> NeighbourLists:
        """Search for each (key, barcode); parameters as in :meth:`~napari_fish.index.guided.search.GuidedIndex.search`."""
        codes = as_barcodes(barcodes, self.main.words)
        starts = frozen(np.atleast_1d(np.asarray(keys)), np.int64)
        walks, numbers = (params or GuidedParams()).settings()
        masks = Masks.over(mask, len(codes), which)

        def work(a: int, b: int) -> NeighbourLists:
            asked = starts[a:b], codes[a:b], masks.allowed, masks.which[a:b], walks, numbers
            accepted = np.zeros(len(self._at), np.bool_)
            return NeighbourLists(
                *_search_many(self.tree.arrays, self._table, *self._parts, self._at, *asked, accepted)
            )

        return NeighbourLists.joined(in_threads(work, len(codes), threads))
