"""Patches over tissue: inside the slide, mostly tissue, and little of it left out."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.covering import covering_patches
from napari_fish.mosaic.params import TissueParams
from napari_fish.mosaic.tissue import Tissue, regions

SCALE = 16.0
SIZE = 512


def tissue_of(mask: NDArray[np.bool_]) -> Tissue:
    found = regions(mask, (SCALE, SCALE), TissueParams(min_tissue=0.0, min_hole=0.0), 1.0, 0.5)
    assert found is not None
    return found


def blobs(seed: int, cut: float, shape: tuple[int, int] = (160, 200)) -> NDArray[np.bool_]:
    rough = ndimage.gaussian_filter(np.random.default_rng(seed).standard_normal(shape), 12)
    return np.asarray(rough > cut * rough.std())


def shares(
    tissue: Tissue, corners: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Share of each patch that is tissue, of all tissue that is in a patch, and of each piece."""
    solid = tissue.labels > 0
    covered = np.zeros_like(solid)
    side = round(SIZE / SCALE)
    each = []
    for x, y in np.round(corners / SCALE).astype(int).tolist():
        covered[y : y + side, x : x + side] = True
        each.append(solid[y : y + side, x : x + side].sum() / side**2)
    by_piece = ndimage.mean(covered, tissue.labels, range(1, len(tissue.contours) + 1))
    return np.array(each), float(covered[solid].mean()), by_piece


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(-0.5, 1.2))
def test_patches_cover_the_tissue_and_stay_inside_the_slide(seed: int, cut: float) -> None:
    mask = blobs(seed, cut)
    mask[:2] = mask[-2:] = False
    if mask.sum() < 400:
        return
    tissue = tissue_of(mask)
    dimensions = (int(mask.shape[1] * SCALE), int(mask.shape[0] * SCALE))
    corners = np.concatenate(covering_patches(tissue, SIZE, dimensions, 0.5))
    assert (corners >= 0).all()
    assert (corners + SIZE <= dimensions).all()
    assert len(np.unique(corners, axis=0)) == len(corners)
    _, covered, by_piece = shares(tissue, corners)
    assert covered >= 0.95
    assert min(by_piece) >= 0.5


def test_patches_of_a_large_piece_are_at_least_half_tissue() -> None:
    y, x = np.mgrid[:160, :200]
    tissue = tissue_of(np.hypot((y - 80) / 0.7, x - 100) < 90)
    corners = np.concatenate(covering_patches(tissue, SIZE, (3200, 2560), 0.5))
    each, covered, _ = shares(tissue, corners)
    assert each.min() >= 0.48
    assert covered >= 0.97
    assert len(corners) * SIZE**2 < 1.6 * (tissue.labels > 0).sum() * SCALE**2


def test_a_thin_thread_of_tissue_has_patches_all_along_it() -> None:
    mask = np.zeros((160, 200), bool)
    mask[75:85, 5:195] = True
    tissue = tissue_of(mask)
    corners = np.concatenate(covering_patches(tissue, SIZE, (3200, 2560), 0.5))
    _, covered, _ = shares(tissue, corners)
    assert covered >= 0.98
    assert len(corners) <= 8


def test_small_pieces_get_the_patch_around_them() -> None:
    mask = np.zeros((160, 200), bool)
    mask[60:70, 60:70] = mask[120:128, 10:20] = True
    corners = np.concatenate(covering_patches(tissue_of(mask), SIZE, (3200, 2560), 0.5))
    assert sorted(map(tuple, corners.tolist())) == [(0, 1728), (784, 784)]


def test_a_slide_smaller_than_a_patch_has_one_patch() -> None:
    tissue = tissue_of(np.ones((10, 12), bool))
    corners = np.concatenate(covering_patches(tissue, SIZE, (192, 160), 0.5))
    assert corners.tolist() == [[0, 0]]


def test_arrays_hold_patches_of_one_grid_each() -> None:
    tissue = tissue_of(blobs(5, 0.2))
    for grid in covering_patches(tissue, SIZE, (3200, 2560), 0.5):
        assert len(np.unique(grid % SIZE, axis=0)) == 1
