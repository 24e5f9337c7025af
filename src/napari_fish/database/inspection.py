"""What is in a database, to be looked at: read once, then plain values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_fish.mosaic.left_out import is_much, together, warnings
from napari_fish.slides.opening import expanded
from napari_fish.store.facts import Facts
from napari_fish.store.opening import open_catalogue
from napari_fish.store.places import is_there, place_of
from napari_fish.store.records import Quarantined, SlideRecord
from napari_fish.work import Progress, ShouldStop, stop_if_asked


@dataclass(frozen=True)
class Count:
    """A value of a column, with its slides and patches; an empty value stands for "not known"."""

    value: str
    slides: int
    patches: int


@dataclass(frozen=True)
class Inspection:
    """A database as it was when it was looked at.

    Attributes
    ----------
    path
        The folder.
    slides
        What is known of each slide.
    patches
        Patches of each slide, in the same order.
    away
        Ids of slides whose file is not where it was.
    quarantined
        Slides that could not be encoded.
    facts
        What every slide depends on.
    threshold
        Hamming distance below which patches are near; None where it was not calibrated.
    columns
        Columns to count by.
    size
        Bytes on disk.
    """

    path: Path
    slides: tuple[SlideRecord, ...]
    patches: tuple[int, ...]
    away: frozenset[str]
    quarantined: tuple[Quarantined, ...]
    facts: Facts
    threshold: int | None
    columns: tuple[str, ...]
    size: int

    @property
    def judged(self) -> tuple[int, dict[str, int]]:
        """Patches that were good enough in all slides, and how many were left out, by reason, as far as known."""
        return together((record.choice.candidates, record.choice.left_out) for record in self.slides)

    @property
    def warnings(self) -> list[str]:
        """What people should look at before they search."""
        choices = (record.choice for record in self.slides)
        return warnings(sum(is_much(choice.candidates, choice.left_out) for choice in choices))

    def count_by(self, column: str) -> list[Count]:
        """Return the values of a column, the most frequent first, values that differ only in case as one."""
        found: dict[str, list[Any]] = {}
        for record, patches in zip(self.slides, self.patches, strict=True):
            value = record.column(column)
            entry = found.setdefault(value.casefold(), [value, 0, 0])
            entry[1] += 1
            entry[2] += patches
        counts = [Count(*entry) for entry in found.values()]
        return sorted(counts, key=lambda one: (not one.value, -one.slides, one.value.casefold()))


def inspect_database(
    path: str | Path,
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Inspection:
    """Look at a database; nothing is changed, and no encoder is needed.

    Parameters
    ----------
    path
        ``NAME.fish``.
    progress, should_stop
        Called with slides looked for on disk and all slides; asked now and then.
    """
    folder = expanded(path)
    catalogue = open_catalogue(folder)
    try:
        with catalogue.reading():
            known, patches = catalogue.slides(), catalogue.numbers()
            calibration = catalogue.calibration
            columns = ("diagnosis", "site", "patient", *(name.lower() for name in catalogue.label_columns()))
            about = catalogue.quarantined, catalogue.facts
    finally:
        catalogue.close()
    away = set()
    for done, (_, record) in enumerate(known):
        stop_if_asked(should_stop, "looking at the database was stopped.")
        place = place_of(record.path, folder)
        if not is_there(place):
            away.add(record.slide)
        if progress:
            progress(done + 1, len(known))
    quarantined, facts = about
    return Inspection(
        path=folder,
        slides=tuple(record for _, record in known),
        patches=tuple(patches[number] for number, _ in known),
        away=frozenset(away),
        quarantined=tuple(quarantined),
        facts=facts,
        threshold=None if calibration is None else calibration.threshold,
        columns=tuple(dict.fromkeys(columns)),
        size=size_on_disk(folder),
    )


def size_on_disk(folder: Path) -> int:
    """Return the bytes of all files of a database."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # a file that is replaced just now
    return total
