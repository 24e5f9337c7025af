"""From a slide to its mosaic."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from napari_fish.errors import Cancelled, NoTissue, SlideError
from napari_fish.mosaic import Mosaic, Patch, make_mosaic, preset
from napari_fish.mosaic.draw import draw_mosaic
from napari_fish.mosaic.masks.annotations import polygons_from_geojson
from tests.mosaic.conftest import GLASS, ArraySlide, disc, glass, stain, tissue_slide

# The artefact filter knows real tissue, and the grain of these slides is none.
PLAIN = replace(preset(), artefacts="off")


@pytest.fixture(scope="module")
def slide() -> ArraySlide:
    return tissue_slide()


@pytest.fixture(scope="module")
def mosaic(slide: ArraySlide) -> Mosaic:
    return make_mosaic(slide, PLAIN)


def test_patches_lie_on_the_slide_in_level_0_pixels(mosaic: Mosaic) -> None:
    assert mosaic.patch_size == 256
    assert mosaic.patches
    assert set(mosaic.patches) <= set(mosaic.candidates)
    for patch in mosaic.candidates:
        assert 0 <= patch.x < 1280
        assert 0 <= patch.y < 1024
        assert patch.cluster >= 0
        assert patch.reason == ""


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_run_and_number_of_threads_gives_the_same_mosaic(
    slide: ArraySlide, mosaic: Mosaic, threads: int
) -> None:
    assert make_mosaic(slide, PLAIN, threads=threads) == mosaic


def test_everything_on_tissue_is_either_a_candidate_or_dropped_for_a_reason(slide: ArraySlide) -> None:
    strict = make_mosaic(slide, replace(PLAIN, white_share=0.05))
    loose = make_mosaic(slide, PLAIN)
    places = {(p.x, p.y) for p in (*strict.candidates, *strict.dropped)}
    assert places == {(p.x, p.y) for p in (*loose.candidates, *loose.dropped)}
    assert strict.dropped_counts["white"] == len(strict.dropped) > 0
    assert all(p.white > 0.05 and p.cluster == -1 for p in strict.dropped)


@pytest.mark.parametrize("count", range(1, 9))
def test_slides_of_one_to_eight_patches_work(count: int) -> None:
    rgb = stain(glass(256, 256 * count), np.ones((256, 256 * count), bool))
    mosaic = make_mosaic(ArraySlide(rgb, 2.0), PLAIN)
    assert len(mosaic.candidates) == count
    assert len(mosaic.patches) == count


def test_the_paper_takes_patches_at_the_centres_of_clusters() -> None:
    slide = tissue_slide(1024, 2048, margin=0)
    easy = replace(preset("paper").tissue, downsample=8, min_tissue=1)
    params = replace(preset("paper"), artefacts="off", clusters=1, share=0.1, tissue=easy, patch=256)
    mosaic = make_mosaic(slide, params)
    grid = {(p.x, p.y) for p in mosaic.candidates}
    assert (len(grid), len(mosaic.patches)) == (32, 3)
    assert any((p.x, p.y) not in grid for p in mosaic.patches)
    members = make_mosaic(slide, replace(params, representative="member"))
    assert all((p.x, p.y) in grid for p in members.patches)


def test_a_slide_whose_patches_were_all_dropped_gets_its_best_one_back() -> None:
    rgb = glass(1024, 1024)
    where = np.zeros((1024, 1024), bool)
    where[375:450, 375:450] = where[750:830, 125:205] = True
    mosaic = make_mosaic(ArraySlide(stain(rgb, where), 2.0), replace(PLAIN, white_share=0.5))
    assert mosaic.rescued
    assert len(mosaic.patches) == 1
    assert mosaic.patches[0].white == min(p.white for p in (*mosaic.dropped, *mosaic.patches))


def test_a_slide_with_nothing_but_pen_marks_has_no_tissue() -> None:
    rgb = np.full((1024, 1024, 3), (25, 50, 160), np.uint8)
    with pytest.raises(NoTissue, match="pen marks or debris"):
        make_mosaic(ArraySlide(rgb, 2.0), mask=np.ones((16, 16), bool))


def test_a_mask_replaces_the_segmentation(slide: ArraySlide) -> None:
    mask = np.zeros((64, 80), bool)
    mask[16:48, 16:32] = True
    mosaic = make_mosaic(slide, PLAIN, mask)
    assert mosaic.masked
    assert sorted((p.x, p.y) for p in mosaic.candidates) == [(256, 256), (256, 512)]


def test_tissue_too_small_for_the_grid_gets_the_patch_around_it(slide: ArraySlide) -> None:
    mosaic = make_mosaic(slide, PLAIN, [[[(600, 500), (630, 500), (630, 530), (600, 530)]]])
    assert [(p.x, p.y) for p in mosaic.patches] == [pytest.approx((487, 387), abs=6)]


def test_work_can_be_stopped_and_reports_how_far_it_is(slide: ArraySlide) -> None:
    seen: list[tuple[int, int]] = []
    make_mosaic(slide, PLAIN, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == ((0, 100), (100, 100))
    asked = iter([False, False, True])
    with pytest.raises(Cancelled):
        make_mosaic(slide, PLAIN, should_stop=lambda: next(asked, True))


def test_labels_and_unknown_pixels_are_refused() -> None:
    with pytest.raises(SlideError, match="label"):
        make_mosaic(ArraySlide(glass(300, 300), kind="label"))
    with pytest.raises(SlideError, match="--mpp"):
        make_mosaic(ArraySlide(glass(300, 300), mpp=None))


def test_geojson_holds_tissue_and_mosaic_and_can_be_given_back_as_a_mask(
    slide: ArraySlide, mosaic: Mosaic
) -> None:
    document = json.loads(json.dumps(mosaic.to_geojson()))
    names = [f["properties"]["classification"]["name"] for f in document["features"]]
    assert names.count("Tissue") == len(mosaic.contours)
    assert names.count("Mosaic") == len(mosaic.patches)
    rings = [f["geometry"]["coordinates"][0] for f in document["features"]]
    assert all(ring[0] == ring[-1] for ring in rings)
    everything = mosaic.to_geojson(everything=True)["features"]
    assert len(everything) == len(mosaic.contours) + len(mosaic.candidates) + len(mosaic.dropped)
    tissue = [f for f in document["features"] if f["properties"]["classification"]["name"] == "Tissue"]
    again = make_mosaic(slide, PLAIN, polygons_from_geojson(tissue))
    assert len(again.candidates) == pytest.approx(len(mosaic.candidates), abs=4)


def test_the_summary_is_plain_json_and_counts_what_was_dropped(mosaic: Mosaic) -> None:
    summary = json.loads(json.dumps(mosaic.summary()))
    assert summary["candidates"] == len(mosaic.candidates)
    assert summary["dropped"] == mosaic.dropped_counts
    assert summary["patches"][0] == [mosaic.patches[0].x, mosaic.patches[0].y, mosaic.patches[0].cluster]


def test_the_picture_shows_outline_and_patches_over_the_thumbnail(slide: ArraySlide, mosaic: Mosaic) -> None:
    picture = draw_mosaic(slide, mosaic, 640)
    assert picture.shape[1] == 640
    plain = slide.thumbnail(640)
    changed = (picture[: plain.shape[0]] != plain).any(axis=2)
    patch = mosaic.patches[0]
    scale = slide.dimensions[0] / 640
    assert changed[int((patch.y + 128) / scale), int((patch.x + 128) / scale)]
    assert not changed[2, 2]


def test_a_piece_whose_patches_all_show_ink_is_no_tissue(monkeypatch: pytest.MonkeyPatch) -> None:
    from napari_fish.mosaic import mosaic as module

    rgb = stain(glass(1024, 2048), disc(1024, 2048, 512, 500, 350))
    # Pen of eosin's colour, stronger and weaker, but of one hue.
    strength = np.random.default_rng(0).uniform(0.85, 1.15, (1024, 2048, 1))
    stroke = GLASS * np.exp(-strength * np.array([0.4, 1.5, 0.9]))
    np.copyto(rgb, stroke.astype(np.uint8), where=disc(1024, 2048, 512, 1600, 300)[..., None])
    slide = ArraySlide(rgb, 2.0)
    assert len(make_mosaic(slide, PLAIN).contours) == 2
    judged = module.judged

    def with_ink(*args: object) -> tuple[list[Patch], bool]:
        patches, rescued = judged(*args)
        return [replace(p, reason="ink") if p.x > 1100 else p for p in patches], rescued

    monkeypatch.setattr(module, "judged", with_ink)
    found = make_mosaic(slide, PLAIN)
    assert [round(np.mean(c.outer, axis=0)[0], -2) for c in found.contours] == [500]
    assert found.dropped_counts["ink"] == len(found.dropped) > 0
