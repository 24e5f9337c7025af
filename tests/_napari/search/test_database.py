"""The Search widget opens databases, and says what it waits for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from napari.components import ViewerModel
from qtpy.QtCore import QMimeData, QUrl

from napari_fish._napari import preferences
from napari_fish._napari.database.widget import DatabaseWidget
from napari_fish._napari.search.widget import SearchWidget
from tests._napari.search.driving import PATIENCE_MS, control, rest, session, state


def test_without_a_database_the_widget_says_what_to_do(bare: SearchWidget) -> None:
    assert "No database is open" in control(bare, "about").text()
    control(bare, "this_slide").click()
    assert "Open a database first" in state(bare)


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
