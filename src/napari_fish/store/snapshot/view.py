"""All patches of a database at one generation: the main part of the snapshot and what came after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Barcodes, Keys, Mask, Rows
from napari_fish.index.clustered.search import ClusteredIndex
from napari_fish.index.exact.search import Block
from napari_fish.index.guided.search import GuidedIndex
from napari_fish.index.guided.slide_rows import SlideRows
from napari_fish.index.segment import Segment
from napari_fish.store.records import Box, PatchRecord
from napari_fish.store.snapshot.deltas import Delta
from napari_fish.store.snapshot.main_part import MainPart


@dataclass(frozen=True, eq=False)
class View:
    """Patches as rows: first those of the main part in key order, then those of the delta in key order.

    Attributes
    ----------
    main, delta
        The delta holds no removed slides.
    removed
        Numbers of slides removed since the main part was made.
    before
        The slide numbers and the clusters of the delta's rows as an earlier view had them: what was added since is
        all that needs looking at.
    """

    main: MainPart
    delta: Delta
    removed: Sequence[int]
    before: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None

    @property
    def generation(self) -> int:
        """The generation of the catalogue that is shown."""
        return self.delta.generation

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Number of each slide in the catalogue, ascending: new slides have higher numbers than any before."""
        return np.concatenate([self.main.numbers, self.delta.slides])

    @cached_property
    def alive(self) -> Mask:
        """Which slides were not removed."""
        return (
            ~np.isin(self.numbers, self.removed)
            if len(self.removed)
            else np.ones(len(self.numbers), np.bool_)
        )

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Patches of each slide, 0 for removed ones."""
        new = np.bincount(self._delta_slides - len(self.main.numbers), minlength=len(self.delta.slides))
        return np.where(self.alive, np.concatenate([self.main.counts, new]), 0)

    @cached_property
    def _delta_slides(self) -> NDArray[np.int64]:
        return np.searchsorted(self.numbers, self.delta.patches.numbers)

    @cached_property
    def _ordered_delta(self) -> tuple[Segment, Rows]:
        patches = self.delta.patches
        return Segment.from_rows(patches.keys, patches.barcodes, self._delta_slides)

    @property
    def _later(self) -> Segment:
        return self._ordered_delta[0]

    @cached_property
    def guided(self) -> GuidedIndex:
        """The index of guided search."""
        return GuidedIndex(self.main.segment, self._later, SlideRows(self.main.by_slide, self._first))

    @cached_property
    def clustered(self) -> ClusteredIndex:
        """The index of clustered search."""
        if not len(self._later):
            return self.main.clustered
        return self.main.clustered.with_delta(self._later, self._delta_clusters[self._ordered_delta[1]])

    @cached_property
    def _delta_clusters(self) -> NDArray[np.int32]:
        """The cluster of each row of the delta, as they came."""
        patches, known = self.delta.patches, np.empty(0, np.int32)
        if self.before is not None:
            numbers, clusters = self.before
            # Slides are never changed under their number.
            if np.array_equal(numbers, patches.numbers[: len(numbers)]):
                known = clusters
        return np.concatenate([known, self.main.clustered.finder(patches.barcodes[len(known) :])[0]])

    def followed_by(self, delta: Delta, removed: Sequence[int]) -> View:
        """Return a view with another delta over the same main part."""
        clusters = self.__dict__.get("_delta_clusters")
        before = self.before if clusters is None else (self.delta.patches.numbers, clusters)
        return View(self.main, delta, removed, before)

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.main.counts)])

    def __len__(self) -> int:
        return len(self.main.segment) + len(self.delta)

    def allowed(self, mask: Mask | None) -> Mask | None:
        """Return a mask, or a table of masks, without removed slides; None where every slide may be returned."""
        if not len(self.removed):
            return mask
        return self.alive if mask is None else mask & self.alive

    def blocks(self) -> list[Block]:
        """Return barcodes and slides of all rows."""
        return [self.main.clustered.block, self._later.block]

    def slides_of(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Return the position of the slide of each row."""
        at, late = self._split(rows)
        slides = np.empty(len(at), np.int32)
        slides[~late] = self.main.segment.slides[at[~late]]
        slides[late] = self._later.slides[at[late]]
        return slides

    def barcodes(self, rows: ArrayLike) -> Barcodes:
        """Return the barcodes of rows."""
        at, late = self._split(rows)
        if not late.any():
            return self.main.segment.codes[at]
        barcodes = np.empty((len(at), self.main.segment.words), np.uint64)
        for part, mine in ((self.main.segment, ~late), (self._later, late)):
            barcodes[mine] = part.codes[at[mine]]
        return barcodes

    def encoded(self, rows: ArrayLike) -> tuple[Keys, Barcodes]:
        """Return keys and barcodes of rows."""
        at, late = self._split(rows)
        keys = np.empty(len(at), np.int64)
        for part, mine in ((self.main.segment, ~late), (self._later, late)):
            keys[mine] = part.keys[np.searchsorted(part.offsets, at[mine], "right") - 1] if mine.any() else 0
        return keys, self.barcodes(rows)

    def records(self, rows: ArrayLike) -> list[PatchRecord]:
        """Say where patches lie."""
        at, late = self._split(rows)
        boxes = np.empty((len(at), 4), np.int32)
        boxes[~late] = self.main.boxes(at[~late])
        boxes[late] = self.delta.patches.boxes[self._ordered_delta[1][at[late]]]
        return [
            PatchRecord(row, slide, Box(*box))
            for row, slide, box in zip(
                np.atleast_1d(rows).tolist(), self.slides_of(rows).tolist(), boxes.tolist(), strict=True
            )
        ]

    def rows_of(self, slides: ArrayLike) -> Rows:
        """Return the rows of slides, given by position, in ascending order."""
        wanted = np.atleast_1d(slides)
        wanted = wanted[self.alive[wanted]]
        early = wanted[wanted < len(self.main.numbers)].tolist()
        parts = [self.main.rows_of(slide, self._first) for slide in early]
        late = np.flatnonzero(np.isin(self._later.slides, wanted)) + len(self.main.segment)
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts, late]))

    def _split(self, rows: ArrayLike) -> tuple[Rows, NDArray[np.bool_]]:
        """Return row numbers within their part, and which are of the delta."""
        at = np.atleast_1d(np.asarray(rows, np.int64)).copy()
        late = at >= len(self.main.segment)
        at[late] -= len(self.main.segment)
        return at, late
