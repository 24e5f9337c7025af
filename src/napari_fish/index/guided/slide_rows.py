"""The rows of each slide, from which the rows that a narrow filter leaves are listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import frozen

# Rows are listed where they are at most so many, and at most one in so many: else looking at all on the way is faster.
MOST_LISTED, ONE_IN = 1 << 14, 16
# Bits of a digit by which rows are sorted.
_BITS = 12
_DIGITS = 1 << _BITS

Lists = tuple[NDArray[np.int32], NDArray[np.int64]]
#: What a search goes by when nothing is listed.
NO_LISTS: Lists = frozen(np.empty(0, np.int32), np.int32), frozen(np.full((1, 2), -1), np.int64, 2)


@njit(nogil=True, cache=True)
def _ascending(rows: NDArray[np.int32], begin: NDArray[np.int64], end: NDArray[np.int64], n: int) -> Any:
    """Return the n rows of some slides, ascending; sorted by their digits, lowest first, which is faster than by comparing."""
    left, other = np.empty(n, np.int32), np.empty(n, np.int32)
    at, largest = 0, np.int32(0)
    for slide in range(len(begin)):
        for i in range(begin[slide], end[slide]):
            left[at] = rows[i]
            largest = max(largest, rows[i])
            at += 1
    starts = np.empty(_DIGITS + 1, np.int64)
    shift = 0
    while largest >> shift:
        starts[:] = 0
        for row in left:
            starts[((row >> shift) & (_DIGITS - 1)) + 1] += 1
        for digit in range(1, _DIGITS):
            starts[digit] += starts[digit - 1]
        for row in left:
            mine = (row >> shift) & (_DIGITS - 1)
            other[starts[mine]] = row
            starts[mine] += 1
        left, other = other, left
        shift += _BITS
    return left


@dataclass(frozen=True, eq=False)
class SlideRows:
    """The rows of a segment by slide.

    Attributes
    ----------
    rows : int32, shape (n_rows,)
        Row numbers, those of the first slide first.
    first : int64, shape (n_slides + 1,)
        The rows of slide ``i`` are ``rows[first[i]:first[i + 1]]``.
    """

    rows: NDArray[np.int32]
    first: NDArray[np.int64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", frozen(self.rows, np.int32))
        object.__setattr__(self, "first", frozen(self.first, np.int64))

    @classmethod
    def of(cls, slides: NDArray[np.int32]) -> SlideRows:
        """Order the rows of a segment, given the slide of each, shape (n_rows,)."""
        order = np.argsort(slides, kind="stable").astype(np.int32)
        return cls(order, np.concatenate([[0], np.cumsum(np.bincount(slides))]))

    def lists(self, masks: NDArray[np.bool_]) -> Lists:
        """List the rows that each mask, of shape (n_masks, n_slides), leaves, where they are few.

        Returns
        -------
        listed : int32, shape (n_listed,)
            Rows, ascending for each mask.
        spans : int64, shape (n_masks, 2)
            The rows of mask ``i`` are ``listed[spans[i, 0]:spans[i, 1]]``; -1 where they are not listed.
        """
        lists = [self._left(mask[: len(self.first) - 1]) for mask in masks]
        spans = np.full((len(lists), 2), -1)
        at = 0
        for i, rows in enumerate(lists):
            if rows is not None:
                spans[i] = at, at + len(rows)
                at += len(rows)
        some: list[Any] = [rows for rows in lists if rows is not None]
        listed = some[0] if len(some) == 1 else np.concatenate([NO_LISTS[0], *some])
        return frozen(listed, np.int32), frozen(spans, np.int64, 2)

    def _left(self, mask: NDArray[np.bool_]) -> NDArray[np.int32] | None:
        """Return the rows a mask leaves, or None where they are many."""
        most = min(MOST_LISTED, len(self.rows) // ONE_IN)
        # Slides are of about one size: a mask that leaves nearly all of them is not looked at further.
        if np.count_nonzero(mask) * len(self.rows) > 4 * most * max(1, len(mask)):
            return None
        slides = np.flatnonzero(mask)
        begin, end = self.first[slides], self.first[slides + 1]
        if (end - begin).sum() > most:
            return None
        rows: NDArray[np.int32] = _ascending(self.rows, begin, end, int((end - begin).sum()))
        return rows
