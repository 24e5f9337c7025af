"""All slides of a store, with their columns as numbers, so that masks and votes are array operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Mask, frozen
from napari_fish.names import OWN_COLUMNS
from napari_fish.store.records import SlideRecord


class SlideTable:
    """Slides in the order that masks go by; columns are looked at when first asked for.

    Parameters
    ----------
    records
        The slides.
    alive : bool, shape (n_slides,)
        False for slides that were removed: they keep their number until the store is compacted, but have no
        values and are never returned. None where there are none of these.
    """

    def __init__(self, records: Iterable[SlideRecord] = (), alive: ArrayLike | None = None) -> None:
        self.records = tuple(records)
        self.alive: Mask = frozen(np.ones(len(self.records)) if alive is None else alive, np.bool_)
        if len(self.alive) != len(self.records):
            raise ValueError(
                f"{len(self.records)} slides, but {len(self.alive)} are said to be alive or not."
            )
        self._codes: dict[str, tuple[NDArray[np.int32], list[str]]] = {}
        self._numbers: dict[str, int] | None = None
        self._columns: list[str] | None = None

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, number: int) -> SlideRecord:
        return self.records[number]

    def __iter__(self) -> Iterator[SlideRecord]:
        return iter(self.records)

    def records_of(self, numbers: ArrayLike) -> list[SlideRecord]:
        """Return what is known of slides, given by number."""
        return [self.records[number] for number in np.asarray(numbers, np.int64).tolist()]

    def _living(self) -> Iterator[tuple[int, SlideRecord]]:
        return ((i, self.records[i]) for i in np.flatnonzero(self.alive).tolist())

    def number(self, slide: str) -> int | None:
        """Return the number of a slide, given by its id; None where it is not, or no longer, there."""
        if self._numbers is None:
            self._numbers = {record.slide: i for i, record in self._living()}
        return self._numbers.get(slide)

    def _label_names(self) -> Iterable[str]:
        return (name for _, record in self._living() for name in record.labels)

    def _values(self, column: str) -> tuple[NDArray[np.int64], Sequence[str]]:
        """Return the values of a column, and of which slides they are; none where it is empty."""
        living = list(self._living())
        return np.array([i for i, _ in living], np.int64), [record.column(column) for _, record in living]

    @property
    def columns(self) -> list[str]:
        """Names of all columns, in lower case."""
        if self._columns is None:
            self._columns = [*OWN_COLUMNS, *sorted({name.lower() for name in self._label_names()})]
        return self._columns

    def numbered(self, column: str) -> tuple[NDArray[np.int32], list[str]]:
        """Return a column as numbers, shape (n_slides,), and the values they stand for.

        Values that differ only in case are one value; -1 stands for "not known" and for removed slides.
        """
        column = column.lower()
        if column not in self._codes:
            at, found = self._values(column)
            folded = [value.casefold() for value in found]
            first = {"": ""}
            for short, value in zip(folded, found, strict=True):
                first.setdefault(short, value)
            numbers = {short: i - 1 for i, short in enumerate(first)}
            codes = np.full(len(self), -1, np.int32)
            codes[at] = [numbers[short] for short in folded]
            self._codes[column] = codes, list(first.values())[1:]
        return self._codes[column]
