"""The narrow door between search and whatever keeps the data.

A store numbers its mosaics (rows) and its slides; both numbers hold until the next commit or removal. A removed
slide and its rows may keep their numbers for a while: it is not ``alive`` then, and no mask allows it.

Masks are over slides, True where a slide may be returned: one mask for all query mosaics, shape (n_slides,), or
a table of them, shape (n_masks, n_slides), with ``which`` saying, shape (n_queries,), the mask of each query
mosaic. So a batch of queries, each with its own exclusions, shares one pass. A store runs walks and looks into clusters itself, next to the
data, because one call a walk would cost more than the walk; what to ask for, and what to make of the
answer, is decided in ``search``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Barcodes, Keys, Mask, NeighbourLists, Rows
from napari_fish.index.clustered.search import ClusterParams
from napari_fish.index.exact.search import Block
from napari_fish.index.guided.search import GuidedParams
from napari_fish.store.records import Calibration, EncodedSlide, PatchRecord
from napari_fish.store.slide_table import SlideTable


class Store(Protocol):
    """Slides and their mosaics, however they are kept."""

    @property
    def words(self) -> int:
        """64-bit words a barcode."""
        ...

    @property
    def slides(self) -> SlideTable:
        """All slides; their positions are the numbers masks go by."""
        ...

    @property
    def patches_per_slide(self) -> NDArray[np.int64]:
        """Mosaics of each slide, shape (n_slides,); none where it was removed."""
        ...

    @property
    def calibration(self) -> Calibration | None:
        """The distances of random pairs, where they were measured."""
        ...

    @property
    def paper_barcodes(self) -> bool:
        """Whether barcodes are those of the paper, for which its threshold was chosen."""
        ...

    @property
    def has_clusters(self) -> bool:
        """Whether clustered search is possible now."""
        ...

    def __len__(self) -> int:
        """How many rows there are, those of removed slides included."""
        ...

    def commit(self, slide: EncodedSlide) -> None:
        """Add a slide, or replace it, wholly or not at all."""
        ...

    def remove(self, slide: str) -> None:
        """Forget a slide."""
        ...

    def records(self, rows: ArrayLike) -> list[PatchRecord]:
        """Say where mosaics lie."""
        ...

    def rows_of(self, slides: ArrayLike) -> Rows:
        """Return the rows of slides, given by number, in ascending order."""
        ...

    def patch_rows(self, slide: int) -> Rows:
        """Return the rows of one slide, given by number, in the order of its mosaic: the order in which it asks."""
        ...

    def slides_of(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Return the number of the slide of each row."""
        ...

    def barcodes(self, rows: ArrayLike) -> Barcodes:
        """Return the barcodes of rows, shape (n, words)."""
        ...

    def encoded(self, rows: ArrayLike) -> tuple[Keys, Barcodes]:
        """Return keys, shape (n,), and barcodes, shape (n, words), of rows."""
        ...

    def scan(
        self,
        keys: Keys,
        barcodes: Barcodes,
        params: GuidedParams,
        mask: Mask | None,
        which: ArrayLike | None = None,
        threads: int = 1,
    ) -> NeighbourLists:
        """Walk from the seeds of each query mosaic: guided search."""
        ...

    def blocks(self, mask: Mask | None) -> Iterable[Block]:
        """Give all barcodes with their slides, in row order; None reads everything.

        Rows that no mask allows are counted but never returned, so a store need not fetch them.
        """
        ...

    def clustered(
        self,
        barcodes: Barcodes,
        params: ClusterParams,
        mask: Mask | None,
        *,
        k: int,
        radius: int | None,
        which: ArrayLike | None = None,
        threads: int = 1,
    ) -> NeighbourLists:
        """Look into the clusters nearest to each barcode: clustered search."""
        ...

    def digest(self) -> str:
        """Return a digest of the content, the same whatever the order in which slides came."""
        ...
