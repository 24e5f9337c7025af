"""Area averaging: exact weights, exact places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from napari_fish.slides import base, open_slide
from napari_fish.slides.resample import footprint, over_white, resample
from tests.slides.conftest import write_ome_tiff, write_tiff


def plainly_averaged(line: NDArray[np.float64], start: float, step: float, count: int) -> NDArray[np.float64]:
    """Average a line of samples pixel by pixel, the slow way."""
    result = []
    for i in range(count):
        low, high = start + i * step, start + (i + 1) * step
        total = sum(
            max(0.0, min(high, pixel + 1) - max(low, pixel)) * value for pixel, value in enumerate(line)
        )
        result.append(total / step)
    return np.array(result)


@settings(max_examples=60, deadline=None)
@given(
    start=st.floats(0, 5),
    step=st.floats(1, 7),
    count=st.integers(1, 12),
    seed=st.integers(0, 10_000),
)
def test_area_averaging_agrees_with_the_slow_way(start: float, step: float, count: int, seed: int) -> None:
    covered = footprint(start, step, count)
    line = np.random.default_rng(seed).integers(0, 256, len(covered))
    source = np.repeat(line[None, :, None], 3, axis=2).astype(np.uint8)
    got = resample(source, (1, count), (0.0, start - covered.start), (1.0, step))
    expected = plainly_averaged(line.astype(float), start - covered.start, step, count)
    np.testing.assert_allclose(got[0, :, 1], expected, atol=0.51)


@settings(max_examples=40, deadline=None)
@given(step=st.floats(0.11, 9), start=st.floats(-3, 3), value=st.integers(0, 255))
def test_a_flat_image_stays_flat(step: float, start: float, value: int) -> None:
    covered = footprint(start, step, 20)
    source = np.full((len(covered), len(covered), 3), value, np.uint8)
    offset = start - covered.start
    assert (resample(source, (20, 20), (offset, offset), (step, step)) == value).all()


def test_the_finest_pattern_becomes_grey_instead_of_aliasing() -> None:
    board = np.indices((301, 301)).sum(0) % 2 * 255
    source = np.repeat(board[..., None], 3, axis=2).astype(np.uint8)
    small = resample(source, (40, 40), (0.0, 0.0), (7.3, 7.3))
    assert np.abs(small.astype(int) - 127).max() <= 6


def test_enlarging_interpolates_between_pixel_centres() -> None:
    line = np.array([0, 100, 200], np.uint8)
    source = np.repeat(line[None, :, None], 3, axis=2)
    got = resample(source, (1, 4), (0.0, 0.5), (1.0, 0.5))
    np.testing.assert_array_equal(got[0, :, 0], [25, 75, 125, 175])


def test_transparency_over_white_is_exact() -> None:
    rgba = np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [0, 0, 0, 51]]], np.uint8)
    np.testing.assert_array_equal(over_white(rgba), [[[10, 20, 30], [255] * 3, [204] * 3]])


def test_a_read_in_many_blocks_is_the_same_as_in_one(
    tmp_path: Path, scene: NDArray[np.uint8], monkeypatch
) -> None:
    path = write_tiff(tmp_path / "a.tif", scene)
    with open_slide(path) as slide:
        whole = slide.read(-10.3, 5.7, 300, 280, 1.37)
        monkeypatch.setattr(base, "BLOCK_PIXELS", 20_000)
        pieces = slide.read(-10.3, 5.7, 300, 280, 1.37)
    np.testing.assert_array_equal(whole, pieces)


def centroid(image: NDArray[np.uint8], at: tuple[float, float], radius: float) -> NDArray[np.float64]:
    """Return the centre (x, y) in px of a dark spot near a place."""
    y, x = np.mgrid[: image.shape[0], : image.shape[1]] + 0.5
    weight = 255.0 - image[..., 0]
    weight[(x - at[0]) ** 2 + (y - at[1]) ** 2 > radius**2] = 0
    return np.array([(weight * x).sum(), (weight * y).sum()]) / weight.sum()


@pytest.mark.parametrize("factor", [1.0, 1.7, 3.87])
def test_landmarks_stay_in_place_to_half_a_pixel_through_odd_pyramids(tmp_path: Path, factor: float) -> None:
    height, width = 1501, 1877
    y, x = np.mgrid[:height, :width] + 0.5
    image = np.full((height, width, 3), 255, np.uint8)
    spots = [(90.0, 80.0), (1790.0, 95.0), (930.0, 750.0), (120.0, 1410.0), (1760.0, 1420.0)]
    for sx, sy in spots:
        image[(x - sx) ** 2 + (y - sy) ** 2 < 22**2] = 0
    coarse_shape = (round(height / factor), round(width / factor))
    whole = (height / coarse_shape[0], width / coarse_shape[1])
    coarse = resample(image, coarse_shape, (0.0, 0.0), whole)
    path = write_odd_pyramid(tmp_path / "a.tif", image, coarse)
    with open_slide(path, mpp=0.5) as slide:
        for mpp in (0.5, 0.71, 0.5 * factor, 1.0, 2.13):
            scale = mpp / 0.5
            shown = slide.read(0, 0, int(width / scale), int(height / scale), mpp)
            for sx, sy in spots:
                found = centroid(shown, (sx / scale, sy / scale), 60 / scale)
                np.testing.assert_allclose(found, (sx / scale, sy / scale), atol=0.5)


def write_odd_pyramid(path: Path, image: NDArray[np.uint8], coarse: NDArray[np.uint8]) -> Path:
    """Write two levels whose sizes have no whole ratio."""
    import tifffile

    options = {"tile": (256, 256), "compression": "deflate", "photometric": "rgb", "metadata": None}
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(image, **options)
        if coarse.shape != image.shape:
            tiff.write(coarse, subfiletype=1, **options)
    return path


def test_the_coarsest_level_that_is_fine_enough_is_read(
    tmp_path: Path, scene: NDArray[np.uint8], monkeypatch
) -> None:
    path = write_ome_tiff(tmp_path / "a.ome.tif", scene)
    levels = []
    with open_slide(path) as slide:
        decode = slide._decode
        monkeypatch.setattr(slide, "_decode", lambda level, *box: levels.append(level) or decode(level, *box))
        for mpp in (0.25, 0.5, 0.9, 0.99, 1.0, 1.5, 2.0, 50.0):
            slide.read(0, 0, 10, 10, mpp)
    assert levels == [0, 0, 0, 1, 1, 1, 2, 2]


def test_what_scanners_cut_off_at_the_edge_does_not_stretch_the_level(tmp_path: Path) -> None:
    image = np.full((703, 1111, 3), 255, np.uint8)
    image[690:696, 1096:1104] = 0
    coarse = image[:700, :1108].reshape(175, 4, 277, 4, 3).mean((1, 3)).astype(np.uint8)
    with open_slide(write_odd_pyramid(tmp_path / "a.tif", image, coarse), mpp=0.5) as slide:
        assert slide.level_downsamples == (1.0, 4.0)
        corner = slide.read(1080, 676, 7, 6, 2.0)
    np.testing.assert_allclose(centroid(corner, (5, 4), 9) * 4 + (1080, 676), (1100, 693), atol=0.5)
