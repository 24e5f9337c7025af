"""Algorithms 1-3 of the paper, transcribed line by line, with METHOD.md's decisions; slow on purpose.

A dict maps keys to lists of (barcode, slide, row); a sorted list of keys stands for the tree.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

UNIVERSE = 1 << 50


@dataclass
class Archive:
    table: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    keys: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, keys: Sequence[int], barcodes: Sequence[int], slides: Sequence[int]) -> Archive:
        archive = cls()
        for row, (key, barcode, slide) in enumerate(zip(keys, barcodes, slides, strict=True)):
            archive.table.setdefault(key, []).append((barcode, slide, row))
        archive.keys = sorted(archive.table)
        return archive

    def successor(self, key: int) -> int | None:
        at = bisect_right(self.keys, key)
        return self.keys[at] if at < len(self.keys) else None

    def predecessor(self, key: int) -> int | None:
        at = bisect_left(self.keys, key)
        return self.keys[at - 1] if at > 0 else None


def walk(
    archive: Archive,
    start: int | None,
    forward: bool,
    barcode: int,
    k: int,
    most: int,
    accepted: set[int],
    allowed: Sequence[bool] | None,
    every: bool,
    most_skips: int,
) -> tuple[list[tuple[int, int]], bool]:
    results: list[tuple[int, int]] = []
    count = skipped = 0
    key = start
    while count < k:
        if key is None or key in accepted:
            break
        patches = [m for m in archive.table[key] if allowed is None or allowed[m[1]]]
        if not patches:
            if skipped == most_skips:
                return results, True
            skipped += 1
        else:
            count += 1
            near = [((barcode ^ code).bit_count(), row) for code, _, row in patches]
            best = min(near, key=lambda hit: hit[0])
            if best[0] <= most:
                accepted.add(key)
                results += [hit for hit in near if hit[0] <= most] if every else [best]
        key = archive.successor(key) if forward else archive.predecessor(key)
    return results, False


def guided(
    archive: Archive,
    m: int,
    barcode: int,
    *,
    released: bool = False,
    step: int = 50 * 10**11,
    steps: int = 10,
    k: int = 375,
    threshold: int = 128,
    allowed: Sequence[bool] | None = None,
    every: bool = False,
    skips: int = 10,
) -> tuple[list[tuple[int, int]], int]:
    """Return [(distance, row)] sorted by distance, and how many walks were cut short."""
    accepted: set[int] = set()
    if released:
        seeds = [m - t * step for t in range(steps)] + [m + t * step for t in range(steps)]
        plan = [(seed, forward) for seed in seeds for forward in (False, True)]
        most = threshold
    else:
        plan = [(m + t * step, True) for t in range(steps + 1)]
        plan += [(m - t * step, False) for t in range(1, steps + 1)]
        most = threshold - 1
    results: list[tuple[int, int]] = []
    cut = 0
    for number, (seed, forward) in enumerate(plan):
        if seed >= UNIVERSE or (seed < 0 and not released):
            continue
        start = archive.successor(seed) if forward else archive.predecessor(seed)
        if number == 0 and not released and m in archive.table:
            start = m
        found, was_cut = walk(archive, start, forward, barcode, k, most, accepted, allowed, every, skips * k)
        results += found
        cut += was_cut
    return sorted(results, key=lambda hit: hit[0]), cut
