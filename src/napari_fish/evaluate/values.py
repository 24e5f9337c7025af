"""What an evaluation says: plain values, for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.evaluate.metrics import Definition, Score
from napari_fish.search.recall import Recall


@dataclass(frozen=True)
class LabelScores:
    """How well queries of one label are answered: how many there are, and their scores as in :class:`WayScores`."""

    n: int
    scores: Mapping[str, Score]


@dataclass(frozen=True, eq=False)
class Matrices:
    """Who is taken for whom among queries that are answered from the same slides.

    Attributes
    ----------
    within
        The value they share, such as a site; empty where all are answered from everywhere.
    n
        Queries.
    labels
        The labels these have.
    confusion : int64, shape (n_labels + 1, n_labels)
    hamming : float64, shape (n_labels, n_labels)
        See :mod:`~napari_fish.evaluate.matrices`.
    """

    within: str
    n: int
    labels: tuple[str, ...]
    confusion: NDArray[np.int64]
    hamming: NDArray[np.float64]


@dataclass(frozen=True)
class Times:
    """Times of single searches in ms."""

    median: float
    p5: float
    p95: float
    n: int

    @classmethod
    def of(cls, milliseconds: list[float]) -> Times:
        """Describe measured times."""
        low, middle, high = np.quantile(milliseconds, (0.05, 0.5, 0.95)).tolist()
        return cls(middle, low, high, len(milliseconds))


@dataclass(frozen=True, eq=False, kw_only=True)
class WayScores:
    """One line of the table.

    Attributes
    ----------
    name, mode, ranking
        What was asked for.
    threshold
        θ_h in bits, as this mode uses it.
    scores, macro
        Over all queries, and averaged over labels, by the name of a metric in
        :data:`~napari_fish.evaluate.metrics.METRICS`, as the paper defines it unless another definition was chosen; under
        NAME_released as the published program computes it: short answers of slides right with ceil(k / 2), of patches
        wrong, precision divided by 5.
    short
        Share of queries with fewer than k slides.
    why_short
        How many, by reason.
    filled
        Share of queries completed from exact search.
    per_label
        The same for each label.
    matrices
        One for each value that answers were kept within, or one for all.
    latency
        Of single searches; None where not measured.
    recall
        How many of the true neighbours were found, and on how many patches; None where not measured.
    """

    name: str
    mode: str
    ranking: str
    threshold: int
    scores: Mapping[str, Score]
    macro: Mapping[str, Score]
    short: float
    why_short: Mapping[str, int]
    filled: float
    per_label: Mapping[str, LabelScores]
    matrices: tuple[Matrices, ...]
    latency: Times | None = None
    recall: Recall | None = None


@dataclass(frozen=True)
class SpeedRow:
    """How long searches take in a database of some size.

    Attributes
    ----------
    what
        What was searched: a part of the database, or the database with noisy copies.
    slides, mosaics
        Its size.
    mode
        How it was searched.
    patch, slide
        Times of a search for one patch, and for a whole slide; None where there was nothing to ask.
    recall
        Against exact search, on patches of what was searched.
    """

    what: str
    slides: int
    mosaics: int
    mode: str
    patch: Times
    slide: Times | None
    recall: Recall

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> SpeedRow:
        """Make a row of what :func:`dataclasses.asdict` made of one."""
        slide = kept["slide"]
        return cls(
            **{
                **kept,
                "patch": Times(**kept["patch"]),
                "slide": None if slide is None else Times(**slide),
                "recall": Recall(**kept["recall"]),
            }
        )


@dataclass(frozen=True)
class Example:
    """A query and what was found, for the eye.

    Attributes
    ----------
    name, label
        Of the query.
    right
        Whether the majority of its answer has its label.
    picture
        JPEG of the region of the query that matches best; None for none.
    hits
        Name, label, distance in bits and JPEG of the matching region of each slide found.
    """

    name: str
    label: str
    right: bool
    picture: bytes | None
    hits: tuple[tuple[str, str, float, bytes | None], ...]


@dataclass(frozen=True)
class Storage:
    """What the database takes on disk, in bytes.

    Attributes
    ----------
    index
        What is searched.
    truth, thumbnails, codes
        What is kept besides.
    mosaics, slides
        How many there are.
    """

    index: int
    truth: int
    thumbnails: int
    codes: int
    mosaics: int
    slides: int

    @property
    def index_per_patch(self) -> float:
        """Bytes a patch takes in the index."""
        return self.index / max(1, self.mosaics)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """What an evaluation found.

    Attributes
    ----------
    database, queries
        Names; ``queries`` is empty for leave-one-patient-out.
    level, target, k
        What was asked.
    n_queries, n_slides, n_patients
        Queries, slides in the database, patients among the queries.
    threshold
        θ_h in bits of the first mode; every line of the tables has its own.
    labels
        The labels that queries have.
    chance
        Macro-averaged share that would be right by guessing among the labels that queries may get.
    within
        The column whose value answers share with their query; empty for none.
    definition
        What right means for short answers, and what average precision is divided by.
    ways, ablation
        Lines of the tables.
    storage
        Bytes on disk; None where the database is in memory.
    speed
        Times over growing databases.
    encode_ms
        Time to read and encode slides, where it was measured.
    examples
        Queries with what was found.
    notes
        What the reader must know.
    about
        Command, versions, date and parameters, for the record.
    """

    database: str
    queries: str
    level: str
    target: str
    k: int
    n_queries: int
    n_slides: int
    n_patients: int
    threshold: int
    labels: tuple[str, ...]
    chance: float
    within: str
    definition: Definition
    ways: tuple[WayScores, ...]
    ablation: tuple[WayScores, ...] = ()
    storage: Storage | None = None
    speed: tuple[SpeedRow, ...] = ()
    encode_ms: Times | None = None
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def main(self) -> WayScores:
        """The line users get unless they choose: the first."""
        return self.ways[0]

    @property
    def thresholds(self) -> str:
        """The thresholds in words: that of the first mode, and which modes have another."""
        others: dict[int, list[str]] = {}
        for way in (*self.ways, *self.ablation):
            if way.threshold != self.threshold and way.mode not in others.setdefault(way.threshold, []):
                others[way.threshold].append(way.mode)
        said = [f"{', '.join(modes)}: {bits}" for bits, modes in others.items()]
        return f"threshold {self.threshold} bits" + (f" ({'; '.join(said)})" if said else "")

    def save(self, path: Any) -> None:
        """Write the report as one HTML file."""
        from napari_fish.evaluate.report.page import write_report

        write_report(self, path)
