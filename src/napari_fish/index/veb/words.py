"""The small parts of the van Emde Boas tree: 64-bit words as sets, and the table of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

#: Bits of a key, and of the high half at the root: a hash key is ``node << 26 | high``.
BITS = 50
NONE = np.int64(-1)


@intrinsic
def _trailing_zeros(_context: Any, _word: Any) -> Any:
    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], cgutils.false_bit)

    return types.int64(types.int64), code


@intrinsic
def _leading_zeros(_context: Any, _word: Any) -> Any:
    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], cgutils.false_bit)

    return types.int64(types.int64), code


@njit(nogil=True, cache=True)
def lowest(word: int) -> Any:
    """Return the lowest bit set, or -1."""
    return NONE if word == 0 else _trailing_zeros(word)


@njit(nogil=True, cache=True)
def highest(word: int) -> Any:
    """Return the highest bit set, or -1."""
    return NONE if word == 0 else np.int64(63) - _leading_zeros(word)


@njit(nogil=True, cache=True)
def cluster_bits(bits: int) -> Any:
    """Return the bits of a cluster's universe: the multiple of 6 nearest to half, so that words end the tree."""
    return np.int64(24) if bits > 26 else np.int64(12) if bits > 14 else np.int64(6)


@njit(nogil=True, cache=True)
def _slot(key: int, size: int) -> Any:
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(size - 1))


@njit(nogil=True, cache=True)
def find(keys: NDArray[np.int64], values: NDArray[np.int64], node: int, high: int) -> Any:
    """Return the cluster of a node, or -1."""
    key = (node << 26) | high
    slot = _slot(key, len(keys))
    while keys[slot] >= 0:
        if keys[slot] == key:
            return values[slot]
        slot = (slot + 1) & (len(keys) - 1)
    return NONE


@njit(nogil=True, cache=True)
def place(keys: NDArray[np.int64], values: NDArray[np.int64], node: int, high: int, cluster: int) -> None:
    """Put a cluster that is not there; the table has room and its size is a power of two."""
    key = (node << 26) | high
    slot = _slot(key, len(keys))
    while keys[slot] >= 0:
        slot = (slot + 1) & (len(keys) - 1)
    keys[slot] = key
    values[slot] = cluster
