"""Pen and dirt beside tissue are no pieces of it, and no piece of tissue is lost for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage

from napari_fish.mosaic import make_mosaic, segment
from napari_fish.mosaic.params import TissueParams
from napari_fish.mosaic.tissue import Tissue, regions
from napari_fish.mosaic.tissue.represented import brought_back
from napari_fish.mosaic.values import Patch
from tests.mosaic.conftest import ArraySlide, disc
from tests.mosaic.tissue.test_glass import MPP, ROUND, SIDE, even, fabric, slide_on


def drawn(points: list[tuple[float, float]], width: int) -> NDArray[np.float32]:
    """A line, 0 to 1, with soft edges."""
    layer = Image.new("L", (SIDE, SIDE))
    ImageDraw.Draw(layer).line(points, fill=255, width=width, joint="curve")
    return np.asarray(ndimage.gaussian_filter(np.asarray(layer, np.float32) / 255, 1.0))


def with_line(
    rgb: NDArray[np.uint8], line: NDArray[np.float32], colour: tuple[int, int, int], opaque: float = 0.9
) -> ArraySlide:
    """Draw over a picture, with the streaks of a pen."""
    rough = ndimage.gaussian_filter(np.random.default_rng(8).standard_normal((SIDE, SIDE)), (2, 25))
    cover = (line * np.clip(opaque + 0.08 * rough / rough.std(), 0, 1))[..., None]
    light = rgb * (1 - cover * (1 - np.asarray(colour, np.float32) / 255))
    return ArraySlide(light.astype(np.uint8), MPP)


@pytest.mark.parametrize("colour", [(170, 30, 40), (20, 20, 25)], ids=["red", "black"])
def test_a_pen_stroke_on_bare_glass_is_no_piece_of_tissue(colour: tuple[int, int, int]) -> None:
    rgb = slide_on(even(243, 243, 243), ROUND).levels[0]
    slide = with_line(rgb, drawn([(80.0, 1100.0), (500.0, 1080.0), (600.0, 1120.0)], 90), colour)
    assert len(segment(slide).contours) == 1


def test_a_fibre_that_closes_loops_is_no_piece_of_tissue() -> None:
    rgb = slide_on(even(243, 243, 243), ROUND).levels[0]
    steps = np.random.default_rng(6).normal(0, 25, (30, 2))
    fibre = [(float(x), float(y)) for x, y in np.array([1060, 130]) + np.cumsum(steps, axis=0)]
    slide = with_line(rgb, drawn(fibre, 8), (90, 90, 95), 0.7)
    assert len(segment(slide).contours) == 1


@pytest.mark.parametrize("colour", [(150, 60, 70), (110, 110, 110)], ids=["red", "grey"])
def test_where_all_tissue_has_one_hue_it_is_the_stain(colour: tuple[int, int, int]) -> None:
    grain = fabric()[..., 1:2] ** (-np.log(np.asarray(colour, np.float32) / 243))
    where = ROUND | disc(SIDE, SIDE, 1100, 150, 80)
    rgb = np.where(where[..., None], 243 * grain, 243).astype(np.uint8)
    assert len(segment(ArraySlide(rgb, MPP)).contours) == 2


def test_red_tissue_with_little_blue_stays_beside_other_tissue() -> None:
    """Bone and blood are of one hue, but not of that of red ink."""
    small = disc(SIDE, SIDE, 1100, 150, 80)
    rgb = slide_on(even(243, 243, 243), ROUND).levels[0].astype(np.float32)
    red = np.exp(-(0.5 + 0.1 * fabric()[..., :1]) * np.array([0.22, 1.0, 0.7]))
    rgb[small] = 243 * red[small]
    assert len(segment(ArraySlide(rgb.astype(np.uint8), MPP)).contours) == 2


def two_pieces(sure: bool = True) -> Tissue:
    """Two pieces of tissue of 32 px at a scale of 16; a patch of 512 px holds one."""
    mask = np.zeros((64, 160), bool)
    mask[16:48, 16:48] = mask[16:48, 112:144] = True
    found = regions(mask, (16.0, 16.0), TissueParams(min_tissue=0.0), 1.0, 1.0)
    assert found is not None
    return Tissue(
        found.labels, found.holes, found.scale, found.contours, found.params, sure=mask if sure else None
    )


def test_a_piece_all_of_whose_patches_went_gets_its_least_suspicious_one_back() -> None:
    patches = [
        Patch(256, 256, artefact=0.1),
        Patch(1792, 256, artefact=0.99, reason="ink"),
        Patch(1728, 256, artefact=0.95, reason="debris"),
        Patch(1400, 256, artefact=0.9, reason="ink"),
    ]
    back = brought_back(two_pieces(), patches, 512)
    assert [patch.reason for patch in back] == ["", "ink", "", "ink"]
    assert brought_back(two_pieces(sure=False), patches, 512) == patches


def test_a_piece_that_is_still_represented_gets_nothing_back() -> None:
    patches = [Patch(256, 256), Patch(1792, 256), Patch(1700, 256, artefact=0.9, reason="ink")]
    assert brought_back(two_pieces(), patches, 512) == patches


def test_tissue_with_pen_up_to_its_edge_keeps_a_patch(real_data: Path) -> None:
    """A core of real tissue of 0.2 mm² in an arc of black pen, beside a larger one."""
    images = sorted((real_data / "tissue" / "train" / "brca").rglob("*.jpg"))
    where, cloth = np.zeros((SIDE, SIDE), bool), np.ones((SIDE, SIDE, 3), np.float32)
    for number, (y, x, radius) in enumerate(((420, 420, 300), (1000, 1000, 125))):
        with Image.open(images[number]) as file:
            tile = np.asarray(file.convert("RGB").resize((160, 160), Image.Resampling.BOX), np.float32)
        round_ = disc(SIDE, SIDE, y, x, radius)
        cloth[round_] = np.pad(tile / 243, ((0, SIDE - 160), (0, SIDE - 160), (0, 0)), mode="symmetric")[
            round_
        ]
        where |= round_
    ring = disc(SIDE, SIDE, 1000, 1000, 195) & ~disc(SIDE, SIDE, 1000, 1000, 140)
    rgb = np.clip(243 * np.minimum(cloth, 1), 0, 255).astype(np.uint8)
    slide = with_line(rgb, ndimage.gaussian_filter(ring.astype(np.float32), 1.0), (20, 20, 25))
    mosaic = make_mosaic(slide)
    assert any(
        p.x < 1000 < p.x + mosaic.patch_size and p.y < 1000 < p.y + mosaic.patch_size
        for p in mosaic.candidates
    )
