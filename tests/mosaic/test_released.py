"""The preset released against a plain transcription of what the published program computes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from napari_fish.encode import EncodeJob
from napari_fish.errors import Cancelled, NoTissue, SlideError
from napari_fish.mosaic import Mosaic, MosaicParams, make_mosaic, preset, segment
from napari_fish.mosaic import mosaic as mosaic_module
from napari_fish.mosaic import released as rules
from napari_fish.mosaic.artefacts.filters import Measured, Measurer
from napari_fish.mosaic.tissue.find import median_filtered
from napari_fish.slides import open_slide
from napari_fish.slides.bicubic import read_bicubic
from tests.mosaic.conftest import ArraySlide, disc, glass, stain

RELEASED = preset("released")


class Levels(ArraySlide):
    """A slide whose levels have the sizes that the test wants; all but the pixels of level 0 are grey."""

    def __init__(self, sizes: list[tuple[int, int]], properties: dict[str, str] | None = None) -> None:
        super().__init__(np.full((8, 8, 3), 200, np.uint8))
        self.level_dimensions = tuple(sizes)
        self.properties = properties or {}


def small(**changes: object) -> MosaicParams:
    """The preset with patches of 64 px, and small pieces of tissue kept."""
    return replace(
        RELEASED,
        patch=64,
        artefacts="off",
        tissue=replace(RELEASED.tissue, downsample=4, min_tissue=1 / 256, min_hole=1 / 256),
        **changes,
    )


def plain_saturation(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Compute S pixel by pixel: a table of 255/V in 1/4096, multiplied, and rounded half up."""
    result = np.zeros(rgb.shape[:2], np.uint8)
    for row, column in np.ndindex(*rgb.shape[:2]):
        r, g, b = map(int, rgb[row, column])
        high, low = max(r, g, b), min(r, g, b)
        factor = round(255 * 4096 / high) if high else 0
        result[row, column] = ((high - low) * factor + 2048) // 4096
    return result


def plain_median(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    rows, columns = image.shape
    result = np.empty_like(image)
    for row, column in np.ndindex(rows, columns):
        around = [
            image[min(max(row + i, 0), rows - 1), min(max(column + j, 0), columns - 1)]
            for i in range(-(side // 2), side // 2 + 1)
            for j in range(-(side // 2), side // 2 + 1)
        ]
        result[row, column] = sorted(around)[side * side // 2]
    return result


def plain_close(mask: NDArray[np.bool_], side: int) -> NDArray[np.bool_]:
    """Dilate, then erode; both look from side // 2 before a pixel on, and neither looks beyond the image."""

    def looked_at(image: NDArray[np.bool_], row: int, column: int) -> NDArray[np.bool_]:
        top, left = row - side // 2, column - side // 2
        return image[max(top, 0) : top + side, max(left, 0) : left + side]

    grown = np.array([[looked_at(mask, i, j).any() for j in range(mask.shape[1])] for i in range(len(mask))])
    return np.array([[looked_at(grown, i, j).all() for j in range(mask.shape[1])] for i in range(len(mask))])


@pytest.mark.parametrize(
    ("sizes", "level"),
    [
        ([(6400, 6400)], 0),
        ([(6400, 6400), (1600, 1600), (400, 400), (100, 100)], 3),
        ([(6400, 6400), (1600, 1600), (400, 400), (50, 50)], 2),
        ([(64000, 64000), (16000, 16000), (4000, 4000), (999, 999)], 2),
        ([(6400, 6400), (50, 50)], 0),
    ],
    ids=["single", "at most 64", "128 is too coarse", "64.06 is too coarse", "nothing between"],
)
def test_tissue_is_sought_on_the_level_that_openslide_gives_for_64(
    sizes: list[tuple[int, int]], level: int
) -> None:
    assert rules.best_level(Levels(sizes), 64) == level


def test_what_openslide_says_of_a_level_counts_before_the_sizes_of_the_levels() -> None:
    sizes = [(64000, 64000), (1000, 1000)]
    assert rules.best_level(Levels(sizes), 64) == 1
    assert rules.best_level(Levels(sizes, {"openslide.level[1].downsample": "64.2"}), 64) == 0


def test_the_level_of_a_real_slide_is_openslides(real_data: Path) -> None:
    import openslide

    for name in ("tcga-du-6399.svs", "cmu-1-small-region.svs", "prostate-pyramid.tiff"):
        path = real_data / "slides" / name
        with open_slide(path, mpp=0.5) as slide, openslide.OpenSlide(path) as theirs:
            for downsample in (1, 3.9, 4, 4.1, 16, 16.1, 64):
                wanted = theirs.get_best_level_for_downsample(downsample)
                assert rules.best_level(slide, downsample) == wanted


def test_saturation_is_rounded_as_opencv_rounds_it() -> None:
    every = np.array([(v, v - d, v - d) for v in range(256) for d in range(v + 1)], np.uint8)[None]
    wanted = plain_saturation(every)
    np.testing.assert_array_equal(rules.opencv_saturation(every), wanted)
    # 8.5 of 255 is tissue in OpenCV, which makes it 9.
    assert rules.opencv_saturation(np.array([[[30, 29, 29]]], np.uint8)) == 9


@pytest.mark.parametrize("shape", [(1, 1), (3, 9), (20, 17)])
def test_the_median_repeats_the_border(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 30, shape).astype(np.uint8)
    np.testing.assert_array_equal(median_filtered(image, 7), plain_median(image, 7))


@pytest.mark.parametrize("side", [1, 3, 4, 5])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.6, 0.95])
def test_closing_is_that_of_opencv_up_to_the_border(side: int, share: float) -> None:
    mask = np.random.default_rng(side).random((19, 23)) < share
    np.testing.assert_array_equal(rules.opencv_close(mask, side), plain_close(mask, side))


def test_closing_with_an_even_square_moves_the_mask_by_one_right_and_down() -> None:
    mask = np.zeros((30, 40), bool)
    mask[8:20, 10:25] = True
    moved = np.zeros_like(mask)
    moved[9:21, 11:26] = True
    np.testing.assert_array_equal(rules.opencv_close(mask, 4), moved)
    np.testing.assert_array_equal(rules.opencv_close(mask, 5), mask)


def test_tissue_is_found_in_the_pixels_of_the_level() -> None:
    rgb = stain(glass(400, 480), disc(400, 480, 200, 230, 130) & ~disc(400, 480, 200, 230, 50))
    slide = ArraySlide(rgb)
    params = small().tissue
    level = slide.levels[2]
    mask = plain_close(plain_median(plain_saturation(level), 7) > 8, 4)
    tissue = segment(slide, params)
    assert tissue.scale == (4.0, 4.0)
    np.testing.assert_array_equal(tissue.labels > 0, mask)
    assert (tissue.holes > 0).sum() > 300
    assert segment(ArraySlide(rgb, levels=1), params).scale == (1.0, 1.0)


@pytest.mark.parametrize("area", [100, 144])
def test_areas_are_counted_in_squares_of_512_level_0_pixels(area: int) -> None:
    rgb = glass(512, 512)
    side = 4 * math.isqrt(area)
    stain(rgb, np.pad(np.ones((side, side), bool), ((100, 412 - side), (100, 412 - side))))
    slide = ArraySlide(rgb)
    found = int(plain_close(plain_median(plain_saturation(slide.levels[2]), 7) > 8, 4).sum())
    # 512 level-0 px are 128 px of this level; a piece must be larger than the least area.
    enough = replace(small().tissue, min_tissue=(found - 1) / 128**2)
    assert len(segment(slide, enough).contours) == 1
    with pytest.raises(NoTissue, match="least area"):
        segment(slide, replace(enough, min_tissue=found / 128**2))


def two_pieces() -> ArraySlide:
    """A slide with a piece for several patches of 64 px, and one for a single patch."""
    rgb = glass(512, 640)
    where = np.zeros((512, 640), bool)
    where[40:296, 40:300] = where[400:450, 500:550] = True
    return ArraySlide(stain(rgb, where))


def places(mosaic: Mosaic) -> list[tuple[int, int]]:
    return [(p.x, p.y) for p in mosaic.candidates]


def test_patches_come_column_by_column_and_a_single_patch_of_a_piece_is_left_out() -> None:
    slide = two_pieces()
    rows = make_mosaic(slide, small(placement="grid"))
    columns = make_mosaic(slide, small())
    single = [place for place in places(rows) if place[0] > 400]
    assert len(single) == 1
    assert places(rows)[:-1] == sorted(places(columns), key=lambda place: (place[1], place[0]))
    assert places(columns) == sorted(places(columns))
    assert len(columns.contours) == 2


def test_a_slide_of_single_patches_has_no_mosaic_unless_a_person_says_where_tissue_is() -> None:
    rgb = glass(512, 640)
    where = np.zeros((512, 640), bool)
    where[400:450, 500:550] = True
    slide = ArraySlide(stain(rgb, where))
    with pytest.raises(NoTissue, match="more than one patch"):
        make_mosaic(slide, small())
    assert len(make_mosaic(slide, small(), where).candidates) == 1


def at_40x() -> ArraySlide:
    """A 40x slide of noise, which every filter renders differently."""
    rng = np.random.default_rng(3)
    return ArraySlide(rng.integers(0, 256, (300, 340, 3)).astype(np.uint8), 0.25)


def as_published(slide: ArraySlide, x: int, y: int, side: int, size: int) -> NDArray[np.uint8]:
    """Pillow's crop is black outside the picture."""
    patch = Image.fromarray(slide.levels[0]).crop((x, y, x + side, y + side))
    return np.asarray(patch.resize((size, size), Image.Resampling.BICUBIC))


@pytest.mark.parametrize(
    ("x", "y"), [(20, 30), (250, 30), (20, 200), (300, 250), (-40, -70), (400, 400), (-128, 0)]
)
def test_a_patch_is_reduced_by_pillows_bicubic_filter_and_black_outside_the_slide(x: int, y: int) -> None:
    slide = at_40x()
    wanted = as_published(slide, x, y, 128, 64)
    np.testing.assert_array_equal(read_bicubic(slide, x, y, 128, 64), wanted)
    job = EncodeJob(slide, [(x, y, 128)], None, "bicubic")
    np.testing.assert_array_equal(job.read(job.patches[0], 64, 0.5), wanted)
    unresized = as_published(slide, x, y, 128, 128)
    np.testing.assert_array_equal(read_bicubic(slide, x, y, 128, 128), unresized)


def test_patches_are_measured_on_what_the_encoder_sees_reduced_by_the_same_filter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    class Recording(Measurer):
        def __call__(self, rgb: NDArray[np.uint8]) -> Measured:
            seen.append(rgb)
            return super().__call__(rgb)

    monkeypatch.setattr(mosaic_module, "Measurer", Recording)
    slide = at_40x()
    mosaic = make_mosaic(slide, small(share=0.0), threads=1)
    assert mosaic.patch_size == 128
    beyond = [p for p in mosaic.candidates if p.x + 128 > 340 or p.y + 128 > 300]
    assert beyond
    for patch in mosaic.candidates:
        whole = Image.fromarray(as_published(slide, patch.x, patch.y, 128, 64))
        wanted = np.asarray(whole.resize((16, 16), Image.Resampling.BICUBIC))
        assert any(np.array_equal(rgb, wanted) for rgb in seen)


def test_a_level_too_large_to_look_at_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "LARGEST_LEVEL", 1000)
    with pytest.raises(SlideError, match="preset default or paper"):
        segment(two_pieces(), RELEASED.tissue)


def test_looking_for_tissue_can_be_stopped() -> None:
    with pytest.raises(Cancelled):
        segment(two_pieces(), RELEASED.tissue, should_stop=lambda: True)


def test_patterns_are_measured_at_256_px_in_the_paper_and_in_the_released_program() -> None:
    for name in ("paper", "released"):
        assert preset(name).artefact_model == "lbp"
        assert Measurer(preset(name)).side == 256


def test_a_database_of_an_earlier_version_is_read_as_it_was() -> None:
    earlier = preset("paper").to_dict()
    del earlier["reading"]
    assert MosaicParams.from_dict(earlier) == preset("paper")


def test_a_brain_slide_keeps_its_patches(real_data: Path) -> None:
    with open_slide(real_data / "slides" / "tcga-du-6399.svs") as slide:
        mosaic = make_mosaic(slide, RELEASED)
    assert len(mosaic.contours) == 2
    assert (len(mosaic.candidates), mosaic.dropped_counts) == (23, {})
    first = [p for p in mosaic.candidates if p.x > 10_000]
    assert first == sorted(first, key=lambda p: (p.x, p.y))
