"""The paper's Algorithms 1-3 in plain Python over a van Emde Boas tree made of dicts: what search is measured against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Patches = dict[int, list[tuple[int, int]]]


class DictVeb:
    """A van Emde Boas tree over 2^bits, clusters in a dict."""

    __slots__ = ("bits", "clusters", "low_bits", "max", "min", "summary")

    def __init__(self, bits: int) -> None:
        self.bits, self.low_bits = bits, bits // 2
        self.min: int | None = None
        self.max: int | None = None
        self.clusters: dict[int, Any] = {}
        self.summary: Any = None

    def insert(self, key: int) -> None:
        """Add a key."""
        if self.min is None or self.max is None:
            self.min = self.max = key
            return
        if key in (self.min, self.max):
            return
        if key < self.min:
            key, self.min = self.min, key
        if self.bits > 1:
            high, low = key >> self.low_bits, key & ((1 << self.low_bits) - 1)
            if high not in self.clusters:
                self.clusters[high] = DictVeb(self.low_bits)
                if self.summary is None:
                    self.summary = DictVeb(self.bits - self.low_bits)
                self.summary.insert(high)
            self.clusters[high].insert(low)
        self.max = max(self.max, key)

    def successor(self, key: int) -> int | None:
        """Return the smallest key above."""
        if self.min is None or self.max is None or key >= self.max:
            return None
        if key < self.min:
            return self.min
        if self.bits == 1:
            return self.max
        high, low = key >> self.low_bits, key & ((1 << self.low_bits) - 1)
        cluster = self.clusters.get(high)
        if cluster is not None and low < cluster.max:
            return high << self.low_bits | cluster.successor(low)
        following = self.summary.successor(high) if self.summary else None
        if following is None:
            return None
        return int(following << self.low_bits | self.clusters[following].min)

    def predecessor(self, key: int) -> int | None:
        """Return the largest key below."""
        if self.min is None or self.max is None or key <= self.min:
            return None
        if key > self.max:
            return self.max
        if self.bits == 1:
            return self.min
        high, low = key >> self.low_bits, key & ((1 << self.low_bits) - 1)
        cluster = self.clusters.get(high)
        if cluster is not None and low > cluster.min:
            return high << self.low_bits | cluster.predecessor(low)
        before = self.summary.predecessor(high) if self.summary else None
        if before is None:
            return self.min
        return int(before << self.low_bits | self.clusters[before].max)


def tree_of(keys: Iterable[int]) -> DictVeb:
    """Make a tree of keys."""
    tree = DictVeb(50)
    for key in keys:
        tree.insert(key)
    return tree


def guided_search(
    m: int, h: int, table: Patches, veb: DictVeb, c: int = 50 * 10**11, t: int = 10, theta: int = 128, k: int = 375
) -> list[tuple[int, int]]:  # fmt: skip
    """Return [(distance, row)] as the paper's pseudo-code does, the key m itself visited first."""
    plus, minus = [m + i * c for i in range(t + 1)], [m - i * c for i in range(1, t + 1)]
    visited: set[int] = set()
    results: list[tuple[int, int]] = []
    for number, seed in enumerate(plus):
        if seed >= 1 << 50:
            continue
        count, key = 0, m if number == 0 and m in table else veb.successor(seed)
        while count < k:
            if key is None or key in visited:
                break
            best = min(((h ^ code).bit_count(), row) for code, row in table[key])
            if best[0] < theta:
                visited.add(key)
                results.append(best)
            count += 1
            key = veb.successor(key)
    for seed in minus:
        if seed < 0:
            continue
        count, key = 0, veb.predecessor(seed)
        while count < k:
            if key is None or key in visited:
                break
            best = min(((h ^ code).bit_count(), row) for code, row in table[key])
            if best[0] < theta:
                visited.add(key)
                results.append(best)
            count += 1
            key = veb.predecessor(key)
    return sorted(results, key=lambda hit: hit[0])
