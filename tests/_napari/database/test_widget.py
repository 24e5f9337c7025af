"""The Database widget as a whole: what is dropped on it, what it remembers, names and tooltips."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from qtpy.QtCore import QMimeData, QPointF, Qt, QUrl
from qtpy.QtGui import QDropEvent
from qtpy.QtWidgets import QFileDialog, QWidget

from napari_fish._napari import preferences
from napari_fish._napari.database.widget import DatabaseWidget
from napari_fish._napari.session.session import Answer
from napari_fish.search import SearchParams
from tests._napari.database.driving import (
    LONG,
    choose,
    control,
    finished,
    seen,
    state,
)


def test_a_dropped_folder_is_slides_a_dropped_table_labels_a_dropped_database_is_opened(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    def drop(path: Path) -> None:
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        widget.dropEvent(
            QDropEvent(
                QPointF(5, 5),
                Qt.DropAction.CopyAction,
                data,
                Qt.MouseButton.LeftButton,
                Qt.KeyboardModifier.NoModifier,
            )
        )

    form = widget.build.form
    form.encoder.setCurrentIndex(form.encoder.findData("tiny"))
    drop(archive / "slides")
    drop(archive / "slides" / "labels.csv")
    assert control(widget, "slides").text() == str(archive / "slides")
    assert control(widget, "labels").text() == str(archive / "slides" / "labels.csv")
    seen(qtbot, widget)
    drop(archive / "a.fish")
    qtbot.waitUntil(lambda: widget.inspect.inspection is not None, timeout=LONG)


def test_the_last_database_is_opened_by_return_or_by_choosing_it_again(
    qtbot: Any, make_widget: Callable[[], DatabaseWidget], archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preferences.remember("database", str(archive / "a.fish"))
    first, second = make_widget(), make_widget()
    assert "Return in the line above opens a.fish" in control(first, "summary").text()
    control(first, "open").editingFinished.emit()
    assert not first._session.busy, "to leave the line is no wish"
    qtbot.keyClick(control(first, "open"), Qt.Key.Key_Return)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(archive / "a.fish"))
    control(second, "open_choose").click()
    for widget in (first, second):
        finished(qtbot, widget)
        assert widget._session.database.path == archive / "a.fish"
    answer = Answer(None, SearchParams(), None)  # type: ignore[arg-type]
    first._session.remember(answer)
    qtbot.keyClick(control(first, "open"), Qt.Key.Key_Return)
    finished(qtbot, first)
    assert first._session.history == [answer], "what is open already is not opened again"


def test_how_to_build_is_remembered_and_what_counts_is_not_hidden(
    qtbot: Any, make_widget: Callable[[], DatabaseWidget], built: Path, tmp_path: Path
) -> None:
    first = make_widget()
    choose(first, built / "slides")
    first.build.form.database.put(tmp_path / "new.fish")
    control(first, "mpp").setValue(0.5)
    control(first, "preset").setCurrentText("paper")
    first.build.start()
    first.cancel()
    form = make_widget().build.form
    params = form.choices.params
    assert (params.encoder, params.preset, params.mpp) == ("tiny", "paper", None)
    assert form.preset.isVisibleTo(form)
    form.reset()
    assert form.choices.params.preset is None
    preferences.remember("build", ["no", "such"])
    assert make_widget().build.form.choices.params.preset is None


def test_reset_goes_back_to_what_the_user_prefers(qtbot: Any, widget: DatabaseWidget, built: Path) -> None:
    choose(widget, built / "slides")
    control(widget, "mpp").setValue(0.5)
    preferences.set_preference("computing", "device", "cpu")
    try:
        control(widget, "reset").click()
        assert widget.build.form.choices.params.device == "cpu"
    finally:
        preferences.set_preference("computing", "device", "auto")
    assert control(widget, "slides").text() == ""
    assert widget.build.form.choices.params.mpp is None
    assert "Choose a folder" in state(widget)


def test_every_control_of_the_database_widget_has_a_name_and_a_tooltip(widget: DatabaseWidget) -> None:
    named = [child for child in widget.findChildren(QWidget) if child.objectName().startswith("database.")]
    assert len(named) > 40
    assert not [child.objectName() for child in named if not child.toolTip()]
    names = [child.objectName() for child in named]
    assert len(names) == len(set(names))
