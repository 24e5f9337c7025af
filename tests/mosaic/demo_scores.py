"""How well tissue and artefacts are told apart, on demo slides whose truth is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.mosaic.masks.rings import draw
from napari_fish.mosaic.mosaic import make_mosaic
from napari_fish.mosaic.params import MosaicParams
from napari_fish.mosaic.values import Mosaic
from napari_fish.slides import open_slide
from napari_fish.slides.demo import DemoImage, DemoSpec, render
from napari_fish.slides.demo.files import write_pyramid

LEAST_SHARE = {"ink": 0.10, "fold": 0.10, "blur": 0.50}
"""Share of a patch that an artefact must cover for the patch to be one that should be dropped."""
CLEAN_SHARE = 0.005
"""A patch with less than this of any artefact, dust and bubbles included, is clean."""
LEAST_TISSUE = 0.3
"""Share of tissue from which a clean patch should be kept."""


@dataclass(frozen=True)
class SlideScore:
    """Truth and verdict for one demo slide.

    Attributes
    ----------
    name : str
        Name of the slide.
    tissue_iou : float
        Overlap of true and found tissue: intersection over union.
    shows : tuple of str
        What each patch shows: an artefact, ``"clean"``, or empty when it is neither.
    dropped : tuple of bool
        Whether it was dropped.
    """

    name: str
    tissue_iou: float
    shows: tuple[str, ...]
    dropped: tuple[bool, ...]


@dataclass(frozen=True)
class Score:
    """The same over several slides; ``tissue_iou`` is the mean, ``worst_iou`` the least."""

    tissue_iou: float
    worst_iou: float
    artefact_patches: int
    artefacts_dropped: float
    dropped_by_kind: dict[str, float]
    clean_patches: int
    clean_dropped: float


def evaluate_demo(spec: DemoSpec, folder: Path, params: MosaicParams | None = None) -> SlideScore:
    """Render a demo slide into a folder, make its mosaic and compare with the truth."""
    image = render(spec)
    path = folder / f"{spec.name}.tif"
    write_pyramid(image.rgb, spec, path)
    with open_slide(path) as slide:
        mosaic = make_mosaic(slide, params)
    path.unlink()
    patches = (*mosaic.candidates, *mosaic.dropped)
    shows = tuple(_shown(image, patch.x, patch.y, mosaic.patch_size) for patch in patches)
    return SlideScore(spec.name, tissue_iou(image, mosaic), shows, tuple(bool(p.reason) for p in patches))


def tissue_iou(image: DemoImage, mosaic: Mosaic) -> float:
    """Return the overlap of the contours with the true tissue; ink over glass counts as a mistake."""
    step = image.truth.um_per_px / mosaic.mpp
    found = draw([[c.outer, *c.holes] for c in mosaic.contours], mosaic.dimensions, step)
    truth = image.truth.tissue
    rows, columns = (min(a, b) for a, b in zip(found.shape, truth.shape, strict=True))
    found, truth = found[:rows, :columns], truth[:rows, :columns]
    return float((found & truth).sum() / max(1, (found | truth).sum()))


def score(slides: Iterable[SlideScore]) -> Score:
    """Sum up several slides."""
    slides = list(slides)
    shows = np.array([s for slide in slides for s in slide.shows])
    dropped = np.array([d for slide in slides for d in slide.dropped])
    kinds = [kind for kind in LEAST_SHARE if (shows == kind).any()]
    bad = np.isin(shows, list(LEAST_SHARE))
    clean = shows == "clean"
    return Score(
        tissue_iou=float(np.mean([s.tissue_iou for s in slides])),
        worst_iou=min(s.tissue_iou for s in slides),
        artefact_patches=int(bad.sum()),
        artefacts_dropped=_mean(dropped[bad]),
        dropped_by_kind={kind: _mean(dropped[shows == kind]) for kind in kinds},
        clean_patches=int(clean.sum()),
        clean_dropped=_mean(dropped[clean]),
    )


def _shown(image: DemoImage, x: int, y: int, size: int) -> str:
    """Say what a patch truly shows."""
    step = image.truth.um_per_px / image.spec.mpp
    left, top, side = round(x / step), round(y / step), round(size / step)

    def share(mask: NDArray[np.bool_]) -> float:
        return float(mask[max(0, top) : top + side, max(0, left) : left + side].sum() / side**2)

    truth = image.truth
    for kind, least in LEAST_SHARE.items():
        if share(getattr(truth, kind) & truth.tissue) >= least:
            return kind
    artefacts = (truth.ink, truth.fold, truth.blur, truth.dust, truth.bubble)
    if all(share(mask) < CLEAN_SHARE for mask in artefacts) and share(truth.tissue) >= LEAST_TISSUE:
        return "clean"
    return ""


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else float("nan")
