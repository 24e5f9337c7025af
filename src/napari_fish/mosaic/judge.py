"""Which patches of a slide are left out, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import NoTissue
from napari_fish.mosaic.artefacts import Measured
from napari_fish.mosaic.params import MosaicParams
from napari_fish.mosaic.values import Patch

THRESHOLD = 0.5
"""Probability above which a patch counts as an artefact."""
LEAST_FOCUS = -1.3
"""Sharpness below which a patch is out of focus, unless its slide is soft throughout."""
MOST_FORGIVEN = 2.5
"""Log odds by which a slide's own stain may excuse its patches: what is surely ink stays ink."""
SOFTER = 0.4
"""A blurred patch is at least so much less sharp (in log2) than the sharpest quarter of its slide."""
SURELY_DEBRIS = 0.9
"""A slide on which every patch is an artefact with at least this probability has no tissue."""


def judged(
    slide: Path, places: NDArray[np.int64], measured: Sequence[Measured], params: MosaicParams
) -> tuple[list[Patch], bool]:
    """Return the patches with the reasons to leave them out, and whether one had to be taken back."""
    measured = _for_this_stain(measured, params)
    sharp = _focus_limit(measured, params)
    patches = [
        patch_of(int(x), int(y), value, _reason(value, params, sharp))
        for (x, y), value in zip(places, measured, strict=True)
    ]
    if not all(patch.reason for patch in patches):
        return patches, False
    if all(patch.reason == "artefact" and patch.artefact >= SURELY_DEBRIS for patch in patches):
        raise NoTissue(
            f"{slide}: no tissue found; all {len(patches)} patches show pen marks or debris. "
            "If this is tissue, switch the artefact filter off."
        )
    # A slide with tissue must be found by somebody: the sharpest of the blurred, else the least white,
    # else the least suspicious patch comes back.
    best = max(range(len(patches)), key=lambda i: (*_merit(patches[i]), -i))
    patches[best] = replace(patches[best], reason="")
    return patches, True


def _for_this_stain(measured: Sequence[Measured], params: MosaicParams) -> Sequence[Measured]:
    """Judge artefacts against what is usual on this slide: a dark stain is no fold on every patch."""
    seen = [value.artefact for value in measured if value.white <= params.white_share]
    if params.artefact_model != "tiles" or params.artefacts == "off" or not seen:
        return measured
    shift = float(np.clip(np.median(_log_odds(seen)) + 1.0, 0, MOST_FORGIVEN))
    odds = _log_odds([value.artefact for value in measured]) - shift
    probabilities = 1 / (1 + np.exp(-odds))
    return [replace(v, artefact=float(p)) for v, p in zip(measured, probabilities, strict=True)]


def _log_odds(probabilities: Sequence[float]) -> NDArray[np.float64]:
    p = np.clip(np.asarray(probabilities, np.float64), 1e-9, 1 - 1e-9)
    return np.asarray(np.log(p / (1 - p)))


def _merit(patch: Patch) -> tuple[int, float]:
    """Rank a dropped patch among others: the higher, the better."""
    merits = {"artefact": (0, -patch.artefact), "white": (1, -patch.white), "blur": (2, patch.focus)}
    return merits[patch.reason]


def _focus_limit(measured: Sequence[Measured], params: MosaicParams) -> float:
    """Return the sharpness below which a patch of this slide is out of focus."""
    seen = [value.focus for value in measured if value.white <= params.white_share]
    # Of a slide that is soft throughout, by its scanner or a wrong mpp, the best is still worth having.
    return min(LEAST_FOCUS, float(np.quantile(seen, 0.75)) - SOFTER) if seen else LEAST_FOCUS


def _reason(value: Measured, params: MosaicParams, sharp: float) -> str:
    """Say why a patch is dropped, or return the empty string."""
    if value.white > params.white_share:
        return "white"
    if params.artefacts == "off":
        return ""
    if value.artefact > THRESHOLD:
        return "artefact"
    if params.artefact_model == "tiles" and value.focus < sharp:
        return "blur"
    return ""


def patch_of(x: int, y: int, value: Measured, reason: str = "", cluster: int = -1) -> Patch:
    """Return a patch with what was measured on it."""
    return Patch(
        x, y, cluster, round(value.white, 4), round(value.artefact, 4), round(value.focus, 4), reason
    )
