"""Compiled windows measure what SciPy's filters do."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.tissue.contours import simplified
from napari_fish.mosaic.tissue.glass import LIGHT
from napari_fish.mosaic.tissue.windows import closed, densities, grown, mean_and_texture, opened, tightened

SIZES = st.tuples(st.integers(1, 30), st.integers(1, 30))


def blobs(seed: int, shape: tuple[int, int]) -> NDArray[np.bool_]:
    return np.asarray(ndimage.gaussian_filter(np.random.default_rng(seed).standard_normal(shape), 1.5) > 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), SIZES, st.sampled_from([3, 5, 9]))
def test_mean_and_texture_are_those_of_a_mirrored_square(
    seed: int, shape: tuple[int, int], side: int
) -> None:
    rgb = np.random.default_rng(seed).integers(0, 256, (*shape, 3)).astype(np.uint8)
    mean, texture = mean_and_texture(rgb, LIGHT, side)
    light = LIGHT[rgb].astype(np.float64)
    expected = ndimage.uniform_filter(light, (side, side, 1))
    variance = (ndimage.uniform_filter(light**2, (side, side, 1)) - expected**2).mean(axis=2)
    np.testing.assert_allclose(mean, expected, atol=1e-5)
    np.testing.assert_allclose(texture, np.sqrt(np.maximum(variance, 0)), atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), SIZES, st.integers(1, 6))
def test_growing_closing_and_opening_are_those_of_a_square(
    seed: int, shape: tuple[int, int], side: int
) -> None:
    mask = blobs(seed, shape)
    square = np.ones((side, side), bool)
    assert (grown(mask, side) == ndimage.maximum_filter(mask, side)).all()
    padded = np.pad(mask, 2 * side, mode="edge")
    inside = (slice(2 * side, -2 * side),) * 2
    assert (closed(mask, side) == (ndimage.binary_closing(padded, square)[inside] | mask)).all()
    assert (opened(mask, side) == (ndimage.binary_opening(padded, square)[inside] & mask)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), SIZES)
def test_only_pale_px_of_the_rim_are_left_out(seed: int, shape: tuple[int, int]) -> None:
    mask, dark = blobs(seed, shape), np.random.default_rng(seed).random(shape, np.float32)
    inner = ndimage.minimum_filter(mask, 5, mode="nearest")
    strongest = ndimage.maximum_filter(dark, 5)
    assert (tightened(mask, dark, 0.35) == (mask & (inner | (dark >= 0.35 * strongest)))).all()


def test_density_is_measured_from_a_curved_field_of_light() -> None:
    rng = np.random.default_rng(2)
    rgb = rng.integers(0, 256, (20, 31, 3)).astype(np.uint8)
    light = rng.normal(0, 0.2, (6, 3))
    y, x = np.meshgrid(np.linspace(-1, 1, 20), np.linspace(-1, 1, 31), indexing="ij")
    field = np.stack([np.ones_like(y), y, x, y * y, x * x, x * y], axis=-1) @ light
    density, dark = densities(rgb, LIGHT, light)
    np.testing.assert_allclose(density, field - LIGHT[rgb], atol=1e-5)
    assert (dark == density.max(axis=2)).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_point_of_an_outline_strays_farther_than_the_tolerance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    line = np.cumsum(rng.choice([-0.5, 0.0, 0.5], (300, 2)), axis=0)
    stays = np.nonzero(simplified(line, 0.6))[0]
    assert (stays[0], stays[-1]) == (0, 299)
    assert len(stays) < 200
    for first, last in pairwise(stays):
        start, way = line[first], line[last] - line[first]
        part = line[first : last + 1] - start
        along = np.clip(part @ way / max(1e-12, way @ way), 0, 1)
        assert np.hypot(*(part - along[:, None] * way).T).max() <= 0.6 + 1e-9
