"""What there is to encode: patches of a slide, or an image that is one patch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.encoder import patch_from_image
from napari_fish.errors import SlideError
from napari_fish.names import STATE_MPP
from napari_fish.slides.bicubic import read_bicubic
from napari_fish.slides.protocol import Slide

RGB = NDArray[np.uint8]
PatchBox = tuple[float, float, float]
"""Left, top and side of a square patch in level-0 px."""
LARGEST_IMAGE = 10**8
"""Most px of an image that is taken as one patch."""
T = TypeVar("T")


@dataclass(frozen=True)
class EncodeJob(Generic[T]):
    """One slide to be encoded.

    Attributes
    ----------
    slide : Slide
        Open slide.
    patches : sequence of (x, y, side)
        Squares in level-0 px.
    tag : object
        Whatever the caller needs to know the job again.
    reading : {"area", "bicubic"}
        How patches are read, as in :class:`~napari_fish.mosaic.MosaicParams`.
    keep_codes : bool
        Keep latent codes.
    thumbnail_px : int
        Side of the thumbnails to keep; 0 keeps none.
    """

    slide: Slide
    patches: Sequence[PatchBox]
    tag: T
    reading: Literal["area", "bicubic"] = "area"
    keep_codes: bool = False
    thumbnail_px: int = 0

    def read(self, box: PatchBox, size: int, mpp: float) -> RGB:
        """Read one patch; see :func:`read_patch`."""
        if self.reading == "bicubic":
            return read_bicubic(self.slide, *box, size)
        return read_patch(self.slide, box, size, mpp)


@dataclass(frozen=True)
class ImageJob(EncodeJob[T]):
    """An image that is one patch, whatever its size and shape, as in the paper's patch experiment."""

    def read(self, box: PatchBox, size: int, mpp: float) -> RGB:
        """Read the whole image, resized to one patch."""
        width, height = self.slide.dimensions
        if width * height > LARGEST_IMAGE:
            raise SlideError(
                f"{self.slide.path}: {width} x {height} px are too many for one patch; is it a whole slide? "
                "Build it without --patches."
            )
        return patch_from_image(self.slide.read_level(0, 0, 0, width, height), size)


def read_patch(slide: Slide, box: PatchBox, size: int, mpp: float) -> RGB:
    """Read one patch.

    Parameters
    ----------
    slide : Slide
        Where from.
    box : (x, y, side)
        Square in level-0 px.
    size : int
        Side of the result in px.
    mpp : float
        The encoder's µm per px, for the error message only: the scale follows from ``box``.

    Returns
    -------
    ndarray of uint8, shape (size, size, 3)
        RGB.
    """
    x, y, side = box
    if not side > 0:
        raise SlideError(f"{slide.path}: a patch cannot be {side:g} px wide.")
    if slide.mpp is None:
        raise SlideError(
            f"{slide.path}: the size of a pixel is unknown, so patches at {mpp:g} µm/px cannot be cut. "
            f"State it: {STATE_MPP}."
        )
    return slide.read(x, y, size, size, slide.mpp * side / size)
