"""A van Emde Boas tree over 2^50 keys in flat arrays.

A node over b bits keeps its smallest and largest key itself; all but the smallest are passed on, by their high
half, to clusters, and a summary (again such a node) knows which clusters are in use. Insert,
successor and predecessor follow one path of O(log b) nodes. Nodes over at most 6 bits are one 64-bit word.
Clusters are found through one hash table, so an empty tree takes a few kilobytes, not the universe.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import UNIVERSE
from napari_fish.index.veb.words import BITS, NONE, cluster_bits, find, highest, lowest, place

#: smallest (or the word of a leaf), largest, summary, hash keys, hash values, [nodes in use, keys]
Arrays = tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]
]  # fmt: skip
# An insert makes at most two nodes (a cluster and a summary) at each of five levels.
_NODES_AN_INSERT = 12


@njit(nogil=True, cache=True)
def node_min(tree: Arrays, node: int, bits: int) -> Any:
    """Return the smallest key of a node, or -1."""
    if node < 0:
        return NONE
    return lowest(tree[0][node]) if bits <= 6 else tree[0][node]


@njit(nogil=True, cache=True)
def node_max(tree: Arrays, node: int, bits: int) -> Any:
    """Return the largest key of a node, or -1."""
    if node < 0:
        return NONE
    return highest(tree[0][node]) if bits <= 6 else tree[1][node]


@njit(nogil=True, cache=True)
def successor(tree: Arrays, node: int, bits: int, key: int) -> Any:
    """Return the smallest key of a node above ``key``, or -1."""
    if node < 0:
        return NONE
    if bits <= 6:
        return NONE if key >= 63 else lowest(tree[0][node] & (np.int64(-2) << key))
    if tree[0][node] < 0 or key >= tree[1][node]:
        return NONE
    if key < tree[0][node]:
        return tree[0][node]
    low_bits = cluster_bits(bits)
    high, low = key >> low_bits, key & ((1 << low_bits) - 1)
    cluster = find(tree[3], tree[4], node, high)
    if low < node_max(tree, cluster, low_bits):
        return (high << low_bits) | successor(tree, cluster, low_bits, low)
    high = successor(tree, tree[2][node], bits - low_bits, high)
    if high < 0:
        return NONE
    return (high << low_bits) | node_min(tree, find(tree[3], tree[4], node, high), low_bits)


@njit(nogil=True, cache=True)
def predecessor(tree: Arrays, node: int, bits: int, key: int) -> Any:
    """Return the largest key of a node below ``key``, or -1."""
    if node < 0:
        return NONE
    if bits <= 6:
        return NONE if key <= 0 else highest(tree[0][node] & ~(np.int64(-1) << key))
    smallest = tree[0][node]
    if smallest < 0 or key <= smallest:
        return NONE
    if key > tree[1][node]:
        return tree[1][node]
    low_bits = cluster_bits(bits)
    high, low = key >> low_bits, key & ((1 << low_bits) - 1)
    cluster = find(tree[3], tree[4], node, high)
    first = node_min(tree, cluster, low_bits)
    if first >= 0 and low > first:
        return (high << low_bits) | predecessor(tree, cluster, low_bits, low)
    high = predecessor(tree, tree[2][node], bits - low_bits, high)
    if high < 0:
        # The smallest key is in no cluster.
        return smallest
    return (high << low_bits) | node_max(tree, find(tree[3], tree[4], node, high), low_bits)


@njit(nogil=True, cache=True)
def contains(tree: Arrays, key: int) -> Any:
    """Tell whether the tree has a key."""
    node, bits = np.int64(0), np.int64(BITS)
    while node >= 0 and bits > 6:
        if tree[0][node] == key or tree[1][node] == key:
            return True
        low_bits = cluster_bits(bits)
        node = find(tree[3], tree[4], node, key >> low_bits)
        key &= (1 << low_bits) - 1
        bits = low_bits
    return node >= 0 and (tree[0][node] >> key) & 1 == 1


@njit(nogil=True, cache=True)
def _new_node(tree: Arrays, bits: int) -> Any:
    node = tree[5][0]
    tree[5][0] += 1
    tree[0][node] = 0 if bits <= 6 else NONE
    tree[1][node] = NONE
    tree[2][node] = NONE
    return node


@njit(nogil=True, cache=True)
def _insert(tree: Arrays, node: int, bits: int, key: int) -> None:
    """Insert a key that is not there."""
    smallest, largest, summaries = tree[0], tree[1], tree[2]
    while True:
        if bits <= 6:
            smallest[node] |= np.int64(1) << key
            return
        if smallest[node] < 0:
            smallest[node] = largest[node] = key
            return
        if key < smallest[node]:
            key, smallest[node] = smallest[node], key
        largest[node] = max(largest[node], key)
        low_bits = cluster_bits(bits)
        high, low = key >> low_bits, key & ((1 << low_bits) - 1)
        cluster = find(tree[3], tree[4], node, high)
        if cluster < 0:
            cluster = _new_node(tree, low_bits)
            place(tree[3], tree[4], node, high, cluster)
        if node_min(tree, cluster, low_bits) < 0:
            if summaries[node] < 0:
                summaries[node] = _new_node(tree, bits - low_bits)
            # Into an empty cluster takes one step, so only one of the two calls goes deep.
            _insert(tree, summaries[node], bits - low_bits, high)
        node, bits, key = cluster, low_bits, low


@njit(nogil=True, cache=True)
def _insert_many(tree: Arrays, keys: NDArray[np.int64], start: int) -> Any:
    """Insert keys from ``start`` until there are no more or the arrays are nearly full."""
    for i in range(start, len(keys)):
        if tree[5][0] + _NODES_AN_INSERT > len(tree[0]):
            return i
        if not contains(tree, keys[i]):
            _insert(tree, np.int64(0), np.int64(BITS), keys[i])
            tree[5][1] += 1
    return len(keys)


@njit(nogil=True, cache=True)
def _rehash(old_keys: NDArray[np.int64], old: NDArray[np.int64], keys: NDArray[np.int64], values: NDArray[np.int64]) -> None:  # fmt: skip
    for i in range(len(old_keys)):
        if old_keys[i] >= 0:
            place(keys, values, old_keys[i] >> 26, old_keys[i] & ((1 << 26) - 1), old[i])


class VebTree:
    """A set of keys in 0..2^50-1 with O(log log M) insert, successor and predecessor.

    Parameters
    ----------
    keys : int64, shape (n,)
        Keys to begin with, in any order.
    """

    def __init__(self, keys: ArrayLike = ()) -> None:
        self._allocate(64)
        self.arrays[5][0] = 1
        self.arrays[0][0] = self.arrays[1][0] = self.arrays[2][0] = NONE
        self.insert(keys)

    def _allocate(self, nodes: int) -> None:
        """Make room for so many nodes; the hash table stays at most half full."""
        slots = 2 * nodes
        old = getattr(self, "arrays", None)
        new: Arrays = (
            np.empty(nodes, np.int64),
            np.empty(nodes, np.int64),
            np.empty(nodes, np.int64),
            np.full(slots, -1, np.int64),
            np.empty(slots, np.int64),
            np.zeros(2, np.int64),
        )
        if old is not None:
            for mine, theirs in zip(new[:3], old[:3], strict=True):
                mine[: len(theirs)] = theirs
            new[5][:] = old[5]
            _rehash(old[3], old[4], new[3], new[4])
        self.arrays = new

    def __len__(self) -> int:
        return int(self.arrays[5][1])

    def insert(self, keys: ArrayLike) -> None:
        """Add keys, shape (n,); those that are there already change nothing."""
        table = np.asarray(keys, np.int64)
        if len(table) and not 0 <= table.min() <= table.max() < UNIVERSE:
            raise ValueError(f"Keys lie in 0..2^50-1, got {table.min()} to {table.max()}.")
        done = 0
        while (done := int(_insert_many(self.arrays, table, done))) < len(table):
            self._allocate(2 * len(self.arrays[0]))
