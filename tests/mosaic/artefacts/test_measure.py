"""What is measured on a patch agrees with the libraries that define it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from skimage.feature import local_binary_pattern

from napari_fish.mosaic.artefacts.measure import (
    colour_histograms,
    grey,
    local_patterns,
    pattern_histogram,
    white_share,
)
from napari_fish.mosaic.artefacts.tiles import FEATURES, TILE, sharpness, tile_features


def grain(seed: int, sigma: float = 1.0, side: int = 256) -> np.ndarray:
    rng = np.random.default_rng(seed)
    # As strong at every scale, as tissue is.
    octaves = [ndimage.gaussian_filter(rng.standard_normal((side, side)), sigma * 2**k) for k in range(5)]
    noise = sum(octave / octave.std() for octave in octaves)
    grey_levels = np.clip(170 + 35 * noise / noise.std(), 0, 255)
    return np.stack([grey_levels, grey_levels * 0.7, grey_levels * 0.9], axis=2).astype(np.uint8)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.integers(3, 40), st.integers(1, 255))
def test_local_patterns_are_those_of_scikit_image(seed: int, rows: int, columns: int, depth: int) -> None:
    image = np.random.default_rng(seed).integers(0, depth + 1, (rows, columns)).astype(np.uint8)
    assert np.array_equal(local_patterns(image), local_binary_pattern(image, 8, 1, "ror"))


def test_the_pattern_histogram_is_a_density_over_0_to_128() -> None:
    patterns = local_patterns(grey(grain(0)))
    wanted, _ = np.histogram(patterns, bins=128, range=(0, 128), density=True)
    assert pattern_histogram(patterns) == pytest.approx(wanted)


def test_the_colour_histograms_are_three_times_256_bins() -> None:
    rgb = grain(1)
    wanted = np.concatenate([np.histogram(rgb[..., c], 256, (0, 256))[0] for c in range(3)])
    assert np.array_equal(colour_histograms(rgb), wanted)


def test_white_is_brighter_than_the_level_not_as_bright() -> None:
    image = np.array([[235, 236], [0, 255]], np.uint8)
    assert white_share(image, 235) == 0.5


def test_tiles_know_their_tissue_and_every_feature_is_finite() -> None:
    rgb = grain(2)
    rgb[:TILE, :TILE] = 255
    image = grey(rgb)
    tiles = tile_features(rgb, image, local_patterns(image))
    assert tiles.shape == (16, len(FEATURES))
    assert np.isfinite(tiles).all()
    share = tiles[:, FEATURES.index("share of tissue")]
    assert share[0] == 0
    assert (share[1:] > 0.5).all()


def test_sharpness_falls_with_defocus_and_hardly_with_contrast() -> None:
    def focus(rgb: np.ndarray) -> float:
        image = grey(rgb)
        return sharpness(tile_features(rgb, image, local_patterns(image)))

    sharp = grain(3)
    values = [
        focus(np.rint(ndimage.gaussian_filter(sharp.astype(float), (s, s, 0))).astype(np.uint8))
        for s in (0.4, 0.8, 1.4, 2.2, 4.0)
    ]
    assert values[:3] == sorted(values[:3], reverse=True)
    # Nothing is left to measure of an image blurred beyond all detail, yet it must not look sharp.
    assert max(values[2:]) < values[1] - 0.2
    pale = (150 + (sharp.astype(float) - 150) * 0.5).astype(np.uint8)
    assert focus(pale) == pytest.approx(focus(sharp), abs=0.1)
