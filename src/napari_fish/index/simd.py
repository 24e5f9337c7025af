"""Bits counted with vector instructions.

Eight words at a time are compared, written out because LLVM unrolls a loop of known length into scalars before it
would think of vectors, and splits one of unknown length into pieces that cost more than the work. LLVM picks the
instructions (``vpopcntq`` where the processor has it).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD, _NARROW = ir.IntType(64), ir.IntType(32)
_EIGHT = ir.VectorType(_WORD, 8)


def _start(context: Any, builder: Any, array_type: Any, value: Any, at: list[Any]) -> Any:
    """Return a pointer to an entry of an array."""
    array = context.make_array(array_type)(context, builder, value)
    return cgutils.get_item_pointer(context, builder, array_type, array, at)


def _load(builder: Any, pointer: Any, first: int) -> Any:
    """Load eight words from the first on."""
    there = builder.gep(pointer, [ir.Constant(_WORD, first)])
    return builder.load(builder.bitcast(there, _EIGHT.as_pointer()), align=8)


def _spread(builder: Any, value: Any) -> Any:
    """Return a vector of eight times the same word."""
    one = builder.insert_element(ir.Constant(_EIGHT, ir.Undefined), value, ir.Constant(_NARROW, 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_NARROW, 8), [0] * 8))


def _counting(builder: Any) -> Any:
    return cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_EIGHT, [_EIGHT]), "llvm.ctpop.v8i64"
    )


def _write_and_judge(context: Any, builder: Any, signature: Any, args: Any, out: int, distances: Any) -> Any:
    """Write eight distances to the array that is argument ``out``, from the place after it on; return a bit for each at most so far."""
    there = _start(context, builder, signature.args[out], args[out], [args[out + 1]])
    narrow = ir.VectorType(_NARROW, 8)
    builder.store(builder.trunc(distances, narrow), builder.bitcast(there, narrow.as_pointer()), align=4)
    near = builder.icmp_signed("<=", distances, _spread(builder, args[out + 2]))
    return builder.zext(builder.bitcast(near, ir.IntType(8)), _WORD)


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
        octet = ir.IntType(8).as_pointer()
        ask = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [octet, _NARROW, _NARROW, _NARROW]),
            "llvm.prefetch.p0",
        )
        there = _start(context, builder, signature.args[0], args[0], [args[1], args[2]])
        # For reading, to be kept in all caches, data.
        builder.call(ask, [builder.bitcast(there, octet), *(ir.Constant(_NARROW, n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(table, types.int64, types.int64), code


@intrinsic
def eight_words(_context: Any, rows: Any, _row: Any, _first: Any, query: Any, _at: Any) -> Any:
    """Count the bits in which eight words of a row, from ``first`` on, differ from a query's, from ``at`` on."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        total = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_WORD, [_EIGHT]), "llvm.vector.reduce.add.v8i64"
        )
        ours = _load(builder, _start(context, builder, signature.args[0], args[0], [args[1], args[2]]), 0)
        theirs = _load(builder, _start(context, builder, signature.args[3], args[3], [args[4]]), 0)
        return builder.call(total, [builder.call(_counting(builder), [builder.xor(ours, theirs)])])

    return types.int64(rows, types.int64, types.int64, query, types.int64), code


def _eight_rows(words: int) -> Any:
    @intrinsic
    def eight_rows(
        _context: Any, rows: Any, _row: Any, query: Any, _first: Any, out: Any, _at: Any, _most: Any
    ) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            ours = _start(context, builder, signature.args[0], args[0], [args[1], ir.Constant(_WORD, 0)])
            theirs = _start(context, builder, signature.args[2], args[2], [args[3]])
            count = _counting(builder)
            steps = range(0, words, 8)
            query_words = {step: _load(builder, theirs, step) for step in steps}

            def differing(row: int) -> Any:
                total = None
                for step in steps:
                    bits = builder.xor(_load(builder, ours, words * row + step), query_words[step])
                    some = builder.call(count, [bits])
                    total = some if total is None else builder.add(total, some)
                return total

            def crosswise(a: Any, b: Any, lanes: list[int], step: int) -> Any:
                kind = ir.VectorType(_NARROW, 8)
                low, high = (
                    builder.shuffle_vector(a, b, ir.Constant(kind, [i + more for i in lanes]))
                    for more in (0, step)
                )
                return builder.add(low, high)

            sums = [differing(row) for row in range(8)]
            for lanes, step in (
                ([0, 8, 2, 10, 4, 12, 6, 14], 1),
                ([0, 1, 8, 9, 4, 5, 12, 13], 2),
                ([0, 1, 2, 3, 8, 9, 10, 11], 4),
            ):
                sums = [crosswise(a, b, lanes, step) for a, b in zip(sums[::2], sums[1::2], strict=True)]
            return _write_and_judge(context, builder, signature, args, 4, sums[0])

        return types.int64(rows, types.int64, query, types.int64, out, types.int64, types.int64), code

    return eight_rows


#: Write the distances of eight whole rows, of 8 or of 16 words, from a query's words, from ``first`` on, to ``out``,
#: from ``at`` on; return bit i set where row i is at most so far. Adding up the lanes of one vector costs as much as
#: comparing a row; eight vectors are added crosswise, so that each lane of the last sum is the distance of one row.
eight_rows_of_8, eight_rows_of_16 = _eight_rows(8), _eight_rows(16)


@intrinsic
def eight_columns(
    _context: Any, planes: Any, _column: Any, query: Any, _first: Any, out: Any, _at: Any, _most: Any
) -> Any:
    """Do the same for eight columns of a table of 4 rows, where adding up needs no crossing."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        total = ir.Constant(_EIGHT, [0] * 8)
        for plane in (ir.Constant(_WORD, i) for i in range(4)):
            ours = _load(builder, _start(context, builder, signature.args[0], args[0], [plane, args[1]]), 0)
            word = _start(context, builder, signature.args[2], args[2], [builder.add(args[3], plane)])
            bits = builder.xor(ours, _spread(builder, builder.load(word)))
            total = builder.add(total, builder.call(_counting(builder), [bits]))
        return _write_and_judge(context, builder, signature, args, 4, total)

    return types.int64(planes, types.int64, query, types.int64, out, types.int64, types.int64), code
