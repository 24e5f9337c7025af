"""The kernel of guided search over sorted arrays; see :mod:`napari_fish.index.guided.search`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.index.arrays import UNIVERSE, Barcodes
from napari_fish.index.barcodes import near_codes
from napari_fish.index.guided.leaps import key_of, nearest_row, run_listed
from napari_fish.index.guided.sorted_keys import lower_bound

# Keys whose distances are worked out before any of them is looked at, where a mask may leave some out; and most
# rows, mask or none.
STRETCH, STRETCH_ROWS = 128, 1024
_NO_MASK = np.empty(0, np.bool_)


@njit(nogil=True, cache=True)
def _nearest_accepted(accepted: NDArray[np.int64], n: int, start: int, direction: int) -> Any:
    """Return the accepted key that a walk starting at ``start`` meets first, or -1."""
    stop = np.int64(-1)
    if direction > 0:
        for i in range(n):
            if accepted[i] >= start and (stop < 0 or accepted[i] < stop):
                stop = accepted[i]
    else:
        for i in range(n):
            if accepted[i] <= start and accepted[i] > stop:
                stop = accepted[i]
    return stop


@njit(nogil=True, cache=True)
def _accept(
    keys: NDArray[np.int64], offsets: NDArray[np.int32], slides: NDArray[np.int32], low: int, high: int, step: int,
    first: int, mine: NDArray[np.bool_], found: int, n: int, accepted: NDArray[np.int64], rows: NDArray[np.int64],
    distances: NDArray[np.int32], near: NDArray[np.int32], hits: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Accept the nearest allowed hit under each key of ``low:high``; return how many keys are accepted now."""
    begin, last = offsets[low], np.int64(-1)
    for i in range(found):
        hit = hits[i] if step > 0 else hits[found - 1 - i]
        if len(mine) and not mine[slides[begin + hit]]:
            continue
        at = key_of(offsets, low, high, begin + hit)
        distance = near[hit]
        if at != last:
            accepted[n], rows[n], distances[n] = keys[at], first + begin + hit, distance
            n += 1
            last = at
        # Of equally near rows the first counts, from whichever side they are looked at.
        elif distance < distances[n - 1] or (step < 0 and distance == distances[n - 1]):
            rows[n - 1], distances[n - 1] = first + begin + hit, distance
    return n


@njit(nogil=True, cache=True)
def _any_allowed(slides: NDArray[np.int32], begin: int, stop: int, mine: NDArray[np.bool_]) -> Any:
    """Return whether any of the rows ``begin:stop`` is allowed; no branch a row, a filter leaves whole stretches out."""
    some = np.uint8(0)
    # Unsigned, so that no place is looked for from the end.
    for slide in slides[begin:stop]:
        some |= np.uint8(mine[np.uint32(slide)])
    return some > 0


@njit(nogil=True, cache=True)
def _excluded_rows(
    slides: NDArray[np.int32], begin: int, stop: int, mine: NDArray[np.bool_], excluded: NDArray[np.int32]
) -> Any:  # fmt: skip
    """Write which of the rows ``begin:stop``, counted from the first, are excluded; return how many."""
    n = 0
    for row in range(begin, stop):
        excluded[n] = row - begin
        n += not mine[slides[row]]
    return n


@njit(nogil=True, cache=True)
def _excluded_keys(
    offsets: NDArray[np.int32], slides: NDArray[np.int32], low: int, high: int, mine: NDArray[np.bool_],
    excluded: NDArray[np.int32], n: int,
) -> Any:  # fmt: skip
    """Return under how many keys of ``low:high`` no row is allowed, given the excluded rows."""
    keys, last = 0, np.int64(-1)
    for i in range(n):
        at = key_of(offsets, low, high, offsets[low] + excluded[i])
        if at != last:
            last = at
            some = False
            for row in range(offsets[at], offsets[at + 1]):
                some |= mine[slides[row]]
            keys += not some
    return keys


@njit(nogil=True, cache=True)
def _run(
    keys: NDArray[np.int64], offsets: NDArray[np.int32], head: Barcodes, tail: Barcodes, place: NDArray[np.int32],
    slides: NDArray[np.int32],
    at: int, end: int, step: int, first: int, query: Barcodes, allowed: NDArray[np.bool_], mask: int,
    most: int, limits: NDArray[np.int64], state: NDArray[np.int64], accepted: NDArray[np.int64],
    rows: NDArray[np.int64], distances: NDArray[np.int32], near: NDArray[np.int32], hits: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Visit the keys of one part from ``at`` to before ``end``; return where it stopped.

    State is (keys accepted so far, visited and skipped on this walk, whether too many were skipped), limits
    are (keys a walk visits, keys it may skip). Distances are worked out for a stretch of keys at once, in the
    order of the rows, which is the order of memory.
    """
    n, visited, skipped = state[0], state[1], state[2]
    mine = allowed[mask] if len(allowed) else _NO_MASK
    longest = STRETCH if len(allowed) else STRETCH_ROWS
    while at != end and visited < limits[0]:
        stretch = min(abs(end - at), limits[0] - visited, longest)
        low = at if step > 0 else at - stretch + 1
        if offsets[low + stretch] - offsets[low] > len(near):
            stretch = min(stretch, STRETCH)
            low = at if step > 0 else at - stretch + 1
        begin, stop = offsets[low], offsets[low + stretch]
        if stop - begin <= len(near):
            if len(allowed) and not _any_allowed(slides, begin, stop, mine):
                fit = min(stretch, limits[1] - skipped)
                skipped += fit
                at += step * fit
                if fit < stretch:
                    state[3] = 1
                    break
                continue
            out = _excluded_rows(slides, begin, stop, mine, hits) if len(allowed) else 0
            # Comparing all is faster than leaping over a few.
            mostly, empty = 2 * out <= stop - begin, 0
            if mostly and out:
                empty = _excluded_keys(offsets, slides, low, low + stretch, mine, hits, out)
            if mostly and skipped + empty <= limits[1]:
                found = near_codes(head, tail, place, begin, stop, query, most, near, hits)
                n = _accept(
                    keys, offsets, slides, low, low + stretch, step, first, mine, found, n, accepted, rows,
                    distances, near, hits,
                )  # fmt: skip
                visited += stretch - empty
                skipped += empty
                at += step * stretch
                continue
        for _ in range(stretch):
            best, best_row = nearest_row(
                offsets[at], offsets[at + 1], head, tail, place, slides, query, allowed, mask
            )
            if best_row < 0:
                if skipped == limits[1]:
                    state[3] = 1
                    end = at
                    break
                skipped += 1
            else:
                visited += 1
                if best <= most:
                    accepted[n], rows[n], distances[n] = keys[at], first + best_row, best
                    n += 1
            at += step
    state[0], state[1], state[2] = n, visited, skipped
    return at


@njit(nogil=True, cache=True)
def _position_after(keys: NDArray[np.int64], directory: NDArray[np.int64], key: int, step: int) -> Any:
    """Return the first position, in the direction of a walk, whose key is at or past ``key``."""
    if step > 0:
        return lower_bound(keys, directory, key)
    return lower_bound(keys, directory, key + 1) - 1


@njit(nogil=True, cache=True)
def search_one(
    main: Any, delta: Any, key: int, query: Barcodes, allowed: NDArray[np.bool_], mask: int, is_listed: bool,
    listed: NDArray[np.int32], walks: NDArray[np.int64], numbers: NDArray[np.int64], accepted: NDArray[np.int64],
    rows: NDArray[np.int64], distances: NDArray[np.int32], near: NDArray[np.int32], hits: NDArray[np.int32],
) -> Any:  # fmt: skip
    """Run all walks of one query; return how many keys were accepted, and how many walks were cut short.

    A walk goes along the main part in runs, from one key of the delta to the next. Tuples are taken apart here,
    once: further in, each access would count references. Where the mask leaves few rows of the main part, they are
    listed.
    """
    paper, most = numbers[0], numbers[2]
    limits = np.array([numbers[1], numbers[4]])
    keys, offsets, head, tail, place, slides, directory = main
    more_keys, more_offsets, more_head, more_tail, more_place, more_slides, more_directory = delta
    first_more = np.int64(len(head))
    cut = 0
    state = np.zeros(4, np.int64)
    up, down = np.int64(-1), np.int64(UNIVERSE)
    for walk in range(len(walks)):
        seed, step = key + walks[walk, 0], walks[walk, 1]
        if seed >= UNIVERSE or (seed < 0 and (paper or step < 0)):
            continue
        low = seed + 1 if step > 0 and not (paper and walks[walk, 0] == 0) else seed
        low = max(low, np.int64(0))
        at = lower_bound(keys, directory, low) - (step < 0)
        more_at = lower_bound(more_keys, more_directory, low) - (step < 0)
        end = np.int64(len(keys)) if step > 0 else np.int64(-1)
        more_end = np.int64(len(more_keys)) if step > 0 else np.int64(-1)
        if at == end and more_at == more_end:
            continue
        start = keys[at] if at != end else more_keys[more_at]
        if at != end and more_at != more_end and (more_keys[more_at] - start) * step < 0:
            start = more_keys[more_at]
        before = state[0]
        if paper:
            if (step > 0 and start <= up) or (step < 0 and start >= down):
                continue
        else:
            stop = _nearest_accepted(accepted, before, start, step)
            if stop >= 0:
                end = _position_after(keys, directory, stop, step)
                more_end = _position_after(more_keys, more_directory, stop, step)
        state[1], state[2], state[3] = 0, 0, 0
        while state[1] < limits[0] and state[3] == 0 and (at != end or more_at != more_end):
            run_end = end
            if more_at != more_end:
                run_end = _position_after(keys, directory, more_keys[more_at], step)
            if at != run_end and is_listed:
                at = run_listed(
                    keys, offsets, head, tail, place, slides, at, run_end, step, query, allowed, mask, listed, most, limits,
                    state, accepted, rows, distances,
                )  # fmt: skip
            elif at != run_end:
                at = _run(
                    keys, offsets, head, tail, place, slides, at, run_end, step, 0, query, allowed, mask, most, limits,
                    state, accepted, rows, distances, near, hits,
                )  # fmt: skip
            elif at != end and keys[at] == more_keys[more_at]:
                _visit_both(
                    main,
                    delta,
                    at,
                    more_at,
                    query,
                    allowed,
                    mask,
                    most,
                    limits,
                    state,
                    accepted,
                    rows,
                    distances,
                )
                at += step
                more_at += step
            else:
                more_at = _run(
                    more_keys, more_offsets, more_head, more_tail, more_place, more_slides, more_at, more_at + step, step,
                    first_more, query, allowed, mask, most, limits, state, accepted, rows, distances, near, hits,
                )  # fmt: skip
        cut += state[3]
        if state[0] > before:
            if step > 0:
                up = accepted[state[0] - 1]
            else:
                down = accepted[state[0] - 1]
    return state[0], cut


@njit(nogil=True, cache=True)
def _visit_both(
    main: Any, delta: Any, at: int, more_at: int, query: Barcodes, allowed: NDArray[np.bool_], mask: int,
    most: int, limits: NDArray[np.int64], state: NDArray[np.int64], accepted: NDArray[np.int64],
    rows: NDArray[np.int64], distances: NDArray[np.int32],
) -> None:  # fmt: skip
    """Visit a key that both parts have; of equally near patches that of the main part counts."""
    keys, offsets, head, tail, place, slides, _ = main
    best, row = nearest_row(offsets[at], offsets[at + 1], head, tail, place, slides, query, allowed, mask)
    more = delta[1]
    other, other_row = nearest_row(
        more[more_at], more[more_at + 1], delta[2], delta[3], delta[4], delta[5], query, allowed, mask
    )
    if other < best:
        best, row = other, len(head) + other_row
    if row < 0:
        if state[2] == limits[1]:
            state[3] = 1
        else:
            state[2] += 1
        return
    state[1] += 1
    if best <= most:
        n = state[0]
        accepted[n], rows[n], distances[n] = keys[at], row, best
        state[0] = n + 1
