"""Algorithms 4-7 of the paper, transcribed line by line with METHOD.md's decisions."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np

DIGITS, COUNT_DIGITS = 9, 12
"""Sums in another order differ in the last digits: those beyond these never decide."""
Hits = list[tuple[int, int]]  # (distance, slide), nearest first


@dataclass
class Summary:
    i: int
    entropy: float
    distances: list[int]


def uncertainty(
    hits: Hits, label: dict[int, str], d_inv: dict[str, float], weighted: bool, released: bool
) -> tuple[float, dict[str, float]]:
    count: dict[str, float] = {}
    for position, (_, slide) in enumerate(hits, start=1):
        if slide in label:
            one = d_inv[label[slide]] / position if weighted else 1.0
            count[label[slide]] = count.get(label[slide], 0.0) + one
    if not count:
        return round(log2(max(len(d_inv), 2)), DIGITS), count
    if not released:
        count = {name: max(n, 1.0) for name, n in count.items()}
    count = {name: round(n, COUNT_DIGITS) for name, n in count.items()}
    total = sum(count.values())
    shares = {name: n / total for name, n in count.items()}
    entropy = abs(sum(p * log2(p) for p in shares.values()))
    shares = {name: round(n, COUNT_DIGITS) for name, n in shares.items()}
    return round(entropy, DIGITS), shares if released else count


def clean(summaries: list[Summary], released: bool) -> tuple[list[Summary], float]:
    lengths = [len(s.distances) for s in summaries]
    if len(set(lengths)) >= (4 if released else 3):
        low, high = np.quantile(lengths, 0.05), np.quantile(lengths, 0.95)
        left = [s for s in summaries if low < len(s.distances) < high]
        summaries = left or summaries
    means = [float(np.mean(s.distances[:5])) for s in summaries]
    limit = float(np.mean(means))
    return [s for s, mean in zip(summaries, means, strict=True) if mean <= limit + 1e-9], limit


def filtered_by_prediction(summaries: list[Summary], counts: dict[int, dict[str, float]]) -> list[int]:
    top = [s for s in summaries[:5] if counts[s.i]]
    score: dict[str, float] = {}
    for s in top:
        for name, n in counts[s.i].items():
            score[name] = score.get(name, 0.0) + n
    for predicted in sorted(score, key=lambda name: -round(score[name], DIGITS)):
        removed = [s.i for s in top if max(counts[s.i], key=lambda n: counts[s.i][n]) != predicted]
        if len(removed) != len(top):
            return removed
    return []


def ranking(
    results: list[Hits],
    label: dict[int, str],
    d_inv: dict[str, float],
    threshold: float,
    *,
    weighted: bool,
    cleaned: bool,
    by_prediction: bool,
    released: bool,
) -> list[tuple[float, int, int]]:
    """Return [(entropy, distance, slide)] in order."""
    counts: dict[int, dict[str, float]] = {}
    summaries: list[Summary] = []
    for i, hits in enumerate(results):
        if hits:
            entropy, counts[i] = uncertainty(hits, label, d_inv, weighted, released)
            summaries.append(Summary(i, entropy, [d for d, _ in hits]))
    limit = threshold
    if cleaned and summaries:
        summaries, limit = clean(summaries, released)
    summaries.sort(key=lambda s: s.entropy)
    removed = filtered_by_prediction(summaries, counts) if by_prediction else []
    returned: list[tuple[float, int, int]] = []
    seen: set[int] = set()
    for s in summaries:
        if s.i in removed and not released:
            continue
        for distance, slide in results[s.i]:
            if slide not in seen and (s.entropy == 0 or distance <= limit):
                seen.add(slide)
                if s.i not in removed:
                    returned.append((s.entropy, distance, slide))
    return sorted(returned, key=lambda hit: (hit[0], hit[1]))
