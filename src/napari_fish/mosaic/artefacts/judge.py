"""Which patches of a slide are left out, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import NoTissue
from napari_fish.mosaic.artefacts.beside import KINDS, beside_patches, beside_slide
from napari_fish.mosaic.artefacts.filters import Measured, read_filters
from napari_fish.mosaic.artefacts.tiles import COARSE, FEATURES, TISSUE_SHARE
from napari_fish.mosaic.params import MosaicParams
from napari_fish.mosaic.values import Patch

ODD, SURER = -3.0, 2.5
"""Where even the least suspicious seventh of a slide has higher log odds than the first, it is more likely the filter that errs: the limit
is as much higher, by the second at most."""
BEYOND_DOUBT, LESS = -6.0, 0.75
"""Where half of a slide lies further below the limit than the first, the filter knows its laboratory well, and less is enough: the limit
is as much lower, by the second at most."""
LBP_LIMITS: dict[str, float] = {"normal": 0.5, "strict": 0.3}
"""Probability above which the paper's filter leaves a patch out."""
FLAT = 1.0
"""Contrast, as log2 of a variance in grey levels, below which a tile shows one colour and nothing else."""
DARK = 0.8
"""Optical density (natural logarithm, summed over red, green and blue) of ink, however pale."""


def judged(
    slide: Path, places: NDArray[np.int64], measured: Sequence[Measured], params: MosaicParams
) -> tuple[list[Patch], bool]:
    """Return the patches with the reasons to leave them out, and whether one had to be taken back."""
    kinds, gone = [""] * len(measured), np.zeros(len(measured), bool)
    if params.artefacts != "off" and params.artefact_model == "lbp":
        gone = np.array([value.artefact > LBP_LIMITS[params.artefacts] for value in measured])
        kinds = ["artefact"] * len(measured)
    elif params.artefacts != "off":
        measured, kinds, gone = _by_tiles(measured, params)
    patches = [
        patch_of(int(x), int(y), value, "white" if value.white > params.white_share else kind if out else "")
        for (x, y), value, kind, out in zip(places, measured, kinds, gone.tolist(), strict=True)
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
    return judged_by_tiles and patch.artefact > _likely(read_filters().limits["strict"])


def _by_tiles(
    measured: Sequence[Measured], params: MosaicParams
) -> tuple[list[Measured], list[str], NDArray[np.bool_]]:
    """Judge all patches beside one another: how likely each shows an artefact, of which kind, and which go."""
    result, kinds, gone = list(measured), [""] * len(measured), np.zeros(len(measured), bool)
    seen = [i for i, v in enumerate(measured) if v.tiles is not None and v.white <= params.white_share]
    if not seen:
        return result, kinds, gone
    filters = read_filters()
    tiles = np.stack([measured[i].tiles for i in seen]).astype(np.float64)  # type: ignore[misc]
    rows = beside_slide(tiles)
    found = filters.tiles(rows.reshape(-1, rows.shape[-1])).reshape(*rows.shape[:2], len(KINDS))
    odds = filters.patches.odds(beside_patches(found, tiles[..., TISSUE_SHARE].mean(axis=1)))[:, 0]
    limit = filters.limits[params.artefacts]
    limit -= float(np.clip(limit + BEYOND_DOUBT - np.median(odds), 0, LESS))
    limit += float(np.clip(np.quantile(odds, 0.15) - ODD, 0, SURER))
    worst = np.argsort(found[..., 0], axis=1, kind="stable")[:, :2]
    shown = np.take_along_axis(found, worst[..., None], axis=1)[..., 1:].sum(axis=1).argmax(axis=1)
    for i, value, kind in zip(seen, odds, shown, strict=True):
        kinds[i], gone[i], likely = KINDS[1 + kind], value > limit, _likely(value)
        if _bare(measured[i]):
            kinds[i], gone[i], likely = "ink", True, 1.0
        result[i] = replace(measured[i], artefact=likely)
    return result, kinds, gone


def _likely(odds: float) -> float:
    """Return the probability of an artefact."""
    return float(1 / (1 + np.exp(-odds)))


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


def patch_of(x: int, y: int, value: Measured, reason: str = "", cluster: int = -1) -> Patch:
    """Return a patch with what was measured on it."""
    return Patch(
        x=x,
        y=y,
        cluster=cluster,
        white=round(value.white, 4),
        artefact=round(value.artefact, 4),
        focus=round(value.focus, 4),
        reason=reason,
    )
