"""What goes into a search and what comes out: plain, frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes, Keys
from napari_fish.search.output.pictures import Pictures
from napari_fish.store.records import Box
from napari_fish.texts import Note

Fate = Literal["kept", "empty", "length", "distance", "vote"]


@dataclass(frozen=True, eq=False)
class Query:
    """Encoded patches of a slide, a box or an image.

    Attributes
    ----------
    name
        What was searched for.
    keys : int64, shape (n,)
    barcodes : uint64, shape (n, words)
    boxes : int32, shape (n, 4)
        Where each patch lies in the query: x, y, width, height in level-0 px.
    slide, patient
        Left out of the answer where given and found in the database.
    weights : float64, shape (n,)
        How much each patch counts; None for all alike.
    liked
        The slide of each patch at the end that is not the query's own but a region of a slide that was judged relevant:
        it finds slides beside the query's own patches, but is no evidence for its own slide.
    """

    name: str
    keys: Keys
    barcodes: Barcodes
    boxes: NDArray[np.int32]
    slide: str = ""
    patient: str = ""
    weights: NDArray[np.float64] | None = None
    liked: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def own(self) -> int:
        """How many patches are the query's own; they come first."""
        return len(self) - len(self.liked)

    @property
    def origins(self) -> tuple[str, ...]:
        """The slide that each patch was liked on; empty for the query's own."""
        return (*[""] * self.own, *self.liked)


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A region of the query and a region of a slide that match.

    Attributes
    ----------
    query_index
        Which patch of the query.
    query_box, hit_box
        Regions in level-0 px of the query and of the slide.
    row
        The patch in the database.
    distance
        Hamming distance in bits.
    percentile
        Percentage of random pairs at most this far apart; None where not calibrated.
    liked
        The slide that was judged relevant whose region matches here, in place of one of the query, whose box is empty then.
    """

    query_index: int
    query_box: Box
    hit_box: Box
    row: int
    distance: int
    percentile: float | None = None
    liked: str = ""


@dataclass(frozen=True, kw_only=True)
class SlideHit:
    """A slide of the answer.

    Attributes
    ----------
    rank
        From 1.
    slide, name, patient, diagnosis, site
        What the database knows of it.
    distance
        Hamming distance in bits of the pair that brought it here (``label-free``: the median).
    percentile
        Percentage of random pairs at most that far apart; None where not calibrated.
    entropy
        Uncertainty in bits of the query patch that brought it here; None without labels.
    matches
        Matching regions, nearest first; the query's own before those of slides that were judged relevant.
    filled
        Whether it was added from exact search because the answer was short.
    """

    rank: int
    slide: str
    name: str
    patient: str = ""
    diagnosis: str = ""
    site: str = ""
    distance: float
    percentile: float | None = None
    entropy: float | None = None
    matches: tuple[Hit, ...] = ()
    filled: bool = False


@dataclass(frozen=True, kw_only=True)
class ListFate:
    """What became of one query patch's list of neighbours.

    Attributes
    ----------
    query_index
        Which patch of the query.
    length
        Neighbours in its list.
    entropy
        Its uncertainty in bits; None for an empty list or without labels.
    mean_distance
        Mean distance of its first five, in bits; None for an empty list.
    vote
        The label it stands for, empty where none of its neighbours has one.
    votes
        Weight of each label in it.
    fate
        ``kept``, or why it was dropped.
    reason
        The same in words.
    liked
        The slide that was judged relevant whose region this is; empty for one of the query's own.
    """

    query_index: int
    length: int
    entropy: float | None = None
    mean_distance: float | None = None
    vote: str = ""
    votes: Mapping[str, float] = field(default_factory=dict)
    fate: Fate
    reason: str = ""
    liked: str = ""


@dataclass(frozen=True)
class Explanation:
    """Why the answer is what it is.

    Attributes
    ----------
    ranking
        The ranking that was really used.
    lists
        What became of each query patch's list.
    prediction
        The label most certain lists agree on; empty where none was needed.
    hit_threshold
        θ_h' in bits: hits of uncertain lists beyond it were ignored; None where not used.
    skipped_steps
        Steps left out because they would have left nothing.
    """

    ranking: str
    lists: tuple[ListFate, ...] = ()
    prediction: str = ""
    hit_threshold: float | None = None
    skipped_steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        kept = sum(fate.fate == "kept" for fate in self.lists)
        lines = [f"Ranking {self.ranking}: {kept} of {len(self.lists)} query regions voted."]
        if self.prediction:
            lines.append(f"The most certain lists agree on {self.prediction}.")
        if self.hit_threshold is not None:
            lines.append(f"Hits of uncertain regions counted up to distance {self.hit_threshold:.1f}.")
        lines += [f"Left out: {step}" for step in self.skipped_steps]
        for fate in self.lists:
            uncertainty = "" if fate.entropy is None else f", entropy {fate.entropy:.2f}"
            vote = f", votes {fate.vote}" if fate.vote else ""
            reason = f" ({fate.reason})" if fate.reason else ""
            lines.append(
                f"  region {fate.query_index}: {fate.length} neighbours{uncertainty}{vote}: {fate.fate}{reason}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Results:
    """The answer to a search.

    Attributes
    ----------
    query
        What was searched for.
    mode, ranking
        What was really used.
    k
        Slides wanted.
    threshold
        θ_h in bits.
    hits
        Slides, best first.
    notes
        What the reader must know: why there are fewer than k, what was filled in, which walks were cut.
    elapsed_ms
        Milliseconds by step.
    explanation
        Why the answer is what it is.
    query_boxes
        Where each patch of the query lies, in its level-0 px; empty boxes for those from elsewhere.
    labels
        All diagnoses in the database, and all values of the column that voted, so that each can have its colour.
    pictures
        Pictures of query and slides, for reports; None for none.
    """

    query: str
    mode: str
    ranking: str
    k: int
    threshold: int
    hits: tuple[SlideHit, ...]
    notes: tuple[Note, ...] = ()
    elapsed_ms: Mapping[str, float] = field(default_factory=dict)
    explanation: Explanation = field(default_factory=lambda: Explanation("none"))
    query_boxes: tuple[Box, ...] = ()
    labels: tuple[str, ...] = field(default=(), repr=False)
    pictures: Pictures | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.hits)

    def explain(self) -> str:
        """Say in words why the answer is what it is."""
        return "\n".join(map(str, [*self.notes, self.explanation]))

    def to_frame(self) -> Any:
        """Return a pandas table, one row a slide."""
        from napari_fish.search.output.export import to_frame

        return to_frame(self)

    def save(self, path: str | Path, *, database: str = "", slide: str | None = None) -> Path:
        """Write the answer; the format follows from the ending.

        ``.csv``, ``.json``, ``.geojson`` (QuPath), ``.html`` (a report), ``.png`` and ``.pdf`` (a figure).

        Parameters
        ----------
        path
            The file.
        database
            Name of the database, for a report.
        slide
            A slide of the answer, for GeoJSON of its regions instead of the query's.
        """
        from napari_fish.search.output.export import save

        return save(self, Path(path), database=database, slide=slide)
