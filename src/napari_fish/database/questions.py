"""A slide, a box in one, or an image becomes a query, by the same way on which slides enter a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.building.encoding import encode_tasks
from napari_fish.building.slide_task import Begun, Desk, Refused, Region, SlideEncoded, SlideTask
from napari_fish.encode import Encoder
from napari_fish.mosaic import MosaicParams
from napari_fish.mosaic.masks import MaskLike
from napari_fish.search.values import Query
from napari_fish.slides import Slide
from napari_fish.store.records import Box
from napari_fish.work import Progress, ShouldStop

Question = str | Path | Slide | NDArray[np.uint8]
"""A file, ``id:`` and the id of a slide in the database, an open slide, or an RGB image."""

PICTURE_PX = 256
"""Side of the pictures kept of query patches."""
OVERVIEW_PX = 1024
"""Longer side of the picture kept of the query slide."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A query with what belongs to it for people.

    Attributes
    ----------
    query
        What the search needs.
    pictures
        JPEG of each patch; empty where they come from the database.
    overview
        JPEG of the whole slide; empty for none.
    size
        Width and height of the slide in level-0 px.
    elapsed_ms
        Milliseconds to ``read`` (find tissue and patches) and to ``encode``.
    notes
        What the reader must know.
    added
        Slide and box of each region at the end of the query that is not its own but one of the database.
    """

    query: Query
    pictures: Sequence[bytes] = ()
    overview: bytes = b""
    size: tuple[int, int] | None = None
    elapsed_ms: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    added: Sequence[tuple[str, Box]] = ()


def encode_question(
    slide: Slide,
    encoder: Encoder,
    *,
    box: Region | None,
    mosaic: MosaicParams | None,
    mask: MaskLike | None = None,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Asked:
    """Encode an open slide, a box in it, or an image that is one patch.

    Parameters
    ----------
    slide
        What is asked for.
    encoder
        That of the database.
    box
        A region; None for the whole slide.
    mosaic
        How the database chooses patches; None where it holds images that are one patch each.
    mask
        Where the tissue of the whole slide is; by default it is found.
    progress, should_stop
        Called with patches encoded and all patches; asked before each.

    Returns
    -------
    Asked
        With slide and patient still empty.
    """
    task = SlideTask(
        0,
        slide,
        mosaic,
        mask=mask,
        box=box,
        is_query=True,
        picture_px=PICTURE_PX,
        overview_px=OVERVIEW_PX,
    )
    patches = 0

    def begun(found: Begun) -> None:
        nonlocal patches
        patches = len(found.boxes)

    tell = progress or (lambda done, total: None)
    desk = Desk(
        begun=begun,
        encoded=lambda _, done: tell(done, patches),
        should_stop=should_stop or (lambda: False),
    )
    (outcome,) = encode_tasks([task], encoder, desk)
    if isinstance(outcome, Refused):
        raise outcome.error
    assert isinstance(outcome, SlideEncoded), "nobody knows it already"
    notes = ["Only what the mask marks was searched."] if mask is not None else []
    if outcome.all_marked:
        notes.append("The mask marks the whole slide, glass included.")
    return Asked(
        Query(slide.path.name, outcome.keys, outcome.barcodes, outcome.boxes),
        pictures=outcome.pictures,
        overview=outcome.overview,
        size=outcome.dimensions,
        elapsed_ms=outcome.elapsed_ms,
        notes=(*notes, *outcome.notes),
    )
