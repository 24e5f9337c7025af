"""Hamming distances between packed barcodes.

The loops are written so that LLVM turns them into vector instructions (``vpopcntq`` where the processor
has it, a table look-up where not): a loop over the words of a row whose length is *not* a constant is
vectorised, one with a constant length is unrolled into scalars first and three times slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Barcodes, Distances, Rows, as_barcodes, frozen

#: Rows compared with all queries before the next ones are read: 32 KB of barcodes stay in cache.
BLOCK = 256


@intrinsic
def popcount(_context: Any, _word: Any) -> Any:
    """Count the bits of a 64-bit word."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), code


@njit(nogil=True, cache=True)
def row_distance(barcodes: Barcodes, row: int, query: Barcodes) -> Any:
    """Return the distance of one row from one query, in bits."""
    total = np.uint64(0)
    for word in range(barcodes.shape[1]):
        total += popcount(barcodes[row, word] ^ query[word])
    return np.int32(total)


@njit(nogil=True, cache=True)
def distances_into(barcodes: Barcodes, start: int, stop: int, query: Barcodes, out: Distances) -> None:
    """Write the distances of rows ``start:stop`` from one query to the front of ``out``."""
    for row in range(start, stop):
        total = np.uint64(0)
        for word in range(barcodes.shape[1]):
            total += popcount(barcodes[row, word] ^ query[word])
        out[row - start] = np.int32(total)


@njit(nogil=True, cache=True)
def keep_if_near(
    distance: int, row: int, best: Distances, best_rows: Rows, count: int, radius: int
) -> Any:  # fmt: skip
    """Insert a row into one query's sorted k best; ties keep the order in which rows come."""
    k = len(best)
    if distance > radius or (count == k and distance >= best[k - 1]):
        return count
    at = count if count < k else k - 1
    while at > 0 and best[at - 1] > distance:
        best[at] = best[at - 1]
        best_rows[at] = best_rows[at - 1]
        at -= 1
    best[at] = distance
    best_rows[at] = row
    return count + 1 if count < k else count


@njit(nogil=True, cache=True)
def _matrix(left: Barcodes, right: Barcodes, out: NDArray[np.int32]) -> None:
    for start in range(0, len(left), BLOCK):
        stop = min(start + BLOCK, len(left))
        for column in range(len(right)):
            for row in range(start, stop):
                out[row, column] = row_distance(left, row, right[column])


def distances(barcodes: ArrayLike, query: ArrayLike) -> Distances:
    """Return the distances of many barcodes, shape (n, words), from one, shape (words,); bits."""
    rows = frozen(barcodes, np.uint64, 2)
    out = np.empty(len(rows), np.int32)
    distances_into(rows, 0, len(rows), as_barcodes(query, rows.shape[1])[0], out)
    return out


def distance_matrix(left: ArrayLike, right: ArrayLike) -> NDArray[np.int32]:
    """Return all distances between barcodes of shape (n, words) and (m, words): (n, m), bits."""
    rows = frozen(left, np.uint64, 2)
    columns = as_barcodes(right, rows.shape[1])
    out = np.empty((len(rows), len(columns)), np.int32)
    _matrix(rows, columns, out)
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


def pack_bits(bits: ArrayLike) -> Barcodes:
    """Pack bits, shape (n, n_bits), into words, shape (n, words); missing bits of the last are 0."""
    table = np.atleast_2d(np.asarray(bits, np.uint8))
    padded = np.pad(table, ((0, 0), (0, -table.shape[1] % 64)))
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def unpack_bits(barcodes: Barcodes) -> NDArray[np.uint8]:
    """Unpack words, shape (n, words), into bits, shape (n, 64 * words)."""
    return np.unpackbits(np.ascontiguousarray(barcodes).view(np.uint8), axis=1, bitorder="little")
