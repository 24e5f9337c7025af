"""The measures written plainly, as the paper words them."""

from __future__ import annotations

from collections import Counter
from math import ceil


def majority(answer: list[int]) -> int:
    """The most frequent label, the first seen of equals; -1 for none. ``answer`` has no -2."""
    counts = Counter(label for label in answer if label >= 0)
    if not counts:
        return -1
    most = max(counts.values())
    return next(label for label in answer if counts.get(label) == most)


def majority_right(answer: list[int], truth: int, k: int, short: str) -> bool:
    answer = [label for label in answer[:k] if label != -2]
    if len(answer) < k:
        right = answer.count(truth)
        return right > ceil(k / 2) if short == ">" else right >= ceil(k / 2)
    return majority(answer) == truth


def average_precision(answer: list[int], truth: int, k: int, divisor: str) -> float:
    total, relevant = 0.0, 0
    for place, label in enumerate(answer[:k], 1):
        if label == truth:
            relevant += 1
            total += relevant / place
    if not relevant:
        return 0.0
    return total / (relevant if divisor == "relevant" else 5)


def confusion(answers: list[list[int]], truths: list[int], n: int) -> list[list[int]]:
    table = [[0] * n for _ in range(n + 1)]
    for answer, truth in zip(answers, truths, strict=True):
        said = majority([label for label in answer if label != -2])
        table[n if said < 0 else said][truth] += 1
    return table


def hamming(
    answers: list[list[int]], distances: list[list[float]], truths: list[int], n: int, threshold: float
) -> list[list[float]]:
    returned = [
        d for answer, far in zip(answers, distances, strict=True)
        for label, d in zip(answer, far, strict=True) if label != -2
    ]  # fmt: skip
    infinity = max([threshold, *returned]) + 1
    table = [[0.0] * n for _ in range(n)]
    for answer, far, truth in zip(answers, distances, truths, strict=True):
        for label, distance in zip(answer, far, strict=True):
            if label == -2:
                continue
            for other in range(n):
                table[other][truth] += distance if other == label else infinity
    return [[value / len(truths) for value in line] for line in table]
