"""Patches in the order of their keys."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Keys, Rows, frozen
from napari_fish.index.barcodes import Room, SplitBarcodes, in_memory
from napari_fish.index.exact.search import Block


@dataclass(frozen=True, eq=False)
class Segment:
    """Patches ordered by key; rows under one key keep the order in which they came.

    Attributes
    ----------
    keys : int64, shape (n_keys,)
        Sorted, unique.
    offsets : int32, shape (n_keys + 1,)
        Rows ``offsets[i]:offsets[i + 1]`` lie under ``keys[i]``.
    codes
        Barcodes of the rows; an array of shape (n_rows, words) will do.
    slides : int32, shape (n_rows,)
        The slide each row comes from, an index into any mask over slides.
    """

    keys: Keys
    offsets: NDArray[np.int32]
    codes: SplitBarcodes
    slides: NDArray[np.int32]

    def __post_init__(self) -> None:
        for name, dtype in (("keys", np.int64), ("offsets", np.int32), ("slides", np.int32)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        object.__setattr__(self, "codes", SplitBarcodes.whole(self.codes))
        rows = len(self.codes)
        if len(self.offsets) != len(self.keys) + 1 or len(self.slides) != rows or self.offsets[-1] != rows:
            raise DatabaseError("The arrays of a segment do not fit each other.")

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def words(self) -> int:
        """64-bit words a barcode."""
        return self.codes.words

    @property
    def block(self) -> Block:
        """What exact search reads."""
        return Block(self.codes, self.slides)

    @classmethod
    def empty(cls, words: int) -> Segment:
        """Return a segment without rows."""
        return cls.from_rows([], np.empty((0, words), np.uint64), [])[0]

    @classmethod
    def from_rows(cls, keys: ArrayLike, barcodes: ArrayLike, slides: ArrayLike) -> tuple[Segment, Rows]:
        """Order rows by key (stable); also return, for each row of the segment, where it came from."""
        row_keys = np.asarray(keys, np.int64)
        order = np.argsort(row_keys, kind="stable")
        unique, first = np.unique(row_keys[order], return_index=True)
        offsets = np.append(first, len(order))
        codes = SplitBarcodes.whole(np.asarray(barcodes)[order])
        return cls(unique, offsets, codes, np.asarray(slides, np.int32)[order]), order

    def split(self, order: NDArray[np.int32], room: Room = in_memory) -> Segment:
        """Return the same rows, their barcodes in two pieces; see :meth:`SplitBarcodes.split`."""
        return replace(self, codes=self.codes.split(order, room))
