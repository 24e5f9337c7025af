"""The slides of a database, read from the catalogue when asked for: opening a large one reads none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Mask, frozen
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
        number = self._catalogue.number(slide)
        at, known = self._positions([] if number is None else [number])
        return int(at[0]) if known.any() else None

    def _positions(self, numbers: ArrayLike) -> tuple[NDArray[np.int64], Mask]:
        """Return where numbers of the catalogue are, and which are; a slide added since this table was made is not in it."""
        wanted = np.asarray(numbers, np.int64)
        at = np.searchsorted(self.numbers, wanted)
        known = at < len(self)
        known[known] = self.numbers[at[known]] == wanted[known]
        return at, known

    def _label_names(self) -> Iterable[str]:
        return self._catalogue.label_columns()

    def _values(self, column: str) -> tuple[NDArray[np.int64], Sequence[str]]:
        found = self._catalogue.column(column)
        at, known = self._positions([number for number, _ in found])
        return at[known], [value for (_, value), there in zip(found, known.tolist(), strict=True) if there]
