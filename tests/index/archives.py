"""Small archives whose barcodes come in families, so that there is something to find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

UNIVERSE = 1 << 50


@dataclass(frozen=True)
class Archive:
    keys: NDArray[np.int64]
    barcodes: NDArray[np.uint64]
    slides: NDArray[np.int32]


def random_archive(
    dice: np.random.Generator,
    n: int,
    words: int = 2,
    slides: int = 6,
    spread: int = 10**13,
    families: int = 12,
) -> Archive:
    """Make patches around the middle of the universe; many share a key when ``spread`` is small."""
    keys = 2**48 + dice.integers(-spread, spread, n)
    kind = dice.integers(0, families, n)
    centres = dice.integers(0, 2**64, (families, words), np.uint64)
    flips = dice.integers(0, 2**64, (3, n, words), np.uint64)
    return Archive(
        np.clip(keys, 0, UNIVERSE - 1),
        centres[kind] ^ (flips[0] & flips[1] & flips[2]),
        dice.integers(0, slides, n).astype(np.int32),
    )


def as_ints(barcodes: NDArray[np.uint64]) -> list[int]:
    return [int.from_bytes(code.tobytes(), "little") for code in barcodes]


def plain_distances(barcodes: NDArray[np.uint64], query: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Hamming distances the slow and obvious way."""
    return np.bitwise_count(barcodes ^ query).sum(axis=1).astype(np.int64)


def distance_matrix(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.int64]:
    """All Hamming distances between (n, words) and (m, words): (n, m)."""
    return np.stack([plain_distances(np.atleast_2d(left), one) for one in np.atleast_2d(right)], axis=1)


def plain_neighbours(
    archive_barcodes: NDArray[np.uint64],
    query: NDArray[np.uint64],
    k: int,
    radius: int | None,
    allowed: NDArray[np.bool_] | None,
) -> tuple[list[int], list[int]]:
    """(rows, distances) of the k nearest allowed rows, ties by row."""
    near = plain_distances(archive_barcodes, query)
    ok = np.ones(len(near), bool) if allowed is None else allowed
    rows = [
        r for r in np.argsort(near, kind="stable").tolist() if ok[r] and (radius is None or near[r] <= radius)
    ]
    return rows[:k], near[rows[:k]].tolist()
