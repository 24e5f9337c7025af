"""The slides in a catalogue, and their labels: read all at once, by number, or by content."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from napari_fish.errors import DatabaseError
from napari_fish.names import OWN_COLUMNS
from napari_fish.store.records import Choice, SlideRecord
from napari_fish.store.sqlite.file import in_words
from napari_fish.store.sqlite.state import StateTables

#: Columns that are kept as they are, and the one that says how patches were chosen, which the first format does not have.
PLAIN, CHOICE = (*OWN_COLUMNS, "path", "content_hash", "size", "mtime", "mpp", "width", "height"), "choice"
_CHUNK = 20_000


class SlideRows(StateTables):
    """The part of a catalogue that is about slides."""

    @cached_property
    def has_choices(self) -> bool:
        """Whether it is kept how patches were chosen; only a reader sees a file of the first format, where it is not."""
        return bool(self.rows("PRAGMA user_version")[0][0] > 1)

    def numbers(self, after: int = -1) -> dict[int, int]:
        """Return the patches of each slide that came after a generation, by number, in the order of numbers."""
        # Left to itself SQLite would read all slides, to have them in order.
        rows = self.rows(
            "SELECT number, mosaics, generation FROM slides INDEXED BY slides_by_generation WHERE generation > ? "
            "ORDER BY number",
            (after,),
        )
        latest = self.generation  # read after the slides: it only grows
        if any(n < 0 for _, n, _ in rows):
            raise in_words(ValueError("fewer patches than none"), self.path)
        if any(came > latest for _, _, came in rows):
            # It would come after every snapshot that it is already a part of.
            raise in_words(ValueError("a slide that came after the last change"), self.path)
        if after < 0 and len(rows) != self.rows("SELECT count(*) FROM slides")[0][0]:
            # It would be in no snapshot, and nobody would miss it.
            raise in_words(ValueError("a slide that came before the first change"), self.path)
        return {int(number): int(n) for number, n, _ in rows}

    def first_number(self, after: int) -> int | None:
        """Return the lowest number of the slides that came after a generation; None where none did."""
        (found,) = self.rows(
            "SELECT min(number) FROM slides INDEXED BY slides_by_generation WHERE generation > ?", (after,)
        )
        return None if found[0] is None else int(found[0])

    def patch_counts(self) -> dict[str, int]:
        """Return the patches of each slide, by its id."""
        return dict(self.rows("SELECT slide, mosaics FROM slides ORDER BY number"))

    def removed(self, after: int) -> list[int]:
        """Return the numbers of slides removed after a generation."""
        return [int(n) for (n,) in self.rows("SELECT number FROM removed WHERE generation > ?", (after,))]

    def number(self, slide: str) -> int | None:
        """Return the number of a slide, given by its id."""
        found = self.rows("SELECT number FROM slides WHERE slide = ?", (slide,))
        return int(found[0][0]) if found else None

    def with_hash(self, content_hash: str) -> list[SlideRecord]:
        """Return the slides with this content."""
        return [record for _, record in self._records("WHERE content_hash = ?", (content_hash,))]

    def record(self, number: int) -> SlideRecord:
        """Return what is known of a slide, given by number."""
        return self.records_of([number])[0]

    def records_of(self, numbers: Sequence[int]) -> list[SlideRecord]:
        """Return what is known of slides, given by number."""
        found: dict[int, SlideRecord] = {}
        for some in (numbers[at : at + _CHUNK] for at in range(0, len(numbers), _CHUNK)):
            found |= dict(self._records(f"WHERE number IN ({', '.join('?' * len(some))})", some))
        if gone := [number for number in numbers if number not in found]:
            raise DatabaseError(f"{self.folder}: slide number {gone[0]} is not there any more.")
        return [found[number] for number in numbers]

    def slides(self) -> list[tuple[int, SlideRecord]]:
        """Return all slides with their numbers, in the order of these."""
        return self._records("", ())

    def _records(self, where: str, values: Sequence[Any]) -> list[tuple[int, SlideRecord]]:
        labels: dict[int, dict[str, str]] = {}
        numbers = f"SELECT number FROM slides {where}"
        for number, name, value in self.rows(
            f"SELECT slide, name, value FROM labels WHERE slide IN ({numbers}) ORDER BY slide, name", values
        ):
            labels.setdefault(number, {})[name] = value
        columns = ", ".join((*PLAIN, CHOICE if self.has_choices else "''"))
        rows = self.rows(f"SELECT number, {columns} FROM slides {where} ORDER BY number", values)
        with self.making_sense():
            return [
                (
                    number,
                    SlideRecord(
                        **dict(zip(PLAIN, row, strict=True)),
                        labels=labels.get(number, {}),
                        choice=Choice.from_json(choice),
                    ),
                )
                for number, *row, choice in rows
            ]

    def label_columns(self) -> list[str]:
        """Return the names of further columns."""
        return [str(name) for (name,) in self.rows("SELECT DISTINCT name FROM labels ORDER BY name")]

    def column(self, name: str) -> list[tuple[int, str]]:
        """Return the values of a column, in any case, with the numbers of the slides that have one."""
        low = name.lower()
        if low in OWN_COLUMNS:
            return self.rows(f"SELECT number, {low} FROM slides ORDER BY number")
        names = [other for other in self.label_columns() if other.lower() == low]
        return self.rows(
            f"SELECT slide, value FROM labels WHERE name IN ({', '.join('?' * len(names))}) ORDER BY slide",
            names,
        )
