"""Patches in arrays of this process, in memory or mapped from files, and the searches over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Barcodes, Keys, Mask, NeighbourLists, Rows
from napari_fish.index.clustered.search import ClusteredIndex
from napari_fish.index.exact.search import Block, exact_neighbours
from napari_fish.index.guided.search import GuidedIndex
from napari_fish.index.guided.slide_rows import SlideRows
from napari_fish.index.segment import Segment
from napari_fish.index.veb.search import VebIndex
from napari_fish.store.request import FEW_ROWS, Request


@dataclass(frozen=True, eq=False)
class PatchRows:
    """All patches as rows: first those of a main part in key order, then later ones in key order.

    Attributes
    ----------
    parts
        The main part and the later one.
    by_slide
        The rows of the main part by slide.
    alive : bool, shape (n_slides,)
        Which slides were not removed.
    counts : int64, shape (n_slides,)
        Patches of each slide, 0 for removed ones.
    boxes
        Gives x, y, width, height of rows in level-0 px, shape (n, 4).
    in_clusters
        Gives the same rows in clusters; None where there are none.
    """

    parts: tuple[Segment, Segment]
    by_slide: SlideRows
    alive: Mask
    counts: NDArray[np.int64]
    boxes: Callable[[Rows], NDArray[np.int32]]
    in_clusters: Callable[[], ClusteredIndex | None]

    @cached_property
    def clustered(self) -> ClusteredIndex | None:
        """The index of clustered search."""
        return self.in_clusters()

    @cached_property
    def sorted_keys(self) -> GuidedIndex:
        """The index of guided search."""
        return GuidedIndex(*self.parts, self.by_slide)

    @cached_property
    def tree(self) -> VebIndex:
        """The same as the paper has it."""
        return VebIndex(*self.parts)

    @property
    def _blocks(self) -> list[Block]:
        main, later = self.parts
        return [main.block if self.clustered is None else self.clustered.block, later.block]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def allowed_rows(self, mask: Mask | None) -> int:
        """Return how many patches a mask leaves."""
        return len(self) if mask is None else int(self.counts[mask].sum())

    def split(self, rows: ArrayLike) -> Iterator[tuple[Segment, NDArray[np.bool_], Rows]]:
        """Give each part with which of some rows are its own, and their places in it."""
        at, (main, later) = np.atleast_1d(np.asarray(rows, np.int64)), self.parts
        late = at >= len(main)
        yield main, ~late, at[~late]
        yield later, late, at[late] - len(main)

    def slides_of(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Return the number of the slide of each row."""
        slides = np.empty(np.size(rows), np.int32)
        for part, mine, at in self.split(rows):
            slides[mine] = part.slides[at]
        return slides

    def barcodes(self, rows: ArrayLike) -> Barcodes:
        """Return the barcodes of rows, shape (n, words)."""
        (main, own, at), (later, others, late) = self.split(rows)
        if not len(late):
            return main.codes[at]
        barcodes = np.empty((np.size(rows), main.words), np.uint64)
        barcodes[own], barcodes[others] = main.codes[at], later.codes[late]
        return barcodes

    def keys(self, rows: ArrayLike) -> Keys:
        """Return the keys of rows, shape (n,)."""
        keys = np.empty(np.size(rows), np.int64)
        for part, mine, at in self.split(rows):
            keys[mine] = part.keys[np.searchsorted(part.offsets, at, "right") - 1] if len(at) else 0
        return keys

    def rows_of(self, slides: ArrayLike) -> Rows:
        """Return the rows of slides, given by number, in ascending order."""
        wanted = np.atleast_1d(np.asarray(slides, np.int64))
        wanted = wanted[self.alive[wanted]]
        if len(wanted) == len(self.alive):
            return np.arange(len(self))
        (main, later), (rows, first) = self.parts, (self.by_slide.rows, self.by_slide.first)
        early = wanted[wanted < len(first) - 1].tolist()
        late = np.flatnonzero(np.isin(later.slides, wanted)) + len(main)
        return np.sort(
            np.concatenate([np.empty(0, np.int64), *(rows[first[i] : first[i + 1]] for i in early), late])
        )

    def nearest(self, asked: Request) -> NeighbourLists:
        """Find the neighbours of query patches; masks leave out what was removed."""
        if asked.way == "exact":
            return self._exact(asked)
        codes, mask, which, threads = asked.barcodes, asked.masks, asked.which, asked.threads
        if asked.way == "guided":
            assert asked.keys is not None
            index = self.tree if asked.index == "veb" else self.sorted_keys
            return index.search(asked.keys, codes, asked.guided, mask=mask, which=which, threads=threads)
        if self.clustered is None:
            raise DatabaseError(
                "This database has no clusters yet: compact it first, or search with mode exact."
            )
        p = asked.clustered
        return self.clustered.search(
            codes, k=asked.k, radius=asked.radius, probes=p.probes, margin=p.margin, depth=p.depth, mask=mask, which=which,
            threads=threads,
        )  # fmt: skip

    def _exact(self, asked: Request) -> NeighbourLists:
        """Compare all patches in one pass; those of masks that leave few apart, where only these are read."""
        if asked.masks is None:
            return self._exact_of_all(asked, asked.barcodes, None, None)
        table = np.atleast_2d(asked.masks)
        which = np.zeros(len(asked), np.int64) if asked.which is None else asked.which
        is_few = np.array([self.allowed_rows(mask) <= FEW_ROWS for mask in table])
        of_few = np.unique(which[is_few[which]]).tolist()
        groups = [np.flatnonzero(which == line) for line in of_few]
        found = [
            self._exact_of_few(asked, asked.barcodes[at], table[line])
            for line, at in zip(of_few, groups, strict=True)
        ]
        many = np.flatnonzero(~is_few[which])
        if len(many):
            groups.append(many)
            left = which[many] - np.cumsum(is_few)[which[many]]
            found.append(self._exact_of_all(asked, asked.barcodes[many], table[~is_few], left))
        if len(found) == 1:
            return found[0]
        return NeighbourLists.joined(found).in_order(np.argsort(np.concatenate(groups)))

    def _exact_of_all(
        self, asked: Request, barcodes: Barcodes, masks: Mask | None, which: NDArray[np.int64] | None
    ) -> NeighbourLists:
        return exact_neighbours(
            self._blocks, barcodes, k=asked.k, radius=asked.radius, mask=masks, which=which, threads=asked.threads
        )  # fmt: skip

    def _exact_of_few(self, asked: Request, barcodes: Barcodes, mask: Mask) -> NeighbourLists:
        rows = self.rows_of(np.flatnonzero(mask))
        block = Block(self.barcodes(rows), self.slides_of(rows))
        lists = exact_neighbours([block], barcodes, k=asked.k, radius=asked.radius, threads=asked.threads)
        return replace(lists, rows=rows[lists.rows])
