"""The slides a database has, as a build needs to know them: by id, by place and by content."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from napari_fish.building.survey import Candidate, by_id, is_unchanged
from napari_fish.database.places import place_of
from napari_fish.database.records import SlideRecord
from napari_fish.database.slidenames import without_ending
from napari_fish.database.truth import Truth


class KnownSlides:
    """What is in a database, and what is on its way into it.

    Parameters
    ----------
    truth
        The database.
    mpp
        Micrometres per px that slides must have been encoded with; None for any.
    """

    def __init__(self, truth: Truth, mpp: float | None) -> None:
        self.records: dict[str, SlideRecord] = by_id(truth)
        self._folder, self._mpp = truth.folder, mpp
        self._of_hash = {record.content_hash: record.slide for record in self.records.values()}
        self._claimed: set[str] = set()
        self._turn = threading.Lock()

    def update(self, records: Iterable[SlideRecord]) -> None:
        """Take note of what was written."""
        for record in records:
            self.records[record.slide] = record
            self._of_hash[record.content_hash] = record.slide

    def is_unchanged(self, one: Candidate) -> bool:
        """Whether a slide is there as it is now, as far as size and time of its files tell."""
        return is_unchanged(one, self.records, self._folder, self._mpp)

    def with_hash(self, content_hash: str) -> SlideRecord | None:
        """Return the slide with this content."""
        slide = self._of_hash.get(content_hash)
        return None if slide is None else self.records[slide]

    def claim(self, content_hash: str) -> bool:
        """Say whether a slide of this content is there or on its way; if not, it is on its way from now on."""
        with self._turn:
            record = self.with_hash(content_hash)
            there = record is not None and self._mpp in (None, record.mpp)
            if there or content_hash in self._claimed:
                return True
            self._claimed.add(content_hash)
            return False

    def id_for(self, source: Candidate, content_hash: str, folder: Path) -> str:
        """Return the id of a slide: its own, unless a slide of that name from elsewhere has it."""
        record = self.records.get(source.slide)
        if record is None or record.content_hash == content_hash:
            return source.slide
        place = place_of(record.path, folder)
        if place is None or place == source.path.resolve() or not place.exists():
            return source.slide
        stem = without_ending(source.slide)
        return f"{stem} ({content_hash[-8:]}){source.slide.removeprefix(stem)}"
