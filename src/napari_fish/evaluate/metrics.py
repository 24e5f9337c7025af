"""How good answers are: the paper's measures, and those of the published program, on arrays.

An answer is a line of label numbers in rank order: 0, 1, … for labels, -1 for a hit without one, which keeps its place
and votes for nothing, and -2 past the end of an answer that is short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNLABELLED, ABSENT = -1, -2
#: What the published program divides average precision by.
FIXED_DIVISOR = 5
RESAMPLES = 1000
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Definition:
    """Which of the two definitions counts where the paper and the published program differ.

    Attributes
    ----------
    divisor
        Average precision is divided by the relevant slides among the first k (``relevant``, the paper), or by 5
        (``fixed``).
    short
        An answer of fewer than k slides is right with more than ceil(k / 2) right ones (``>``, the paper), with
        that many (``>=``, the published program for slides), or never (``wrong``, the published program for patches).
    """

    divisor: Literal["relevant", "fixed"] = "relevant"
    short: Literal[">", ">=", "wrong"] = ">"


PAPER, RELEASED = Definition(), Definition("fixed", ">=")
RELEASED_PATCHES = Definition("fixed", "wrong")


@dataclass(frozen=True)
class Score:
    """A mean, and the interval that holds 95 % of its bootstrap resamples; None where one patient tells nothing of it."""

    value: float
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        return f"{self.value:.3f}" + (
            "" if self.interval is None else " [{:.3f}, {:.3f}]".format(*self.interval)
        )


def majority(labels: ArrayLike) -> Ints:
    """Return the most frequent label of each answer, the first seen of equals; -1 where no hit has one.

    Parameters
    ----------
    labels : int, shape (n_queries, k)
        Answers in rank order.
    """
    table = np.asarray(labels, np.int64)
    if not table.size:
        return np.full(len(table), UNLABELLED, np.int64)
    # How often the label at each place occurs in its answer; the first place with the most wins.
    often = (table[:, :, None] == table[:, None, :]).sum(axis=2)
    often[table < 0] = 0
    best = table[np.arange(len(table)), often.argmax(axis=1)]
    return np.where(often.max(axis=1) > 0, best, UNLABELLED)


def majority_right(labels: ArrayLike, truth: ArrayLike, definition: Definition = PAPER) -> NDArray[np.bool_]:
    """Return whether each answer's majority is right.

    Parameters
    ----------
    labels : int, shape (n_queries, k)
        Answers in rank order.
    truth : int, shape (n_queries,)
        The queries' own labels.
    definition
        How short answers are judged.
    """
    table, own = np.asarray(labels, np.int64), np.asarray(truth, np.int64)
    needed = -(-table.shape[1] // 2) + (definition.short == ">")
    few_right = ((table == own[:, None]).sum(axis=1) >= needed) & (definition.short != "wrong")
    short = (table == ABSENT).any(axis=1)
    return np.asarray(np.where(short, few_right, majority(table) == own), np.bool_)


def average_precision(labels: ArrayLike, truth: ArrayLike, definition: Definition = PAPER) -> Floats:
    """Return the average precision of each answer; 0 where nothing relevant was found.

    Parameters
    ----------
    labels : int, shape (n_queries, k)
        Answers in rank order.
    truth : int, shape (n_queries,)
        The queries' own labels.
    definition
        What to divide by.
    """
    relevant = np.asarray(labels, np.int64) == np.asarray(truth, np.int64)[:, None]
    precision = relevant.cumsum(axis=1) / np.arange(1, relevant.shape[1] + 1)
    found = relevant.sum(axis=1)
    divisor = np.full(len(found), FIXED_DIVISOR) if definition.divisor == "fixed" else np.maximum(found, 1)
    return np.asarray((relevant * precision).sum(axis=1) / divisor, np.float64)


def first_right(labels: ArrayLike, truth: ArrayLike) -> NDArray[np.bool_]:
    """Return whether the first of each answer is right."""
    table = np.asarray(labels, np.int64)
    return np.asarray(table[:, 0] == np.asarray(truth), np.bool_)


def any_right(labels: ArrayLike, truth: ArrayLike) -> NDArray[np.bool_]:
    """Return whether any of each answer is right: top-k accuracy."""
    return np.asarray((np.asarray(labels) == np.asarray(truth)[:, None]).any(axis=1), np.bool_)


@dataclass(frozen=True)
class Metric:
    """What is measured of every answer.

    Attributes
    ----------
    title
        Its name in tables; ``{k}`` stands for k.
    measure
        Takes labels, truth and a definition, and returns a number for each query.
    defined
        Whether definitions differ in it: what the published program's gives is then told besides.
    """

    title: str
    measure: Callable[[Ints, Ints, Definition], NDArray[Any]]
    defined: bool = False


METRICS = {
    "mmv": Metric("mMV@{k}", majority_right, defined=True),
    "map": Metric("mAP@{k}", average_precision, defined=True),
    "top1": Metric("top-1", lambda labels, truth, _: first_right(labels, truth)),
    "topk": Metric("top-{k}", lambda labels, truth, _: any_right(labels, truth)),
}
"""By the names of their scores; another one is another entry, and every table and document has it."""


def measured(
    labels: Ints, truth: Ints, definition: Definition, released: Definition
) -> dict[str, NDArray[Any]]:
    """Return every metric of every answer by the name of its score: NAME, and NAME_released by the other definition."""
    values = {name: metric.measure(labels, truth, definition) for name, metric in METRICS.items()}
    return values | {
        f"{name}_released": metric.measure(labels, truth, released)
        for name, metric in METRICS.items()
        if metric.defined
    }


class Resamples:
    """Bootstrap resamples of queries; the queries of a patient come and go together, as they are no independent trials.

    For the mean of each label, and for the mean of these, patients are drawn within each label: a resample that missed
    a label would leave it, often a rare and difficult one, out of the mean. A label of one patient always counts as it
    is, and has no interval of its own.

    Parameters
    ----------
    truth : int, shape (n_queries,)
        The queries' own labels.
    patients : int, shape (n_queries,)
        Which patient each query is of.
    n
        Resamples.
    seed
        The same seed draws the same.
    """

    def __init__(self, truth: ArrayLike, patients: ArrayLike, n: int = RESAMPLES, seed: int = 0) -> None:
        self.labels, self.truth = np.unique(np.asarray(truth, np.int64), return_inverse=True)
        _, self._patient = np.unique(np.asarray(patients), return_inverse=True)
        self._patients = int(self._patient.max(initial=-1)) + 1
        dice = np.random.default_rng(seed)
        self._counts = self._sums(np.ones(len(self.truth)))
        self._weights = _drawn(dice, self._patients, n)
        self._members = [np.flatnonzero(mine) for mine in self._counts.T]
        self._within = [_drawn(dice, len(mine), n) for mine in self._members]

    def _sums(self, values: Floats) -> Floats:
        """Add values up by patient and label, shape (n_patients, n_labels)."""
        cell = self._patient * len(self.labels) + self.truth
        sums = np.bincount(cell, values, self._patients * len(self.labels)).astype(np.float64)
        return sums.reshape(self._patients, len(self.labels))

    def scores(self, values: ArrayLike) -> tuple[Score, Score, Mapping[int, Score]]:
        """Return the mean over queries, the mean of the labels' means, and the mean of each label.

        Parameters
        ----------
        values : float, shape (n_queries,)
            What was measured of each query.
        """
        sums = self._sums(np.asarray(values, np.float64))
        if not len(self.truth):
            return Score(0.0), Score(0.0), {}
        again, counts = self._weights @ sums.sum(axis=1), self._weights @ self._counts.sum(axis=1)
        each = np.array(
            [
                weights @ sums[mine, i] / (weights @ self._counts[mine, i])
                for i, (mine, weights) in enumerate(zip(self._members, self._within, strict=True))
            ]
        )
        means = sums.sum(axis=0) / self._counts.sum(axis=0)
        several = [len(mine) > 1 for mine in self._members]
        per_label = {int(label): _score(means[i], each[i], several[i]) for i, label in enumerate(self.labels)}
        overall = _score(sums.sum() / len(self.truth), again / counts, self._patients > 1)
        return overall, _score(means.mean(), each.mean(axis=0), any(several)), per_label


def _drawn(dice: np.random.Generator, patients: int, n: int) -> Floats:
    """Draw as many patients as there are, n times; return how often each came, shape (n, n_patients)."""
    if not patients:
        return np.ones((n, 0))
    return dice.multinomial(patients, np.full(patients, 1 / patients), n).astype(np.float64)


def _score(value: float, again: Floats, known: bool) -> Score:
    low, high = np.quantile(again, (0.025, 0.975)).tolist()
    return Score(float(value), (low, high) if known else None)
