"""Ordered keys as one sorted array.

A walk over sorted keys is one contiguous read. The only search is for the place where a walk starts: the
leading digits of a key are S3 (the sum of the coarsest code map), so a directory of 90 KB over S3 narrows it to a
few keys.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import UNIVERSE, Keys, frozen

#: Keys are S1 + S2·10⁶ + S3·10¹¹.
S3_UNIT = 10**11
_ENTRIES = UNIVERSE // S3_UNIT + 3


class OrderedKeys(Protocol):
    """What the van Emde Boas tree and the sorted array have in common."""

    def __len__(self) -> int: ...
    def __contains__(self, key: int) -> bool: ...

    def insert(self, key: int) -> bool:
        """Add a key; False if it was there."""
        ...

    def delete(self, key: int) -> bool:
        """Remove a key; False if it was not there."""
        ...

    def successor(self, key: int) -> int | None:
        """Return the smallest key above ``key``."""
        ...

    def predecessor(self, key: int) -> int | None:
        """Return the largest key below ``key``."""
        ...

    @property
    def min(self) -> int | None:
        """The smallest key."""
        ...

    @property
    def max(self) -> int | None:
        """The largest key."""
        ...


@njit(nogil=True, cache=True)
def lower_bound(keys: Keys, directory: NDArray[np.int64], key: int) -> Any:
    """Return the position of the first key at or above ``key``, which is at most the end of the universe."""
    bucket = key // S3_UNIT
    low, high = directory[bucket], directory[bucket + 1]
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


def directory_of(keys: Keys) -> NDArray[np.int64]:
    """Return the position of the first key of each S3."""
    edges = np.arange(_ENTRIES, dtype=np.int64) * S3_UNIT
    return frozen(np.searchsorted(keys, edges), np.int64)


def check_key(key: int) -> int:
    """Refuse keys outside the universe."""
    if not 0 <= key < UNIVERSE:
        raise ValueError(f"Keys lie in 0..2^50-1, got {key}.")
    return int(key)


class SortedKeys:
    """Sorted unique keys; inserting or deleting one costs O(n), everything else a look into the directory.

    Parameters
    ----------
    keys : int64, shape (n,)
        Any order, duplicates allowed.
    """

    def __init__(self, keys: ArrayLike = ()) -> None:
        self._set(np.unique(np.asarray(keys, np.int64)))
        if len(self):
            check_key(int(self.keys[0]))
            check_key(int(self.keys[-1]))

    def _set(self, keys: Keys) -> None:
        self.keys: Keys = frozen(keys, np.int64)
        self.directory = directory_of(self.keys)

    def __len__(self) -> int:
        return len(self.keys)

    def __contains__(self, key: int) -> bool:
        at = self.position(check_key(key))
        return at < len(self) and int(self.keys[at]) == key

    def position(self, key: int) -> int:
        """Return how many keys lie below ``key``."""
        return int(lower_bound(self.keys, self.directory, key))

    def insert(self, key: int) -> bool:
        """Add a key; False if it was there."""
        if key in self:
            return False
        self._set(np.insert(self.keys, self.position(key), key))
        return True

    def delete(self, key: int) -> bool:
        """Remove a key; False if it was not there."""
        if key not in self:
            return False
        self._set(np.delete(self.keys, self.position(key)))
        return True

    def successor(self, key: int) -> int | None:
        """Return the smallest key above ``key``."""
        if key < 0:
            return self.min
        at = self.position(key + 1) if key < UNIVERSE - 1 else len(self)
        return int(self.keys[at]) if at < len(self) else None

    def predecessor(self, key: int) -> int | None:
        """Return the largest key below ``key``."""
        if key >= UNIVERSE:
            return self.max
        at = self.position(key) - 1 if key > 0 else -1
        return int(self.keys[at]) if at >= 0 else None

    @property
    def min(self) -> int | None:
        """The smallest key."""
        return int(self.keys[0]) if len(self) else None

    @property
    def max(self) -> int | None:
        """The largest key."""
        return int(self.keys[-1]) if len(self) else None
