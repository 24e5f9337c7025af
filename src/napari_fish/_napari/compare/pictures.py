"""The pixels of a comparison, opened beside the event loop: slides, or what was kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from napari_fish._napari.layers.hit_layers import Pair, Picture, centre_of, decoded, pairs_of, shown_query
from napari_fish._napari.layers.slide_layers import slide_of
from napari_fish._napari.reader.arrays import LevelArray, pyramid
from napari_fish._napari.reader.lazy_slide import LazySlide, hatched
from napari_fish._napari.session.session import Answer
from napari_fish.database import Database
from napari_fish.errors import Cancelled, FishError
from napari_fish.slides import Slide, open_slide
from napari_fish.store.opening import pictures_of
from napari_fish.store.protocol import KeptPictures
from napari_fish.store.records import Box
from napari_fish.work import Progress, ShouldStop

PATCH_UM = 512.0
"""Side of a patch where no slide tells: 1024 px at 20x."""
BLANK_PX = 256
"""Side of what stands for a picture that is not to be had."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What a comparison shows.

    Attributes
    ----------
    query, query_title
        The region that was searched.
    hits
        The regions found, with their pictures.
    side_um
        Side of the regions.
    """

    query: Picture
    query_title: str
    hits: tuple[tuple[Pair, Picture], ...]
    side_um: float


class Shelf:
    """Pyramids of slides that were opened, to be opened no more than once; for several threads."""

    def __init__(self) -> None:
        self._levels: dict[tuple[str, float | None], list[Any]] = {}
        # Held for moments only: the viewer waits for it.
        self._lock = Lock()

    def __len__(self) -> int:
        """Return how many slides are open."""
        return len(self._levels)

    def levels(self, database: Database, slide: str) -> tuple[list[Any], float | None]:
        """Return the levels of a slide of a database and its pixel size; raises FishError where it is away."""
        record = database.record(slide)
        if record is None:
            raise FishError(f"{slide}: is not in the database any more.")
        place, mpp = database.place(record), record.mpp or None
        key = (str(place), mpp)
        with self._lock:
            there = self._levels.get(key)
        opened = levels_of(open_slide(place, mpp=mpp)) if there is None else there
        with self._lock:
            # Another thread may have been quicker, or have closed it; the last used come last.
            used = self._levels.pop(key, opened)
            self._levels[key] = used
        if opened is not used:
            _close(opened)
        return used, mpp

    def keep(self, most: int) -> None:
        """Close what was not used for longest."""
        with self._lock:
            surplus = [
                self._levels.pop(key) for key in list(self._levels)[: max(0, len(self._levels) - most)]
            ]
        for levels in surplus:
            _close(levels)


def _close(levels: Sequence[Any]) -> None:
    for level in levels:
        if isinstance(level, LevelArray):
            level.slide.close()


def levels_of(slide: Slide) -> list[Any]:
    """Return a slide's levels, the coarsest in memory: napari reads that one whole whenever data change."""
    levels: list[Any] = list(pyramid(LazySlide(slide)))
    levels[-1] = np.asarray(levels[-1])
    return levels


def open_pictures(
    answer: Answer,
    database: Database,
    layer: Any,
    layers: Sequence[Any],
    shelf: Shelf,
    most: int,
    progress: Progress,
    should_stop: ShouldStop,
) -> Shown:
    """Open what a comparison shows.

    Parameters
    ----------
    answer, database
        The search, and where it was made.
    layer, layers
        The layer that was searched, None where it is gone, and all layers of the viewer.
    shelf
        Slides that are open already.
    most
        How many hits at most.
    progress, should_stop
        Called with slides opened and all slides; asked before each.
    """
    results = answer.results
    index = shown_query(results)
    pairs = pairs_of(results, index, most)
    if not pairs:
        raise FishError("There is nothing to compare: no slide was found.")
    patch_um = _patch_um(database, pairs)
    query_box = results.query_boxes[index] if index is not None else None
    query = _query(answer, database, layer, layers, shelf, index, query_box, patch_um)
    kept = pictures_of(database.path)
    hits = []
    try:
        for done, pair in enumerate(pairs):
            if should_stop():
                raise Cancelled("the comparison was stopped.")
            try:
                picture = _of_slide(database, shelf, pair.hit.slide, pair.match.hit_box, patch_um)
            except FishError:  # the name of the cell says so
                picture = _kept(kept, pair.hit.slide, pair.match.hit_box, patch_um)
            hits.append((pair, picture))
            progress(done + 1, len(pairs))
    finally:
        if kept is not None:
            kept.close()
    # Without the box, which the picture shows.
    title = f"Query · {results.query.split(' [')[0]}"
    return Shown(query, title, tuple(hits), patch_um)


def _patch_um(database: Database, pairs: Sequence[Pair]) -> float:
    """Return the side of a patch in µm, as the first slide of known pixel size has it."""
    for pair in pairs:
        record = database.record(pair.hit.slide)
        if record is not None and record.mpp:
            return record.mpp * pair.match.hit_box.width
    return PATCH_UM


def _query(
    answer: Answer,
    database: Database,
    layer: Any,
    layers: Sequence[Any],
    shelf: Shelf,
    index: int | None,
    box: Box | None,
    patch_um: float,
) -> Picture:
    """Return the searched region: from its layer, from its slide in the database, or as it was kept."""
    if index is None or box is None:
        return _blank(patch_um)
    # Patches of query and database are of one size in µm: that tells the size of a px, whoever stated it.
    mpp = patch_um / box.width
    rows, columns = centre_of(box)
    if layer is not None and answer.asked.size is not None:
        levels = _levels_of_layer(layer, layers)
        ratio = answer.asked.size[0] / levels[0].shape[1]
        return Picture(levels, mpp * ratio, (rows / ratio, columns / ratio))
    if answer.asked.query.slide:
        try:
            return _of_slide(database, shelf, answer.asked.query.slide, box, patch_um)
        except FishError:
            pass  # the picture that was kept will do
    pictures = answer.results.pictures
    jpeg = pictures.query(index) if pictures is not None else None
    return _of_jpeg(jpeg, box, mpp) if jpeg else _blank(patch_um)


def _levels_of_layer(layer: Any, layers: Sequence[Any]) -> list[Any]:
    """Return the pixels of a layer as napari shows them, or put together where each colour is a layer."""
    if layer.rgb and layer.ndim == 2:
        return list(layer.data) if layer.multiscale else [layer.data]
    return levels_of(slide_of(layer, layers))


def _of_slide(database: Database, shelf: Shelf, slide: str, box: Box, patch_um: float) -> Picture:
    levels, mpp = shelf.levels(database, slide)
    return Picture(levels, mpp or patch_um / box.width, centre_of(box))


def _kept(thumbnails: KeptPictures | None, slide: str, box: Box, patch_um: float) -> Picture:
    jpeg = None if thumbnails is None else thumbnails.patch(slide, box)
    return _of_jpeg(jpeg, box, patch_um / max(box.width, 1)) if jpeg else _blank(patch_um)


def _of_jpeg(jpeg: bytes, box: Box, mpp: float) -> Picture:
    pixels = decoded(jpeg)
    rows, columns = pixels.shape[:2]
    return Picture([pixels], box.width * mpp / columns, (rows / 2, columns / 2), kept=True)


def _blank(side_um: float) -> Picture:
    """Stand for a picture that is not to be had."""
    pixels = hatched(0, 0, BLANK_PX, BLANK_PX)
    return Picture([pixels], side_um / BLANK_PX, (BLANK_PX / 2, BLANK_PX / 2), kept=True)
