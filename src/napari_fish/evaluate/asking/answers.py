"""Questions and answers of an evaluation as arrays: small, quick to keep and to cut at any k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.evaluate.metrics import ABSENT

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked, one entry a query.

    Attributes
    ----------
    slides : int64, shape (n,)
        Number of the slide in the database the queries come from.
    rows : int64, shape (n,)
        The patch that is asked for; -1 for the whole slide.
    names, own, patients
        What each is called; the slide of the searched database that it is, empty for none; its patient.
    truth : int64, shape (n,)
        Its label, a number in ``labels``.
    labels
        All labels: first those of the database, then those only queries have.
    within
        Filters that hold for one query alone.
    """

    slides: Ints
    rows: Ints
    names: tuple[str, ...]
    own: tuple[str, ...]
    patients: tuple[str, ...]
    truth: Ints
    labels: tuple[str, ...]
    within: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.slides)

    def take(self, at: Sequence[int]) -> Questions:
        """Return some of the questions."""
        chosen = list(at)
        taken: dict[str, Any] = {"labels": self.labels}
        for name in ("names", "own", "patients", "within"):
            taken[name] = tuple(getattr(self, name)[i] for i in chosen)
        for name in ("slides", "rows", "truth"):
            taken[name] = getattr(self, name)[chosen]
        return Questions(**taken)

    @property
    def patient_numbers(self) -> Ints:
        """Which patient each query is of; a query without a known one is alone."""
        known: dict[str, int] = {}
        numbers = [
            known.setdefault(patient.casefold() or f"\0{self.slides[i]}", len(known))
            for i, patient in enumerate(self.patients)
        ]
        return np.array(numbers, np.int64)


@dataclass(frozen=True, eq=False)
class Answers:
    """What was found, one line a query, cut at a depth and padded.

    Attributes
    ----------
    slides : int64, shape (n, depth)
        Slide numbers in rank order; -1 past the end.
    distances : float64, shape (n, depth)
        In bits; NaN past the end.
    rows : int64, shape (n, depth)
        The patch that brought each slide; -1 for none.
    asked : int64, shape (n, depth)
        Which patch of the query it matches; -1 for none.
    ranked : int64, shape (n,)
        Hits of the search itself; further ones were filled in.
    allowed, relevant : int64, shape (n,)
        Slides, or at the level of patches patches, that might be returned, and those of them with the right label.
    near : int64, shape (n,)
        Patches of the query with neighbours within the threshold.
    """

    slides: Ints
    distances: NDArray[np.float64]
    rows: Ints
    asked: Ints
    ranked: Ints
    allowed: Ints
    relevant: Ints
    near: Ints

    def __len__(self) -> int:
        return len(self.slides)

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Put answers one below the other."""
        return cls(**{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def labels(self, of_slide: Ints, k: int) -> Ints:
        """Return the labels of the first k, shape (n, k), as :mod:`~napari_fish.evaluate.metrics` has them."""
        first = self.slides[:, :k]
        return np.where(first < 0, ABSENT, of_slide[first])

    def found(self, k: int) -> Ints:
        """Return how many of k slides each answer has."""
        return np.asarray((self.slides[:, :k] >= 0).sum(axis=1), np.int64)

    def short(self, k: int) -> NDArray[np.bool_]:
        """Return which answers have fewer than k slides."""
        return self.found(k) < k

    def why_short(self, k: int) -> dict[str, int]:
        """Count the reasons for answers of fewer than k slides; every such answer has one."""
        short, found = self.short(k), self.found(k)
        all_given = short & (self.allowed <= found)
        nothing_near = short & ~all_given & (self.near == 0)
        ranking = short & ~all_given & ~nothing_near
        reasons = {
            f"the exclusion of the patient and the filters leave fewer than {k}": all_given,
            "no patch of the query has a neighbour within the threshold": nothing_near,
            f"fewer than {k} were within the threshold and kept by the ranking": ranking,
        }
        return {text: int(which.sum()) for text, which in reasons.items() if which.any()}
