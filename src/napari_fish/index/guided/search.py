"""The paper's guided search over patches in key order.

From the query's key and from keys a fixed step above and below it, walk to the next keys in use and keep those
whose nearest patch is within the threshold. A walk ends after k keys, at the end of the index, or at a key
that an earlier walk accepted. Walks of one direction start further and further out, so a walk that would
meet an accepted key adds nothing: everything before that key was seen, and refused, by the earlier walk.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import (
    Mask,
    Masks,
    NeighbourLists,
    as_barcodes,
    frozen,
    in_threads,
)
from napari_fish.index.guided.params import GuidedParams
from napari_fish.index.guided.queries import search_many, search_single
from napari_fish.index.guided.slide_rows import NO_LISTS, SlideRows
from napari_fish.index.guided.sorted_keys import directory_of
from napari_fish.index.segment import Segment

_Room = tuple[NDArray[Any], ...]


class GuidedIndex:
    """Patches in key order, a main part and a small later one, ready for guided search.

    Parameters
    ----------
    main, delta
        Rows of ``delta`` are numbered after those of ``main``.
    by_slide
        The main part's rows by slide; with them, a filter that leaves few rows costs little.
    """

    def __init__(
        self, main: Segment, delta: Segment | None = None, by_slide: SlideRows | None = None
    ) -> None:  # fmt: skip
        self.main, self.by_slide = main, by_slide
        self.delta = delta if delta is not None else Segment.empty(main.words)
        self._parts = tuple(
            (part.keys, part.offsets, *part.codes.arrays, part.slides, directory_of(part.keys))
            for part in (self.main, self.delta)
        )
        self._rooms = threading.local()

    def _room(self, size: int) -> _Room:
        """Return working memory, kept for this thread: fresh memory costs a tenth of a query."""
        rooms: dict[int, _Room] = self._rooms.__dict__.setdefault("by_size", {})
        if size not in rooms:
            types = (np.int64, np.int64, np.int32, np.int64, np.int32)
            rooms[size] = tuple(np.empty(size, dtype) for dtype in types)
        return rooms[size]

    def search(
        self,
        keys: ArrayLike,
        barcodes: ArrayLike,
        params: GuidedParams | None = None,
        *,
        mask: Mask | None = None,
        which: ArrayLike | None = None,
        threads: int = 1,
    ) -> NeighbourLists:
        """Run the paper's Algorithms 1-3 for a batch of query patches.

        Parameters
        ----------
        keys : int64, shape (n_queries,)
            Keys of the query patches.
        barcodes : uint64, shape (n_queries, words)
            Their barcodes.
        params
            How far to look.
        mask : bool, shape (n_slides,) or (n_masks, n_slides)
            Slides that may be returned.
        which : int, shape (n_queries,)
            With several masks: the one each query uses.
        threads
            Threads that share the queries.
        """
        codes = as_barcodes(barcodes, self.main.words)
        starts = frozen(np.atleast_1d(np.asarray(keys)), np.int64)
        if len(starts) != len(codes):
            raise ValueError("Each query needs one key and one barcode.")
        walks, numbers = (params or GuidedParams()).settings()
        masks = Masks.over(mask, len(codes), which)
        main, delta = self._parts
        listed = NO_LISTS if mask is None or self.by_slide is None else self.by_slide.lists(masks.allowed)

        def room() -> _Room:
            return self._room(len(walks) * int(numbers[1]))

        if len(codes) == 1 and not numbers[3]:
            mine = room()
            n, cut = search_single(
                main, delta, starts[0], codes[0], masks.allowed, *listed, walks, numbers, *mine
            )
            rows, near = mine[3][:n].copy(), mine[4][:n].copy()
            return NeighbourLists(np.array([0, n]), rows, near, np.array([cut], np.int32))

        def work(a: int, b: int) -> NeighbourLists:
            mine = starts[a:b], codes[a:b], masks.allowed, masks.which[a:b]
            return NeighbourLists(*search_many(main, delta, *mine, *listed, walks, numbers, *room()[:3]))

        parts = in_threads(work, len(codes), threads)
        return parts[0] if len(parts) == 1 else NeighbourLists.joined(parts)
