"""Which patches of a slide are left out, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import NoTissue
from napari_fish.mosaic.artefacts import KINDS, Measured, read_filters
from napari_fish.mosaic.beside import beside_slide
from napari_fish.mosaic.params import MosaicParams
from napari_fish.mosaic.tiles import COARSE, FEATURES, TISSUE_SHARE
from napari_fish.mosaic.values import Patch

RANK = 2
"""A patch is as suspicious as its second most suspicious tile: one odd tile is no artefact."""
THRESHOLDS: dict[str, dict[str, float]] = {
    "tiles": {"normal": 0.9, "strict": 0.5},
    "lbp": {"normal": 0.5, "strict": 0.3},
}
"""Probability above which a patch is left out, by filter and strictness."""
LEAST = 0.57
"""The least that this probability becomes for ink and folds on a slide whose other patches are beyond doubt."""
BEYOND_USUAL = 6.0
"""Log odds above the median patch of the slide from which ink and folds go, between these two probabilities."""
SURE = 0.98
"""The same where more than half of a slide would go: then it is more likely the filter that errs."""
FLAT = 1.0
"""Contrast, as log2 of a variance in grey levels, below which a tile shows one colour and nothing else."""
DARK = 0.8
"""Optical density (natural logarithm, summed over red, green and blue) of ink, however pale."""


def judged(
    slide: Path, places: NDArray[np.int64], measured: Sequence[Measured], params: MosaicParams
) -> tuple[list[Patch], bool]:
    """Return the patches with the reasons to leave them out, and whether one had to be taken back."""
    measured, kinds = _suspected(measured, params)
    limits = _limits(measured, params)
    patches = [
        patch_of(int(x), int(y), value, _reason(value, kind, params, limits.get(kind, limits[""])))
        for (x, y), value, kind in zip(places, measured, kinds, strict=True)
    ]
    if not all(patch.reason for patch in patches):
        return patches, False
    if all(patch.reason != "white" and _bare(value) for patch, value in zip(patches, measured, strict=True)):
        raise NoTissue(
            f"{slide}: no tissue found; all {len(patches)} patches show pen marks or debris. "
            "If this is tissue, switch the artefact filter off."
        )
    # A slide with tissue must be found by somebody: the least suspicious patch comes back, else the least white.
    best = max(range(len(patches)), key=lambda i: (*_merit(patches[i]), -i))
    patches[best] = replace(patches[best], reason="")
    return patches, True


def doubtful(patch: Patch, params: MosaicParams) -> bool:
    """Say whether a patch that stayed would have gone had the filter been strict."""
    judged_by_tiles = params.artefacts != "off" and params.artefact_model == "tiles"
    return judged_by_tiles and patch.artefact > THRESHOLDS["tiles"]["strict"]


def _suspected(measured: Sequence[Measured], params: MosaicParams) -> tuple[list[Measured], list[str]]:
    """Judge all patches beside one another: how likely each shows an artefact, and of which kind."""
    tiles = [
        value.tiles for value in measured if value.tiles is not None and value.white <= params.white_share
    ]
    kinds = ["artefact"] * len(measured)
    result = list(measured)
    if not tiles:
        return result, kinds
    rows = beside_slide(np.stack(tiles).astype(np.float64))
    found = read_filters().tiles(rows.reshape(-1, rows.shape[-1])).reshape(*rows.shape[:2], len(KINDS))
    seen = iter(found)
    for number, value in enumerate(measured):
        if value.tiles is None or value.white > params.white_share:
            continue
        each = next(seen)
        worst = np.argsort(-(1 - each[:, 0]), kind="stable")[:RANK]
        kinds[number] = KINDS[1 + int(np.argmax(each[worst, 1:].sum(axis=0)))]
        likely = 1.0 if _bare(value) else 1 - float(each[worst[-1], 0])
        result[number] = replace(value, artefact=likely)
        if _bare(value):
            kinds[number] = "ink"
    return result, kinds


def _limits(measured: Sequence[Measured], params: MosaicParams) -> dict[str, float]:
    """Return the probability above which patches of this slide are left out, by kind; "" for any other kind."""
    if params.artefacts == "off":
        return {"": 1.0}
    limit = THRESHOLDS[params.artefact_model][params.artefacts]
    seen = np.array([value.artefact for value in measured if value.white <= params.white_share])
    if params.artefact_model != "tiles" or len(seen) == 0:
        return {"": limit}
    if np.mean(seen > limit) > 0.5:
        return {"": max(limit, SURE)}
    usual = float(np.median(np.clip(seen, 1e-6, 1 - 1e-6)))
    odds = np.log(usual / (1 - usual)) + BEYOND_USUAL
    # Where all others look alike and clean, less is enough to tell ink and folds, which have most faces.
    lower = float(np.clip(1 / (1 + np.exp(-odds)), min(LEAST, limit), limit))
    return {"": limit, "ink": lower, "fold": lower}


def _bare(value: Measured) -> bool:
    """Say whether a patch holds nothing but one dark colour, or glass: all ink, or all black."""
    if value.tiles is None:
        return False
    glass = value.tiles[:, TISSUE_SHARE] < 0.02
    density = value.tiles[:, FEATURES.index("10 % density")]
    ink = (value.tiles[:, COARSE] < FLAT) & (density > DARK)
    return bool(ink.any() and (glass | ink).mean() >= 0.75)


def _merit(patch: Patch) -> tuple[int, float]:
    """Rank a dropped patch among others: the higher, the better."""
    return (0, -patch.white) if patch.reason == "white" else (1, -patch.artefact)


def _reason(value: Measured, kind: str, params: MosaicParams, limit: float) -> str:
    """Say why a patch is dropped, or return the empty string."""
    if value.white > params.white_share:
        return "white"
    return kind if value.artefact > limit else ""


def patch_of(x: int, y: int, value: Measured, reason: str = "", cluster: int = -1) -> Patch:
    """Return a patch with what was measured on it."""
    return Patch(
        x, y, cluster, round(value.white, 4), round(value.artefact, 4), round(value.focus, 4), reason
    )
