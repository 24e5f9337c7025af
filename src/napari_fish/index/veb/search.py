"""Guided search over a van Emde Boas tree and a hash table: the paper's own structure.

Patches may be added one at a time in O(log log M); rows keep the number they were added with. Slower than sorted
arrays, because a walk jumps from key to key and from patch to patch, but the same results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import UNIVERSE, Barcodes, Mask, Masks, NeighbourLists, as_barcodes, frozen
from napari_fish.index.growing_lists import append, sorted_by_distance
from napari_fish.index.guided.params import GuidedParams
from napari_fish.index.hamming import row_distance
from napari_fish.index.veb.tree import VebTree, contains, predecessor, successor
from napari_fish.index.veb.words import BITS, find, place

_LOW = (1 << 24) - 1


@njit(nogil=True, cache=True)
def _link(table: Any, chains: Any, keys: NDArray[np.int64], first_row: int) -> None:
    """Append rows to the chains of their keys; chains are (head, tail, next row)."""
    heads, tails, following = chains
    for i in range(len(keys)):
        row = first_row + i
        following[row] = -1
        head_slot = find(table[0], table[1], keys[i] >> 24, keys[i] & _LOW)
        if head_slot < 0:
            bucket = table[2][0]
            table[2][0] += 1
            place(table[0], table[1], keys[i] >> 24, keys[i] & _LOW, bucket)
            heads[bucket] = tails[bucket] = row
        else:
            following[tails[head_slot]] = row
            tails[head_slot] = row


@njit(nogil=True, cache=True)
def _search_one(
    tree: Any, table: Any, chains: Any, barcodes: Barcodes, slides: NDArray[np.int32], key: int,
    query: Barcodes, allowed: NDArray[np.bool_], mask: int, walks: NDArray[np.int64],
    numbers: NDArray[np.int64], accepted: NDArray[np.bool_], found: Any,
) -> Any:  # fmt: skip
    """Run Algorithms 1-3 as they are printed, one successor at a time."""
    paper, limit, most, every, most_skips = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    cut = 0
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
            bucket = find(table[0], table[1], current >> 24, current & _LOW)
            if accepted[bucket]:
                break
            best, nearest = np.int32(2**30), np.int64(-1)
            row = chains[0][bucket]
            while row >= 0:
                if len(allowed) == 0 or allowed[mask, slides[row]]:
                    distance = row_distance(barcodes, row, query)
                    if distance < best:
                        best, nearest = distance, row
                row = chains[2][row]
            if nearest < 0:
                if skipped == most_skips:
                    cut += 1
                    break
                skipped += 1
                continue
            visited += 1
            if best > most:
                continue
            accepted[bucket] = True
            if not every:
                found = append(found, nearest, best)
                continue
            row = chains[0][bucket]
            while row >= 0:
                if len(allowed) == 0 or allowed[mask, slides[row]]:
                    distance = row_distance(barcodes, row, query)
                    if distance <= most:
                        found = append(found, row, distance)
                row = chains[2][row]
    return found, cut


@njit(nogil=True, cache=True)
def _search_many(
    tree: Any, table: Any, chains: Any, barcodes: Barcodes, slides: NDArray[np.int32],
    keys: NDArray[np.int64], queries: Barcodes, allowed: NDArray[np.bool_], which: NDArray[np.int64],
    walks: NDArray[np.int64], numbers: NDArray[np.int64],
) -> Any:  # fmt: skip
    found = (np.empty(1024, np.int64), np.empty(1024, np.int32), np.zeros(1, np.int64))
    lists = (np.empty(1024, np.int64), np.empty(1024, np.int32), np.zeros(1, np.int64))
    offsets = np.zeros(len(keys) + 1, np.int64)
    cut = np.zeros(len(keys), np.int32)
    accepted = np.zeros(table[2][0], np.bool_)
    for q in range(len(keys)):
        found[2][0] = 0
        accepted[:] = False
        found, cut[q] = _search_one(
            tree, table, chains, barcodes, slides, keys[q], queries[q], allowed, which[q], walks, numbers,
            accepted, found,
        )  # fmt: skip
        lists = sorted_by_distance(found, lists, numbers[2])
        offsets[q + 1] = lists[2][0]
    return offsets, lists[0][: lists[2][0]], lists[1][: lists[2][0]], cut


class VebIndex:
    """Patches under a van Emde Boas tree of keys.

    Parameters
    ----------
    words
        64-bit words a barcode.
    """

    def __init__(self, words: int) -> None:
        self.tree = VebTree()
        self.words = words
        self._n = 0
        self._barcodes = np.empty((0, words), np.uint64)
        self._slides = np.empty(0, np.int32)
        self._keys = np.empty(0, np.int64)
        self._allocate(64)

    def _allocate(self, rows: int) -> None:
        """Make room for so many rows, and as many keys."""
        barcodes, slides = np.zeros((rows, self.words), np.uint64), np.zeros(rows, np.int32)
        keys = np.zeros(rows, np.int64)
        barcodes[: self._n], slides[: self._n] = self._barcodes[: self._n], self._slides[: self._n]
        keys[: self._n] = self._keys[: self._n]
        self._barcodes, self._slides, self._keys = barcodes, slides, keys
        self._chains = (np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64))
        self._table = (np.full(2 * rows, -1, np.int64), np.empty(2 * rows, np.int64), np.zeros(1, np.int64))
        _link(self._table, self._chains, keys[: self._n], 0)

    def __len__(self) -> int:
        return self._n

    def add(self, keys: ArrayLike, barcodes: ArrayLike, slides: ArrayLike) -> None:
        """Add patches: keys (n,), barcodes (n, words), slides (n,); they are numbered as they come."""
        new = np.atleast_1d(np.asarray(keys, np.int64))
        end = self._n + len(new)
        if end > len(self._keys):
            self._allocate(1 << (end - 1).bit_length())
        self._keys[self._n : end] = new
        self._barcodes[self._n : end] = as_barcodes(barcodes, self.words)
        self._slides[self._n : end] = slides
        _link(self._table, self._chains, new, self._n)
        self.tree.insert_many(new)
        self._n = end

    def search(
        self,
        keys: ArrayLike,
        barcodes: ArrayLike,
        params: GuidedParams | None = None,
        *,
        mask: Mask | None = None,
        which: ArrayLike | None = None,
    ) -> NeighbourLists:
        """Search for each (key, barcode); parameters as in :meth:`~napari_fish.index.guided.search.GuidedIndex.search`."""
        codes = as_barcodes(barcodes, self.words)
        starts = frozen(np.atleast_1d(np.asarray(keys)), np.int64)
        walks, numbers = (params or GuidedParams()).settings()
        masks = Masks.over(mask, len(codes), which)
        return NeighbourLists(
            *_search_many(
                self.tree.arrays, self._table, self._chains, self._barcodes, self._slides, starts, codes,
                masks.allowed, masks.which, walks, numbers,
            )
        )  # fmt: skip
