"""The Search widget: slide, box and image become queries; the queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from napari.components import ViewerModel
from qtpy.QtCore import QMimeData, QUrl
from qtpy.QtGui import QImage
from qtpy.QtWidgets import QApplication, QScrollArea, QWidget

from napari_fish._napari.layers.query_layers import LAYER as REGIONS
from napari_fish._napari.search.widget import WIDTH_PX, SearchWidget
from napari_fish.slides import open_slide
from tests._napari.search.driving import PATIENCE_MS, ask_box, control, rest, session, state


def test_without_a_slide_the_widget_says_what_to_do(qtbot: Any) -> None:
    viewer = ViewerModel()
    made = SearchWidget(viewer)
    qtbot.addWidget(made)
    assert not control(made, "this_slide").isEnabled()
    made.search_slide()
    assert "Open a slide" in state(made)
    made.search_box()
    assert "no box" in state(made)
    made.close()


def test_this_slide_finds_the_same_diagnosis_and_leaves_out_the_slide_itself(
    qtbot: Any, widget: SearchWidget, shown: ViewerModel
) -> None:
    control(widget, "this_slide").click()
    rest(qtbot, widget)
    answer = session(widget).current
    assert answer is not None and answer.layer == "a" and answer.box is None
    assert answer.results.hits[0].name == "b.tif"
    assert "a.tif" not in [hit.name for hit in answer.results.hits]
    assert "ms" in state(widget) and "encode" in state(widget)
    layer = shown.layers[REGIONS]
    assert len(layer.data) == len(answer.asked.query)
    assert shown.layers.selection.active is shown.layers["a"]
    np.testing.assert_allclose(layer.features["contribution"].sum(), 1)
    x, y, width, height = answer.asked.query.boxes[0]
    centre = layer.data_to_world(layer.data[0].mean(axis=0))
    np.testing.assert_allclose(centre, ((y + height / 2) * 0.5, (x + width / 2) * 0.5), atol=0.3)


def test_a_placed_box_is_searched_and_anew_when_it_is_moved(
    qtbot: Any, widget: SearchWidget, shown: ViewerModel
) -> None:
    assert not control(widget, "this_box").isEnabled()
    ask_box(qtbot, widget)
    first = session(widget).current
    assert first is not None and first.box is not None
    np.testing.assert_allclose(first.box[2:], (1024, 1024), rtol=1e-3)
    assert len(first.asked.query) == 1
    widget.query.box._set(widget.query.box.layer, [widget.query.box.layer.data[0] + 60])
    widget.query.box.changed.emit()
    rest(qtbot, widget)
    second = session(widget).current
    assert second is not first
    np.testing.assert_allclose(np.subtract(second.box, first.box), (60, 60, 0, 0), atol=1e-6)
    assert len(session(widget).history) == 2


def test_without_live_a_moved_box_waits_for_the_button(qtbot: Any, widget: SearchWidget) -> None:
    control(widget, "live").setChecked(False)
    ask_box(qtbot, widget)
    assert session(widget).current is None
    assert "press Search this box" in state(widget)
    control(widget, "this_box").click()
    rest(qtbot, widget)
    assert session(widget).current.box is not None


def test_a_box_beside_the_slide_says_so_and_a_tiny_one_too(qtbot: Any, widget: SearchWidget) -> None:
    widget.query.box.put(widget.query.layer, (-3000, 0, 1024, 1024))
    rest(qtbot, widget)
    assert not control(widget, "this_box").isEnabled() and session(widget).current is None
    widget.search_box()
    assert "no box on a slide" in state(widget)
    widget.query.box.put(widget.query.layer, (500, 500, 4, 4))
    rest(qtbot, widget)
    assert "⚠" in state(widget) and "at least" in state(widget)


def test_a_search_can_be_cancelled_and_the_next_one_works(qtbot: Any, widget: SearchWidget) -> None:
    control(widget, "this_slide").click()
    assert control(widget, "cancel").isEnabled()
    control(widget, "cancel").click()
    rest(qtbot, widget)
    assert state(widget) == "Stopped."
    assert session(widget).current is None and not control(widget, "cancel").isEnabled()
    ask_box(qtbot, widget)
    assert session(widget).current is not None


def test_an_image_is_pasted_and_a_file_dropped(qtbot: Any, widget: SearchWidget, archive: Path) -> None:
    with open_slide(archive / "slides" / "c.tif") as slide:
        pixels = np.ascontiguousarray(slide.read(700, 600, 512, 512, 1.0))
    image = QImage(pixels.data, 512, 512, 3 * 512, QImage.Format.Format_RGB888)
    QApplication.clipboard().setImage(image)
    control(widget, "paste").click()
    rest(qtbot, widget)
    answer = session(widget).current
    assert answer.layer == "" and answer.results.hits[0].diagnosis == "sarcoma"
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(archive / "slides" / "d.tif"))])
    assert widget._take(data)
    rest(qtbot, widget)
    assert session(widget).current.results.query == "d.tif"
    QApplication.clipboard().clear()
    control(widget, "paste").click()
    assert "no image on the clipboard" in state(widget)


def test_pasted_and_dropped_images_have_a_scale_of_their_own(
    qtbot: Any, widget: SearchWidget, archive: Path, tmp_path: Path
) -> None:
    with open_slide(archive / "slides" / "c.tif") as slide:
        pixels = np.ascontiguousarray(slide.read(300, 200, 1200, 1100, 0.5))
    image = QImage(pixels.data, 1200, 1100, 3 * 1200, QImage.Format.Format_RGB888)
    image.setDotsPerMeterX(0)
    image.save(str(tmp_path / "c.png"))
    control(widget, "mpp").setValue(0.25)  # of the slide that is open
    QApplication.clipboard().setImage(image)
    widget.paste()
    rest(qtbot, widget)
    (note,) = [note.text for note in session(widget).current.results.notes if "one patch" in note.text]
    assert "--mpp" not in note and "µm per px in the widget" in note
    control(widget, "image_mpp").setValue(0.5)
    for search in (widget.paste, lambda: widget.search_file(tmp_path / "c.png")):
        search()
        rest(qtbot, widget)
        answer = session(widget).current
        assert not [note for note in answer.results.notes if "one patch" in note.text]
        assert answer.asked.query.boxes[0][2] == 1024, "a patch of 512 µm"
    assert widget.query.question().mpp == 0.25
    control(widget, "image_mpp").setValue(0.1)
    widget.search_file(archive / "slides" / "d.tif")
    rest(qtbot, widget)
    assert session(widget).current.asked.query.boxes[0][2] == 1024, "what a file says counts more"
    QApplication.clipboard().clear()


def test_a_query_that_fails_says_why_and_the_next_one_works(
    qtbot: Any, widget: SearchWidget, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.svs"
    broken.write_text("this is no slide")
    widget.search_file(broken)
    rest(qtbot, widget)
    assert "⚠" in state(widget) and "broken.svs" in state(widget) and "Traceback" not in state(widget)
    ask_box(qtbot, widget)
    assert "⚠" not in state(widget)


def test_a_queue_goes_on_after_a_slide_that_fails(
    qtbot: Any, widget: SearchWidget, archive: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.svs"
    broken.write_text("this is no slide")
    data = QMimeData()
    paths = (archive / "slides" / "c.tif", broken, archive / "slides" / "d.tif")
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    assert widget._take(data)
    qtbot.waitUntil(lambda: not widget.batch.running, timeout=PATIENCE_MS)
    assert control(widget, "batch_state").text() == "2 of 3 searched for, 1 failed."
    listed = [widget.queue_view.list.item(i).text() for i in range(3)]
    assert listed[0].startswith("c.tif: ") and "slides" in listed[0] and "broken.svs" in listed[1]
    assert [answer.results.query for answer in session(widget).history] == ["d.tif", "c.tif"]
    widget.queue_layers()
    qtbot.waitUntil(lambda: not widget.batch.running, timeout=PATIENCE_MS)
    assert session(widget).history[0].layer == "a"
    assert session(widget).current is None


def test_a_queue_can_be_stopped(qtbot: Any, widget: SearchWidget, archive: Path) -> None:
    widget._take_files([archive / "slides" / f"{name}.tif" for name in "abcd"])
    control(widget, "batch_stop").click()
    qtbot.waitUntil(lambda: not widget.batch.running, timeout=PATIENCE_MS)
    assert {task.state for task in widget.batch.tasks} <= {"stopped", "done"}
    assert [task.state for task in widget.batch.tasks][1:] == ["stopped"] * 3


def test_an_unknown_pixel_size_asks_for_the_spin_box_and_uses_it(
    qtbot: Any, widget: SearchWidget, archive: Path, shown: ViewerModel
) -> None:
    with open_slide(archive / "slides" / "c.tif") as slide:
        pixels = slide.read_level(0, 0, 0, *slide.dimensions)
    shown.layers.clear()
    shown.add_image(pixels, rgb=True, name="pixels")
    qtbot.waitUntil(lambda: widget.query.facts is not None, timeout=PATIENCE_MS)
    assert "not known" in control(widget, "mpp").text()
    ask_box(qtbot, widget)
    assert "µm per px in the widget" in state(widget) and "--mpp" not in state(widget)
    control(widget, "mpp").setValue(0.5)
    assert widget.query.side() == 1024
    ask_box(qtbot, widget)
    assert session(widget).current.results.hits[0].diagnosis == "sarcoma"


def test_the_slide_follows_the_active_layer_and_the_box_the_slide_under_it(
    qtbot: Any, widget: SearchWidget, archive: Path, shown: ViewerModel
) -> None:
    (other,) = shown.open(archive / "slides" / "c.tif", plugin="napari-fish")
    assert control(widget, "slide").currentText() == "c"
    other.translate = (0, 2000)
    shown.layers.selection.active = shown.layers["a"]
    assert control(widget, "slide").currentText() == "a"
    qtbot.waitUntil(lambda: widget.query.facts is not None, timeout=PATIENCE_MS)
    ask_box(qtbot, widget)
    assert session(widget).current.layer == "a"
    box = widget.query.box
    box._set(box.layer, [box.layer.data[0] + (0, 4000)])
    box.changed.emit()
    rest(qtbot, widget)
    assert session(widget).current.layer == "c"
    shown.layers.remove("c")
    assert control(widget, "slide").currentText() == "a"


def test_every_control_has_a_name_and_a_tooltip_and_the_widget_is_narrow(widget: SearchWidget) -> None:
    for child in widget.findChildren(QWidget):
        if child.objectName().startswith("search."):
            assert child.toolTip(), child.objectName()
    names = {child.objectName() for child in widget.findChildren(QWidget)}
    wanted = "database browse slide mpp this_slide this_box draw_box box_size live paste file k mode ranking target"
    assert {f"search.{name}" for name in wanted.split()} <= names
    inside = widget.findChild(QScrollArea).widget()
    # Beside it there are the margins and perhaps a scroll bar.
    assert inside.minimumSizeHint().width() <= WIDTH_PX - 30


def test_a_widget_taken_out_of_its_dock_hears_nothing_any_more(
    qtbot: Any, widget: SearchWidget, shown: ViewerModel
) -> None:
    dock = QWidget()
    qtbot.addWidget(dock)
    widget.setParent(dock)
    widget.setParent(None)
    box = widget.query.box
    assert box._move not in shown.mouse_move_callbacks and box._press not in shown.mouse_drag_callbacks
    shown.layers.clear()
    assert control(widget, "slide").currentText() == "a"
