"""Keys as one sorted array.

A walk over sorted keys is one contiguous read. The only search is for the place where a walk starts: the
leading digits of a key are S3 (the sum of the coarsest code map), so a directory of 90 KB over S3 narrows it to a
few keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import UNIVERSE, Keys, frozen

#: Keys are S1 + S2·10⁶ + S3·10¹¹.
S3_UNIT = 10**11
_ENTRIES = UNIVERSE // S3_UNIT + 3


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
