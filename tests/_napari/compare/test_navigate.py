"""From a hit to its slide and its region; and the pure functions between hits and layers."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_fish._napari.compare.compare import comparison_of
from napari_fish._napari.compare.navigate import MATCHES_KEY, draw_matches, open_hit
from napari_fish._napari.layers.hit_layers import (
    OTHER_REGION,
    Picture,
    distance_text,
    grid_shape,
    level0_to_um,
    matches_layer,
    pair_colour,
    pairs_of,
    picture_layer,
    shown_query,
)
from napari_fish._napari.reader.reader import PLUGIN
from napari_fish.database import Database
from napari_fish.search import Results, SlideHit
from napari_fish.search.values import Hit
from napari_fish.slides.pixels import to_jpeg
from napari_fish.store.records import Box
from tests._napari.results.measured_archive import (
    CENTRES_UM,
    MPPS,
    PATCH_UM,
    ask,
    box,
    make_archive,
    open_archive,
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_archive(tmp_path_factory.mktemp("archive"))


@pytest.fixture
def database(archive: Path) -> Iterator[Database]:
    with open_archive(archive) as opened:
        yield opened


def slide(database: Database, i: int) -> Path:
    return database.path.parent / "slides" / f"s{i}.tif"


def go(qtbot: Any, start: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function that tells when it is done, and return what it then says."""
    said: list[Any] = []
    start(*arguments, **options, done=said.append)
    qtbot.waitUntil(lambda: bool(said), timeout=20_000)
    return said[0]


def drawn_on(viewer: Any, layer: Any) -> Any:
    (found,) = [one for one in viewer.layers if one.metadata.get(MATCHES_KEY) == layer.unique_id]
    return found


def test_a_hit_is_opened_centred_and_marked(model: Any, database: Database, qtbot: Any) -> None:
    answer = ask(database)
    hit = answer.results.hits[0]
    layer = go(qtbot, open_hit, model, database, hit)
    assert layer.name == "s1" and layer in model.layers and layer.visible
    x, y = CENTRES_UM[1]
    # The middle of the first px is at 0, not its corner.
    np.testing.assert_allclose(model.scene.camera.center[-2:], np.array([y, x]) - MPPS[1] / 2, atol=1e-6)
    side = model.scene.camera.zoom * PATCH_UM
    assert 0.3 * min(model.canvas.size) < side < min(model.canvas.size)
    marks = drawn_on(model, layer)
    np.testing.assert_allclose(np.ptp(marks.data[0], axis=0), PATCH_UM)
    np.testing.assert_allclose(marks.data[0].mean(axis=0), np.array([y, x]) - MPPS[1] / 2)
    assert marks.features["distance"].tolist() == [1] and marks.units == layer.units


def test_deleting_the_slide_of_a_hit_brings_back_what_it_had_hidden(
    model: Any, database: Database, qtbot: Any
) -> None:
    (query,) = model.open(slide(database, 0), plugin="napari-fish")
    first, second = ask(database).results.hits[:2]
    one = go(qtbot, open_hit, model, database, first)
    other = go(qtbot, open_hit, model, database, second)
    assert other.visible and not one.visible and not query.visible
    model.layers.remove(other)
    qtbot.waitUntil(lambda: one.visible)
    assert not query.visible and drawn_on(model, one).visible
    model.layers.remove(one)
    qtbot.waitUntil(lambda: query.visible)
    assert list(model.layers) == [query]


def test_a_slide_that_is_open_is_used_again_whoever_opened_it(
    model: Any, database: Database, qtbot: Any
) -> None:
    hits = ask(database).results.hits
    model.open(slide(database, 1), plugin=PLUGIN)
    assert go(qtbot, open_hit, model, database, hits[0]) is model.layers["s1"]
    # As napari-wsi leaves it: in px, with path and resolution in the metadata, moved by the user.
    pixels = np.zeros((1000, 1200, 3), np.uint8)
    about = {"path": str(slide(database, 2)), "resolution": (0.5, 0.5)}
    other = model.add_image(pixels, name="other", rgb=True, metadata=about, translate=(10, 20))
    assert go(qtbot, open_hit, model, database, hits[1]) is other
    x, y, w, h = box(2)
    expected = np.array([y + h / 2, x + w / 2]) - 0.5 + (10, 20)
    np.testing.assert_allclose(model.scene.camera.center[-2:], expected)
    assert not model.layers["s1"].visible and sum(one.name == "s1" for one in model.layers) == 1


@pytest.mark.parametrize("unit", ["nm", "mm"])
def test_the_camera_goes_to_the_region_whatever_the_unit_of_the_scene(
    model: Any, database: Database, qtbot: Any, unit: str
) -> None:
    model.add_points(np.zeros((1, 2)), units=unit)
    go(qtbot, open_hit, model, database, ask(database).results.hits[0])
    factor = {"nm": 1000, "mm": 1}[unit]
    x, y = CENTRES_UM[1]
    expected = (np.array([y, x]) - MPPS[1] / 2) * factor
    np.testing.assert_allclose(model.scene.camera.center[-2:], expected)


def test_marks_are_replaced_and_not_heaped_up(model: Any, database: Database, qtbot: Any) -> None:
    hit = ask(database).results.hits[0]
    layer = go(qtbot, open_hit, model, database, hit)
    go(qtbot, open_hit, model, database, hit)
    assert len(model.layers) == 2 and drawn_on(model, layer).data


def test_matches_are_drawn_on_query_and_hit_with_one_number_and_colour(
    model: Any, database: Database, qtbot: Any
) -> None:
    model.open(slide(database, 0), plugin=PLUGIN)
    answer = ask(database, layer="s0")
    layer = go(qtbot, draw_matches, model, answer, answer.results.hits[0], database=database)
    ours, theirs = drawn_on(model, model.layers["s0"]), drawn_on(model, layer)
    assert ours.features["pair"].tolist() == theirs.features["pair"].tolist() == [1]
    np.testing.assert_array_equal(ours.edge_color, theirs.edge_color)
    x, y = CENTRES_UM[0]
    np.testing.assert_allclose(ours.data[0].mean(axis=0), np.array([y, x]) - MPPS[0] / 2)
    assert set(ours.features) >= {"distance", "percentile"}
    assert model.layers.selection.active is layer and not ours.visible and theirs.visible


def test_a_missing_slide_is_shown_as_it_was_kept_and_the_remedy_is_told(
    model: Any, archive: Path, tmp_path: Path, qtbot: Any, told: list[str]
) -> None:
    shutil.copytree(archive.parent, tmp_path / "copy")
    with open_archive(tmp_path / "copy" / archive.name) as database:
        hit = ask(database).results.hits[0]
        slide(database, 1).unlink()
        layer = go(qtbot, open_hit, model, database, hit)
        assert "s1.tif" in told[0] and "relocate" in told[0].lower()
        assert layer.name == "s1.tif (slide away: kept overview)"
        names = [one.name for one in model.layers]
        assert "s1.tif (slide away: kept region 1)" in names
        x, y = CENTRES_UM[1]
        np.testing.assert_allclose(model.scene.camera.center[-2:], np.array([y, x]) - MPPS[1] / 2)
        region = model.layers["s1.tif (slide away: kept region 1)"]
        np.testing.assert_allclose(region.extent.world.mean(axis=0), np.array([y, x]) - MPPS[1] / 2)
        go(qtbot, open_hit, model, database, hit)
        assert [one.name for one in model.layers] == names


def test_a_broken_slide_is_told_in_words_and_shown_as_it_was_kept(
    model: Any, archive: Path, tmp_path: Path, qtbot: Any, told: list[str]
) -> None:
    shutil.copytree(archive.parent, tmp_path / "copy")
    with open_archive(tmp_path / "copy" / archive.name) as database:
        hit = ask(database).results.hits[0]
        slide(database, 1).write_bytes(b"no slide at all")
        layer = go(qtbot, open_hit, model, database, hit)
        assert "s1.tif" in told[0] and "Traceback" not in told[0] and "kept" in layer.name


def test_going_to_a_hit_ends_a_comparison(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    answer = ask(database)
    comparison = comparison_of(viewer)
    with qtbot.waitSignal(comparison.changed, timeout=30_000):
        comparison.show(answer, database)
    go(qtbot, open_hit, viewer, database, answer.results.hits[2])
    assert not comparison.shown
    assert [layer.name for layer in viewer.layers] == ["s3", "Matches · s3"]


# Pure functions, without any viewer.


def match(query_index: int, distance: int, percentile: float | None = None) -> Hit:
    return Hit(
        query_index=query_index,
        query_box=Box(0, 0, 64, 64),
        hit_box=Box(8, 16, 64, 64),
        row=0,
        distance=distance,
        percentile=percentile,
    )


def hit(rank: int, *matches: Hit, diagnosis: str = "x") -> SlideHit:
    return SlideHit(
        rank=rank, slide=f"s{rank}", name=f"s{rank}.tif", diagnosis=diagnosis, distance=1.0, matches=matches
    )


def results(*hits: SlideHit, boxes: int = 3) -> Results:
    return Results(
        query="q",
        mode="exact",
        ranking="fish",
        k=5,
        threshold=60,
        hits=hits,
        query_boxes=(Box(0, 0, 64, 64),) * boxes,
    )


def test_the_query_region_most_hits_match_is_shown_and_of_several_the_nearest() -> None:
    found = results(hit(1, match(0, 5), match(2, 30)), hit(2, match(1, 9), match(2, 31)))
    assert shown_query(found) == 2
    assert shown_query(results(hit(1, match(0, 5)), hit(2, match(1, 4)))) == 1
    assert shown_query(results(hit(1, match(7, 5)))) is None, "a patch from elsewhere has no place to show"
    elsewhere = replace(found, query_boxes=(Box(0, 0, 64, 64), Box(0, 0, 64, 64), Box(0, 0, 0, 0)))
    assert shown_query(elsewhere) == 0


def test_each_hit_shows_its_nearest_region_to_that_query_region_or_says_that_it_has_none() -> None:
    found = results(hit(1, match(0, 5), match(2, 30), match(2, 20)), hit(2, match(1, 9)), hit(3))
    first, second = pairs_of(found, 2, most=5)
    assert (first.match.distance, first.other) == (20, False)
    assert (second.match.distance, second.other) == (9, True) and OTHER_REGION in second.title()
    assert len(pairs_of(found, 2, most=1)) == 1


def test_a_title_falls_back_to_the_slides_name() -> None:
    (pair,) = pairs_of(results(hit(4, match(0, 17, 0.04), diagnosis="")), 0, most=1)
    assert pair.title() == "4 · s4.tif · 17 bits · closer than 99.96 %"
    assert pair.title(30) == "4 · s4.tif · 17 bits"
    assert pair.title(17) == "4 · s4.tif · 17"
    (pair,) = pairs_of(results(hit(4, match(0, 17), diagnosis="mucinous carcinoma")), 0, most=1)
    assert pair.title(20) == "4 · mucinous… · 17" and len(pair.title(20)) <= 20


def test_a_distance_says_the_same_in_a_comparison_as_on_a_card() -> None:
    assert distance_text(match(0, 165, 0.86)) == "165 bits · closer than 99.14 %"
    assert distance_text(match(0, 3)) == "3 bits"


@pytest.mark.parametrize(
    ("cells", "height", "width", "shape"),
    [(1, 800, 800, (1, 1)), (6, 800, 1200, (2, 3)), (6, 1200, 800, (3, 2)), (12, 800, 1200, (3, 4)), (2, 500, 900, (1, 2))],
)  # fmt: skip
def test_the_grid_makes_square_pictures_large(
    cells: int, height: int, width: int, shape: tuple[int, int]
) -> None:
    assert grid_shape(cells, height, width) == shape


def test_every_grid_has_room_for_its_cells_and_no_empty_row() -> None:
    for cells in range(1, 13):
        for width in (300, 800, 2000):
            rows, columns = grid_shape(cells, 800, width)
            assert rows * columns >= cells > (rows - 1) * columns


def test_a_picture_is_moved_so_that_its_centre_lies_at_the_anchor() -> None:
    picture = Picture([np.zeros((100, 200, 3), np.uint8)], 0.25, (40.0, 150.0))
    rows, columns = picture.translate((500.0, 700.0))
    # World position of a point in px from the corner: napari has the middle of the first px at 0.
    assert rows + (40 - 0.5) * 0.25 == pytest.approx(500)
    assert columns + (150 - 0.5) * 0.25 == pytest.approx(700)


def test_a_kept_picture_covers_exactly_its_region() -> None:
    jpeg = to_jpeg(np.full((64, 64, 3), 90, np.uint8))
    pixels, options, kind = picture_layer(Box(100, 200, 512, 512), jpeg, 0.5, "kept", {})
    low = np.array(options["translate"]) - np.array(options["scale"]) / 2
    np.testing.assert_allclose(low, level0_to_um([(100, 200)], 0.5)[0])
    np.testing.assert_allclose(low + np.array(options["scale"]) * 64, level0_to_um([(612, 712)], 0.5)[0])
    assert kind == "image" and pixels.shape == (64, 64, 3)


def test_pairs_have_colours_that_differ() -> None:
    colours = np.array([pair_colour(n) for n in range(1, 9)])
    apart = np.abs(colours[:, None] - colours[None]).max(axis=2) + np.eye(8)
    assert apart.min() > 0.15


def test_regions_from_elsewhere_are_not_drawn_but_keep_their_number() -> None:
    matches = [replace(match(0, 5, 1.5), query_box=Box(0, 0, 0, 0)), match(1, 7)]
    corners, options, _ = matches_layer(matches, "query", lambda p: level0_to_um(p, 0.5), "name", matches[1])
    assert len(corners) == 1 and options["features"]["pair"] == [2]
    assert math.isnan(options["features"]["percentile"][0])
    both, options, _ = matches_layer(matches, "hit", lambda p: level0_to_um(p, 0.5), "name", matches[1])
    assert len(both) == 2 and options["edge_width"][1] > options["edge_width"][0]
    nothing, options, _ = matches_layer([], "hit", lambda p: level0_to_um(p, 0.5), "name")
    assert nothing == [] and "text" not in options
