"""Query and hits side by side in a real viewer."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from vispy.color import Color

from napari_fish._napari.compare import pictures as compare_pictures
from napari_fish._napari.compare.compare import MOST_CELLS, Comparison, comparison_of
from napari_fish._napari.compare.pictures import Shelf
from napari_fish._napari.layers.magnification import zoom_to
from napari_fish._napari.layers.queries import slide_layers
from napari_fish._napari.reader.reader import PLUGIN
from napari_fish._napari.session.session import session_of
from napari_fish.database import Database
from napari_fish.errors import FishError
from napari_fish.search.output.colours import Colours
from tests._napari.results.measured_archive import (
    COLOURS,
    SQUARE_UM,
    ask,
    magnification,
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


def compare(qtbot: Any, comparison: Comparison, *arguments: Any) -> None:
    with qtbot.waitSignal(comparison.changed, timeout=30_000):
        comparison.show(*arguments)
    # What opened the slides may end a moment after all is drawn.
    qtbot.waitUntil(lambda: not comparison.busy, timeout=30_000)


def state(viewer: Any) -> dict[str, Any]:
    """Everything that a comparison touches."""
    grid, overlays = viewer.canvas.grid, viewer.canvas.overlays
    return {
        "layers": [(layer.name, layer.visible) for layer in viewer.layers],
        "selected": sorted(layer.name for layer in viewer.layers.selection),
        "active": getattr(viewer.layers.selection.active, "name", None),
        "camera": (*viewer.scene.camera.center, viewer.scene.camera.zoom),
        "grid": (grid.enabled, grid.stride, grid.shape, grid.spacing),
        "bar": (overlays.scale_bar.visible, overlays.scale_bar.box, overlays.scale_bar.gridded),
        "text": (overlays.text.visible, overlays.text.text, overlays.text.position),
        "dims": (viewer.dims.ndisplay, viewer.dims.point),
    }


def cell_pictures(qtbot: Any, viewer: Any) -> list[np.ndarray]:
    """Cut a screenshot of the canvas into its cells."""
    # napari knows the size of cells only once they were drawn, and reads what is visible after that.
    qtbot.wait(200)
    picture = viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    rows, columns = viewer.canvas.grid.actual_shape(viewer.layers)
    height, width = picture.shape[0] / rows, picture.shape[1] / columns
    return [
        picture[round(r * height) : round((r + 1) * height), round(c * width) : round((c + 1) * width)]
        for r in range(rows)
        for c in range(columns)
    ]


def square(cell: np.ndarray, within: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return size and offset from the middle, in px of the screen, of the black square of a cell."""
    middle = np.array(cell.shape[:2]) // 2
    part = cell[middle[0] - within : middle[0] + within, middle[1] - within : middle[1] + within]
    black = np.argwhere((part < 60).all(axis=2))
    low, high = black.min(axis=0), black.max(axis=0) + 1
    return high - low, (low + high) / 2 - within


def test_every_cell_shows_its_region_in_the_middle_at_the_same_magnification(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer(show=True)
    viewer.open(slide(database, 0), plugin=PLUGIN)
    comparison = comparison_of(viewer)
    compare(qtbot, comparison, ask(database, layer="s0"), database)
    comparison.zoom_to(20)
    assert magnification(viewer) == pytest.approx(20)
    cells = cell_pictures(qtbot, viewer)
    assert len(cells) == 4
    for cell, colour in zip(cells, COLOURS, strict=True):
        size, offset = square(cell)
        # 40 µm are 80 px of the screen at 20x, on slides of 1, 0.5 and 0.25 µm/px alike.
        np.testing.assert_allclose(size, SQUARE_UM / 0.5, atol=3)
        np.testing.assert_allclose(offset, 0, atol=6)
        assert (np.abs(cell - colour).max(axis=2) < 12).mean() > 0.5


def test_names_say_rank_diagnosis_and_distance_and_stand_in_the_cells(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    comparison = comparison_of(make_viewer())
    answer = ask(database)
    compare(qtbot, comparison, answer, database)
    assert [layer.name for layer in comparison.layers] == [
        "Query · s0.tif",
        "1 · diagnosis 1 · 1 bit",
        "2 · diagnosis 2 · 2 bits",
        "3 · diagnosis 3 · 3 bits",
    ]
    assert all(layer.name_overlay.visible for layer in comparison.layers)
    colour = Color(Colours.of_answers([answer.results]).of("diagnosis 1", dark=True))
    np.testing.assert_allclose(comparison.layers[1].name_overlay.color, colour.rgba, atol=1e-6)


def test_clear_leaves_the_viewer_exactly_as_it_was(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    viewer.open([slide(database, 0), slide(database, 1)], plugin=PLUGIN)
    viewer.add_points(np.zeros((1, 2)), name="points", units="µm")
    viewer.layers[1].visible = False
    viewer.layers.selection = {viewer.layers[0], viewer.layers[2]}
    viewer.scene.camera.center, viewer.scene.camera.zoom = (33.0, 44.0), 3.3
    viewer.canvas.grid.stride, viewer.canvas.grid.spacing = -2, 0.1
    before = state(viewer)
    comparison = comparison_of(viewer)
    compare(qtbot, comparison, ask(database, layer="s0"), database)
    assert comparison.shown and viewer.canvas.overlays.scale_bar.visible and viewer.canvas.grid.enabled
    visible = [layer.name for layer in viewer.layers if layer.visible]
    assert visible == [layer.name for layer in comparison.layers]
    comparison.clear()
    assert state(viewer) == before and not comparison.shown
    comparison.clear()
    assert state(viewer) == before


def test_a_comparison_in_an_empty_viewer_goes_without_a_trace(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    before = state(viewer)
    compare(qtbot, comparison_of(viewer), ask(database), database)
    comparison_of(viewer).clear()
    assert state(viewer) == before


def test_a_second_search_uses_the_same_layers_and_keeps_the_magnification(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    comparison = comparison_of(viewer)
    compare(qtbot, comparison, ask(database), database)
    first = comparison.layers
    comparison.zoom_to(10)
    compare(qtbot, comparison, ask(database, 1), database)
    assert comparison.layers == first and magnification(viewer) == pytest.approx(10)
    assert comparison.layers[0].name == "Query · s1.tif"
    assert tuple(np.asarray(comparison.layers[0].data[0][5, 5])) == COLOURS[1]
    compare(qtbot, comparison, ask(database, k=1), database)
    assert comparison.layers == first[:2] and len(viewer.layers) == 2
    compare(qtbot, comparison, ask(database, k=2), database)
    assert comparison.layers == first[:3] and len(viewer.layers) == 3 <= MOST_CELLS


def test_cells_are_linked_in_how_they_look_and_not_in_where_they_lie(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    comparison = comparison_of(make_viewer())
    compare(qtbot, comparison, ask(database), database)
    comparison.layers[0].gamma = 0.5
    comparison.layers[1].contrast_limits = (20, 200)
    assert {layer.gamma for layer in comparison.layers} == {0.5}
    assert {tuple(layer.contrast_limits) for layer in comparison.layers} == {(20, 200)}
    assert len({tuple(layer.translate) for layer in comparison.layers}) == 4


def test_a_slide_that_is_away_is_shown_as_it_was_kept_and_its_name_says_so(
    make_viewer: Callable[..., Any], archive: Path, tmp_path: Path, qtbot: Any
) -> None:
    shutil.copytree(archive.parent, tmp_path / "copy")
    with open_archive(tmp_path / "copy" / archive.name) as database:
        answer = ask(database)
        slide(database, 2).unlink()
        viewer = make_viewer(show=True)
        comparison = comparison_of(viewer)
        compare(qtbot, comparison, answer, database)
        assert comparison.layers[2].name == "2 · diagnosis 2 · 2 bits · slide away, kept picture"
        assert comparison.layers[3].name == "3 · diagnosis 3 · 3 bits"
        comparison.zoom_to(10)
        # A picture of 64 px for 128 µm is as large as the slide was: 40 µm are 40 px at 10x.
        size, _ = square(cell_pictures(qtbot, viewer)[2])
        np.testing.assert_allclose(size, SQUARE_UM, atol=6)


def test_removing_a_cell_goes_on_without_it_and_removing_all_ends_the_comparison(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    viewer.open(slide(database, 3), plugin=PLUGIN)
    before = state(viewer)
    comparison = comparison_of(viewer)
    compare(qtbot, comparison, ask(database), database)
    viewer.layers.remove(comparison.layers[1])
    assert len(comparison.layers) == 3
    compare(qtbot, comparison, ask(database), database)
    assert len(comparison.layers) == 4
    for layer in comparison.layers:
        viewer.layers.remove(layer)
    assert not comparison.shown and state(viewer) == before


def test_layers_opened_meanwhile_stay_and_removed_ones_are_passed_over(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    viewer.add_points(np.zeros((1, 2)), name="old", units="µm")
    comparison = comparison_of(viewer)
    compare(qtbot, comparison, ask(database), database)
    viewer.layers.remove("old")
    viewer.add_points(np.zeros((1, 2)), name="new", units="µm")
    comparison.clear()
    assert [layer.name for layer in viewer.layers] == ["new"]


def test_an_answer_without_hits_is_refused_in_words(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    comparison = comparison_of(viewer)
    answer = ask(database)
    empty = replace(answer, results=replace(answer.results, hits=()))
    with qtbot.waitSignal(comparison.failed, timeout=10_000) as failed:
        comparison.show(empty, database)
    assert "nothing to compare" in failed.args[0] and not comparison.shown and not viewer.layers


@pytest.mark.parametrize("units", ["nm", "pixel"])
def test_a_comparison_is_to_scale_beside_layers_in_other_units(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any, units: str
) -> None:
    viewer = make_viewer(show=True)
    viewer.add_points(np.zeros((1, 2)), name="other", units=units)
    comparison = comparison_of(viewer)
    compare(qtbot, comparison, ask(database), database)
    comparison.zoom_to(20)
    size, _ = square(cell_pictures(qtbot, viewer)[1])
    np.testing.assert_allclose(size, SQUARE_UM / 0.5, atol=3)
    assert viewer.canvas.overlays.text.visible == (units == "pixel")


def test_magnification_is_right_for_layers_in_micrometres_nanometres_and_px(model: Any) -> None:
    pixels = np.zeros((50, 60, 3), np.uint8)
    model.add_image(pixels, scale=(0.25, 0.25), units="µm")
    zoom_to(model, 40)
    assert model.scene.camera.zoom == pytest.approx(4) and magnification(model) == pytest.approx(40)
    model.layers.clear()
    model.add_image(pixels, scale=(250, 250), units="nm")
    zoom_to(model, 40)
    assert model.scene.camera.zoom == pytest.approx(4e-3)
    model.layers.clear()
    # As napari-wsi leaves it: in px, with the size of a px in the metadata.
    model.add_image(pixels, scale=(2, 2), metadata={"resolution": (0.5, 0.5)})
    zoom_to(model, 20)
    assert model.scene.camera.zoom == pytest.approx(0.5) and magnification(model) == pytest.approx(20)


def test_magnification_of_nothing_or_of_unknown_pixels_is_refused_in_words(model: Any) -> None:
    with pytest.raises(FishError, match="No slide"):
        zoom_to(model, 20)
    model.add_image(np.zeros((50, 60, 3), np.uint8), name="photo")
    with pytest.raises(FishError, match=r"photo.*unknown"):
        zoom_to(model, 20)


def test_a_slide_opened_meanwhile_ends_the_comparison_and_stays(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    comparison = comparison_of(viewer)
    compare(qtbot, comparison, ask(database), database)
    with qtbot.waitSignal(comparison.changed, timeout=10_000) as changed:
        viewer.open(slide(database, 3), plugin=PLUGIN)
    assert changed.args == [False] and [layer.name for layer in viewer.layers] == ["s3"]
    assert viewer.layers[0].visible and not viewer.canvas.grid.enabled


def test_what_is_drawn_meanwhile_waits_outside_the_grid(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    viewer.add_shapes(name="boxes", units="µm")
    comparison = comparison_of(viewer)
    compare(qtbot, comparison, ask(database), database)
    viewer.layers.remove("boxes")
    # Drawn anew and, like the one it replaces, hidden, as the Search widget does with the query's patches.
    viewer.add_shapes(name="boxes", units="µm", visible=False)
    viewer.add_points(name="points", units="µm")
    assert not viewer.layers["points"].visible
    comparison.clear()
    assert viewer.layers["boxes"].visible and viewer.layers["points"].visible


def test_cells_are_not_offered_as_slides_to_search_for(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    viewer.open(slide(database, 0), plugin=PLUGIN)
    compare(qtbot, comparison_of(viewer), ask(database, layer="s0"), database)
    assert [layer.name for layer in slide_layers(viewer.layers)] == ["s0"]


def test_the_comparison_follows_the_next_answer_and_ends_when_there_is_none(
    make_viewer: Callable[..., Any], database: Database, qtbot: Any
) -> None:
    viewer = make_viewer()
    session, comparison = session_of(viewer), comparison_of(viewer)
    session.database = database
    session.show(ask(database))
    assert not comparison.busy, "nobody asked for a comparison yet"
    compare(qtbot, comparison, ask(database), database)
    with qtbot.waitSignal(comparison.changed, timeout=30_000):
        session.show(ask(database, 1))
    assert comparison.layers[0].name == "Query · s1.tif"
    answer = ask(database)
    session.show(replace(answer, results=replace(answer.results, hits=())))
    assert not comparison.shown and not viewer.layers


def test_a_comparison_that_is_cleared_before_it_is_shown_leaves_nothing_open(
    model: Any, database: Database, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, go_on, opened = Event(), Event(), compare_pictures.open_slide

    def slow(*args: Any, **options: Any) -> Any:
        opening.set()
        assert go_on.wait(20)
        return opened(*args, **options)

    monkeypatch.setattr(compare_pictures, "open_slide", slow)
    comparison = comparison_of(model)
    said: list[bool] = []
    comparison.changed.connect(said.append)
    comparison.show(ask(database), database)
    qtbot.waitUntil(opening.is_set)
    assert comparison.busy
    with qtbot.waitSignal(comparison.ended, timeout=20_000):
        comparison.clear()
        assert said == [False] and not comparison.busy
        go_on.set()
    assert len(comparison._shelf) == 0 and not comparison.shown and not model.layers


def test_a_shelf_that_two_threads_use_opens_and_closes_each_slide_once(database: Database) -> None:
    shelf = Shelf()
    slides = [hit.slide for hit in ask(database).results.hits]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda slide: shelf.levels(database, slide)[0], slides * 8))
    assert len(shelf) == len(slides)
    for i, levels in enumerate(got):
        assert levels is got[i % len(slides)]
    shelf.keep(1)
    assert len(shelf) == 1
    shelf.keep(0)
    assert len(shelf) == 0


def test_an_objective_without_a_slide_is_refused_in_words(model: Any, qtbot: Any) -> None:
    comparison = comparison_of(model)
    with qtbot.waitSignal(comparison.failed, timeout=1000) as failed:
        comparison.zoom_to(20)
    assert "No slide" in failed.args[0]
