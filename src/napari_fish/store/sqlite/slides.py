"""The slides of a database, read from the catalogue when asked for: opening a large one reads none of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Mask, frozen
from napari_fish.names import OWN_COLUMNS
from napari_fish.store.records import SlideRecord
from napari_fish.store.slide_table import SlideTable
from napari_fish.store.sqlite.catalogue import SqliteCatalogue


class CatalogueSlides(SlideTable):
    """Slides in the order that masks go by.

    Parameters
    ----------
    catalogue
        Where everything about them is.
    numbers : int64, shape (n_slides,)
        Their numbers in the catalogue, ascending.
    alive : bool, shape (n_slides,)
        False for slides that were removed.
    """

    def __init__(self, catalogue: SqliteCatalogue, numbers: NDArray[np.int64], alive: Mask) -> None:
        super().__init__()
        self.numbers = numbers
        self.alive = frozen(alive, np.bool_)
        self._catalogue = catalogue

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, number: int) -> SlideRecord:
        return self._catalogue.record(int(self.numbers[number]))

    def records_of(self, numbers: ArrayLike) -> list[SlideRecord]:
        """Return what is known of slides, given by number."""
        return self._catalogue.records_of(self.numbers[np.asarray(numbers, np.int64)].tolist())

    def __iter__(self) -> Iterator[SlideRecord]:
        known = dict(self._catalogue.slides())
        return (known.get(number, SlideRecord("")) for number in self.numbers.tolist())

    def number(self, slide: str) -> int | None:
        """Return the number of a slide, given by its id."""
        return self._position(self._catalogue.number(slide))

    def _position(self, number: int | None) -> int | None:
        if number is None:
            return None
        at = int(np.searchsorted(self.numbers, number))
        return at if at < len(self.numbers) and self.numbers[at] == number else None

    @property
    def columns(self) -> list[str]:
        """Names of all columns, in lower case."""
        if self._columns is None:
            extra = {name.lower() for name in self._catalogue.label_columns()}
            self._columns = [*OWN_COLUMNS, *sorted(extra)]
        return self._columns

    def numbered(self, column: str) -> tuple[NDArray[np.int32], list[str]]:
        """Return a column as numbers, shape (n_slides,), and the values they stand for."""
        column = column.lower()
        if column not in self._codes:
            codes = np.full(len(self), -1, np.int32)
            seen: dict[str, int] = {"": -1}
            values: list[str] = []
            found = self._catalogue.column(column)
            for _, value in found:
                folded = value.casefold()
                if folded not in seen:
                    seen[folded] = len(values)
                    values.append(value)
            numbers = np.fromiter((number for number, _ in found), np.int64, len(found))
            at = np.searchsorted(self.numbers, numbers)
            known = at < len(self)
            # A slide added since this table was made is not in it.
            known[known] = self.numbers[at[known]] == numbers[known]
            of = np.fromiter((seen[value.casefold()] for _, value in found), np.int32, len(found))
            codes[at[known]] = of[known]
            self._codes[column] = codes, values
        return self._codes[column]
