"""The grid of patches, and how it is read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_fish.mosaic import TissueParams, preset
from napari_fish.mosaic.grid import blocks, patch_size, patches_on
from napari_fish.mosaic.tissue import Tissue, regions


def random_tissue(seed: int, share: float = 0.6) -> Tissue:
    rng = np.random.default_rng(seed)
    coarse = rng.random((9, 12)) < share
    coarse[4, 5] = True
    mask = np.kron(coarse, np.ones((5, 5), bool))
    params = TissueParams(min_tissue=0, min_hole=0)
    tissue = regions(mask, (10.0, 10.0), params, 1.0, 0.5)
    assert tissue is not None
    return tissue


@pytest.mark.parametrize(
    ("mpp", "default", "paper"),
    [(0.5, 1024, 1024), (0.25, 2048, 2048), (0.2457, 2084, 2048), (0.4, 1280, 1024)],
)
def test_a_patch_covers_512_micrometres_or_the_papers_pixels(mpp: float, default: int, paper: int) -> None:
    assert patch_size(mpp, preset()) == default
    assert patch_size(mpp, preset("paper")) == paper


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(20, 260))
def test_a_patch_is_in_by_its_quarter_points_and_the_holes(seed: int, size: int) -> None:
    tissue = random_tissue(seed)

    def at(image: np.ndarray, x: float, y: float) -> int:
        row, column = int(y // 10), int(x // 10)
        return int(image[row, column]) if row < image.shape[0] and column < image.shape[1] else 0

    for label, corners in enumerate(patches_on(tissue, size), start=1):
        rows, columns = np.nonzero(tissue.labels == label)
        left, top = 10 * columns.min(), 10 * rows.min()
        wanted = []
        for y in np.arange(top, 10 * (rows.max() + 1), size):
            for x in np.arange(left, 10 * (columns.max() + 1), size):
                points = [
                    (x + size / 2 + a * size / 4, y + size / 2 + b * size / 4)
                    for a in (-1, 1)
                    for b in (-1, 1)
                ]
                inside = any(at(tissue.labels, *point) == label for point in points)
                if inside and at(tissue.holes, x + size / 2, y + size / 2) != label:
                    wanted.append((x, y))
        assert [tuple(c) for c in corners.tolist()] == wanted


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(30, 120), st.integers(1, 5))
def test_blocks_hold_every_patch_once_in_its_place(seed: int, size: int, side: int) -> None:
    corners = patches_on(random_tissue(seed), size)
    places = np.concatenate(corners)
    seen = {}
    for block in blocks(corners, size, side):
        assert max(block.columns, block.rows) <= side
        for number, column, row in block.members:
            assert number not in seen
            seen[number] = (block.x + column * size, block.y + row * size)
    assert [seen[i] for i in range(len(places))] == [tuple(p) for p in places.tolist()]
