"""The slides a database has, as a build needs to know them: by id, by place and by content."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from napari_fish.building.masks import Masks
from napari_fish.building.strictness import could_differ
from napari_fish.building.survey import Candidate, by_id, is_unchanged
from napari_fish.labels.slide_names import without_ending
from napari_fish.slides.identity import stamp
from napari_fish.store.places import place_of
from napari_fish.store.protocol import Catalogue
from napari_fish.store.records import SlideRecord


class KnownSlides:
    """What is in a database, and what is on its way into it.

    Parameters
    ----------
    catalogue
        The database.
    mpp
        Micrometres per px that slides must have been encoded with; None for any.
    masks
        The masks that slides must have been encoded with.
    artefacts
        How strictly artefacts must have been left out; None for any way.
    """

    def __init__(
        self, catalogue: Catalogue, mpp: float | None, masks: Masks, artefacts: str | None = None
    ) -> None:
        self._folder, self._mpp, self._masks, self._artefacts = catalogue.location, mpp, masks, artefacts
        self.records: dict[str, SlideRecord] = {}
        self._of_hash: dict[str, str] = {}
        self._of_place: dict[Path, str] = {}
        self._claimed: dict[str, Candidate] = {}
        self._turn = threading.Lock()
        self.update(by_id(catalogue).values())

    def update(self, records: Iterable[SlideRecord]) -> None:
        """Take note of what was written."""
        with self._turn:
            for record in records:
                before = self.records.get(record.slide)
                if before is not None:
                    self._forget(before)
                self.records[record.slide] = record
                self._of_hash[record.content_hash] = record.slide
                place = place_of(record.path, self._folder)
                if place is not None:
                    self._of_place[place] = record.slide

    def _forget(self, record: SlideRecord) -> None:
        if self._of_hash.get(record.content_hash) == record.slide:
            del self._of_hash[record.content_hash]
        place = place_of(record.path, self._folder)
        if place is not None and self._of_place.get(place) == record.slide:
            del self._of_place[place]

    def at(self, path: Path) -> SlideRecord | None:
        """Return the slide that was last seen at a place."""
        slide = self._of_place.get(path.resolve())
        return None if slide is None else self.records[slide]

    def is_unchanged(self, one: Candidate) -> bool:
        """Whether a slide is there as it is now, as far as size and time of its files tell."""
        record = self.at(one.path)
        same_file = is_unchanged(one, record, self._mpp, self._artefacts)
        return same_file and record is not None and self._masks.is_same(one.slide, record)

    def unaltered(self, one: Candidate) -> SlideRecord | None:
        """Return what is known of a file, if it is the one that was encoded, whatever it is to be encoded with now."""
        record = self.at(one.path)
        return record if is_unchanged(one, record) else None

    def with_hash(self, content_hash: str) -> SlideRecord | None:
        """Return the slide with this content."""
        slide = self._of_hash.get(content_hash)
        return None if slide is None else self.records[slide]

    def claim(self, content_hash: str, one: Candidate) -> bool:
        """Say whether a slide of this content is there or on its way; if not, it is on its way from now on."""
        with self._turn:
            record = self.with_hash(content_hash)
            there = (
                record is not None
                and self._mpp in (None, record.mpp)
                and self._has_mask(record, one)
                and not could_differ(record.choice, self._artefacts)
            )
            return there or self._claimed.setdefault(content_hash, one) != one

    def forget_claims(self) -> None:
        """Take nothing as being on its way any more."""
        with self._turn:
            self._claimed.clear()

    def _has_mask(self, record: SlideRecord, one: Candidate) -> bool:
        """Whether a slide was encoded with the mask of a file; of the same slide elsewhere its own mask counts."""
        here = place_of(record.path, self._folder) == one.path.resolve()
        return self._masks.is_same(one.slide, record) or (not here and self.is_in_place(record))

    def is_in_place(self, record: SlideRecord) -> bool:
        """Whether the file of a slide is where it was last seen, and has not become another one since."""
        place = place_of(record.path, self._folder)
        try:
            return place is not None and stamp(place) == (record.size, record.mtime)
        except OSError:
            return False

    def id_for(self, source: Candidate, content_hash: str) -> str:
        """Return the id of a slide: the one it has, else its name, unless another slide has that."""
        known = self.at(source.path) or self.with_hash(content_hash)
        if known is not None:
            return known.slide
        if source.slide not in self.records:
            return source.slide
        stem = without_ending(source.slide)
        return f"{stem} ({content_hash[-8:]}){source.slide.removeprefix(stem)}"
