"""Hamming distances between packed barcodes.

Sixteen words at a time are compared with vector instructions, written out because LLVM unrolls a loop of
known length into scalars before it would think of vectors, and splits one of unknown length into pieces that
cost more than the work. LLVM picks the instructions (``vpopcntq`` where the processor has it).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Barcodes, Distances, Rows, as_barcodes, frozen
from napari_fish.index.words import lowest

#: Rows compared with all queries before the next ones are read: 32 KB of barcodes stay in cache.
BLOCK = 256


@intrinsic
def popcount(_context: Any, _word: Any) -> Any:
    """Count the bits of a 64-bit word."""

    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), code


@intrinsic
def prefetch(_context: Any, table: Any, _row: Any, _column: Any) -> Any:
    """Ask memory for an entry of a table that will be needed soon, and do not wait for it."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, octet = ir.IntType(32), ir.IntType(8).as_pointer()
        ask = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [octet, number, number, number]),
            "llvm.prefetch.p0",
        )
        array = context.make_array(signature.args[0])(context, builder, args[0])
        there = cgutils.get_item_pointer(context, builder, signature.args[0], array, [args[1], args[2]])
        # For reading, to be kept in all caches, data.
        builder.call(ask, [builder.bitcast(there, octet), *(ir.Constant(number, n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(table, types.int64, types.int64), code


def _differing_words(n: int) -> Any:
    """Return a function that counts the bits in which n words of a row, from the first on, differ from a query's."""

    @intrinsic
    def differing(_context: Any, rows: Any, _row: Any, _first: Any, query: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            eight, word = ir.VectorType(ir.IntType(64), 8), ir.IntType(64)
            module = builder.module
            count = cgutils.get_or_insert_function(
                module, ir.FunctionType(eight, [eight]), "llvm.ctpop.v8i64"
            )
            total = cgutils.get_or_insert_function(
                module, ir.FunctionType(word, [eight]), "llvm.vector.reduce.add.v8i64"
            )

            def start(array_type: Any, value: Any, at: list[Any]) -> Any:
                array = context.make_array(array_type)(context, builder, value)
                return cgutils.get_item_pointer(context, builder, array_type, array, at)

            ours = start(signature.args[0], args[0], [args[1], args[2]])
            theirs = start(signature.args[3], args[3], [args[2]])
            counts = ir.Constant(eight, [0] * 8)
            for first in range(0, n, 8):
                step = [ir.Constant(word, first)]
                a, b = (
                    builder.load(builder.bitcast(builder.gep(p, step), eight.as_pointer()), align=8)
                    for p in (ours, theirs)
                )
                counts = builder.add(counts, builder.call(count, [builder.xor(a, b)]))
            return builder.call(total, [counts])

        return types.int64(rows, types.int64, types.int64, query), code

    return differing


#: The same for half a barcode, which is one line of memory.
eight_words = _differing_words(8)
_sixteen_words = _differing_words(16)


@intrinsic
def _eight_rows(_context: Any, rows: Any, _row: Any, query: Any, out: Any, _at: Any, _most: Any) -> Any:
    """Write the distances of eight rows of 16 words to ``out``; return bit i set where row i is at most so far.

    Adding up the lanes of one vector costs as much as comparing a row; eight vectors are added crosswise, so that
    each lane of the last sum is the distance of one row.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, narrow = ir.IntType(64), ir.IntType(32)
        eight = ir.VectorType(word, 8)
        count = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(eight, [eight]), "llvm.ctpop.v8i64"
        )

        def start(array_type: Any, value: Any, at: list[Any]) -> Any:
            array = context.make_array(array_type)(context, builder, value)
            return cgutils.get_item_pointer(context, builder, array_type, array, at)

        def load(pointer: Any, first: int) -> Any:
            there = builder.gep(pointer, [ir.Constant(word, first)])
            return builder.load(builder.bitcast(there, eight.as_pointer()), align=8)

        def crosswise(a: Any, b: Any, lanes: list[int], step: int) -> Any:
            low, high = (
                builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(narrow, 8), [i + more for i in lanes]))
                for more in (0, step)
            )
            return builder.add(low, high)

        zero = ir.Constant(word, 0)
        ours, theirs = (
            start(signature.args[0], args[0], [args[1], zero]),
            start(signature.args[2], args[2], [zero]),
        )
        query_words = [load(theirs, first) for first in (0, 8)]
        sums = [
            builder.add(
                *(
                    builder.call(count, [builder.xor(load(ours, 16 * i + 8 * j), query_words[j])])
                    for j in (0, 1)
                )
            )
            for i in range(8)
        ]
        for lanes, step in (
            ([0, 8, 2, 10, 4, 12, 6, 14], 1),
            ([0, 1, 8, 9, 4, 5, 12, 13], 2),
            ([0, 1, 2, 3, 8, 9, 10, 11], 4),
        ):
            sums = [crosswise(a, b, lanes, step) for a, b in zip(sums[::2], sums[1::2], strict=True)]
        there = builder.bitcast(
            start(signature.args[3], args[3], [args[4]]), ir.VectorType(narrow, 8).as_pointer()
        )
        builder.store(builder.trunc(sums[0], ir.VectorType(narrow, 8)), there, align=4)
        limit = builder.insert_element(ir.Constant(eight, ir.Undefined), args[5], ir.Constant(narrow, 0))
        limit = builder.shuffle_vector(limit, limit, ir.Constant(ir.VectorType(narrow, 8), [0] * 8))
        near = builder.icmp_signed("<=", sums[0], limit)
        return builder.zext(builder.bitcast(near, ir.IntType(8)), word)

    return types.int64(rows, types.int64, query, out, types.int64, types.int64), code


@njit(nogil=True, cache=True)
def row_distance(barcodes: Barcodes, row: int, query: Barcodes) -> Any:
    """Return the distance of one row from one query, in bits."""
    total, word = np.int64(0), 0
    while word + 16 <= barcodes.shape[1]:
        total += _sixteen_words(barcodes, row, word, query)
        word += 16
    rest = np.uint64(0)
    for last in range(word, barcodes.shape[1]):
        rest += popcount(barcodes[row, last] ^ query[last])
    return np.int32(total + np.int64(rest))


@njit(nogil=True, cache=True)
def add_bits(word: int, first: int, hits: Distances, found: int) -> Any:
    """Add the positions of bits, counted from ``first``, to a list; return its length."""
    while word:
        hits[found] = first + lowest(word)
        found += 1
        word &= word - 1
    return found


@njit(nogil=True, cache=True)
def near_rows(
    barcodes: Barcodes, start: int, stop: int, query: Barcodes, most: int, out: Distances, hits: Distances
) -> Any:  # fmt: skip
    """Write the distances of rows ``start:stop`` to the front of ``out``, and which are at most so far to ``hits``.

    Hits are counted from ``start``; return how many there are.
    """
    found = 0
    if barcodes.shape[1] != 16 or stop - start < 8:
        for row in range(start, stop):
            out[row - start] = row_distance(barcodes, row, query)
            hits[found] = row - start
            found += out[row - start] <= most
        return found
    row = start
    while row + 8 <= stop:
        # The hits of 64 rows are bits of one word: looking for them eight by eight would cost a wrong guess each.
        near, first = np.int64(0), row
        while row + 8 <= stop and row < first + 64:
            near |= _eight_rows(barcodes, row, query, out, row - start, most) << (row - first)
            row += 8
        found = add_bits(near, first - start, hits, found)
    if row < stop:
        # The last few rows, with some before them that are done already.
        done = row - (stop - 8)
        near = _eight_rows(barcodes, stop - 8, query, out, stop - 8 - start, most) >> done << done
        found = add_bits(near, stop - 8 - start, hits, found)
    return found


@njit(nogil=True, cache=True)
def distances_into(barcodes: Barcodes, start: int, stop: int, query: Barcodes, out: Distances) -> None:
    """Write the distances of rows ``start:stop`` from one query to the front of ``out``."""
    row = start
    if barcodes.shape[1] == 16:
        while row + 8 <= stop:
            _eight_rows(barcodes, row, query, out, row - start, -1)
            row += 8
    while row < stop:
        out[row - start] = row_distance(barcodes, row, query)
        row += 1


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
