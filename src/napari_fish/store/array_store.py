"""What searches ask of a store, answered from arrays of this process: the same for every store that has such."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Barcodes, Keys, NeighbourLists, Rows
from napari_fish.index.exact.minima import minima
from napari_fish.index.hamming import pair_distances
from napari_fish.store.patch_rows import PatchRows
from napari_fish.store.records import Box, Pairs, PatchRecord
from napari_fish.store.request import Request

# What exact search costs on an ordinary processor, on average over rows that are left out and rows that are compared: ns
# for each row of 1024 bits, and for each row and query.
_READ_NS, _COMPARE_NS = 3.0, 1.0
# What a row costs that is come upon, not read in turn: in a cluster, or on a walk.
_VISIT_NS = 8.0


class ArrayStore(ABC):
    """The part of a :class:`~napari_fish.store.protocol.Store` that is the same wherever the arrays come from."""

    @property
    @abstractmethod
    def _patches(self) -> PatchRows:
        """The patches as they are now."""

    @property
    def words(self) -> int:
        """64-bit words a barcode."""
        return self._patches.parts[0].words

    @property
    def patches_per_slide(self) -> NDArray[np.int64]:
        """Patches of each slide, 0 for removed ones."""
        return self._patches.counts

    def __len__(self) -> int:
        return len(self._patches)

    def nearest(self, request: Request) -> NeighbourLists:
        """Find the neighbours of query patches, none of them on removed slides."""
        patches = self._patches
        if not patches.alive.all():
            masks = patches.alive if request.masks is None else request.masks & patches.alive
            request = replace(request, masks=masks)
        found = patches.nearest(request)
        return replace(found, slides=patches.slides_of(found.rows))

    def cost(self, request: Request) -> float:
        """Estimate how many ms it takes to answer a request with one mask; infinite where it cannot be."""
        patches, n = self._patches, len(request)
        if request.way == "exact":
            return exact_cost_ms(patches.allowed_rows(request.masks), n, self.words, request.threads)
        if request.way == "clustered":
            if patches.clustered is None:
                return float("inf")
            clusters = len(patches.clustered.centres)
            visited = clusters + len(patches) * min(1.0, request.clustered.probes / clusters)
        else:
            visited = min(len(patches), len(request.guided.walks()) * request.guided.limit)
        return visited * n * _VISIT_NS * (self.words / 16) / request.threads / 1e6

    def slide_distances(self, slides: ArrayLike, barcodes: Barcodes, threads: int = 1) -> NDArray[np.int32]:
        """Return the distance of the nearest patch of each slide from each barcode, in bits, shape (n_slides, n)."""
        patches, wanted = self._patches, np.asarray(slides, np.int64)
        rows = patches.rows_of(wanted)
        place = np.empty(len(patches.alive), np.int64)
        place[wanted] = np.arange(len(wanted))
        of = place[patches.slides_of(rows)]
        order = np.argsort(of, kind="stable")
        starts = np.searchsorted(of[order], np.arange(len(wanted) + 1))
        return minima(patches.barcodes(rows[order]), starts, barcodes, threads)

    def regions(self, rows: ArrayLike) -> list[PatchRecord]:
        """Say where patches lie."""
        at = np.atleast_1d(np.asarray(rows, np.int64))
        columns = at, self._patches.slides_of(at), self._patches.boxes(at)
        return [
            PatchRecord(row, slide, Box(*box))
            for row, slide, box in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def rows_of(self, slides: ArrayLike) -> Rows:
        """Return the rows of slides, given by number, in ascending order."""
        return self._patches.rows_of(slides)

    def slides_of(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Return the number of the slide of each row."""
        return self._patches.slides_of(rows)

    def encoded(self, rows: ArrayLike) -> tuple[Keys, Barcodes]:
        """Return keys, shape (n,), and barcodes, shape (n, words), of rows."""
        return self._patches.keys(rows), self._patches.barcodes(rows)

    def random_pairs(self, n: int, dice: np.random.Generator) -> Pairs:
        """Draw pairs of patches; one may be paired with itself."""
        patches = self._patches
        living = patches.rows_of(np.flatnonzero(patches.alive))
        left, right = living[dice.integers(0, len(living), (2, n))]
        distances = pair_distances(patches.barcodes(left), patches.barcodes(right))
        return Pairs(patches.slides_of(left), patches.slides_of(right), distances)

    def copies(self) -> NDArray[np.int64]:
        """Return which slides are copies of one another, shape (n_slides,): they share a number.

        Copies have as many patches, and the same barcodes under their smallest and their largest key; to compare all would
        mean to read the whole database.
        """
        patches = self._patches
        living = patches.rows_of(np.flatnonzero(patches.alive))
        slides = patches.slides_of(living)
        first, last = np.zeros((2, len(patches.alive)), np.int64)
        last[slides] = living
        first[slides[::-1]] = living[::-1]
        looks = [patches.counts.astype(np.uint64), patches.barcodes(first), patches.barcodes(last)]
        return np.unique(np.column_stack(looks), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def exact_cost_ms(rows: int, queries: int, words: int, threads: int) -> float:
    """Estimate the time of an exact search."""
    return rows * (_READ_NS + _COMPARE_NS * queries) * (words / 16) / threads / 1e6
