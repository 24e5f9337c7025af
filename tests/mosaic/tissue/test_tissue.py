"""Segmentation: what is found, what is left out, and what is said when nothing is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_fish.errors import NoTissue, SlideError
from napari_fish.mosaic import TissueParams, segment
from napari_fish.mosaic.masks.rings import draw
from napari_fish.mosaic.tissue.contours import Contour
from napari_fish.mosaic.tissue.find import close, read_overview
from tests.mosaic.conftest import ArraySlide, disc, glass, stain

SATURATED = TissueParams(method="saturation", min_tissue=100.0, max_holes=8)
"""The paper's way of telling tissue, with repairs: what the first databases were made with."""


def round_slide(
    mpp: float, radius_um: float = 900, colour: tuple[int, int, int] = (190, 110, 170)
) -> ArraySlide:
    side = round(2400 / mpp)
    where = disc(side, side, side / 2, side / 2, radius_um / mpp)
    return ArraySlide(stain(glass(side, side), where, colour), mpp)


def test_the_contour_follows_a_disc_within_a_few_per_cent() -> None:
    tissue = segment(round_slide(1.0))
    assert len(tissue.contours) == 1
    assert tissue.contours[0].holes == ()
    assert tissue.contours[0].area_um2 == pytest.approx(np.pi * 900**2, rel=0.04)
    outer = np.array(tissue.contours[0].outer)
    assert (outer.min(axis=0) + outer.max(axis=0)) / 2 == pytest.approx([1200, 1200], abs=10)
    assert not tissue.retried


def test_the_same_tissue_is_found_at_any_magnification() -> None:
    areas = [segment(round_slide(mpp)).contours[0].area_um2 for mpp in (2.0, 1.0, 0.7)]
    assert areas == pytest.approx([areas[0]] * 3, rel=0.03)


def test_a_small_piece_is_found_by_the_retry_and_that_is_recorded() -> None:
    slide = round_slide(1.0, radius_um=300)
    tissue = segment(slide, SATURATED)
    assert tissue.retried
    assert tissue.params.min_tissue == 16
    with pytest.raises(NoTissue, match="least area"):
        segment(slide, replace(SATURATED, retry=False))


def test_a_faint_slide_is_found_by_otsu() -> None:
    tissue = segment(round_slide(1.0, colour=(216, 212, 216)), SATURATED)
    assert tissue.retried
    assert tissue.params.otsu
    assert tissue.contours[0].area_um2 == pytest.approx(np.pi * 900**2, rel=0.1)


@pytest.mark.parametrize("noise", [0, 3])
def test_a_blank_slide_has_no_tissue_and_the_reason_is_said(noise: int) -> None:
    rng = np.random.default_rng(0)
    rgb = glass(2000, 2000) + rng.integers(0, noise + 1, (2000, 2000, 3)).astype(np.uint8)
    with pytest.raises(NoTissue, match=r"memory.tif: no tissue found; it looks blank"):
        segment(ArraySlide(rgb))


def slide_with_holes(*radii_um: float) -> ArraySlide:
    where = np.ones((2000, 4000), bool)
    for number, radius in enumerate(radii_um):
        where &= ~disc(2000, 4000, 1000, 500 + 900 * number, radius)
    return ArraySlide(stain(glass(2000, 4000), where), 1.0)


def test_large_holes_are_kept_and_small_ones_filled() -> None:
    contour = segment(slide_with_holes(350, 100)).contours[0]
    assert len(contour.holes) == 1
    assert np.mean(contour.holes[0], axis=0) == pytest.approx([500, 1000], abs=60)
    assert contour.area_um2 == pytest.approx(8e6 - np.pi * 350**2, rel=0.03)


def test_at_most_so_many_holes_are_kept_the_largest_first() -> None:
    contour = segment(slide_with_holes(330, 400, 360), TissueParams(max_holes=2)).contours[0]
    centres = sorted(round(np.mean(ring, axis=0)[0] / 100) for ring in contour.holes)
    assert centres == [14, 23]


def test_drawing_the_contours_gives_the_tissue_back() -> None:
    tissue = segment(slide_with_holes(350, 420))
    rings = [[c.outer, *c.holes] for c in tissue.contours]
    drawn = draw(rings, (4000, 2000), tissue.scale[0])
    found = tissue.labels > 0
    assert (drawn & found).sum() / (drawn | found).sum() > 0.97


def test_a_contour_is_a_plain_value() -> None:
    first, second = (segment(round_slide(1.0)).contours for _ in range(2))
    assert first == second
    assert isinstance(first[0], Contour)
    assert hash(first[0]) == hash(second[0])


def test_strips_and_threads_do_not_change_the_overview() -> None:
    slide = round_slide(1.0)
    whole = slide.read(0, 0, 400, 400, 6.0)
    for threads in (1, 4):
        assert np.array_equal(read_overview(slide, 6.0, threads=threads), whole)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_closing_only_adds(seed: int, side: int) -> None:
    mask = np.random.default_rng(seed).random((23, 31)) < 0.3
    closed = close(mask, side)
    assert (closed >= mask).all()
    assert np.array_equal(close(closed, side), closed)


@pytest.mark.parametrize("kind", ["label", "macro", "thumbnail"])
def test_images_that_may_show_names_are_refused(kind: str) -> None:
    with pytest.raises(SlideError, match=kind):
        segment(ArraySlide(glass(300, 300), kind=kind))


def test_an_unknown_pixel_size_is_refused_with_the_remedy() -> None:
    with pytest.raises(SlideError, match="--mpp"):
        segment(ArraySlide(glass(300, 300), mpp=None))


def test_in_the_papers_terms_areas_are_counted_in_level_0_pixels() -> None:
    slide = round_slide(1.0)
    paper = replace(SATURATED, base_mpp=None, retry=False, downsample=16)
    with pytest.raises(NoTissue, match="preset default"):
        segment(slide, paper)
    # The disc covers 2.54 million px, 9.7 squares of 512 px.
    assert len(segment(slide, replace(paper, min_tissue=9)).contours) == 1
