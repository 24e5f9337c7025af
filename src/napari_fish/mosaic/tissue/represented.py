"""No piece of tissue is lost for the pen beside it; pen and dirt on bare glass are no tissue after all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.tissue.contours import Contour
from napari_fish.mosaic.tissue.find import Tissue
from napari_fish.mosaic.tissue.windows import opened
from napari_fish.mosaic.values import Patch

DIRTY = ("ink", "debris")
"""Reasons that a pen stroke or dirt on bare glass gives."""
TOUCHED = 0.2
"""A patch with less than this share of a piece of tissue only touches it."""
HELD = 0.5
"""Share of a piece of tissue that patches hold at least which stand for it."""
LEAST_PIECE, MOST_PIECE = 0.1, 1.2
"""How many patches a piece must fill for a patch to be taken back for it, and how many at the most: larger pieces have others."""
APART = 3
"""Px of the overview up to which a bridge does not make two pieces one."""


def brought_back(tissue: Tissue, patches: Sequence[Patch], size: int) -> list[Patch]:
    """Return the patches, some taken back for each piece of stained tissue of which less than half is left.

    Of the patches with most of what is missing, it is the least suspicious one, and another, until half of the piece is
    there. Only pen and dirt are overruled in this way, only for small pieces, and each patch must hold a fifth of the piece.
    """
    result = list(patches)
    gone = {i for i, patch in enumerate(result) if patch.reason in DIRTY}
    if not gone or tissue.sure is None:
        return result
    # Pieces that pen or a fibre joins are two.
    pieces, count = ndimage.label(opened(tissue.sure, APART))
    pixels = np.bincount(pieces.ravel(), minlength=count + 1)
    held = _covered(tissue, [patch for patch in result if not patch.reason], size)
    left = np.bincount(pieces[held], minlength=count + 1)
    patch_area = (size / tissue.scale[0]) * (size / tissue.scale[1])
    small = (pixels > LEAST_PIECE * patch_area) & (pixels < MOST_PIECE * patch_area)
    for piece in 1 + np.nonzero((small & (left < HELD * pixels))[1:])[0]:
        missing = (pieces == piece) & ~held
        while np.count_nonzero(missing) > (1 - HELD) * pixels[piece]:
            gains = {i: np.count_nonzero(missing[_inside(tissue, result[i], size)]) for i in gone}
            most = max(gains.values(), default=0)
            if most < TOUCHED * pixels[piece]:
                break
            good = (i for i in sorted(gone) if gains[i] >= 0.5 * most)
            best = min(good, key=lambda i: (result[i].artefact, -gains[i]))
            result[best] = replace(result[best], reason="")
            gone.remove(best)
            where = _inside(tissue, result[best], size)
            missing[where], held[where] = False, True
    return result


def tissue_after_all(tissue: Tissue, patches: Sequence[Patch], size: int) -> tuple[Contour, ...]:
    """Return the outlines without those of pen strokes and dirt on bare glass: pieces that have no other patch."""
    if not any(patch.reason in DIRTY for patch in patches):
        return tissue.contours
    pixels = _in_pieces(tissue, np.ones(tissue.labels.shape, bool))
    other = _in_pieces(tissue, _covered(tissue, [p for p in patches if p.reason not in DIRTY], size))
    dirty = _in_pieces(tissue, _covered(tissue, [p for p in patches if p.reason in DIRTY], size))
    real = (other >= TOUCHED * pixels) | (dirty < 0.5 * pixels)
    return tuple(c for c, is_real in zip(tissue.contours, real.tolist(), strict=True) if is_real)


def _inside(tissue: Tissue, patch: Patch, size: int) -> tuple[slice, slice]:
    """Return the rows and columns of the overview that a patch covers."""
    left, top = round(patch.x / tissue.scale[0]), round(patch.y / tissue.scale[1])
    right, bottom = round((patch.x + size) / tissue.scale[0]), round((patch.y + size) / tissue.scale[1])
    return slice(max(0, top), max(0, bottom)), slice(max(0, left), max(0, right))


def _covered(tissue: Tissue, patches: Sequence[Patch], size: int) -> NDArray[np.bool_]:
    """Return where on the overview there are patches."""
    result = np.zeros(tissue.labels.shape, bool)
    for patch in patches:
        result[_inside(tissue, patch, size)] = True
    return result


def _in_pieces(tissue: Tissue, where: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many px of each piece of tissue are marked, shape (pieces,)."""
    return np.bincount(tissue.labels[where], minlength=len(tissue.contours) + 1)[1:]
