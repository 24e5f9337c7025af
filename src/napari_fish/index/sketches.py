"""Sketches: a few of a barcode's bits, kept word by word, so that eight rows are compared with one instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes, frozen
from napari_fish.index.hamming import BLOCK, popcount, prefetch


@njit(nogil=True, cache=True)
def sketch_into(barcodes: Barcodes, rows: NDArray[np.int32], bits: NDArray[np.int32], out: NDArray[np.uint64]) -> None:  # fmt: skip
    """Write one column of sketch words for each row."""
    for i in range(len(rows)):
        for first in range(0, len(bits), 64):
            word = np.uint64(0)
            for b in range(first, min(first + 64, len(bits))):
                bit = (barcodes[rows[i], bits[b] >> 6] >> np.uint64(bits[b] & 63)) & np.uint64(1)
                word |= bit << np.uint64(b - first)
            out[first >> 6, i] = word


def sketches_of(barcodes: Barcodes, rows: NDArray[np.int32], bits: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return the sketches of rows, shape (sketch_words, n_rows)."""
    out = np.zeros((-(-len(bits) // 64), len(rows)), np.uint64)
    sketch_into(barcodes, rows, bits, out)
    return frozen(out, np.uint64, 2)


@intrinsic
def _eight_sketches(_context: Any, planes: Any, _at: Any, query: Any, out: Any, _to: Any, _most: Any) -> Any:
    """Write the distances of eight sketches of 4 words to ``out``; return bit i set where one is at most so far."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, narrow = ir.IntType(64), ir.IntType(32)
        eight = ir.VectorType(word, 8)
        count = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(eight, [eight]), "llvm.ctpop.v8i64"
        )

        def start(array_type: Any, value: Any, at: list[Any]) -> Any:
            array = context.make_array(array_type)(context, builder, value)
            return cgutils.get_item_pointer(context, builder, array_type, array, at)

        def spread(value: Any) -> Any:
            one = builder.insert_element(ir.Constant(eight, ir.Undefined), value, ir.Constant(narrow, 0))
            return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(narrow, 8), [0] * 8))

        total = ir.Constant(eight, [0] * 8)
        for plane in (ir.Constant(word, i) for i in range(4)):
            there = start(signature.args[0], args[0], [plane, args[1]])
            ours = builder.load(builder.bitcast(there, eight.as_pointer()), align=8)
            theirs = spread(builder.load(start(signature.args[2], args[2], [plane])))
            total = builder.add(total, builder.call(count, [builder.xor(ours, theirs)]))
        there = builder.bitcast(
            start(signature.args[3], args[3], [args[4]]), ir.VectorType(narrow, 8).as_pointer()
        )
        builder.store(builder.trunc(total, ir.VectorType(narrow, 8)), there, align=4)
        near = builder.icmp_signed("<=", total, spread(args[5]))
        return builder.zext(builder.bitcast(near, ir.IntType(8)), word)

    return types.int64(planes, types.int64, query, out, types.int64, types.int64), code


@njit(nogil=True, cache=True)
def near_sketches(
    planes: NDArray[np.uint64], start: int, stop: int, query: NDArray[np.uint64], most: int, out: NDArray[np.int32]
) -> Any:  # fmt: skip
    """Write the distances of at most 64 sketches to ``out``; return bit i set where that of ``start + i`` is at most so far."""
    near, row = np.int64(0), start
    while len(planes) == 4 and row + 8 <= stop:
        near |= _eight_sketches(planes, row, query, out, row - start, most) << (row - start)
        row += 8
    while row < stop:
        distance = np.uint64(0)
        for word in range(len(planes)):
            distance += popcount(planes[word, row] ^ query[word])
        out[row - start] = distance
        near |= np.int64(np.int64(distance) <= most) << (row - start)
        row += 1
    return near


@njit(nogil=True, cache=True)
def expect_cell(planes: NDArray[np.uint64], rows: NDArray[np.int32], start: int, stop: int) -> None:
    """Ask memory for the sketches and row numbers, shape (1, n), of a cell that comes next."""
    stop = min(stop, start + BLOCK)
    for word in range(len(planes)):
        for i in range(start, stop, 8):
            prefetch(planes, word, i)
    for i in range(start, stop, 16):
        prefetch(rows, 0, i)


def choose_bits(flips: NDArray[np.uint8], one_in: int) -> NDArray[np.int32]:
    """Choose the bits of the sketch: those whose sum says most about how many bits differ.

    Parameters
    ----------
    flips : uint8, shape (n, n_bits)
        Which bits differ, in some pairs of near barcodes.
    one_in
        One bit in so many is chosen; a whole number of words, at least one.
    """
    n_bits = flips.shape[1]
    wanted = min(n_bits, max(64, -(-n_bits // (one_in * 64)) * 64))
    table = flips.astype(np.float32)
    together = (table.T @ table).astype(np.float64)
    with_all, alone = together.sum(axis=1), together.diagonal()
    chosen = np.zeros(n_bits, np.bool_)
    shared, own, with_chosen = 0.0, 1e-9, np.zeros(n_bits)
    # One after the other, that with which the sum of the chosen follows the sum of all most closely.
    for _ in range(wanted):
        score = (shared + with_all) ** 2 / (own + 2 * with_chosen + alone)
        best = int(np.argmax(np.where(chosen, -1, score)))
        chosen[best] = True
        shared += with_all[best]
        own += 2 * with_chosen[best] + alone[best]
        with_chosen += together[best]
    return frozen(np.flatnonzero(chosen), np.int32)


def reaches(bits: int, sketch_bits: int, ratio: float, margin: float) -> NDArray[np.int64]:
    """Return, for each distance of barcodes, the farthest sketch that is still looked at to find nearer ones.

    A sketch that differs in s of its bits stands for a barcode that differs in about ``s * ratio``. One is looked
    at unless it would have to be more than ``margin`` standard deviations nearer than that.
    """
    if np.isinf(margin):
        return frozen(np.full(bits + 1, sketch_bits), np.int64)
    share = np.arange(sketch_bits + 1) / sketch_bits
    # The bits of the sketch are some of the barcode's, and what they say of themselves is certain.
    off = bits * np.sqrt(share * (1 - share) / sketch_bits * (1 - sketch_bits / bits))
    least = np.arange(sketch_bits + 1) * ratio - margin * off
    # Where nearly no bit differs the deviation grows faster than the distance.
    least = np.minimum.accumulate(least[::-1])[::-1]
    return frozen(np.searchsorted(least, np.arange(bits + 1), "right") - 1, np.int64)
