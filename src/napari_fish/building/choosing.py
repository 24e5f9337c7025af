"""Which patches of an open slide are encoded: those that stand for it, those of a box, or all of it as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.building.slide_task import Region, SlideTask
from napari_fish.encode import Card, EncodeJob, ImageJob, PatchBox, boxes_of_region
from napari_fish.errors import SlideError
from napari_fish.mosaic import Mosaic, MosaicParams, make_mosaic
from napari_fish.mosaic.masks import MaskLike
from napari_fish.mosaic.masks.maskfile import MaskFile
from napari_fish.mosaic.reading import known_mpp
from napari_fish.names import STATE_MPP
from napari_fish.slides import Slide
from napari_fish.store.records import Choice
from napari_fish.work import ShouldStop

SMALLEST_BOX = 16
"""Level-0 px; a smaller box is a slip of the hand."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Patches of a slide.

    Attributes
    ----------
    patches
        Left, top and side of each in level-0 px.
    kind
        How they are read.
    mosaic
        The patches that stand for the slide; None where it is one patch, or a box was asked for.
    notes
        What is to be said of them.
    """

    patches: Sequence[PatchBox]
    kind: type[EncodeJob[Any]] = EncodeJob
    mosaic: Mosaic | None = None
    notes: tuple[str, ...] = ()

    def boxes(self, slide: Slide) -> NDArray[np.int32]:
        """Return x, y, width, height in level-0 px, shape (n, 4)."""
        if self.kind is ImageJob:
            return np.array([[0, 0, *slide.dimensions]], np.int32)
        return np.array([(x, y, s, s) for x, y, s in self.patches]).round().astype(np.int32).reshape(-1, 4)

    @property
    def choice(self) -> Choice:
        """How they were chosen; where there was no choice there is nothing to say."""
        if self.mosaic is None:
            return Choice()
        left_out = {reason: count for reason, count in self.mosaic.dropped_counts.items() if count}
        return Choice(len(self.mosaic.candidates), left_out, self.mosaic.params.artefacts)


def check_question(
    slide: Slide, box: Region | None, mosaic: MosaicParams | None, mask: MaskLike | None
) -> None:
    """Refuse what cannot be searched for, before any pixel is read or an encoder loaded.

    Parameters
    ----------
    slide
        What is asked for.
    box
        A region of it; None for all.
    mosaic
        How the database chooses patches; None where it holds images that are one patch each.
    mask
        Where the tissue of the whole slide is; by default it is found.
    """
    check_kind(slide)
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


def check_kind(slide: Slide) -> None:
    """Refuse images in a file that are not its slide."""
    if slide.kind != "slide":
        raise SlideError(
            f"{slide.path}: this is its {slide.kind} image, which may show names and is never read."
        )


def choose(task: SlideTask, slide: Slide, card: Card, should_stop: ShouldStop | None) -> Chosen:
    """Choose the patches of an open slide that a task is about, as an encoder looks at them."""
    if task.is_query:
        check_question(slide, task.box, task.mosaic, task.mask)
    else:
        check_kind(slide)
    if task.box is not None:
        return _of_box(slide, card, task.box)
    mosaic = task.mosaic
    if mosaic is None or (task.is_query and _is_one_patch(slide, mosaic)):
        side = card.size * card.mpp / 1000
        note = (
            f"The size of a pixel is not known, so the image was taken as one patch of about {side:.1g} mm; "
            f"state it ({STATE_MPP}) to have it cut to scale."
        )
        return Chosen(
            [(0.0, 0.0, float(slide.dimensions[0]))], ImageJob, notes=() if mosaic is None else (note,)
        )
    found = make_mosaic(slide, mosaic, task.mask, should_stop=should_stop)
    return Chosen([(float(p.x), float(p.y), float(found.patch_size)) for p in found.patches], mosaic=found)


def _is_one_patch(slide: Slide, mosaic: MosaicParams | None) -> bool:
    return mosaic is None or (slide.mpp is None and slide.backend == "image")


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


def _of_box(slide: Slide, card: Card, box: Region) -> Chosen:
    x, y, w, h = box
    (left, top, right, bottom), mpp = _part_on_slide(slide, box)
    notes = []
    if (left, top, right, bottom) != (x, y, x + w, y + h):
        notes.append("The box reaches beyond the slide; the part on it was searched.")
    patches = boxes_of_region(left, top, right - left, bottom - top, mpp, card.mpp, card.size)
    side = patches[0][2]
    if max(right - left, bottom - top) < side / 2:
        notes.append(
            f"The box is smaller than a patch: the {side * mpp:.0f} µm around it were searched with it."
        )
    return Chosen(patches, notes=tuple(notes))
