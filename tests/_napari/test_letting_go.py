"""Widgets closed by napari's own button hear and do nothing any more; every control says what it is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qtpy.QtWidgets import QAbstractButton, QAbstractSpinBox, QComboBox, QLineEdit, QProgressBar, QWidget

from napari_fish._napari import preferences
from napari_fish._napari.docks import show_widget
from napari_fish._napari.session.session import session_of

NAMES = ("Database", "Search", "Results", "Evaluate", "Tissue & mosaic")


@pytest.fixture
def viewer(make_viewer: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(preferences, "_file", lambda: tmp_path / "remembered.json")
    return make_viewer()


def texts(widget: QWidget) -> list[str]:
    """Return everything a widget says."""
    boxes = [box.itemText(i) for box in widget.findChildren(QComboBox) for i in range(box.count())]
    said = [child.text() for child in widget.findChildren(QWidget) if callable(getattr(child, "text", None))]
    return [*boxes, *map(str, said)]


@pytest.mark.parametrize("name", NAMES)
def test_a_widget_taken_out_of_its_dock_hears_nothing_any_more(viewer: Any, name: str) -> None:
    widget = show_widget(viewer, name)
    session, layers = session_of(viewer), viewer.layers
    callbacks = len(layers.events.inserted.callbacks), len(layers.events.removed.callbacks)
    dock = widget.parent()
    while not hasattr(dock, "destroyOnClose"):
        dock = dock.parent()
    dock.destroyOnClose()
    assert widget.parent() is None
    before = texts(widget)
    viewer.add_image(np.zeros((8, 8, 3), np.uint8), rgb=True, name="opened later")
    if name in ("Search", "Tissue & mosaic"):
        assert len(layers.events.inserted.callbacks) < callbacks[0]
        assert len(layers.events.removed.callbacks) < callbacks[1]
    if name == "Results":
        session.started.emit("Something new …")
        session.failed.emit("Something went wrong.")
        session.ended.emit()
        assert widget._loader._lanes["kept"]._shutdown
    if name in ("Database", "Evaluate"):
        session.failed.emit("Something went wrong.")
        session.database_changed.emit(None)
    assert texts(widget) == before
    widget.close()


def test_a_preview_or_evaluation_under_way_is_stopped_with_its_dock(viewer: Any, qtbot: Any) -> None:
    viewer.add_image(np.full((512, 512, 3), 200, np.uint8), rgb=True, name="slide", units="um")
    widget = show_widget(viewer, "Tissue & mosaic")
    widget.preview()
    (worker,) = widget._job._now
    viewer.window.remove_dock_widget(widget)
    assert worker.cancelling
    qtbot.waitUntil(lambda: not widget._job.busy, timeout=20_000)
    assert [layer.name for layer in viewer.layers] == ["slide"]


@pytest.mark.parametrize("name", NAMES)
def test_every_control_has_a_name_and_says_what_it_is_for(viewer: Any, name: str) -> None:
    widget = show_widget(viewer, name)
    kinds = (QAbstractButton, QComboBox, QAbstractSpinBox, QLineEdit, QProgressBar)
    found = [child for kind in kinds for child in widget.findChildren(kind)]
    own = [child for child in found if not _is_qts(child)]
    assert own
    for child in own:
        assert "." in child.objectName(), (type(child), getattr(child, "text", str)())
        assert child.toolTip(), child.objectName()


def _is_qts(child: Any) -> bool:
    """Whether a control is a part of one of Qt's: an arrow of a tab bar, the line of a spin box."""
    parent = child.parent()
    inner = isinstance(parent, (QAbstractSpinBox, QComboBox, QLineEdit)) or "Tab" in type(parent).__name__
    return inner or child.objectName().startswith("qt_") or "Table" in type(parent).__name__
