"""A slide, a box in one, or an image becomes a query, by the same way on which slides enter a database."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode import EncodeJob, Encoder, ImageJob, PatchBox, boxes_of_region, encode_slides
from napari_fish.errors import NoTissue, SlideError
from napari_fish.mosaic import MosaicParams, make_mosaic
from napari_fish.mosaic.masks import MaskLike, marks_everything
from napari_fish.mosaic.masks.maskfile import MaskFile
from napari_fish.mosaic.reading import known_mpp
from napari_fish.names import STATE_MPP
from napari_fish.search.values import Query
from napari_fish.slides import Slide
from napari_fish.slides.pixels import to_jpeg
from napari_fish.store.records import Box
from napari_fish.work import Progress, ShouldStop

Region = tuple[float, float, float, float]
"""x, y, width, height in level-0 px."""
Question = str | Path | Slide | NDArray[np.uint8]
"""A file, ``id:`` and the id of a slide in the database, an open slide, or an RGB image."""

PICTURE_PX = 256
"""Side of the pictures kept of query patches."""
OVERVIEW_PX = 1024
"""Longer side of the picture kept of the query slide."""
SMALLEST_BOX = 16
"""Level-0 px; a smaller box is a slip of the hand."""


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
    check_question(slide, box, mosaic, mask)
    start = time.perf_counter()
    job, boxes, notes = _patches(slide, encoder, box, mosaic, mask, should_stop)
    middle = time.perf_counter()
    (outcome,) = encode_slides(
        [job], encoder, thumbnail_px=PICTURE_PX, progress=progress, should_stop=should_stop
    )
    if outcome.error is not None:
        raise outcome.error
    encoded = outcome.encoded
    assert encoded is not None and encoded.thumbnails is not None
    seen = np.ones(len(encoded), np.bool_)
    if box is not None:
        seen = _with_tissue(encoded.thumbnails, mosaic or MosaicParams())
        if not seen.any():
            raise NoTissue(f"{slide.path}: there is no tissue in the box, only glass. Draw it on tissue.")
    end = time.perf_counter()
    query = Query(slide.path.name, encoded.keys.astype(np.int64)[seen], encoded.barcodes[seen], boxes[seen])
    return Asked(
        query,
        [to_jpeg(pixels) for pixels in encoded.thumbnails[seen]],
        to_jpeg(slide.thumbnail(OVERVIEW_PX)),
        slide.dimensions,
        {"read": 1e3 * (middle - start), "encode": 1e3 * (end - middle)},
        tuple(notes),
    )


def check_question(
    slide: Slide, box: Region | None, mosaic: MosaicParams | None, mask: MaskLike | None
) -> None:
    """Refuse what cannot be searched for, before any pixel is read or an encoder loaded; see :func:`encode_question`."""
    if slide.kind != "slide":
        raise SlideError(
            f"{slide.path}: this is its {slide.kind} image, which may show names and is never read."
        )
    if box is not None:
        if mask is not None:
            raise SlideError(
                f"{slide.path}: a mask says where the tissue of a whole slide is, but with a box only that is searched. "
                "Leave out the mask or the box."
            )
        _part_on_slide(slide, box)
    elif _is_one_patch(slide, mosaic):
        if mask is not None:
            raise SlideError(
                f"{slide.path}: is searched as one patch, in which there is no tissue to mark. Leave out the mask"
                + (f", or state the size of a pixel ({STATE_MPP})." if mosaic is not None else ".")
            )
    else:
        known_mpp(slide)
    if isinstance(mask, MaskFile):
        mask.identity()


def _is_one_patch(slide: Slide, mosaic: MosaicParams | None) -> bool:
    return mosaic is None or (slide.mpp is None and slide.backend == "image")


def _patches(
    slide: Slide,
    encoder: Encoder,
    box: Region | None,
    mosaic: MosaicParams | None,
    mask: MaskLike | None,
    should_stop: ShouldStop | None,
) -> tuple[EncodeJob[None], NDArray[np.int32], list[str]]:
    """Choose the patches of a question; return the job, their boxes and what is to be said of them."""
    width, height = slide.dimensions
    if box is not None:
        patches, notes = _of_box(slide, encoder, box)
        return EncodeJob(slide, patches, None), _rounded(patches), notes
    if mosaic is None or _is_one_patch(slide, mosaic):
        side = encoder.card.size * encoder.card.mpp / 1000
        note = (
            f"The size of a pixel is not known, so the image was taken as one patch of about {side:.1g} mm; "
            f"state it ({STATE_MPP}) to have it cut to scale."
        )
        whole = np.array([[0, 0, width, height]], np.int32)
        return ImageJob(slide, [(0.0, 0.0, float(width))], None), whole, [note] if mosaic is not None else []
    found = make_mosaic(slide, mosaic, mask, should_stop=should_stop)
    notes = ["Only what the mask marks was searched."] if mask is not None else []
    if marks_everything(found):
        notes.append("The mask marks the whole slide, glass included.")
    patches = [(float(p.x), float(p.y), float(found.patch_size)) for p in found.patches]
    return EncodeJob(slide, patches, None, mosaic.reading), _rounded(patches), notes


def _part_on_slide(slide: Slide, box: Region) -> tuple[Region, float]:
    """Return left, top, right and bottom of what a box shows of a slide, and the µm per px; refuse what cannot be cut."""
    x, y, w, h = box
    width, height = slide.dimensions
    left, top, right, bottom = max(x, 0), max(y, 0), min(x + w, width), min(y + h, height)
    if not (w > 0 and h > 0) or right <= left or bottom <= top:
        raise SlideError(
            f"{slide.path}: the box {x:g},{y:g},{w:g},{h:g} lies outside the slide of {width} x {height} px. "
            "Give x, y, width, height in level-0 px."
        )
    if min(right - left, bottom - top) < min(SMALLEST_BOX, width, height):
        raise SlideError(
            f"{slide.path}: the box shows only {right - left:g} x {bottom - top:g} px of the slide; "
            f"draw one of at least {SMALLEST_BOX} px."
        )
    if slide.mpp is None:
        raise SlideError(
            f"{slide.path}: the size of a pixel is unknown, so a box cannot be cut to scale. "
            f"State it: {STATE_MPP} (0.25 for a 40x slide, 0.5 for 20x)."
        )
    return (left, top, right, bottom), slide.mpp


def _of_box(slide: Slide, encoder: Encoder, box: Region) -> tuple[list[PatchBox], list[str]]:
    x, y, w, h = box
    (left, top, right, bottom), mpp = _part_on_slide(slide, box)
    notes = ["The box reaches beyond the slide; the part on it was searched."] if (left, top, right, bottom) != (
        x, y, x + w, y + h
    ) else []  # fmt: skip
    card = encoder.card
    patches = boxes_of_region(left, top, right - left, bottom - top, mpp, card.mpp, card.size)
    side = patches[0][2]
    if max(right - left, bottom - top) < side / 2:
        notes.append(
            f"The box is smaller than a patch: the {side * mpp:.0f} µm around it were searched with it."
        )
    return patches, notes


def _rounded(patches: Sequence[PatchBox]) -> NDArray[np.int32]:
    return np.array([(x, y, s, s) for x, y, s in patches]).round().astype(np.int32).reshape(-1, 4)


def _with_tissue(thumbnails: NDArray[np.uint8], params: MosaicParams) -> NDArray[np.bool_]:
    """Say which patches are more than glass, by the rule for mosaics."""
    grey = thumbnails.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    white = (grey > params.white_level).mean(axis=(1, 2))
    return np.asarray(white <= params.white_share)
