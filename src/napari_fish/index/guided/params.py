"""How far guided search looks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import frozen

Variant = Literal["paper", "released"]
Index = Literal["sorted", "veb"]


@dataclass(frozen=True)
class GuidedParams:
    """How far guided search looks (METHOD.md, section 4).

    Attributes
    ----------
    variant
        ``paper``: walk up from m and m+tC, then down from m-tC, distances below the threshold, the key m
        itself included. ``released``: walk down and up from m-tC, then from m+tC, t = 0..T-1, distances at
        most the threshold, a seed's own key never visited; from a seed below 0 up from the smallest key, where ``paper``
        drops it.
    step
        C, the distance between seeds in key units.
    steps
        T, seeds on each side.
    limit
        k, keys a walk visits.
    threshold
        Largest Hamming distance in bits (``paper``: exclusive).
    every_patch
        Return all patches within the threshold under an accepted key, not only the nearest.
    skips
        A walk ends when it would skip more than ``skips * limit`` keys that hold only excluded patches.
    """

    variant: Variant = "paper"
    step: int = 50 * 10**11
    steps: int = 10
    limit: int = 375
    threshold: int = 128
    every_patch: bool = False
    skips: int = 10

    @property
    def largest_accepted(self) -> int:
        """Largest distance that is kept, in bits."""
        return self.threshold - (self.variant == "paper")

    def walks(self) -> list[tuple[int, int]]:
        """Return (distance of the seed from the key, direction) of each walk, in order."""
        near, far = self.step, self.steps
        if self.variant == "paper":
            return [(t * near, 1) for t in range(far + 1)] + [(-t * near, -1) for t in range(1, far + 1)]
        seeds = [-t * near for t in range(far)] + [t * near for t in range(far)]
        return [(seed, direction) for seed in seeds for direction in (-1, 1)]

    @lru_cache(maxsize=32)  # noqa: B019 - a handful of frozen values, shared by every query
    def settings(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the walks, shape (n, 2), and the numbers a kernel needs."""
        numbers = [
            self.variant == "paper",
            self.limit,
            self.largest_accepted,
            self.every_patch,
            self.skips * self.limit,
        ]
        walks = np.array(self.walks(), np.int64).reshape(-1, 2)
        return frozen(walks, np.int64, 2), frozen(numbers, np.int64)
