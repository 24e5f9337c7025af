"""A store in memory: for tests, for benchmarks, for archives made on the spot."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Barcodes, Keys, Mask, NeighbourLists, Rows
from napari_fish.index.clustered.params import ClusterParams
from napari_fish.index.clustered.search import ClusteredIndex
from napari_fish.index.exact.search import Block
from napari_fish.index.guided.params import GuidedParams
from napari_fish.index.guided.search import GuidedIndex
from napari_fish.index.guided.slide_rows import SlideRows
from napari_fish.index.segment import Segment
from napari_fish.store.records import (
    Box,
    Calibration,
    EncodedSlide,
    PatchRecord,
    content_digest,
    slide_digest,
)
from napari_fish.store.slide_table import SlideTable


class MemoryStore:
    """Slides and patches in plain arrays; each change orders them anew.

    Parameters
    ----------
    words
        64-bit words a barcode.
    slides
        Slides to begin with.
    """

    def __init__(self, words: int, slides: Iterable[EncodedSlide] = ()) -> None:
        self.words = words
        self.calibration: Calibration | None = None
        self.paper_barcodes = False
        self.catalogue = None
        self._slides: dict[str, EncodedSlide] = {}
        for slide in slides:
            self._check(slide)
            self._slides[slide.record.slide] = slide
        self._order()

    def _check(self, slide: EncodedSlide) -> None:
        n = len(slide.keys)
        if slide.barcodes.shape != (n, self.words) or slide.boxes.shape != (n, 4):
            raise DatabaseError(
                f"Slide {slide.record.slide}: {n} keys, barcodes of shape {slide.barcodes.shape} and boxes of "
                f"shape {slide.boxes.shape} do not fit a database of {self.words}-word barcodes."
            )

    def _order(self) -> None:
        all_slides = list(self._slides.values())
        self.slides = SlideTable(s.record for s in all_slides)
        self.patches_per_slide = np.array([len(s.keys) for s in all_slides], np.int64)
        keys = np.concatenate([np.empty(0, np.int64), *(s.keys for s in all_slides)])
        codes = np.concatenate([np.empty((0, self.words), np.uint64), *(s.barcodes for s in all_slides)])
        boxes = np.concatenate([np.empty((0, 4), np.int32), *(s.boxes for s in all_slides)])
        self._segment, order = Segment.from_rows(
            keys, codes, np.repeat(np.arange(len(all_slides)), self.patches_per_slide)
        )
        self._row_keys, self._boxes = keys[order], boxes[order]
        self._row_of = np.argsort(order)
        self._by_slide = np.argsort(self._segment.slides, kind="stable").astype(np.int32)
        self._first = np.concatenate([[0], np.cumsum(self.patches_per_slide)])
        self._guided = GuidedIndex(self._segment, by_slide=SlideRows(self._by_slide, self._first))
        self._clustered: ClusteredIndex | None = None

    def train_clusters(self, params: ClusterParams | None = None, threads: int = 1) -> None:
        """Make the clusters that clustered search needs."""
        self._clustered = ClusteredIndex.train(self._segment, params, threads=threads)
        self._segment = self._clustered.main
        self._guided = GuidedIndex(self._segment, by_slide=self._guided.by_slide)

    @property
    def has_clusters(self) -> bool:
        """Whether clustered search is possible now."""
        return self._clustered is not None

    def __len__(self) -> int:
        return len(self._segment)

    def commit(self, slide: EncodedSlide) -> None:
        """Add a slide, or replace it."""
        self._check(slide)
        self._slides[slide.record.slide] = slide
        self._order()

    def remove(self, slide: str) -> None:
        """Forget a slide."""
        if self._slides.pop(slide, None) is None:
            raise DatabaseError(f"No slide {slide!r} in this database.")
        self._order()

    def records(self, rows: ArrayLike) -> list[PatchRecord]:
        """Say where patches lie."""
        at = np.asarray(rows, np.int64)
        return [
            PatchRecord(row, slide, Box(*box))
            for row, slide, box in zip(
                at.tolist(), self._segment.slides[at].tolist(), self._boxes[at].tolist(), strict=True
            )
        ]

    def rows_of(self, slides: ArrayLike) -> Rows:
        """Return the rows of slides, given by number, in ascending order."""
        parts = [self._by_slide[self._first[s] : self._first[s + 1]] for s in np.atleast_1d(slides).tolist()]
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))

    def patch_rows(self, slide: int) -> Rows:
        """Return the rows of one slide in the order of its mosaic."""
        return self._row_of[self._first[slide] : self._first[slide + 1]]

    def slides_of(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Return the number of the slide of each row."""
        return self._segment.slides[np.asarray(rows, np.int64)]

    def barcodes(self, rows: ArrayLike) -> Barcodes:
        """Return the barcodes of rows."""
        return self._segment.codes[np.asarray(rows, np.int64)]

    def encoded(self, rows: ArrayLike) -> tuple[Keys, Barcodes]:
        """Return keys and barcodes of rows."""
        at = np.asarray(rows, np.int64)
        return self._row_keys[at], self._segment.codes[at]

    def scan(
        self,
        keys: Keys,
        barcodes: Barcodes,
        params: GuidedParams,
        mask: Mask | None,
        which: ArrayLike | None = None,
        threads: int = 1,
    ) -> NeighbourLists:
        """Walk from the seeds of each query patch."""
        return self._guided.search(keys, barcodes, params, mask=mask, which=which, threads=threads)

    def blocks(self, mask: Mask | None) -> Iterable[Block]:
        """Give all barcodes with their slides, in row order."""
        return [self._segment.block if self._clustered is None else self._clustered.block]

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
        """Look into the clusters nearest to each barcode."""
        if self._clustered is None:
            raise DatabaseError(
                "This database has no clusters yet: compact it first, or search with mode exact."
            )
        return self._clustered.search(
            barcodes,
            k=k,
            radius=radius,
            probes=params.probes,
            margin=params.margin,
            depth=params.depth,
            mask=mask,
            which=which,
            threads=threads,
        )

    def digest(self) -> str:
        """Return a digest of the content, the same whatever the order in which slides came."""
        return content_digest(
            slide_digest(s.record, s.keys, s.barcodes, s.boxes) for s in self._slides.values()
        )
