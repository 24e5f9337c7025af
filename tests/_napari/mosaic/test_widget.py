"""The Tissue & mosaic widget, and its layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Labels, Shapes
from qtpy.QtWidgets import QWidget

from napari_fish._napari import preferences
from napari_fish._napari.layers.coordinates import level0_to_world
from napari_fish._napari.layers.mosaic_layers import (
    DROPPED,
    PATCHES,
    TISSUE,
    layers_of,
    mask_of,
    polygons_of,
)
from napari_fish._napari.layers.slide_layers import slide_of
from napari_fish._napari.mosaic.widget import MosaicWidget
from napari_fish.mosaic import REASONS, Mosaic, make_mosaic, preset
from napari_fish.mosaic.geojson import REASON_COLOURS
from napari_fish.slides import open_slide
from tests.mosaic.conftest import ArraySlide, tissue_slide
from tests.slides.conftest import write_tiff
from tests.tiny import ink_on

MPP = 2.0
LENIENT = replace(preset(), artefacts="off", white_share=0.3)


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember nothing of or for the user."""
    monkeypatch.setattr(preferences, "_file", lambda: tmp_path / "remembered.json")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("mosaic") / "slide.tif"
    slide = tissue_slide()
    return write_tiff(file, slide.levels[0], resolution=(1e4 / MPP, 1e4 / MPP))


@pytest.fixture
def shown(path: Path) -> Iterator[ViewerModel]:
    viewer = ViewerModel()
    viewer.open(path, plugin="napari-fish")
    yield viewer
    viewer.layers.clear()


@pytest.fixture
def widget(qtbot: Any, shown: ViewerModel) -> Iterator[MosaicWidget]:
    made = MosaicWidget(shown)
    qtbot.addWidget(made)
    control(made, "mosaic.live").setChecked(False)
    made._pause.stop()
    control(made, "MosaicParams.artefacts").setCurrentText("off")
    yield made
    made.close()
    qtbot.waitUntil(lambda: not made._job.busy, timeout=20_000)


def control(widget: QWidget, name: str) -> Any:
    found = widget.findChild(QWidget, name)
    assert found is not None, name
    return found


def state(widget: MosaicWidget) -> str:
    return str(control(widget, "mosaic.state").text())


def wait_for(qtbot: Any, widget: MosaicWidget, text: str) -> None:
    qtbot.waitUntil(lambda: text in state(widget), timeout=30_000)


@pytest.fixture(scope="module")
def mosaic() -> Mosaic:
    return make_mosaic(tissue_slide(), LENIENT)


def test_layers_lie_in_world_coordinates_with_a_row_of_features_each(mosaic: Mosaic) -> None:
    def to_world(points: Any) -> np.ndarray:
        return np.asarray(points, float)[:, ::-1] * MPP

    (rings, tissue, _), (squares, patches, _), (drops, dropped, _) = layers_of(mosaic, to_world)
    assert len(rings) == len(tissue["features"]["kind"]) == sum(1 + len(c.holes) for c in mosaic.contours)
    assert np.allclose(rings[0][0], rings[0][-1])
    assert len(squares) == len(mosaic.candidates)
    assert squares[0] == pytest.approx(
        [(mosaic.candidates[0].y + 128) * MPP, (mosaic.candidates[0].x + 128) * MPP]
    )
    assert patches["size"] == pytest.approx(0.94 * 256 * MPP)
    assert sum(patches["features"]["in_mosaic"]) == len(mosaic.patches)
    assert len(drops) == len(mosaic.dropped)
    assert dropped["features"]["reason"] == [REASONS[p.reason] for p in mosaic.dropped]


def test_what_is_drawn_comes_back_in_level_0_pixels(shown: ViewerModel) -> None:
    layer = shown.layers[0]
    slide = slide_of(layer, shown.layers)
    to_world = partial(level0_to_world, layer, slide)
    square = np.array([(256, 256), (768, 256), (768, 512), (256, 512)], float)
    shapes = Shapes([to_world(square)], shape_type="polygon", units=layer.units[-2:])
    shapes.add(to_world(square), shape_type="ellipse")
    polygon, ellipse = polygons_of(shapes, layer, slide)
    assert np.allclose(polygon[0], square)
    assert np.asarray(ellipse[0]).min(axis=0) == pytest.approx([256, 256], abs=1)
    assert np.asarray(ellipse[0]).max(axis=0) == pytest.approx([768, 512], abs=1)
    labels = Labels(
        np.ones((64, 128), int), scale=(4 * MPP, 4 * MPP), translate=(256 * MPP, 256 * MPP), units=layer.units
    )
    rows, columns = np.nonzero(mask_of(labels, layer, slide))
    assert [rows.min(), rows.max(), columns.min(), columns.max()] == pytest.approx(
        [255, 511, 255, 767], abs=3
    )
    slide.close()


def test_a_preview_adds_three_layers_and_says_what_was_found(
    qtbot: Any, widget: MosaicWidget, shown: ViewerModel
) -> None:
    widget.preview()
    assert "Looking at" in state(widget)
    wait_for(qtbot, widget, "in the mosaic")
    assert {TISSUE, PATCHES, DROPPED} <= {layer.name for layer in shown.layers}
    assert widget.mosaic is not None
    assert len(shown.layers[PATCHES].data) == len(widget.mosaic.candidates)
    widget.preview()
    wait_for(qtbot, widget, "in the mosaic")
    assert len(shown.layers) == 4


def test_what_is_left_out_is_said_and_written_on_the_slide(
    qtbot: Any, widget: MosaicWidget, shown: ViewerModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ink_on(monkeypatch, "slide", 6)
    control(widget, "MosaicParams.artefacts").setCurrentText("normal")
    widget.preview()
    wait_for(qtbot, widget, "in the mosaic")
    assert "patches; 6 left out: 6 ink. " in state(widget) and "More than a fifth" in state(widget)
    layer = shown.layers[DROPPED]
    assert set(layer.features["reason"]) == set(layer.text.values) == {"ink"}
    assert np.allclose(layer.border_color[:, :3], np.array(REASON_COLOURS["ink"]) / 255)
    assert np.allclose(layer.face_color, 1), "seen on ink"
    assert shown.layers[-1] is layer, "it lies above the patches that were kept"


def test_a_change_is_previewed_by_itself_once_nothing_changes_any_more(
    qtbot: Any, widget: MosaicWidget, shown: ViewerModel
) -> None:
    control(widget, "mosaic.live").setChecked(True)
    for share in (0.2, 0.25, 0.3):
        control(widget, "MosaicParams.white_share").setValue(share)
    assert not widget._job.busy
    wait_for(qtbot, widget, "in the mosaic")
    assert widget.mosaic is not None
    assert widget.mosaic.params.white_share == pytest.approx(0.3)


def test_a_newer_preview_supersedes_the_one_under_way(qtbot: Any, widget: MosaicWidget) -> None:
    widget.preview()
    (first,) = widget._job._now
    control(widget, "MosaicParams.clusters").setValue(3)
    widget.preview()
    assert first.cancelling
    wait_for(qtbot, widget, "in the mosaic")
    assert widget.mosaic is not None
    assert widget.mosaic.params.clusters == 3


def test_a_preview_can_be_cancelled(qtbot: Any, widget: MosaicWidget, shown: ViewerModel) -> None:
    widget.preview()
    control(widget, "mosaic.cancel").click()
    wait_for(qtbot, widget, "Stopped.")
    assert TISSUE not in shown.layers


def test_errors_are_shown_in_words_and_the_next_preview_works(qtbot: Any, widget: MosaicWidget) -> None:
    control(widget, "TissueParams.method").setCurrentText("saturation")
    control(widget, "TissueParams.threshold").setValue(255)
    control(widget, "TissueParams.retry").setChecked(False)
    widget.preview()
    wait_for(qtbot, widget, "no tissue found")
    control(widget, "mosaic.reset").click()
    control(widget, "MosaicParams.artefacts").setCurrentText("off")
    widget.preview()
    wait_for(qtbot, widget, "in the mosaic")


def test_values_that_make_no_sense_are_explained(widget: MosaicWidget) -> None:
    control(widget, "TissueParams.median").setValue(4)
    widget.preview()
    assert "odd" in state(widget)


def test_a_drawn_mask_replaces_the_segmentation(qtbot: Any, widget: MosaicWidget, shown: ViewerModel) -> None:
    layer = shown.layers[0]
    slide = slide_of(layer, shown.layers)
    square = level0_to_world(layer, slide, [(256, 256), (768, 256), (768, 512), (256, 512)])
    slide.close()
    shown.add_shapes([square], shape_type="rectangle", name="mine", units=layer.units[-2:])
    control(widget, "mosaic.mask").setCurrentText("mine")
    widget.preview()
    wait_for(qtbot, widget, "in the mosaic")
    assert widget.mosaic is not None
    assert widget.mosaic.masked
    corners = np.array(sorted((p.x, p.y) for p in widget.mosaic.candidates))
    assert corners.shape == (2, 2)
    assert np.abs(corners - [(256, 256), (512, 256)]).max() <= 12


def test_an_unknown_pixel_size_asks_for_the_spin_box(qtbot: Any) -> None:
    viewer = ViewerModel()
    slide: ArraySlide = tissue_slide()
    viewer.add_image(slide.levels[0], rgb=True, name="pixels")
    widget = MosaicWidget(viewer)
    qtbot.addWidget(widget)
    widget._pause.stop()
    widget.preview()
    wait_for(qtbot, widget, "State it above")
    control(widget, "MosaicParams.artefacts").setCurrentText("off")
    control(widget, "mosaic.mpp").setValue(2.0)
    widget.preview()
    wait_for(qtbot, widget, "in the mosaic")
    viewer.layers.clear()
    assert "Open a slide" in state(widget)


def test_every_control_has_a_name_and_a_tooltip(widget: MosaicWidget) -> None:
    names = [child.objectName() for child in widget.findChildren(QWidget)]
    for name in (n for n in names if n.startswith(("mosaic.", "MosaicParams.", "TissueParams."))):
        assert control(widget, name).toolTip(), name
    assert "Saturation" in control(widget, "TissueParams.threshold").toolTip()


def test_preset_and_what_was_changed_of_it_are_remembered_and_reset_forgets_the_changes(
    qtbot: Any, widget: MosaicWidget
) -> None:
    control(widget, "mosaic.preset").setCurrentText("paper")
    control(widget, "TissueParams.threshold").setValue(11)
    control(widget, "MosaicParams.clusters").setValue(5)
    wanted = widget.params()
    assert wanted != preset("paper")
    widget.close()
    other = MosaicWidget(ViewerModel())
    qtbot.addWidget(other)
    assert other.params() == wanted
    assert control(other, "mosaic.preset").currentText() == "paper"
    assert not control(other, "mosaic.live").isChecked()
    control(other, "mosaic.reset").click()
    assert other.params() == preset("paper")
    other.close()
    preferences.remember("mosaic", {"preset": "paper", "live": True, "mosaic": {"no such": 1}, "tissue": {}})
    third = MosaicWidget(ViewerModel())
    qtbot.addWidget(third)
    assert third.params() == preset() and control(third, "mosaic.live").isChecked()
    third.close()


def test_um_per_px_count_only_for_the_slide_they_were_stated_for(
    widget: MosaicWidget, shown: ViewerModel, path: Path
) -> None:
    slides, mpp = control(widget, "mosaic.slide"), control(widget, "mosaic.mpp")
    mpp.setValue(0.5)
    first = slides.currentText()
    shown.open(path, plugin="napari-fish", name="another")
    slides.setCurrentText("another")
    assert mpp.value() == 0
    slides.setCurrentText(first)
    assert mpp.value() == 0.5
    shown.layers.remove(first)
    assert slides.currentText() == "another" and mpp.value() == 0


@pytest.mark.parametrize("zoom", [0.001, 0.02, 0.3, 2.0], ids="{} px per µm".format)
def test_reasons_never_lie_over_one_another_and_crosses_are_seen_from_afar(path: Path, zoom: float) -> None:
    with open_slide(path) as slide:
        found = make_mosaic(slide, LENIENT)
    size, (first, *_) = found.patch_size, found.candidates
    places = [(0, 0), (size, 0), (2 * size, 0), (0, size), (size // 3, size // 2)]
    reasons = ["artefact", "blur", "debris", "artefact", "ink"]
    dropped = tuple(
        replace(first, x=x, y=y, reason=reason) for (x, y), reason in zip(places, reasons, strict=True)
    )
    mosaic = replace(found, dropped=dropped)
    viewer = ViewerModel()
    data, options, _ = layers_of(mosaic, lambda points: MPP * np.asarray(points, float)[:, ::-1])[2]
    layer = viewer.add_points(data, **options)
    letter = layer.text._get_scaled_size(1 / zoom) / 0.75
    width = np.array([0.6 * letter * len(word) for word in layer.text.values])
    centres = zoom * layer.data
    for i in range(len(centres)):
        for j in range(i):
            down, right = np.abs(centres[i] - centres[j])
            assert right >= (width[i] + width[j]) / 2 or down >= 1.2 * letter, (i, j)
    assert width.max() <= zoom * MPP * size, "a word fits its patch"
    assert max(zoom * layer.size.max(), layer.canvas_size_limits[0]) >= 8
