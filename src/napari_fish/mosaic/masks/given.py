"""Tissue given by the user: a picture, polygons, or a file with either."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import FishError, NoTissue
from napari_fish.mosaic.masks.annotations import split_classes
from napari_fish.mosaic.masks.maskfile import MaskFile, marked
from napari_fish.mosaic.masks.rings import Polygon, draw, share_inside
from napari_fish.mosaic.params import TissueParams
from napari_fish.mosaic.reading import known_mpp
from napari_fish.mosaic.tissue.find import Tissue, regions
from napari_fish.mosaic.values import Mosaic
from napari_fish.slides import Slide

MaskLike = str | Path | MaskFile | NDArray[Any] | Sequence[Polygon]
PATCH_PX = 64
"""Px along a patch on which masks are drawn."""
STRETCH = 0.05
"""How far the proportions of a mask may differ from those of the slide."""
LEAST_INSIDE = 0.5
"""Polygons with less of their area on the slide were drawn on another one."""
ALL = 0.99
"""A mask that marks more of the slide than this marks all of it."""


def tissue_from_mask(slide: Slide, mask: MaskLike, params: TissueParams, size: int) -> Tissue:
    """Return the tissue that a user gave.

    Parameters
    ----------
    slide : Slide
        The slide.
    mask : path, MaskFile, array or polygons
        A picture of any resolution that covers the whole slide, as an array of shape (rows, columns)
        whose non-zero pixels are tissue, or as an image file; or polygons, each a sequence of rings of
        shape (n, 2) in level-0 px (the outline, then its holes), or a GeoJSON file as QuPath writes it.
    params : TissueParams
        Kept for the record; a mask is taken as it is, whatever its area.
    size : int
        Side of a patch in level-0 px.

    Raises
    ------
    FishError
        When the mask cannot be understood or does not fit the slide.
    NoTissue
        When it is empty.
    """
    name = "the mask"
    if isinstance(mask, str | Path):
        mask = MaskFile(Path(mask).expanduser())
    if isinstance(mask, MaskFile):
        name = str(mask.path)
        mask = mask.read()
    step = max(1.0, size / PATCH_PX)
    if isinstance(mask, np.ndarray):
        pixels = _fitting(marked(mask, name), slide, name)
        # Finer than polygons are drawn is finer than needed.
        finer = max(
            1, int(step * min(pixels.shape[1] / slide.dimensions[0], pixels.shape[0] / slide.dimensions[1]))
        )
        pixels = pixels[finer // 2 :: finer, finer // 2 :: finer]
        scale = (slide.dimensions[0] / pixels.shape[1], slide.dimensions[1] / pixels.shape[0])
    else:
        scale = (step, step)
        pixels = _drawn(mask, slide, name, step)
    params = replace(params, min_tissue=0.0, min_hole=0.0, max_holes=10_000, retry=False)
    tissue = regions(pixels, scale, params, 1.0, known_mpp(slide))
    if tissue is None:
        raise NoTissue(f"{slide.path}: {name} marks no tissue on this slide. Draw where the tissue is.")
    return tissue


def mask_of(mask: MaskLike | None, classes: str | None) -> MaskLike | None:
    """Return a mask of which only some classes count, as people name the two; None for none.

    Parameters
    ----------
    mask
        As for :func:`tissue_from_mask`.
    classes
        Classes of annotations, separated by commas; None or empty for all.
    """
    wanted = split_classes(classes)
    if isinstance(mask, str | Path):
        return MaskFile(Path(mask).expanduser(), wanted)
    if wanted:
        raise FishError(
            f"Only a GeoJSON file has classes ({', '.join(wanted)}). Give one as the mask (--mask)."
        )
    return mask


def marks_everything(mosaic: Mosaic) -> bool:
    """Whether a mask marks all of its slide, which is seldom meant."""
    width, height = mosaic.dimensions
    return mosaic.masked and mosaic.tissue_mm2 * 1e6 > ALL * width * height * mosaic.mpp**2


def _drawn(polygons: Sequence[Polygon], slide: Slide, name: str, step: float) -> NDArray[np.bool_]:
    """Return polygons as a picture once they are known to be of this slide."""
    try:
        inside = share_inside(polygons, slide.dimensions)
        if inside >= LEAST_INSIDE:
            return draw(polygons, slide.dimensions, step)
    except (TypeError, ValueError) as error:
        raise FishError(f"{name}: {error}. Give polygons in level-0 px.") from error
    width, height = slide.dimensions
    raise FishError(
        f"{name}: {100 * (1 - inside):.0f} % of what it marks lies outside the slide of {width} x {height} px, so it fits "
        "another slide. Coordinates must be in level-0 px of this one."
    )


def _fitting(mask: NDArray[np.bool_], slide: Slide, name: str) -> NDArray[np.bool_]:
    """Return a mask once it is known to cover the slide."""
    width, height = slide.dimensions
    stretch = (mask.shape[1] / mask.shape[0]) / (width / height)
    # A small mask may be off by the one pixel that rounding takes.
    allowed = STRETCH + 1.5 / min(mask.shape)
    if abs(math.log(stretch)) > allowed:
        raise FishError(
            f"{name}: its {mask.shape[1]} x {mask.shape[0]} px do not have the proportions of the slide "
            f"({width} x {height} px). A mask must cover the whole slide."
        )
    return mask
