"""What the published program does otherwise than the paper's text says.

OpenCV's arithmetic is written out here. Areas, and points in a piece of tissue, are counted in pixels of the mask, as
for every preset: they stand for the areas and the insides of the program's contours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.errors import NoTissue, SlideError
from napari_fish.slides import Slide
from napari_fish.work import ShouldStop, stop_if_asked

Mask = NDArray[np.bool_]
LARGEST_LEVEL = 3 * 10**8
"""Most px of a stored level on which tissue is sought: finding it takes some 20 bytes a px."""
_FRACTION_BITS = 12
"""OpenCV computes the saturation in whole numbers with so many bits behind the point."""


def best_level(slide: Slide, downsample: float) -> int:
    """Return the level that OpenSlide's rule gives: the coarsest not coarser than ``downsample``, else level 0."""
    width, height = slide.dimensions
    best = 0
    for level, (w, h) in enumerate(slide.level_dimensions):
        # Not slide.level_downsamples: there 64.003 is taken for 64, here it is too coarse.
        said = slide.properties.get(f"openslide.level[{level}].downsample")
        coarse = float(said) if said else (width / w + height / h) / 2
        if coarse > downsample:
            break
        best = level
    return best


def read_whole_level(slide: Slide, level: int, should_stop: ShouldStop | None) -> NDArray[np.uint8]:
    """Return all stored pixels of a level, shape (rows, columns, 3)."""
    stop_if_asked(should_stop)
    width, height = slide.level_dimensions[level]
    if width * height > LARGEST_LEVEL:
        raise SlideError(
            f"{slide.path}: the preset released seeks tissue on level {level} of this slide, whose {width} x {height} px "
            "are too many. Choose the preset default or paper, or convert the slide to a pyramid (for example with "
            "vips tiffsave --tile --pyramid)."
        )
    return slide.read_level(level, 0, 0, width, height)


def opencv_saturation(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the saturation of HSV, 0 to 255, rounded as OpenCV rounds it."""
    reciprocal = np.zeros(256, np.int32)
    reciprocal[1:] = np.rint((255 << _FRACTION_BITS) / np.arange(1, 256))
    high = rgb.max(axis=2)
    spread = (high - rgb.min(axis=2)).astype(np.int32)
    return np.asarray((spread * reciprocal[high] + (1 << _FRACTION_BITS - 1)) >> _FRACTION_BITS, np.uint8)


def opencv_close(mask: Mask, side: int) -> Mask:
    """Close gaps as OpenCV does: a square of an even side moves the mask by a pixel to the right and down.

    Both halves of a closing look from ``side // 2`` px before a pixel to ``side - 1 - side // 2`` px behind it; a true
    closing would turn the square round for one of them. What lies outside the image counts in neither.
    """
    grown = ndimage.maximum_filter(mask, side, mode="constant", cval=False)
    return np.asarray(ndimage.minimum_filter(grown, side, mode="constant", cval=True), bool)


def by_columns(corners: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Put the patches of each piece in order of columns: K-means depends on the order."""
    return [grid[np.lexsort((grid[:, 1], grid[:, 0]))] for grid in corners]


def without_single_patches(slide: Slide, corners: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Leave out pieces of tissue on which lies exactly one patch, or say that no piece is left."""
    kept = [grid for grid in corners if len(grid) > 1]
    if not kept:
        raise NoTissue(
            f"{slide.path}: no tissue found; no piece of it holds more than one patch, and the preset released leaves "
            "out the others. Choose the preset default, or give a mask."
        )
    return kept
