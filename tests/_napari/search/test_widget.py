"""The Search widget: slide, box and image become queries; parameters, history and queue."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari.components import ViewerModel
from qtpy.QtCore import QMimeData, QUrl
from qtpy.QtGui import QImage
from qtpy.QtWidgets import QApplication, QScrollArea, QWidget

from napari_fish._napari import preferences
from napari_fish._napari.database.widget import DatabaseWidget
from napari_fish._napari.layers.query_layers import LAYER as REGIONS
from napari_fish._napari.search.widget import WIDTH_PX, SearchWidget
from napari_fish._napari.session.session import Session, session_of
from napari_fish.search import SearchParams
from napari_fish.slides import open_slide
from tests._napari.search.archive import build_archive

PATIENCE_MS = 200_000


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with slides/ and small.fish."""
    folder = tmp_path_factory.mktemp("archive")
    build_archive(folder)
    return folder


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember nothing of or for the user."""
    monkeypatch.setattr(preferences, "_file", lambda: tmp_path / "remembered.json")


@pytest.fixture
def shown(archive: Path) -> Iterator[ViewerModel]:
    viewer = ViewerModel()
    viewer.open(archive / "slides" / "a.tif", plugin="napari-fish")
    yield viewer
    viewer.layers.clear()


@pytest.fixture
def bare(qtbot: Any, shown: ViewerModel) -> Iterator[SearchWidget]:
    """The widget before a database is open."""
    made = SearchWidget(shown)
    qtbot.addWidget(made)
    yield made
    session = session_of(shown)
    session.cancel()
    made.batch.stop()
    qtbot.waitUntil(lambda: not session.busy and not made.batch.running, timeout=PATIENCE_MS)
    made.close()
    session.close()


@pytest.fixture
def widget(qtbot: Any, bare: SearchWidget, archive: Path) -> SearchWidget:
    """The widget with a database open, ready to search."""
    bare.picker.open(archive / "small.fish")
    rest(qtbot, bare)
    qtbot.waitUntil(lambda: bare.query.facts is not None, timeout=PATIENCE_MS)
    return bare


def session(widget: SearchWidget) -> Session:
    return widget._session


def rest(qtbot: Any, widget: SearchWidget) -> None:
    """Wait until nothing is going on or about to."""
    timers = (widget._box_pause, widget._params_pause)
    qtbot.waitUntil(
        lambda: not session(widget).busy and not any(timer.isActive() for timer in timers),
        timeout=PATIENCE_MS,
    )


def control(widget: QWidget, name: str) -> Any:
    found = widget.findChild(QWidget, f"search.{name}")
    assert found is not None, name
    return found


def state(widget: SearchWidget) -> str:
    return str(control(widget, "state").text())


def ask_box(qtbot: Any, widget: SearchWidget) -> None:
    """Put a box of one patch on the tissue and wait for the answer."""
    facts = widget.query.facts
    side = widget.query.side()
    widget.query.box.put(
        widget.query.layer, ((facts.width - side) / 2, (facts.height - side) / 2, side, side)
    )
    rest(qtbot, widget)


def test_without_a_database_the_widget_says_what_to_do(bare: SearchWidget) -> None:
    assert "No database is open" in control(bare, "about").text()
    control(bare, "this_slide").click()
    assert "Open a database first" in state(bare)


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


def test_an_open_database_is_described_and_remembered(
    qtbot: Any, widget: SearchWidget, archive: Path, shown: ViewerModel
) -> None:
    assert "4 slides" in control(widget, "about").text()
    assert control(widget, "database").currentText() == "small.fish"
    assert preferences.recent("databases") == [str(archive / "small.fish")]
    other = SearchWidget(ViewerModel())
    qtbot.addWidget(other)
    qtbot.waitUntil(lambda: session(other).database is not None, timeout=PATIENCE_MS)
    rest(qtbot, other)
    other.close()
    session(other).close()


def test_what_is_no_database_is_refused_in_words(qtbot: Any, bare: SearchWidget, tmp_path: Path) -> None:
    (tmp_path / "empty.fish").mkdir()
    bare.picker.open(tmp_path / "empty.fish")
    rest(qtbot, bare)
    assert "⚠" in state(bare) and "empty.fish" in state(bare)
    assert "No database is open" in control(bare, "about").text()


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


def test_other_parameters_answer_the_same_question_without_encoding_it_again(
    qtbot: Any, widget: SearchWidget
) -> None:
    ask_box(qtbot, widget)
    asked = session(widget).current.asked
    control(widget, "k").setValue(2)
    rest(qtbot, widget)
    assert len(session(widget).current.results) == 2
    control(widget, "mode").setCurrentText("exact")
    control(widget, "ranking").setCurrentText("label-free")
    rest(qtbot, widget)
    current = session(widget).current
    assert (current.params.mode, current.params.ranking, current.params.k) == ("exact", "label-free", 2)
    assert current.asked is asked
    assert len(session(widget).history) == 1


def test_parameters_changed_during_a_search_count_when_it_ends(qtbot: Any, widget: SearchWidget) -> None:
    widget.search_slide()
    control(widget, "k").setValue(1)
    rest(qtbot, widget)
    assert len(session(widget).current.results) == 1
    assert control(widget, "k").value() == 1


def test_filters_come_from_the_database_with_counts_and_can_be_removed(
    qtbot: Any, widget: SearchWidget
) -> None:
    columns, values = control(widget, "filter_column"), control(widget, "filter_value")
    qtbot.waitUntil(lambda: columns.count() > 0, timeout=PATIENCE_MS)
    assert columns.itemText(0) == "diagnosis (2)"
    assert [values.itemText(i) for i in range(values.count())] == ["lymphoma (2)", "sarcoma (2)"]
    ask_box(qtbot, widget)
    values.setCurrentIndex(1)
    control(widget, "filter_add").click()
    assert control(widget, "filter_left").text() == "2 of 4 slides can be found."
    rest(qtbot, widget)
    assert {hit.diagnosis for hit in session(widget).current.results.hits} == {"sarcoma"}
    control(widget, "filter_sign").setCurrentText("is not")
    control(widget, "filter_add").click()
    rest(qtbot, widget)
    assert len(session(widget).current.results) == 0
    assert "0 of 5 slides" in state(widget)
    control(widget, "filter.diagnosis!=sarcoma").click()
    rest(qtbot, widget)
    assert widget.params.params().where == ("diagnosis=sarcoma",)
    assert len(session(widget).current.results) == 2


def test_the_same_patient_is_left_out_unless_wanted(qtbot: Any, widget: SearchWidget) -> None:
    widget.search_slide()
    rest(qtbot, widget)
    assert "patient a" not in {hit.patient for hit in session(widget).current.results.hits}
    control(widget, "exclude_query").setChecked(False)
    rest(qtbot, widget)
    assert session(widget).current.results.hits[0].patient == "patient a"


def test_reset_goes_back_to_the_first_values(qtbot: Any, widget: SearchWidget) -> None:
    control(widget, "k").setValue(2)
    control(widget, "mode").setCurrentText("guided")
    control(widget, "exclude_query").setChecked(False)
    control(widget, "mpp").setValue(0.25)
    control(widget, "live").setChecked(False)
    widget.params.filters.set_where(("site=brain",))
    control(widget, "reset").click()
    assert widget.params.params() == SearchParams()
    assert widget.query.mpp is None and control(widget, "live").isChecked()
    rest(qtbot, widget)


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


def test_a_dropped_database_is_opened(qtbot: Any, bare: SearchWidget, archive: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(archive / "small.fish"))])
    assert bare._take(data)
    bare.search_slide()
    qtbot.waitUntil(lambda: session(bare).current is not None, timeout=PATIENCE_MS)
    rest(qtbot, bare)
    assert session(bare).current.layer == "a"


def test_a_search_while_another_database_is_opened_waits_for_that(
    qtbot: Any, widget: SearchWidget, archive: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(archive / "small.fish", tmp_path / "other.fish"))
    widget.picker.open(other)
    widget.search_slide()
    qtbot.waitUntil(lambda: session(widget).current is not None, timeout=PATIENCE_MS)
    rest(qtbot, widget)
    assert session(widget).database.path == other


def test_an_opening_that_is_cancelled_is_not_said_to_go_on_and_the_open_database_serves(
    qtbot: Any, widget: SearchWidget, archive: Path, tmp_path: Path
) -> None:
    first = session(widget).database
    other = Path(shutil.copytree(archive / "small.fish", tmp_path / "other.fish"))
    docked = DatabaseWidget(widget._viewer)
    qtbot.addWidget(docked)
    docked.open(other)
    assert "Opening other.fish" in control(widget, "about").text() and "Opening" in docked.opened.text()
    control(widget, "cancel").click()
    assert "4 slides" in control(widget, "about").text()
    assert "Open: small.fish" in docked.opened.text()
    assert "other.fish was not opened" in state(widget) and "was not opened" in docked.state.text()
    widget.search_slide()
    rest(qtbot, widget)
    assert session(widget).database is first and session(widget).current is not None
    qtbot.waitUntil(lambda: not docked.inspect._look.busy, timeout=PATIENCE_MS)
    docked.close()


def test_refining_and_undoing_do_not_keep_a_database_from_being_opened(
    qtbot: Any, widget: SearchWidget, archive: Path, tmp_path: Path
) -> None:
    widget.search_slide()
    rest(qtbot, widget)
    shared = session(widget)
    hit = shared.current.results.hits[0]
    shared.judge(hit, True)
    shared.refine()
    rest(qtbot, widget)
    other = Path(shutil.copytree(archive / "small.fish", tmp_path / "other.fish"))
    for ask in (shared.refine, shared.undo, lambda: shared.search(f"id:{hit.slide}")):
        widget.picker.open(other)
        ask()
        assert shared.opening
    rest(qtbot, widget)
    assert shared.database.path == other and shared.current is None


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


def test_the_history_goes_back_to_an_answer_with_its_parameters(qtbot: Any, widget: SearchWidget) -> None:
    ask_box(qtbot, widget)
    first = session(widget).current
    widget.params.k.setValue(2)
    rest(qtbot, widget)
    first = session(widget).current
    widget.search_file(widget._viewer.layers["a"].source.path)
    widget.params.k.setValue(3)
    rest(qtbot, widget)
    model = widget.history.model
    assert model.rowCount() == 2
    lines = model.data(model.index(1)).splitlines()
    assert lines[0] == "a, a box" and lines[1].endswith("2 slides")
    assert not model.data(model.index(1), 1).isNull()
    assert len(widget._viewer.layers[REGIONS].data) == 0
    widget.history._clicked(model.index(1))
    assert session(widget).current is first
    assert control(widget, "k").value() == 2
    assert len(widget._viewer.layers[REGIONS].data) == 1
    assert not session(widget).busy


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


def test_how_to_search_is_remembered_but_never_filters_or_exclusion(
    qtbot: Any, widget: SearchWidget, shown: ViewerModel
) -> None:
    control(widget, "k").setValue(7)
    control(widget, "mode").setCurrentText("exact")
    control(widget, "exclude_query").setChecked(False)
    widget.params.filters.set_where(("site=brain",))
    rest(qtbot, widget)
    other = SearchWidget(ViewerModel())
    qtbot.addWidget(other)
    assert other.params.params() == SearchParams(k=7, mode="exact")
    qtbot.waitUntil(lambda: not session(other).busy, timeout=PATIENCE_MS)
    other.close()
    session(other).close()
    preferences.remember("search", {"k": "many", "mode": 3})
    third = SearchWidget(ViewerModel())
    qtbot.addWidget(third)
    assert third.params.params() == SearchParams()
    qtbot.waitUntil(lambda: not session(third).busy, timeout=PATIENCE_MS)
    third.close()
    session(third).close()


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
