"""All patches of a database at one generation: the main part of the snapshot and what came after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import Mask, Rows
from napari_fish.index.clustered.search import ClusteredIndex
from napari_fish.index.guided.slide_rows import SlideRows
from napari_fish.index.segment import Segment
from napari_fish.store.patch_rows import PatchRows
from napari_fish.store.snapshot.deltas import Delta
from napari_fish.store.snapshot.main_part import MainPart


@dataclass(frozen=True, eq=False)
class View:
    """What a snapshot shows: its main part, then the delta.

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

    @cached_property
    def rows(self) -> PatchRows:
        """The patches as rows."""
        parts = self.main.segment, self._ordered_delta[0]
        by_slide = SlideRows(self.main.by_slide, np.concatenate([[0], np.cumsum(self.main.counts)]))
        return PatchRows(
            parts, by_slide, self.alive, self.counts, boxes=self._boxes, in_clusters=self._in_clusters
        )

    def _in_clusters(self) -> ClusteredIndex:
        later, order = self._ordered_delta
        if not len(later):
            return self.main.clustered
        return self.main.clustered.with_delta(later, self._delta_clusters[order])

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

    def _boxes(self, rows: Rows) -> NDArray[np.int32]:
        (_, early, at), (_, late, more) = self.rows.split(rows)
        boxes = np.empty((len(rows), 4), np.int32)
        boxes[early] = self.main.boxes(at)
        boxes[late] = self.delta.patches.boxes[self._ordered_delta[1][more]]
        return boxes
