"""Hamming distances between packed barcodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from napari_fish.index.arrays import Barcodes, Distances, Rows, as_barcodes, frozen
from napari_fish.index.simd import eight_rows_of_8, eight_rows_of_16, eight_words, popcount
from napari_fish.index.veb.words import lowest


@njit(nogil=True, cache=True)
def _distance_from(rows: Barcodes, row: int, query: Barcodes, first: int) -> Any:
    """Count differing bits of a row of any length."""
    total, word, words = np.int64(0), 0, rows.shape[1]
    while word + 8 <= words:
        total += eight_words(rows, row, word, query, first + word)
        word += 8
    rest = np.uint64(0)
    for last in range(word, words):
        rest += popcount(rows[row, last] ^ query[first + last])
    return np.int32(total + np.int64(rest))


@njit(nogil=True, cache=True, inline="always")
def distance_from(rows: Barcodes, row: int, query: Barcodes, first: int) -> Any:
    """Return the bits in which a row differs from a query's words, from ``first`` on.

    Part of its callers: while a call is under way, less of what comes next is fetched from memory.
    """
    return (
        np.int32(eight_words(rows, row, 0, query, first))
        if rows.shape[1] == 8
        else _distance_from(rows, row, query, first)
    )


@njit(nogil=True, cache=True)
def row_distance(barcodes: Barcodes, row: int, query: Barcodes) -> Any:
    """Return the distance of one row from one query, in bits."""
    return distance_from(barcodes, row, query, 0)


@njit(nogil=True, cache=True)
def _add_bits(word: int, first: int, hits: Distances, found: int) -> Any:
    """Add the positions of bits, counted from ``first``, to a list; return its length."""
    while word:
        hits[found] = first + lowest(word)
        found += 1
        word &= word - 1
    return found


@njit(nogil=True, cache=True)
def _eight_rows(rows: Barcodes, row: int, query: Barcodes, first: int, out: Distances, at: int, most: int) -> Any:  # fmt: skip
    """Compare eight rows of 8 or 16 words; see :mod:`napari_fish.index.simd`."""
    if rows.shape[1] == 8:
        return eight_rows_of_8(rows, row, query, first, out, at, most)
    return eight_rows_of_16(rows, row, query, first, out, at, most)


@njit(nogil=True, cache=True)
def near_rows(
    rows: Barcodes, start: int, stop: int, query: Barcodes, first: int, most: int, out: Distances, hits: Distances
) -> Any:  # fmt: skip
    """Compare rows ``start:stop`` with a query's words, from ``first`` on.

    Distances are written to the front of ``out``, and which rows are at most so far to ``hits``, counted from ``start``;
    return how many there are.
    """
    found = 0
    if (rows.shape[1] != 8 and rows.shape[1] != 16) or stop - start < 8:
        for row in range(start, stop):
            out[row - start] = distance_from(rows, row, query, first)
            hits[found] = row - start
            found += out[row - start] <= most
        return found
    row = start
    while row + 8 <= stop:
        # The hits of 64 rows are bits of one word: looking for them eight by eight would cost a wrong guess each.
        near, begin = np.int64(0), row
        while row + 8 <= stop and row < begin + 64:
            near |= _eight_rows(rows, row, query, first, out, row - start, most) << (row - begin)
            row += 8
        found = _add_bits(near, begin - start, hits, found)
    if row < stop:
        # The last few rows, with some before them that are done already.
        done = row - (stop - 8)
        near = _eight_rows(rows, stop - 8, query, first, out, stop - 8 - start, most) >> done << done
        found = _add_bits(near, stop - 8 - start, hits, found)
    return found


@njit(nogil=True, cache=True)
def distances_into(
    rows: Barcodes, start: int, stop: int, query: Barcodes, first: int, out: Distances
) -> None:
    """Write the distances of rows ``start:stop`` from a query's words, from ``first`` on, to the front of ``out``."""
    row = start
    if rows.shape[1] == 8 or rows.shape[1] == 16:
        while row + 8 <= stop:
            _eight_rows(rows, row, query, first, out, row - start, -1)
            row += 8
    while row < stop:
        out[row - start] = distance_from(rows, row, query, first)
        row += 1


@njit(nogil=True, cache=True)
def keep_if_near(
    distance: int, row: int, best: Distances, best_rows: Rows, count: int, radius: int
) -> Any:  # fmt: skip
    """Insert a row into one query's k best, sorted by distance, equal ones by row."""
    k = len(best)
    if distance > radius:
        return count
    if count == k and (distance > best[k - 1] or (distance == best[k - 1] and row > best_rows[k - 1])):
        return count
    at = count if count < k else k - 1
    while at > 0 and (best[at - 1] > distance or (best[at - 1] == distance and best_rows[at - 1] > row)):
        best[at] = best[at - 1]
        best_rows[at] = best_rows[at - 1]
        at -= 1
    best[at] = distance
    best_rows[at] = row
    return count + 1 if count < k else count


def distances(barcodes: ArrayLike, query: ArrayLike) -> Distances:
    """Return the distances of many barcodes, shape (n, words), from one, shape (words,); bits."""
    rows = frozen(barcodes, np.uint64, 2)
    out = np.empty(len(rows), np.int32)
    distances_into(rows, 0, len(rows), as_barcodes(query, rows.shape[1])[0], 0, out)
    return out


@njit(nogil=True, cache=True)
def _pairs(left: Barcodes, right: Barcodes, out: Distances) -> None:
    for row in range(len(left)):
        out[row] = row_distance(left, row, right[row])


def pair_distances(left: ArrayLike, right: ArrayLike) -> Distances:
    """Return the distance of each barcode from its partner: (n, words) and (n, words) to (n,), bits."""
    rows = frozen(left, np.uint64, 2)
    out = np.empty(len(rows), np.int32)
    _pairs(rows, as_barcodes(right, rows.shape[1]), out)
    return out
