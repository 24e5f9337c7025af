"""Where there is tissue."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.errors import NoTissue
from napari_fish.mosaic.params import TissueParams
from napari_fish.mosaic.reading import known_mpp, overlapped
from napari_fish.mosaic.released import best_level, opencv_close, opencv_saturation, read_whole_level
from napari_fish.mosaic.tissue.contours import Contour, trace
from napari_fish.mosaic.tissue.glass import find_tissue, measure
from napari_fish.mosaic.tissue.pieces import stained
from napari_fish.slides import Slide
from napari_fish.work import ShouldStop

Mask = NDArray[np.bool_]
FINE_UM, COARSE_UM = 8.0, 16.0
"""µm a px of the overview on which tissue is told from glass: of small slides, and of the largest."""
MOST_PIXELS = 400_000
"""Px of an overview, as long as that is not coarser than `COARSE_UM`."""
LEAST_PIXELS = 256
"""Px along the longer side of an overview, where the slide has so many."""
STRIP_ROWS = 64
"""Rows of the overview read at a time."""
SEPARATION = 4.0
"""Otsu's two classes count as two only when their means differ by this many standard deviations of the
paler one; splitting pure noise gives at most 2.7."""
LEAST_DIFFERENCE = 2.5
"""... and by this much saturation of 255, as that of glass is rounded to 0 or 1."""


@dataclass(frozen=True, eq=False)
class Tissue:
    """Tissue on an overview of the slide.

    Attributes
    ----------
    labels : ndarray of int32, shape (rows, columns)
        0 for glass and holes, 1, 2, … for the pieces of tissue.
    holes : ndarray of int32, shape (rows, columns)
        The piece of tissue in whose hole a pixel lies, or 0.
    scale : tuple of float
        Level-0 px per px of the overview, along x and y.
    contours : tuple of Contour
        Outline of each piece, in order of its label.
    params : TissueParams
        The parameters that found it, after any retry.
    retried : bool
        Whether the parameters asked for found nothing, and gentler ones did.
    sure : ndarray of bool, shape (rows, columns), or None
        Where the many hues of stained tissue are; None where that was not asked.
    """

    labels: NDArray[np.int32]
    holes: NDArray[np.int32]
    scale: tuple[float, float]
    contours: tuple[Contour, ...]
    params: TissueParams
    retried: bool = False
    sure: Mask | None = None


def segment(
    slide: Slide,
    params: TissueParams | None = None,
    *,
    threads: int | None = None,
    should_stop: ShouldStop | None = None,
) -> Tissue:
    """Find the tissue of a slide on a small overview of it.

    Parameters
    ----------
    slide : Slide
        A slide with a known mpp.
    params : TissueParams, optional
        How to tell tissue from glass.
    threads : int, optional
        How many threads read; never changes the result.
    should_stop : callable, optional
        Asked now and then.

    Raises
    ------
    NoTissue
        When there is none, or none that is large enough.
    """
    params = params or TissueParams()
    if params.method == "glass":
        return _beside_glass(slide, params, threads, should_stop)
    if params.method == "released":
        return _segment_level(slide, params, should_stop)
    base = (params.base_mpp or known_mpp(slide)) / known_mpp(slide)
    scale = max(1.0, params.downsample * base)
    overview = read_overview(slide, scale, threads=threads, should_stop=should_stop)
    saturation = smoothed_saturation(overview, params.median)
    unit = (params.unit_px * base / scale) ** 2
    found = []
    for attempt in attempts(params):
        mask = threshold(saturation, attempt)
        if mask is None:
            continue
        tissue = regions(mask, (scale, scale), attempt, unit, known_mpp(slide))
        if tissue is not None:
            return replace(tissue, retried=attempt != params)
        found.append(int(mask.sum()))
    raise NoTissue(_why_nothing(slide, params, saturation, max(found, default=0), unit))


def _beside_glass(
    slide: Slide, params: TissueParams, threads: int | None, should_stop: ShouldStop | None
) -> Tissue:
    """Find what differs from the glass of the slide."""
    mpp = known_mpp(slide)
    longer = max(slide.dimensions) * mpp
    area = slide.dimensions[0] * slide.dimensions[1] * mpp**2
    # Large slides are looked at from farther away, pictures smaller than a few patches from nearer.
    um = float(np.clip(math.sqrt(area / MOST_PIXELS), FINE_UM, COARSE_UM))
    um = max(mpp, min(um, longer / LEAST_PIXELS))
    overview = read_overview(slide, um / mpp, threads=threads, should_stop=should_stop)
    seen = measure(overview, um)
    mask = find_tissue(seen, um, params.sensitivity)
    unit = (params.unit_px * (params.base_mpp or mpp) / um) ** 2
    gentler = replace(params, min_tissue=min(params.min_tissue, 1.0))
    for attempt in (params, gentler) if params.retry else (params,):
        tissue = regions(mask, (um / mpp, um / mpp), attempt, unit, mpp)
        if tissue is None:
            continue
        sure, dirt = stained(seen, tissue.labels, len(tissue.contours))
        if dirt.any():
            clean = mask & ~np.concatenate([[False], dirt])[tissue.labels]
            tissue = regions(clean, tissue.scale, attempt, unit, mpp) or tissue
        return replace(tissue, retried=attempt != params, sure=sure)
    if mask.any():
        found = float(mask.sum()) / unit
        reason = (
            f"what differs from the glass covers {found:.2g} unit squares in all, and no piece of it is as large as the "
            f"least area ({gentler.min_tissue:g}). Lower the least area, or give a mask"
        )
    elif not seen.glass:
        reason = "it shows nothing but ink or black. Check the file, or give a mask"
    else:
        reason = (
            f"it looks blank: {100 * seen.glass:.0f} % of it is smooth and of one colour, and nothing on it is as rough "
            "and dark as tissue. Raise the sensitivity for a very faint stain, or give a mask"
        )
    raise NoTissue(f"{slide.path}: no tissue found; {reason}.")


def _segment_level(slide: Slide, params: TissueParams, should_stop: ShouldStop | None) -> Tissue:
    """Find the tissue of a slide on one of its stored levels, as the published program does."""
    mpp = known_mpp(slide)
    level = best_level(slide, params.downsample)
    (width, height), (columns, rows) = slide.dimensions, slide.level_dimensions[level]
    scale = width / columns, height / rows
    unit = params.unit_px**2 / (scale[0] * scale[1])
    saturation = median_filtered(
        opencv_saturation(read_whole_level(slide, level, should_stop)), params.median
    )
    mask = opencv_close(saturation > _level_of(saturation, params), params.close)
    tissue = regions(mask, scale, params, unit, mpp)
    if tissue is None:
        raise NoTissue(_why_nothing(slide, params, saturation, int(mask.sum()), unit))
    return tissue


def read_overview(
    slide: Slide, scale: float, *, threads: int | None = None, should_stop: ShouldStop | None = None
) -> NDArray[np.uint8]:
    """Read the whole slide with ``scale`` level-0 px a px, strip by strip; shape (rows, columns, 3)."""
    mpp = known_mpp(slide)
    width, height = (max(1, math.ceil(side / scale - 1e-6)) for side in slide.dimensions)
    result = np.empty((height, width, 3), np.uint8)

    def strip(row: int) -> None:
        count = min(STRIP_ROWS, height - row)
        result[row : row + count] = slide.read(0, row * scale, width, count, mpp * scale)

    for _ in overlapped(strip, range(0, height, STRIP_ROWS), threads=threads, should_stop=should_stop):
        pass
    return result


def smoothed_saturation(rgb: NDArray[np.uint8], median: int) -> NDArray[np.uint8]:
    """Return the saturation of HSV, 0 to 255, after a median filter of ``median`` px a side."""
    high = rgb.max(axis=2).astype(np.float32)
    low = rgb.min(axis=2).astype(np.float32)
    saturation = np.asarray(np.rint(255 * (high - low) / np.maximum(high, 1)), np.uint8)
    return median_filtered(saturation, median)


def median_filtered(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Return the median of ``side`` by ``side`` px around each; the border is repeated outwards."""
    from skimage.filters import rank

    if side == 1:
        return image
    margin = side // 2
    padded = np.pad(image, margin, mode="edge")
    smooth = rank.median(padded, np.ones((side, side), np.uint8))
    return np.ascontiguousarray(smooth[margin:-margin, margin:-margin], np.uint8)


def attempts(params: TissueParams) -> list[TissueParams]:
    """Return the parameters to try in turn: those asked for, then gentler ones."""
    result = [params]
    if params.retry:
        for least in (16.0, 1.0):
            for otsu in (params.otsu, True):
                gentler = replace(params, min_tissue=min(params.min_tissue, least), otsu=otsu)
                if gentler not in result:
                    result.append(gentler)
    return result


def threshold(saturation: NDArray[np.uint8], params: TissueParams) -> Mask | None:
    """Return where the saturation is that of tissue, gaps closed; None when Otsu sees one class only."""
    mask = np.asarray(saturation > _level_of(saturation, params))
    if params.otsu:
        if not mask.any() or mask.all():
            return None
        glass, tissue = saturation[~mask], saturation[mask]
        if tissue.mean() - glass.mean() < max(LEAST_DIFFERENCE, SEPARATION * glass.std()):
            return None
    mask = close(mask, params.close)
    return tighten(mask, saturation, params.tighten) if params.tighten else mask


def _level_of(saturation: NDArray[np.uint8], params: TissueParams) -> float:
    """Return the saturation above which a pixel is tissue."""
    if not params.otsu:
        return params.threshold
    from skimage.filters import threshold_otsu

    return float(threshold_otsu(saturation)) if saturation.min() < saturation.max() else 255.0


def tighten(mask: Mask, saturation: NDArray[np.uint8], share: float) -> Mask:
    """Leave out what at the rim is paler than ``share`` of the strongest saturation two px around."""
    rim = mask & ~ndimage.binary_erosion(mask, np.ones((3, 3), bool), iterations=2, border_value=1)
    strongest = ndimage.maximum_filter(saturation, 5).astype(np.float32)
    return np.asarray(mask & ~(rim & (saturation < share * strongest)))


def close(mask: Mask, side: int) -> Mask:
    """Close gaps narrower than ``side`` px; pixels at the border are kept."""
    padded = np.pad(mask, side)
    closed = ndimage.binary_closing(padded, np.ones((side, side), bool))
    return np.asarray(closed[side:-side, side:-side] | mask)


def regions(
    mask: Mask, scale: tuple[float, float], params: TissueParams, unit: float, mpp: float
) -> Tissue | None:
    """Return the pieces of tissue and the holes that are large enough, or None when there is no piece.

    Parameters
    ----------
    mask : ndarray of bool, shape (rows, columns)
        Tissue, on an overview of the slide.
    scale : tuple of float
        Level-0 px per px of the mask, along x and y.
    params : TissueParams
        Sets the least areas.
    unit : float
        Px of the mask in a unit square.
    mpp : float
        µm per level-0 px.
    """
    pieces, count = ndimage.label(mask, np.ones((3, 3)))
    areas = np.bincount(pieces.ravel(), minlength=count + 1)[1:]
    # A slide smaller than the least area must not lose its tissue for its own size.
    least = min(params.min_tissue * unit, mask.size / 16) if params.retry else params.min_tissue * unit
    kept = np.nonzero(areas > least)[0]
    if len(kept) == 0:
        return None
    labels = np.zeros(mask.shape, np.int32)
    holes = np.zeros(mask.shape, np.int32)
    boxes = ndimage.find_objects(pieces)
    for label, piece in enumerate(kept, start=1):
        box = boxes[piece]
        solid, empty = _with_holes(pieces[box] == piece + 1, params, unit)
        # An island in a filled hole stays a piece of its own, hence only where nothing is yet.
        labels[box][solid & (labels[box] == 0)] = label
        holes[box][empty] = label
    for label, piece in enumerate(kept, start=1):
        labels[boxes[piece]][pieces[boxes[piece]] == piece + 1] = label
    contours = tuple(
        trace(labels[boxes[piece]] == label, boxes[piece], scale, mpp)
        for label, piece in enumerate(kept, start=1)
    )
    return Tissue(labels, holes, scale, contours, params)


def _with_holes(piece: Mask, params: TissueParams, unit: float) -> tuple[Mask, Mask]:
    """Split a piece of tissue into its solid part, small holes filled, and its large holes."""
    outside, count = ndimage.label(np.pad(~piece, 1, constant_values=True))
    areas = np.bincount(outside.ravel(), minlength=count + 1)
    areas[[0, outside[0, 0]]] = 0
    order = np.argsort(-areas, kind="stable")[: params.max_holes]
    large = order[areas[order] >= max(1.0, params.min_hole * unit)]
    inner = outside[1:-1, 1:-1]
    empty = np.isin(inner, large)
    return ~empty & (inner != outside[0, 0]), np.asarray(empty)


def _why_nothing(
    slide: Slide, params: TissueParams, saturation: NDArray[np.uint8], found: int, unit: float
) -> str:
    """Say why no tissue was found, and what to do."""
    if found:
        size = found / unit
        reason = (
            f"what is coloured on it covers {size:.2g} unit squares in all, and no piece of it is as large "
            f"as the least area ({params.min_tissue:g})"
        )
    else:
        reason = (
            f"it looks blank: its saturation is at most {int(saturation.max())}, "
            f"and tissue has more than {params.threshold}"
        )
    remedy = "Lower the threshold or the least area, or give a mask."
    if not params.retry:
        remedy = "Allow the retry with gentler values (preset default), or give a mask."
    return f"{slide.path}: no tissue found; {reason}. {remedy}"
