"""Barcodes of many rows, in one piece or in two: half of each in the order of the rows, half in another order.

Walks along the keys read the first halves, one after the other; exact and clustered search read the second
halves, which lie cluster by cluster. Either half says of most rows that they are too far, and for the others the half that is
missing is fetched. So both ways of reading have memory in their order, and every barcode is kept once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, DTypeLike, NDArray

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Barcodes, Distances, frozen
from napari_fish.index.hamming import distance_from, near_rows
from napari_fish.index.simd import prefetch

#: What lies anywhere in memory is asked for so many rows before it is compared.
AHEAD = 24
_CHUNK = 1 << 16
_LINE = 64

#: Makes an array to be filled: its name, shape and type.
Room = Callable[[str, tuple[int, ...], DTypeLike], NDArray[Any]]


def in_memory(_name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Make an array in memory, from the beginning of a line of it on: half a barcode is a line, and would else be in two."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + size].view(dtype).reshape(shape)


def half(words: int) -> int:
    """Return how many words of a barcode are its head."""
    return words // 2


@dataclass(frozen=True, eq=False)
class SplitBarcodes:
    """Packed barcodes.

    Attributes
    ----------
    head : uint64, shape (n_rows, head_words)
        The first words of each row; all of them where they are in one piece.
    tail : uint64, shape (n_rows, tail_words)
        The other words, in an order of their own; no words where they are in one piece.
    place : int32, shape (n_rows,) or (0,)
        The tail of row ``i`` is ``tail[place[i]]``.
    """

    head: Barcodes
    tail: Barcodes
    place: NDArray[np.int32]

    def __post_init__(self) -> None:
        for name, dtype, ndim in (("head", np.uint64, 2), ("tail", np.uint64, 2), ("place", np.int32, 1)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, ndim))
        if self.tail.shape[1] and not len(self.head) == len(self.tail) == len(self.place):
            raise DatabaseError("The halves of the barcodes do not fit each other.")

    @classmethod
    def whole(cls, barcodes: ArrayLike | SplitBarcodes) -> SplitBarcodes:
        """Take barcodes, shape (n_rows, words), in one piece; leave those that are codes already."""
        if isinstance(barcodes, SplitBarcodes):
            return barcodes
        return cls(np.asarray(barcodes), np.empty((0, 0), np.uint64), np.empty(0, np.int32))

    def __len__(self) -> int:
        return len(self.head)

    @property
    def words(self) -> int:
        """64-bit words a barcode."""
        return int(self.head.shape[1] + self.tail.shape[1])

    @property
    def arrays(self) -> tuple[Barcodes, Barcodes, NDArray[np.int32]]:
        """Head, tail and place, as kernels take them."""
        return self.head, self.tail, self.place

    def __getitem__(self, rows: Any) -> Barcodes:
        """Return the whole barcodes of rows, a slice or numbers of shape (n,): shape (n, words)."""
        if isinstance(rows, slice) and not self.tail.shape[1]:
            return self.head[rows]
        at = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows)
        if (
            at.ndim != 1
            or at.dtype == np.bool_
            or not (at.size == 0 or 0 <= at.min() <= at.max() < len(self))
        ):
            raise IndexError(f"Rows of {len(self)} are asked for by number.")
        at = at.astype(np.int64, copy=False)
        if not self.tail.shape[1]:
            return self.head[at]
        out = np.empty((len(at), self.words), np.uint64)
        _put_together(self.head, self.tail, self.place, at, out)
        return out

    def split(self, order: NDArray[np.int32], room: Room = in_memory) -> SplitBarcodes:
        """Return the same barcodes in two pieces, the tails of rows in the order given, shape (n_rows,).

        Heads of barcodes that are in two pieces already stay where they are.
        """
        n, words = len(self), half(self.words)
        in_two = self.tail.shape[1] > 0
        head = self.head if in_two else room("head", (n, words), np.uint64)
        tail = room("tail", (n, self.words - words), np.uint64)
        place = room("place", (n,), np.int32)
        place[order] = np.arange(n, dtype=np.int32)
        for start in range(0, n, _CHUNK):
            at = slice(start, start + _CHUNK)
            if not in_two:
                head[at] = self.head[at, :words]
            tail[at] = self.tail[self.place[order[at]]] if in_two else self.head[order[at], words:]
        return SplitBarcodes(head, tail, place)


@njit(nogil=True, cache=True)
def _put_together(
    head: Barcodes, tail: Barcodes, place: NDArray[np.int32], rows: NDArray[np.int64], out: Barcodes
) -> None:  # fmt: skip
    """Write the whole barcodes of rows."""
    last, words = len(rows) - 1, head.shape[1]
    for i in range(len(rows)):
        ahead = rows[min(i + AHEAD, last)]
        prefetch(head, ahead, 0)
        prefetch(tail, place[ahead], 0)
        for word in range(words):
            out[i, word] = head[rows[i], word]
        for word in range(tail.shape[1]):
            out[i, words + word] = tail[place[rows[i]], word]


@njit(nogil=True, cache=True)
def code_distance(head: Barcodes, tail: Barcodes, place: NDArray[np.int32], row: int, query: Barcodes) -> Any:
    """Return the distance of one row from one query, in bits."""
    distance = distance_from(head, row, query, 0)
    if tail.shape[1]:
        distance += distance_from(tail, place[row], query, head.shape[1])
    return distance


@njit(nogil=True, cache=True)
def near_codes(
    head: Barcodes, tail: Barcodes, place: NDArray[np.int32], start: int, stop: int, query: Barcodes, most: int,
    out: Distances, hits: Distances,
) -> Any:  # fmt: skip
    """Write which of rows ``start:stop`` are at most so far to ``hits``, counted from ``start``, and their distances to ``out``.

    What is written to ``out`` for other rows means nothing. Return how many hits there are.
    """
    found = near_rows(head, start, stop, query, 0, most, out, hits)
    if not tail.shape[1]:
        return found
    for i in range(min(AHEAD, found)):
        prefetch(tail, place[start + hits[i]], 0)
    kept = 0
    for i in range(found):
        if i + AHEAD < found:
            prefetch(tail, place[start + hits[i + AHEAD]], 0)
        hit = hits[i]
        distance = out[hit] + distance_from(tail, place[start + hit], query, head.shape[1])
        out[hit], hits[kept] = distance, hit
        kept += distance <= most
    return kept
