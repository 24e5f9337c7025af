"""The narrow door between search and whatever keeps the data.

A store numbers its patches (rows) and its slides; both numbers hold until the next commit or removal. A removed
slide and its rows may keep their numbers for a while: it is not ``alive`` then, and never an answer.

A store searches itself, next to the data, because one call a walk would cost more than the walk; what to ask for, and
what to make of the answer, is decided in ``search``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Barcodes, Keys, NeighbourLists, Rows
from napari_fish.store.facts import Facts
from napari_fish.store.places import Location
from napari_fish.store.records import (
    Box,
    Calibration,
    EncodedSlide,
    Pairs,
    PatchRecord,
    Quarantined,
    SlideRecord,
)
from napari_fish.store.request import Request
from napari_fish.store.slide_table import SlideTable


class Store(Protocol):
    """Slides and their patches, however they are kept."""

    @property
    def words(self) -> int:
        """64-bit words a barcode."""

    @property
    def slides(self) -> SlideTable:
        """All slides; their positions are the numbers masks go by."""

    @property
    def patches_per_slide(self) -> NDArray[np.int64]:
        """Patches of each slide, shape (n_slides,); none where it was removed."""

    @property
    def calibration(self) -> Calibration | None:
        """The distances of random pairs, where they were measured."""

    @property
    def paper_barcodes(self) -> bool:
        """Whether barcodes are those of the paper, for which its threshold was chosen."""

    def __len__(self) -> int:
        """How many rows there are, those of removed slides included."""

    @property
    def catalogue(self) -> Catalogue | None:
        """The lasting table behind it; None where there is none."""

    def nearest(self, request: Request) -> NeighbourLists:
        """Find the neighbours of query patches, with the slide of each."""

    def cost(self, request: Request) -> float:
        """Estimate how many ms it takes to answer a request with one mask; infinite where it cannot be."""

    def slide_distances(self, slides: ArrayLike, barcodes: Barcodes, threads: int = 1) -> NDArray[np.int32]:
        """Return the distance of the nearest patch of each slide from each barcode, in bits, shape (n_slides, n)."""

    def regions(self, rows: ArrayLike) -> list[PatchRecord]:
        """Say where patches lie."""

    def random_pairs(self, n: int, dice: np.random.Generator) -> Pairs:
        """Draw pairs of patches; one may be paired with itself."""

    def copies(self) -> NDArray[np.int64]:
        """Return which slides are copies of one another, shape (n_slides,): they share a number."""

    def rows_of(self, slides: ArrayLike) -> Rows:
        """Return the rows of slides, given by number, in ascending order."""

    def patch_rows(self, slide: int) -> Rows:
        """Return the rows of one slide, given by number, in the order of its mosaic: the order in which it asks."""

    def slides_of(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Return the number of the slide of each row."""

    def encoded(self, rows: ArrayLike) -> tuple[Keys, Barcodes]:
        """Return keys, shape (n,), and barcodes, shape (n, words), of rows."""

    def digest(self) -> str:
        """Return a digest of the content, the same whatever the order in which slides came."""


@dataclass(frozen=True)
class Problem:
    """Something wrong with a database.

    Attributes
    ----------
    text
        What, in words.
    repaired
        Whether it was mended already.
    """

    text: str
    repaired: bool = False

    def __str__(self) -> str:
        return self.text


class Catalogue(Protocol):
    """The lasting table of slides and patches: what build and care need; paths in it are relative to where it is."""

    @property
    def location(self) -> Location:
        """Where the database is, a plain value: another process opens it by that."""

    @property
    def facts(self) -> Facts:
        """What every slide depends on, and what is remembered of builds."""

    def remember(self, **facts: Any) -> None:
        """Change facts, given by name."""

    @property
    def identity(self) -> str:
        """What tells it from any other database; copies share it."""

    @property
    def generation(self) -> int:
        """Raised by every change."""

    def fingerprint(self) -> list[str | int]:
        """Return what changes whenever the content does, copies that went another way included; empty where that cannot be said."""

    @property
    def quarantined(self) -> list[Quarantined]:
        """Slides that could not be encoded, and why."""

    @property
    def calibration(self) -> Calibration | None:
        """The distances of random pairs, where they were measured."""

    def commit(self, slide: EncodedSlide) -> int:
        """Add a slide, or replace it, wholly or not at all; return its id."""

    def remove(self, slides: Iterable[str]) -> None:
        """Forget slides, all of them or none."""

    def relabel(self, records: Iterable[SlideRecord]) -> None:
        """Change what is known of slides, but not their patches."""

    def quarantine(self, bad: Quarantined) -> None:
        """Note a slide that could not be encoded."""

    def release(self, slides: Iterable[str]) -> None:
        """Take slides out of quarantine."""

    def slides(self) -> list[tuple[int, SlideRecord]]:
        """Return all slides with their ids."""

    def numbers(self, after: int = -1) -> dict[int, int]:
        """Return the patches of each slide that came after a generation, by id."""

    def number(self, slide: str) -> int | None:
        """Return the id of a slide."""

    def record(self, number: int) -> SlideRecord:
        """Return what is known of a slide."""

    def with_hash(self, content_hash: str) -> list[SlideRecord]:
        """Return the slides with this content."""

    def label_columns(self) -> list[str]:
        """Return the names of further columns."""

    def reading(self) -> AbstractContextManager[None]:
        """Ask several questions about one and the same state."""

    def changing(self) -> AbstractContextManager[None]:
        """Make many changes while others go on reading."""

    def close(self) -> None:
        """Let go of it."""


class CataloguedStore(Store, Protocol):
    """A store that lasts."""

    @property
    def calibration(self) -> Calibration | None:
        """The distances of random pairs, where they were measured."""

    @calibration.setter
    def calibration(self, made: Calibration) -> None: ...

    @property
    def location(self) -> Location:
        """Where it is."""

    @property
    def catalogue(self) -> Catalogue:
        """The lasting table behind it."""

    def refresh(self) -> bool:
        """Show what was written since; return whether there was anything."""

    def settle(self) -> None:
        """Bring what searches read up to date after many changes."""

    def compact(self) -> None:
        """Write what searches read anew."""

    def verify(self) -> list[Problem]:
        """Read everything and return what is wrong; a writer mends what can be."""

    def read_through(self) -> None:
        """Read what searches will need beforehand."""

    def close(self) -> None:
        """Let go of it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class KeptPictures(Protocol):
    """Small pictures that a database keeps."""

    def overview(self, slide: str) -> bytes | None:
        """Return the JPEG of a whole slide."""

    def patch(self, slide: str, box: Box) -> bytes | None:
        """Return the JPEG of a patch."""

    def patches(self, slide: str) -> list[tuple[Box, bytes]]:
        """Return all boxes of a slide with their pictures."""

    def close(self) -> None:
        """Let go of them."""


class WritablePictures(KeptPictures, Protocol):
    """Pictures that can be changed."""

    def save(
        self, slide: str, overview: bytes, boxes: Sequence[Sequence[int]], patches: Sequence[bytes]
    ) -> None:
        """Keep the pictures of a slide instead of those it had."""

    def remove(self, slide: str) -> None:
        """Forget the pictures of a slide."""
