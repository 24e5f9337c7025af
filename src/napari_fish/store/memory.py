"""A store in memory: for tests, for benchmarks, for archives made on the spot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Rows
from napari_fish.index.clustered.params import ClusterParams
from napari_fish.index.clustered.search import ClusteredIndex
from napari_fish.index.guided.slide_rows import SlideRows
from napari_fish.index.segment import Segment
from napari_fish.store.array_store import ArrayStore
from napari_fish.store.patch_rows import PatchRows
from napari_fish.store.records import Calibration, EncodedSlide, content_digest, slide_digest
from napari_fish.store.slide_table import SlideTable


class MemoryStore(ArrayStore):
    """Slides and patches in plain arrays, which do not change.

    Parameters
    ----------
    words
        64-bit words a barcode.
    slides
        The slides.
    """

    def __init__(self, words: int, slides: Iterable[EncodedSlide] = ()) -> None:
        self.calibration: Calibration | None = None
        self.paper_barcodes = False
        self.catalogue = None
        self._slides = list(slides)
        for slide in self._slides:
            n = len(slide.keys)
            if slide.barcodes.shape != (n, words) or slide.boxes.shape != (n, 4):
                raise DatabaseError(
                    f"Slide {slide.record.slide}: {n} keys, barcodes of shape {slide.barcodes.shape} and boxes of "
                    f"shape {slide.boxes.shape} do not fit a database of {words}-word barcodes."
                )
        self.slides = SlideTable(s.record for s in self._slides)
        counts = np.array([len(s.keys) for s in self._slides], np.int64)
        keys = np.concatenate([np.empty(0, np.int64), *(s.keys for s in self._slides)])
        codes = np.concatenate([np.empty((0, words), np.uint64), *(s.barcodes for s in self._slides)])
        boxes = np.concatenate([np.empty((0, 4), np.int32), *(s.boxes for s in self._slides)])
        segment, order = Segment.from_rows(keys, codes, np.repeat(np.arange(len(counts)), counts))
        self._row_of, self._first = np.argsort(order), np.concatenate([[0], np.cumsum(counts)])
        by_slide = SlideRows(np.argsort(segment.slides, kind="stable").astype(np.int32), self._first)
        everyone, placed = np.ones(len(counts), np.bool_), boxes[order].__getitem__
        parts = segment, Segment.empty(words)
        self._rows = PatchRows(parts, by_slide, everyone, counts, boxes=placed, in_clusters=lambda: None)

    @property
    def _patches(self) -> PatchRows:
        return self._rows

    def train_clusters(self, params: ClusterParams | None = None, threads: int = 1) -> None:
        """Make the clusters that clustered search needs."""
        main, later = self._rows.parts
        made = ClusteredIndex.train(main, params, threads=threads)
        self._rows = replace(self._rows, parts=(made.main, later), in_clusters=lambda: made)

    def patch_rows(self, slide: int) -> Rows:
        """Return the rows of one slide in the order of its mosaic."""
        return self._row_of[self._first[slide] : self._first[slide + 1]]

    def digest(self) -> str:
        """Return a digest of the content, the same whatever the order in which slides came."""
        return content_digest(slide_digest(s.record, s.keys, s.barcodes, s.boxes) for s in self._slides)
