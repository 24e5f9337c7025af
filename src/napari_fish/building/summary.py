"""What a build tells while it runs and when it is done: plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from napari_fish.mosaic.left_out import is_much, spoiled, together, told, warnings
from napari_fish.store.records import Choice, Quarantined
from napari_fish.texts import Note, duration

Fate = Literal["added", "replaced", "unchanged", "moved", "twice", "quarantined"]
MOST_NAMED = 10
"""Slides of which much was left out that a summary names."""


@dataclass(frozen=True)
class SlideDone:
    """What became of a slide.

    Attributes
    ----------
    slide
        Its id.
    path
        Where it is.
    fate
        ``unchanged`` slides are in the database already, ``moved`` ones were found again at another place, ``twice``
        means that the same slide is there under another name.
    patches
        Patches that stand for it, 0 where it was not encoded now.
    reason
        Why, where it needs saying.
    candidates
        Patches on tissue that were good enough, 0 where it was not encoded now.
    left_out
        How many patches on tissue were left out, by reason.
    """

    slide: str
    path: Path
    fate: Fate
    patches: int = 0
    reason: str = ""
    candidates: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Under:
    """A slide that is being encoded, for those who want to watch.

    Attributes
    ----------
    slide, path
        Its id, and where it is.
    overview
        JPEG of it.
    dimensions
        Width and height in level-0 px.
    boxes : ndarray of int32, shape (n, 4)
        x, y, width, height of its patches in level-0 px.
    """

    slide: str
    path: Path
    overview: bytes
    dimensions: tuple[int, int]
    boxes: NDArray[np.int32]


@dataclass(frozen=True)
class Watch:
    """What to call while a build runs, all of it on the thread that builds.

    Attributes
    ----------
    started
        With each slide whose encoding begins.
    finished
        With what became of each slide.
    encoded
        With where a slide is, and how many of its patches are encoded.
    paused
        Asked often; while it says yes the build is held.
    said
        With what is to be known at once.
    live
        Whether somebody looks at the pictures of slides in work.
    """

    started: Callable[[Under], None] = lambda under: None
    finished: Callable[[SlideDone], None] = lambda done: None
    encoded: Callable[[Path, int], None] = lambda path, patches: None
    paused: Callable[[], bool] = lambda: False
    said: Callable[[str], None] = lambda text: None
    live: bool = False


@dataclass(frozen=True)
class Summary:
    """What a build did.

    Attributes
    ----------
    database
        The folder.
    done
        What became of each slide.
    quarantined
        Every slide that could not be encoded, those of earlier builds included.
    slides, patches
        In the database now.
    seconds
        How long it took.
    notes
        What the reader must know of labels and calibration.
    choices
        How the patches of each slide in the database were chosen.
    """

    database: Path
    done: tuple[SlideDone, ...]
    quarantined: tuple[Quarantined, ...]
    slides: int
    patches: int
    seconds: float
    notes: tuple[Note, ...] = ()
    choices: Mapping[str, Choice] = field(default_factory=dict)
    counts: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        counts: dict[str, int] = {}
        for one in self.done:
            counts[one.fate] = counts.get(one.fate, 0) + 1
        object.__setattr__(self, "counts", counts)

    @property
    def judged(self) -> tuple[int, dict[str, int]]:
        """Patches that were good enough in all slides, and how many were left out, by reason."""
        return together((choice.candidates, choice.left_out) for choice in self.choices.values())

    @property
    def much_left_out(self) -> list[str]:
        """Slides of which so much tissue was left out that somebody should look, most first."""
        much = [name for name, one in self.choices.items() if is_much(one.candidates, one.left_out)]
        return sorted(
            much, key=lambda name: self.choices[name].candidates / spoiled(self.choices[name].left_out)
        )

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the database though it was built."""
        return warnings(len(self.much_left_out))

    def __str__(self) -> str:
        did = ", ".join(f"{n} {fate}" for fate, n in self.counts.items()) or "nothing to do"
        lines = [
            f"{self.database}: {self.slides} slides, {self.patches} patches ({did}; {duration(self.seconds)})"
        ]
        if any(self.judged):
            lines.append(f"on tissue    {told(*self.judged)}")
        lines += [f"warning      {text}" for text in self.warnings]
        much = self.much_left_out
        lines += [
            f"  left out   {name}: {told(self.choices[name].candidates, self.choices[name].left_out)}"
            for name in much[:MOST_NAMED]
        ]
        lines += [f"  left out   and {len(much) - MOST_NAMED} more"] if len(much) > MOST_NAMED else []
        lines += [f"note         {note}" for note in self.notes]
        lines += [f"twice        {one.slide}: {one.reason}" for one in self.done if one.fate == "twice"]
        lines += [f"quarantined  {bad.slide}: {bad.reason}" for bad in self.quarantined]
        if self.quarantined:
            lines.append(
                f"             To dismiss one until it changes: napari-fish remove {self.database} FILE"
            )
        return "\n".join(lines)
