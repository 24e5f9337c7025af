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

FEW, MANY = 2, 5
"""A patch is as suspicious as its second most suspicious tile, or, where many are, as its fifth: one odd tile is no artefact."""
LIMITS: dict[str, tuple[float, float]] = {
    "ink": (2.5, 1.5),
    "fold": (3.0, 0.5),
    "debris": (4.0, np.inf),
    "blur": (4.0, np.inf),
}
"""Log odds of these two tiles above which a patch is left out, by kind."""
STRICTER = 2.0
"""Log odds by which strict limits are lower."""
USUAL, SHIFT = -4.0, (-2.0, 0.5)
"""Log odds of half of the patches of a slide that the filter knows well, and how far other slides move the limits: where all
others are beyond doubt, less is enough to tell ink and folds; where all are a little suspicious, more is needed."""
SURE = 3.9
"""Log odds above which patches go where more than half of a slide would: then it is more likely the filter that errs."""
LBP_LIMITS: dict[str, float] = {"normal": 0.5, "strict": 0.3}
"""Probability above which the paper's filter leaves a patch out."""
DOUBTFUL = 0.5
"""Probability from which a patch that stayed is chosen last for a mosaic."""
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
    return judged_by_tiles and patch.artefact > DOUBTFUL


def _by_tiles(
    measured: Sequence[Measured], params: MosaicParams
) -> tuple[list[Measured], list[str], NDArray[np.bool_]]:
    """Judge all patches beside one another: how likely each shows an artefact, of which kind, and which go."""
    result, kinds, gone = list(measured), [""] * len(measured), np.zeros(len(measured), bool)
    seen = [i for i, v in enumerate(measured) if v.tiles is not None and v.white <= params.white_share]
    if not seen:
        return result, kinds, gone
    rows = beside_slide(np.stack([measured[i].tiles for i in seen]).astype(np.float64))  # type: ignore[misc]
    found = read_filters().tiles(rows.reshape(-1, rows.shape[-1])).reshape(*rows.shape[:2], len(KINDS))
    order = np.argsort(found[..., 0], axis=1, kind="stable")
    found = np.take_along_axis(found, order[..., None], axis=1)
    few, many = (_log_odds(found[:, min(rank, found.shape[1]) - 1, 0]) for rank in (FEW, MANY))
    shift = float(np.clip(np.median(few) - USUAL, *SHIFT))
    for number, i in enumerate(seen):
        kind = KINDS[1 + int(np.argmax(found[number, :FEW, 1:].sum(axis=0)))]
        # Dust and blur have one face, which a slide that is well known does not change.
        moved = (shift if kind in ("ink", "fold") else max(shift, 0.0)) - STRICTER * (
            params.artefacts == "strict"
        )
        gone[i] = few[number] > LIMITS[kind][0] + moved or many[number] > LIMITS[kind][1] + moved
        likely = float(1 / (1 + np.exp(-few[number])))
        if _bare(measured[i]):
            kind, likely, gone[i], few[number] = "ink", 1.0, True, np.inf
        kinds[i], result[i] = kind, replace(measured[i], artefact=likely)
    if gone[seen].mean() > 0.5:
        gone[seen] &= few > SURE
    return result, kinds, gone


def _log_odds(clean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log odds of an artefact where this is the probability of clean tissue."""
    return np.asarray(np.log((1 - clean + 1e-6) / (clean + 1e-6)))


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
        x, y, cluster, round(value.white, 4), round(value.artefact, 4), round(value.focus, 4), reason
    )
