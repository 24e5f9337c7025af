"""Tiles and patches beside what is usual on their slide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_fish.mosaic.artefacts.tiles import FEATURES, TISSUE_SHARE

Floats = NDArray[np.float64]
KINDS: tuple[str, ...] = ("clean", "ink", "fold", "debris", "blur")
"""What a tile may show; all but the first are reasons to leave a patch out."""
COLOUR_AND_DETAIL = tuple(range(FEATURES.index("mean density R"), len(FEATURES)))
UNIFORM = tuple(FEATURES.index(f"pattern {code}") for code in (0, 1, 3, 7, 15, 31, 63, 127, 255))
CONTEXT = tuple(
    FEATURES.index(name)
    for name in ("median density", "sharpness", "contrast at 2 µm", "contrast at 4 to 8 µm")
)
LEAST_SPREAD = 0.02
"""Added to what is usual spread, so that a slide that is the same all over does not make mountains of noise."""
NAMES: tuple[str, ...] = (
    *FEATURES,
    *(f"{FEATURES[i]}, beside the slide" for i in (*COLOUR_AND_DETAIL, *UNIFORM)),
    *(f"{FEATURES[i]}, beside the slide's spread" for i in COLOUR_AND_DETAIL),
    *(f"{FEATURES[i]}, beside the patch" for i in COLOUR_AND_DETAIL),
    *(f"{FEATURES[i]}, beside the patch's least quarter" for i in COLOUR_AND_DETAIL),
    *(f"{FEATURES[i]}, usual on the slide" for i in CONTEXT),
)
"""Names of the columns of :func:`beside_slide`."""


def beside_slide(tiles: Floats) -> Floats:
    """Describe each tile of a slide by itself and beside what is usual there.

    Parameters
    ----------
    tiles : ndarray, shape (patches, tiles, features)
        As :func:`~napari_fish.mosaic.artefacts.tiles.tile_features` gives them, for all patches of a slide.

    Returns
    -------
    ndarray, shape (patches, tiles, len(NAMES))
        What is usual is a median, over those tiles of the slide that are tissue.
    """
    every = tiles.reshape(-1, tiles.shape[-1])
    share = every[:, TISSUE_SHARE]
    tissue = every[share >= min(0.3, float(np.median(share)))]
    low, usual, high = np.quantile(tissue, (0.2, 0.5, 0.8), axis=0)
    own, few = list(COLOUR_AND_DETAIL), [*COLOUR_AND_DETAIL, *UNIFORM]
    apart = tiles - usual
    quarter, middle = np.quantile(tiles[..., own], (0.25, 0.5), axis=1)[..., None, :]
    beside_patch = [tiles[..., own] - middle, tiles[..., own] - quarter]
    context = np.broadcast_to(usual[list(CONTEXT)], (*tiles.shape[:2], len(CONTEXT)))
    spread = (high - low)[own] + LEAST_SPREAD
    return np.concatenate([tiles, apart[..., few], apart[..., own] / spread, *beside_patch, context], axis=-1)


RANKS = (1, 2, 3, 5, 8)
"""Which of a patch's tiles are looked at, from the most suspicious on."""
PATCH_NAMES: tuple[str, ...] = (
    *(f"suspicion of tile {rank}" for rank in RANKS),
    *(f"second tile: {kind}" for kind in KINDS[1:]),
    *("suspicion of a quarter of the patches", "of half", "of three quarters"),
    *("share of suspicious patches", "patches, as a power of two", "share of tissue"),
)
"""Names of the columns of :func:`beside_patches`."""
GROWS: tuple[int, ...] = (*(1 for _ in (*RANKS, *KINDS[1:])), -1, -1, 0, 0, 0, 0)
"""Whether a patch is the more suspicious the larger a column is (1), or the less (-1)."""


def beside_patches(found: Floats, tissue: Floats) -> Floats:
    """Describe each patch of a slide by its most suspicious tiles, beside those of the other patches.

    Parameters
    ----------
    found : ndarray, shape (patches, tiles, len(KINDS))
        The probability of each kind.
    tissue : ndarray, shape (patches,)
        Share of tissue.

    Returns
    -------
    ndarray, shape (patches, len(PATCH_NAMES))
        Suspicion is measured in log odds.
    """
    tiles = found.shape[1]
    suspicion = -np.sort(-log_odds(1 - found[..., 0]), axis=1)
    second = min(2, tiles) - 1
    kinds = -np.sort(-log_odds(found[..., 1:]), axis=1)[:, second]
    few = suspicion[:, second]
    slide = [*np.quantile(few, (0.25, 0.5, 0.75)), (few > 0).mean(), np.log2(len(few))]
    return np.concatenate(
        [
            suspicion[:, [min(rank, tiles) - 1 for rank in RANKS]],
            kinds,
            np.broadcast_to(slide, (len(few), len(slide))),
            tissue[:, None],
        ],
        axis=1,
    )


def log_odds(probability: Floats) -> Floats:
    """Return the logarithm of how many times likelier something is than not, bounded."""
    return np.asarray(np.log((probability + 1e-6) / (1 - probability + 1e-6)))
