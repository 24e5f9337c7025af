"""Slides in a real viewer: drawn, closed, reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari._qt.dialogs import qt_reader_dialog
from napari.layers._layer_actions import _duplicate_layer
from napari.settings import get_settings
from numpy.typing import NDArray

from napari_fish._napari.reader.reader import PLUGIN, lazy_slides
from tests.slides.conftest import write_tiff

RGB = NDArray[np.uint8]


def only_slide(layer: Any) -> Any:
    (slide,) = lazy_slides(layer)
    return slide


def test_a_slide_is_drawn_in_its_own_colours_with_its_scale(
    make_viewer: Callable[..., Any], slide_path: Path, scene: RGB
) -> None:
    viewer = make_viewer(show=True)
    viewer.open(slide_path, plugin=PLUGIN)
    viewer.fit_to_view(margin=0)
    picture = viewer.screenshot(canvas_only=True, flash=False)[..., :3]
    inside = picture[picture.sum(2) > 0]
    assert len(inside) > 0.3 * picture[..., 0].size
    assert np.abs(inside.mean(0) - scene.mean((0, 1))).max() < 6
    np.testing.assert_allclose(np.diff(viewer.layers.extent.world, axis=0)[0], [350, 450], atol=1)


def test_removing_the_layer_closes_the_file_and_adding_it_opens_it(
    make_viewer: Callable[..., Any], slide_path: Path, scene: RGB
) -> None:
    viewer = make_viewer()
    (layer,) = viewer.open(slide_path, plugin=PLUGIN)
    slide = only_slide(layer)
    assert not slide.closed
    viewer.layers.remove(layer)
    assert slide.closed
    viewer.add_layer(layer)
    np.testing.assert_array_equal(layer.data[0][:9, :9], scene[:9, :9])
    viewer.layers.clear()
    assert slide.closed


def test_a_duplicate_keeps_the_file_open_until_it_goes_too(
    make_viewer: Callable[..., Any], slide_path: Path, scene: RGB
) -> None:
    viewer = make_viewer()
    (layer,) = viewer.open(slide_path, plugin=PLUGIN)
    viewer.layers.selection = {viewer.layers[0]}
    _duplicate_layer(viewer.layers.__wrapped__)
    copy = viewer.layers[1]
    slide = only_slide(layer)
    viewer.layers.remove(viewer.layers[0])
    assert not slide.closed
    np.testing.assert_array_equal(copy.data[0][:9, :9], scene[:9, :9])
    viewer.layers.clear()
    assert slide.closed


def test_the_same_slide_opened_twice_is_two_files_and_closing_the_viewer_closes_both(
    make_viewer: Callable[..., Any], slide_path: Path
) -> None:
    viewer = make_viewer()
    layers = viewer.open([slide_path, slide_path], plugin=PLUGIN)
    slides = [only_slide(layer) for layer in layers]
    assert slides[0] is not slides[1]
    viewer.layers.remove(viewer.layers[0])
    assert [s.closed for s in slides] == [True, False]
    viewer.close()
    assert [s.closed for s in slides] == [True, True]


def test_a_broken_slide_is_reported_and_the_others_still_open(
    make_viewer: Callable[..., Any], slide_path: Path, tmp_path: Path, told: list[str]
) -> None:
    viewer = make_viewer()
    broken = tmp_path / "broken.svs"
    broken.write_text("this is no slide")
    layers = viewer.open([broken, slide_path], plugin=PLUGIN)
    assert [layer.name for layer in layers] == ["scan"]
    assert len(told) == 1 and told[0].startswith("error: ") and "broken.svs" in told[0]


def test_dropping_broken_and_good_slides_on_the_window_goes_on(
    make_viewer: Callable[..., Any],
    slide_path: Path,
    tmp_path: Path,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def choose_ours(self: Any) -> tuple[str, bool]:
        return "FISH histology search", False

    monkeypatch.setattr(qt_reader_dialog.QtReaderDialog, "get_user_choices", choose_ours)
    viewer = make_viewer()
    (tmp_path / "empty.tif").touch()
    dropped = [str(tmp_path / "empty.tif"), str(slide_path)]
    viewer.__wrapped__.window._qt_viewer._qt_open(dropped, stack=False)
    assert [layer.name for layer in viewer.layers] == ["scan"]
    assert len(told) == 1 and "empty.tif" in told[0] and "empty" in told[0]


def test_a_slide_is_drawn_with_asynchronous_slicing_and_damage_is_reported_from_there(
    make_viewer: Callable[..., Any],
    tmp_path: Path,
    scene: RGB,
    qtbot: Any,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(get_settings().experimental, "async_", True)
    viewer = make_viewer(show=True)
    path = write_tiff(tmp_path / "scan.tif", scene)
    (layer,) = viewer.open(path, plugin=PLUGIN)
    qtbot.waitUntil(lambda: bool(layer.loaded), timeout=10_000)
    picture = viewer.screenshot(canvas_only=True, flash=False)[..., :3]
    assert picture[picture.sum(2) > 0].std() > 20
    only_slide(layer).close()
    path.unlink()
    layer.refresh()
    viewer.scene.camera.zoom = 8
    qtbot.waitUntil(lambda: any("scan.tif" in t for t in told), timeout=10_000)
    assert len(viewer.layers) == 1
