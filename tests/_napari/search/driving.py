"""What a user does with the Search widget and sees of it."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QWidget

from napari_fish._napari.search.widget import SearchWidget
from napari_fish._napari.session.session import Session

PATIENCE_MS = 200_000


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
