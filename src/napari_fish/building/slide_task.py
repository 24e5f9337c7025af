"""A file becomes a job for the encoder: opened, looked at, its patches chosen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_fish.building.masks import SlideMask
from napari_fish.building.survey import Candidate
from napari_fish.encode import EncodeJob, ImageJob, PatchBox
from napari_fish.errors import Cancelled, FishError, SlideError
from napari_fish.mosaic import Mosaic, MosaicParams, make_mosaic
from napari_fish.slides import Slide, open_slide
from napari_fish.store.records import Choice
from napari_fish.work import ShouldStop

log = logging.getLogger(__name__)

OVERVIEW_PX = 512
"""Longer side of the picture that is kept of a slide."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A slide, open and ready to be encoded.

    Attributes
    ----------
    source
        Where it comes from.
    slide
        The open slide; whoever gets it closes it.
    overview : ndarray of uint8, shape (rows, columns, 3)
        A small picture of it.
    mosaic
        The patches that stand for it; None for a patch image.
    mask
        What says where its tissue is; None where it was found.
    """

    source: Candidate
    slide: Slide
    overview: NDArray[np.uint8]
    mosaic: Mosaic | None
    mask: SlideMask | None = None

    @property
    def boxes(self) -> NDArray[np.int32]:
        """Return x, y, width, height of the patches in level-0 px, shape (n, 4)."""
        if self.mosaic is None:
            return np.array([[0, 0, *self.slide.dimensions]], np.int32)
        side = self.mosaic.patch_size
        return np.array([(p.x, p.y, side, side) for p in self.mosaic.patches], np.int32).reshape(-1, 4)

    @property
    def choice(self) -> Choice:
        """Return how its patches were chosen; of an image that is one patch there is nothing to say."""
        if self.mosaic is None:
            return Choice()
        artefacts: str | bool = self.mosaic.params.artefacts
        if not isinstance(artefacts, str):
            artefacts = "normal" if artefacts else "off"
        left_out = {reason: count for reason, count in self.mosaic.dropped_counts.items() if count}
        by = ("", "") if self.mask is None else (self.mask.identity, self.mask.classes)
        return Choice(len(self.mosaic.candidates), left_out, artefacts, *by)

    def job(self) -> EncodeJob[Prepared]:
        """Return what the encoder has to do."""
        patches: list[PatchBox] = [(float(x), float(y), float(w)) for x, y, w, _ in self.boxes.tolist()]
        if self.mosaic is None:
            return ImageJob(self.slide, patches, self)
        return EncodeJob(self.slide, patches, self, self.mosaic.params.reading)


@dataclass(frozen=True)
class Refused:
    """A slide that cannot be encoded, and why."""

    source: Candidate
    reason: str


@dataclass(frozen=True)
class Known:
    """A slide whose content the database has, as the hash tells."""

    source: Candidate
    content_hash: str


def prepare(
    source: Candidate,
    params: MosaicParams | None,
    mpp: float | None,
    is_known: Callable[[str], bool],
    should_stop: ShouldStop | None = None,
    mask: SlideMask | None = None,
) -> Prepared | Refused | Known:
    """Open a slide and choose its patches.

    Parameters
    ----------
    source
        The file.
    params
        How to choose patches; None for an image that is one patch.
    mpp
        Micrometres per level-0 px, instead of what the file says.
    is_known
        Says whether a slide of this content need not be encoded.
    should_stop
        Asked now and then.
    mask
        Where the tissue is; by default it is found.
    """
    try:
        str(source.path).encode()
    except UnicodeEncodeError:
        return Refused(source, f"{source.slide}: its name is not valid Unicode. Rename it.")
    try:
        slide = open_slide(source.path, mpp=mpp)
    except FishError as error:
        return Refused(source, str(error))
    except Exception as error:  # noqa: BLE001 - one slide must not stop all others
        return _surprised(source, error)
    try:
        content_hash = slide.content_hash
        if is_known(content_hash):
            slide.close()
            return Known(source, content_hash)
        if slide.kind != "slide":
            raise SlideError(f"{source.path}: holds only a {slide.kind} image, which is never read.")
        mosaic = None
        if params is not None:
            given = None if mask is None else mask.file
            mosaic = make_mosaic(slide, params, given, should_stop=should_stop)
        return Prepared(source, slide, slide.thumbnail(OVERVIEW_PX), mosaic, mask)
    except FishError as error:
        slide.close()
        return Refused(source, str(error))
    except OSError as error:
        slide.close()
        return Refused(source, f"{source.path}: cannot be read ({error}). Check the disk or the network.")
    except Cancelled:
        slide.close()
        raise
    except Exception as error:  # noqa: BLE001 - one slide must not stop all others
        slide.close()
        return _surprised(source, error)


def _surprised(source: Candidate, error: Exception) -> Refused:
    """Refuse a slide that does what no slide was known to do: the others must not suffer from it."""
    log.info("%s", source.path, exc_info=error)
    return Refused(
        source,
        f"{source.path}: cannot be used ({type(error).__name__}: {error}). Check the file; if other programs open it, "
        "please report this.",
    )
