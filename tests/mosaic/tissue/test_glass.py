"""Tissue beside glass of any colour and light, and pictures that hold none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.errors import NoTissue
from napari_fish.mosaic import TissueParams, make_mosaic, segment
from napari_fish.mosaic.tissue import Tissue
from tests.mosaic.conftest import ArraySlide, disc

MPP = 2.0
SIDE = 1200


def fabric(seed: int = 0, strength: float = 1.0) -> NDArray[np.float32]:
    """Light that passes tissue with cells: dark blobs of 8 µm in a paler ground."""
    rng = np.random.default_rng(seed)
    cells = ndimage.gaussian_filter(rng.standard_normal((SIDE, SIDE)), 2.0)
    cells = np.clip(cells / cells.std(), 0, 2)[..., None]
    density = 0.25 * np.array([0.3, 1.0, 0.4]) + 0.35 * cells * np.array([0.9, 1.0, 0.4])
    return np.exp(-strength * density).astype(np.float32)


def slide_on(
    light: NDArray[np.float32], where: NDArray[np.bool_], strength: float = 1.0, noise: float = 1.0
) -> ArraySlide:
    """Tissue where the mask says, on glass that lets this light through."""
    rng = np.random.default_rng(1)
    rgb = light * np.where(where[..., None], fabric(strength=strength), 1)
    return ArraySlide(np.clip(rgb + rng.normal(0, noise, rgb.shape), 0, 255).astype(np.uint8), MPP)


def even(*colour: float) -> NDArray[np.float32]:
    return np.full((SIDE, SIDE, 3), colour, np.float32)


def iou(tissue: Tissue, where: NDArray[np.bool_]) -> float:
    found = ndimage.zoom(tissue.labels > 0, np.array(where.shape) / tissue.labels.shape, order=0)
    rows, columns = (min(a, b) for a, b in zip(found.shape, where.shape, strict=True))
    found, where = found[:rows, :columns], where[:rows, :columns]
    return float((found & where).sum() / (found | where).sum())


ROUND = disc(SIDE, SIDE, 600, 600, 350)


@pytest.mark.parametrize(
    "colour", [(243, 243, 243), (240, 215, 235), (235, 235, 200), (200, 215, 230), (170, 170, 170)]
)
def test_glass_of_any_tint_is_glass(colour: tuple[int, int, int]) -> None:
    tissue = segment(slide_on(even(*colour), ROUND))
    assert len(tissue.contours) == 1
    assert iou(tissue, ROUND) > 0.93


def test_a_vignette_is_not_tissue() -> None:
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE - 0.5
    light = even(245, 240, 235) * (1 - 0.7 * (x * x + y * y))[..., None]
    assert iou(segment(slide_on(light.astype(np.float32), ROUND)), ROUND) > 0.93


@pytest.mark.parametrize("strength", [0.1, 0.3, 2.5])
def test_faint_and_dark_stains_are_tissue(strength: float) -> None:
    assert iou(segment(slide_on(even(243, 243, 243), ROUND, strength)), ROUND) > 0.9


def test_a_smear_of_stain_beside_the_tissue_is_not_tissue() -> None:
    y, x = np.mgrid[:SIDE, :SIDE]
    smear = 0.3 * np.exp(-(((x - 900) / 150) ** 2) - ((y - 600) / 250) ** 2)
    light = even(243, 240, 243) * (1 - smear[..., None] * np.array([0.1, 1.0, 0.4]))
    assert iou(segment(slide_on(light.astype(np.float32), ROUND)), ROUND) > 0.93


def test_every_small_piece_is_found_however_large_its_neighbours() -> None:
    where = disc(SIDE, SIDE, 450, 450, 380)
    small = [(1080, 100), (1080, 300), (1080, 500), (100, 1080), (300, 1080), (900, 1000)]
    for y, x in small:
        where |= disc(SIDE, SIDE, y, x, 66)  # 0.055 mm²
    slide = slide_on(even(243, 243, 243), where)
    tissue = segment(slide)
    assert len(tissue.contours) == 1 + len(small)
    mosaic = make_mosaic(slide)
    for y, x in small:
        assert any(
            p.x < x < p.x + mosaic.patch_size and p.y < y < p.y + mosaic.patch_size for p in mosaic.candidates
        )


def test_a_picture_that_is_tissue_from_edge_to_edge_loses_nothing() -> None:
    tissue = segment(slide_on(even(235, 230, 235), np.ones((SIDE, SIDE), bool)))
    assert (tissue.labels > 0).mean() > 0.995


def test_tissue_that_touches_the_border_reaches_it() -> None:
    where = np.zeros((SIDE, SIDE), bool)
    where[:, :500] = True
    tissue = segment(slide_on(even(243, 243, 243), where))
    assert (tissue.labels[:, 0] > 0).all()
    assert iou(tissue, where) > 0.95


@pytest.mark.parametrize("border", [0, 255])
def test_a_border_without_a_picture_is_not_tissue(border: int) -> None:
    slide = slide_on(even(240, 238, 240), ROUND)
    rgb = slide.levels[0].copy()
    rgb[:150], rgb[:, 1100:] = border, border
    assert iou(segment(ArraySlide(rgb, MPP)), ROUND) > 0.92


def test_a_black_frame_around_nothing_but_tissue_is_not_tissue() -> None:
    rgb = slide_on(even(235, 230, 235), np.ones((SIDE, SIDE), bool)).levels[0].copy()
    inner = np.zeros((SIDE, SIDE), bool)
    inner[200:1000, 200:1000] = True
    rgb[~inner] = 0
    assert iou(segment(ArraySlide(rgb, MPP)), inner) > 0.92


def test_stripes_of_a_scanner_are_not_tissue() -> None:
    light = even(240, 240, 240)
    light[::80] -= 14
    light[400:480] -= 6
    assert iou(segment(slide_on(light, ROUND)), ROUND) > 0.9


@pytest.mark.parametrize("band", [0, 255])
def test_bands_that_a_scanner_left_out_do_not_hide_the_tissue_beside_them(band: int) -> None:
    rgb = slide_on(even(240, 240, 240), ROUND).levels[0].copy()
    lost = np.zeros((SIDE, SIDE), bool)
    for top in (420, 600, 780):
        lost[top : top + 40] = True
    lost[:, 500:530] = True
    rgb[lost] = band
    slide = ArraySlide(rgb, MPP)
    tissue = segment(slide)
    assert iou(tissue, ROUND & ~lost) > 0.9
    mosaic = make_mosaic(slide)
    assert mosaic.tissue_mm2 < 1.1 * ROUND.sum() * MPP**2 / 1e6
    assert mosaic.patches


def blank(*colour: float, noise: float = 1.0) -> NDArray[np.uint8]:
    rng = np.random.default_rng(3)
    return np.clip(even(*colour) + rng.normal(0, noise, (SIDE, SIDE, 3)), 0, 255).astype(np.uint8)


def inked(*colour: float) -> NDArray[np.uint8]:
    rng = np.random.default_rng(4)
    streaks = ndimage.gaussian_filter(rng.standard_normal((SIDE, SIDE)), (2, 40))
    return np.clip(even(*colour) * (1 + 0.05 * streaks / streaks.std())[..., None], 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    "rgb",
    [
        pytest.param(blank(243, 243, 243), id="glass"),
        pytest.param(blank(238, 215, 232), id="tinted glass"),
        pytest.param(blank(0, 0, 0), id="black"),
        pytest.param(blank(0, 0, 0, noise=0), id="nothing"),
        pytest.param(blank(170, 60, 130), id="one colour"),
        pytest.param(inked(40, 60, 160), id="blue ink"),
        pytest.param(inked(20, 22, 25), id="black ink"),
        pytest.param(inked(30, 120, 60), id="green ink"),
    ],
)
def test_a_picture_without_tissue_is_said_to_have_none(rgb: NDArray[np.uint8]) -> None:
    with pytest.raises(NoTissue, match=r"memory.tif: no tissue found; .*mask"):
        segment(ArraySlide(rgb, MPP))


def test_dust_and_threads_are_not_tissue() -> None:
    rgb = slide_on(even(243, 243, 243), ROUND).levels[0].copy()
    rng = np.random.default_rng(5)
    for _ in range(40):
        rgb[disc(SIDE, SIDE, *rng.uniform(0, SIDE, 2), rng.uniform(2, 18))] = (70, 65, 60)
    rgb[40:48, :] = rgb[:, 1150:1156] = (90, 90, 100)
    tissue = segment(ArraySlide(rgb, MPP))
    assert len(tissue.contours) == 1


def test_a_higher_sensitivity_finds_what_is_fainter() -> None:
    slide = slide_on(even(243, 243, 243), ROUND, 0.03, noise=0.3)
    with pytest.raises(NoTissue, match="sensitivity"):
        segment(slide)
    assert iou(segment(slide, replace(TissueParams(), sensitivity=4)), ROUND) > 0.6
