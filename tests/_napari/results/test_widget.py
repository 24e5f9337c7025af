"""The Results widget: what it says in each state, and what its controls do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from napari.components import ViewerModel
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QAbstractButton, QComboBox, QWidget

from napari_fish._napari.results.export import ENTRIES, write
from napari_fish._napari.results.gallery_order import GROUPS, SORTS, Heading
from napari_fish._napari.results.widget import ResultsWidget, pending_judgements
from napari_fish._napari.session.session import Session, session_of
from napari_fish.database import Database
from napari_fish.errors import FishError
from napari_fish.search import Feedback
from tests._napari.results.archive import PARAMS, make_database
from tests.search.made_results import hit


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("widget")
    make_database(path).close()
    return path


@pytest.fixture
def session(model: ViewerModel, folder: Path) -> Iterator[Session]:
    session = session_of(model)
    # Without its encoder, which none of these questions needs.
    session._opened(Database(folder / "small.fish", "cpu"))
    yield session
    session.close()


@pytest.fixture
def widget(qtbot: Any, model: ViewerModel, session: Session) -> Iterator[ResultsWidget]:
    widget = ResultsWidget(model)
    control(widget, "reset").click()
    widget.resize(1000, 420)
    widget.show()
    yield widget
    # Not left to qtbot, which deletes widgets before fixtures end.
    qtbot.waitUntil(lambda: not session.busy and not widget.loading and not widget.exporter.busy)
    widget.close()
    widget.deleteLater()


def control(widget: QWidget, name: str) -> Any:
    found = widget.findChild(QWidget, f"results.{name}")
    assert found is not None, name
    return found


def ask(qtbot: Any, session: Session, **params: Any) -> None:
    with qtbot.waitSignal(session.ended, timeout=20_000):
        session.search("id:s0", None, replace(PARAMS, **params))


def cards(widget: ResultsWidget) -> list[Any]:
    model = widget.gallery.model()
    return [model.item(row) for row in range(model.rowCount())]


def test_it_says_what_to_do_before_there_is_anything_to_show(qtbot: Any, session: Session) -> None:
    viewer = ViewerModel()
    widget = ResultsWidget(viewer)
    qtbot.addWidget(widget)
    assert "No database is open" in widget.gallery.message
    for name in ("refine", "undo", "jump", "compare", "clear", "export"):
        assert not control(widget, name).isEnabled(), name
    session_of(viewer).failed.emit("no such folder")
    assert widget.gallery.message == "no such folder"


def test_an_answer_is_shown_with_its_query_votes_notes_and_cards(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    assert "Nothing was searched for yet" in widget.gallery.message
    ask(qtbot, session)
    assert session.current is not None and widget.answer is session.current
    results = session.current.results
    assert cards(widget) == list(results.hits) and len(results.hits) == 8
    assert control(widget, "title").text() == "Similar to slide 0.svs"
    assert "8 slides, exact search" in control(widget, "how").text()
    assert "filled in from exact search" in control(widget, "notes").text()
    assert control(widget, "votes").votes.total > 0
    assert widget.gallery.current_hit() == results.hits[0]
    assert results.hits[0].name in control(widget, "why").text()


def test_a_new_answer_begins_with_its_first_slide_unless_the_user_chose_another(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    ask(qtbot, session)
    answer = session.current
    assert answer is not None
    hits = answer.results.hits
    turned = replace(answer, results=replace(answer.results, hits=hits[::-1]))
    session.answered.emit(turned)
    assert widget.gallery.current_hit() == hits[-1]
    widget.gallery.choose(widget.gallery.model().index_of(hits[2].slide))
    session.answered.emit(answer)
    assert widget.gallery.current_hit() == hits[2]


def test_a_widget_that_is_opened_later_shows_the_current_answer(
    qtbot: Any, model: ViewerModel, session: Session
) -> None:
    ask(qtbot, session)
    session.judge(session.current.results.hits[2], False)
    widget = ResultsWidget(model)
    qtbot.addWidget(widget)
    assert len(cards(widget)) == 8 and control(widget, "refine").text() == "Refine (1)"
    qtbot.waitUntil(lambda: not widget.loading)


def test_an_answer_without_slides_says_why(qtbot: Any, widget: ResultsWidget, session: Session) -> None:
    ask(qtbot, session, where=("diagnosis=unheard of",))
    assert not cards(widget)
    assert "No slide was found." in widget.gallery.message or "unheard of" in widget.gallery.message
    assert not control(widget, "export").isEnabled()


def test_what_goes_wrong_is_said_above_the_answer_that_is_still_shown(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    ask(qtbot, session)
    with qtbot.waitSignal(session.failed):
        session.search("id:nobody")
    qtbot.waitUntil(lambda: not session.busy)
    assert "nobody" in control(widget, "state").text() and len(cards(widget)) == 8
    ask(qtbot, session)
    assert not control(widget, "state").text()


def test_while_it_searches_it_says_so_and_can_be_stopped(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    session.started.emit("Searching for x …")
    assert widget.gallery.message == "Searching for x …" and control(widget, "doing").isVisible()
    session.progressed.emit(3, 7)
    bar = control(widget, "progress")
    assert (bar.value(), bar.maximum()) == (3, 7)
    stopped: list[bool] = []
    session.cancel = lambda: stopped.append(True)  # type: ignore[method-assign]
    widget._lines.cancelled.disconnect()
    widget._lines.cancelled.connect(session.cancel)
    control(widget, "cancel").click()
    assert stopped
    del session.cancel
    session.ended.emit()
    assert not control(widget, "doing").isVisible()


def test_cards_are_sorted_grouped_and_sized_and_the_choice_is_remembered(
    qtbot: Any, model: ViewerModel, widget: ResultsWidget, session: Session
) -> None:
    ask(qtbot, session)
    chosen = session.current.results.hits[3]
    widget.gallery.setCurrentIndex(widget.gallery.model().index_of(chosen.slide))
    for name, texts in (("sort", SORTS), ("group", GROUPS)):
        for text in texts:
            control(widget, name).setCurrentText(text)
            assert widget.gallery.current_hit() == chosen
    control(widget, "size").setCurrentText("huge")
    assert sum(isinstance(one, Heading) for one in cards(widget)) > 1
    other = ResultsWidget(model)
    qtbot.addWidget(other)
    assert [control(other, name).currentText() for name in ("size", "sort", "group")] == [
        "huge", "patient", "diagnosis"
    ]  # fmt: skip
    control(other, "reset").click()
    assert [control(other, name).currentText() for name in ("size", "sort", "group")] == [
        "medium", "rank", "nothing"
    ]  # fmt: skip
    qtbot.waitUntil(lambda: not other.loading)


def test_thumbs_refine_the_answer_and_undo_takes_them_back(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    ask(qtbot, session)
    first = session.current
    good, bad = first.results.hits[0], first.results.hits[1]
    widget.gallery.judged.emit(good, True)
    widget.gallery.judged.emit(bad, False)
    model = widget.gallery.model()
    assert (model.verdict(good), model.verdict(bad)) == (True, False)
    assert control(widget, "refine").text() == "Refine (2)" and control(widget, "refine").isEnabled()
    with qtbot.waitSignal(session.answered, timeout=20_000):
        control(widget, "refine").click()
    assert bad.slide not in [one.slide for one in cards(widget)]
    assert "refined by 2 thumbs" in control(widget, "how").text()
    assert control(widget, "refine").text() == "Refine" and not control(widget, "refine").isEnabled()
    pictures = session.current.results.pictures
    added = len(session.current.results.query_boxes) - len(first.results.query_boxes)
    assert added > 0 and pictures.query(len(first.results.query_boxes)) is not None
    assert pictures.query(len(session.current.results.query_boxes)) is None
    with qtbot.waitSignal(session.answered, timeout=20_000):
        control(widget, "undo").click()
    assert bad.slide in [one.slide for one in cards(widget)]


def test_the_same_thumb_pressed_twice_is_taken_back(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    ask(qtbot, session)
    one = session.current.results.hits[0]
    widget.judge(one, True)
    widget.judge(one, False)
    assert widget.gallery.model().verdict(one) is False
    widget.judge(one, False)
    assert widget.gallery.model().verdict(one) is None and not control(widget, "undo").isEnabled()


def test_the_menu_of_a_hit_searches_from_its_slide(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    ask(qtbot, session)
    one = session.current.results.hits[1]
    actions = {action.objectName(): action for action in widget.menu_of(one).actions()}
    with qtbot.waitSignal(session.answered, timeout=20_000):
        actions["results.menu.search_slide"].trigger()
    assert control(widget, "title").text() == f"Similar to {one.name}"
    assert session.current.params == PARAMS and session.current.asked.query.slide == one.slide


def test_the_panel_searches_from_the_slide_it_explains(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    ask(qtbot, session)
    one = session.current.results.hits[2]
    widget.gallery.setCurrentIndex(widget.gallery.model().index_of(one.slide))
    with qtbot.waitSignal(session.answered, timeout=20_000):
        control(widget, "search_slide").click()
    assert session.current.asked.query.slide == one.slide


def test_a_region_of_a_slide_that_is_away_cannot_be_searched_from_and_it_says_so(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    ask(qtbot, session)
    away = next(one for one in session.current.results.hits if one.slide == "s8")
    with qtbot.waitSignal(session.failed, timeout=20_000) as failed:
        widget.search_from(away, whole=False)
    assert "relocate" in failed.args[0]
    qtbot.waitUntil(lambda: not session.busy)
    assert control(widget, "state").text() == failed.args[0]


@pytest.mark.parametrize("name", ENTRIES)
def test_the_answer_is_written_in_every_format(
    qtbot: Any, widget: ResultsWidget, session: Session, tmp_path: Path, name: str
) -> None:
    ask(qtbot, session)
    path = tmp_path / f"answer{ENTRIES[name].ending}"
    widget.exporter.export(name, path)
    qtbot.waitUntil(lambda: not widget.exporter.busy, timeout=20_000)
    assert control(widget, "state").text() == f"Written: {path}"
    assert path.stat().st_size > 200
    if name == "html":
        assert "small.fish" in path.read_text(encoding="utf-8")
    if name == "hit_geojson":
        chosen = widget.gallery.current_hit()
        features = json.loads(path.read_text())["features"]
        assert len(features) == len(chosen.matches) and {f["properties"]["slide"] for f in features} == {
            chosen.slide
        }


def test_the_answer_to_a_box_is_offered_a_name_without_marks_that_file_names_do_not_have(
    qtbot: Any, widget: ResultsWidget, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: list[str] = []

    def chosen(parent: QWidget, title: str, name: str, *_: Any) -> tuple[str, str]:
        offered.append(name)
        return "", ""

    monkeypatch.setattr("napari_fish._napari.results.export.QFileDialog.getSaveFileName", chosen)
    ask(qtbot, session)
    answer = session.current
    assert answer is not None
    boxed = replace(answer, results=replace(answer.results, query="a:b.svs [48,1160,1024,1024]"))
    session.answered.emit(boxed)
    widget.exporter.ask("csv")
    assert offered == ["a_b.svs 48-1160-1024-1024 results.csv"]


def test_a_file_that_cannot_be_written_is_named_without_a_traceback(
    qtbot: Any, widget: ResultsWidget, session: Session, tmp_path: Path
) -> None:
    ask(qtbot, session)
    for name in ("csv", "png", "html", "hit_geojson"):
        widget.exporter.export(name, tmp_path / "missing" / f"a{ENTRIES[name].ending}")
        qtbot.waitUntil(lambda: not widget.exporter.busy, timeout=20_000)
        assert "cannot be written" in control(widget, "state").text()
    with pytest.raises(FishError, match="cannot be written"):
        write(session.current.results, tmp_path / "missing" / "a.json", "", None)


def test_another_database_clears_the_answer(qtbot: Any, widget: ResultsWidget, session: Session) -> None:
    ask(qtbot, session)
    session.close()
    assert not cards(widget) and "No database is open" in widget.gallery.message
    assert not control(widget, "title").isVisible() and not control(widget, "votes").isVisible()


@pytest.mark.parametrize(
    ("width", "side"), [(1000, Qt.Orientation.Horizontal), (380, Qt.Orientation.Vertical)]
)
def test_it_fits_a_wide_and_a_narrow_dock(
    qtbot: Any, widget: ResultsWidget, session: Session, width: int, side: Any
) -> None:
    ask(qtbot, session)
    widget.resize(width, 700)
    qtbot.wait(80)
    assert widget.width() == width and control(widget, "splitter").orientation() == side
    for button in widget.findChildren(QAbstractButton):
        if button.objectName().startswith("results.") and button.isVisible():
            right = button.mapTo(widget, button.rect().topRight()).x()
            assert right < width, button.objectName()
    assert widget.gallery.height() > 150


def test_every_control_has_a_name_and_a_tooltip(widget: ResultsWidget) -> None:
    controls = [one for kind in (QAbstractButton, QComboBox) for one in widget.findChildren(kind)]
    ours = [one for one in controls if one.objectName() and not one.objectName().startswith("qt_")]
    assert len(ours) >= 14
    for one in ours:
        if one.objectName() not in ("ScrollLeftButton", "ScrollRightButton"):
            assert one.objectName().startswith("results.") and one.toolTip(), one.objectName()


def test_judgements_wait_until_they_were_searched_with() -> None:
    one, two = hit(1), hit(2)
    old = Feedback().judge(one, True)
    assert pending_judgements(old, old) == 0
    assert pending_judgements(old.judge(one, False).judge(two, True), old) == 2
    assert pending_judgements(old.judge(one, False).judge(one, True), old) == 0
    assert pending_judgements(Feedback(), old) == 1


def test_slides_added_to_the_database_leave_the_answer_as_it_is(
    qtbot: Any, widget: ResultsWidget, session: Session
) -> None:
    ask(qtbot, session)
    shown = widget.answer
    with qtbot.waitSignal(session.database_changed, timeout=20_000):
        session.refresh()
    assert shown is not None
    assert widget.answer is shown
    assert cards(widget)


def test_reading_what_is_new_does_not_stop_a_search(qtbot: Any, session: Session) -> None:
    with qtbot.waitSignals([session.answered, session.database_changed], timeout=20_000):
        session.search("id:s0", None, PARAMS)
        session.refresh()
    assert session.current is not None
