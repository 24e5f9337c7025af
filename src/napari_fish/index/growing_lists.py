"""Growing lists of (row, distance) inside kernels, and sorting them in linear time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

#: (rows int64, distances int32, [how many are in use])
Found = Any


@njit(nogil=True, cache=True)
def with_room(found: Found, extra: int) -> Found:
    """Return the list with room for so many more."""
    rows, distances, used = found
    needed = used[0] + extra
    if needed <= len(rows):
        return found
    size = max(2 * len(rows), needed)
    new_rows, new_distances = np.empty(size, np.int64), np.empty(size, np.int32)
    new_rows[: used[0]] = rows[: used[0]]
    new_distances[: used[0]] = distances[: used[0]]
    return new_rows, new_distances, used


@njit(nogil=True, cache=True)
def append(found: Found, row: int, distance: int) -> Found:
    """Add one hit at the end."""
    found = with_room(found, 1)
    at = found[2][0]
    found[0][at] = row
    found[1][at] = distance
    found[2][0] = at + 1
    return found


@njit(nogil=True, cache=True)
def sorted_by_distance(found: Found, lists: Found, most: int) -> Found:
    """Add hits with distances 0..most to the end of ``lists``, nearest first, ties in their order."""
    rows, distances, used = found
    starts = np.zeros(max(most, 0) + 2, np.int64)
    for i in range(used[0]):
        starts[distances[i] + 1] += 1
    for d in range(1, len(starts)):
        starts[d] += starts[d - 1]
    lists = with_room(lists, used[0])
    base = lists[2][0]
    for i in range(used[0]):
        at = base + starts[distances[i]]
        starts[distances[i]] += 1
        lists[0][at] = rows[i]
        lists[1][at] = distances[i]
    lists[2][0] = base + used[0]
    return lists
