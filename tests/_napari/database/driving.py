"""What a user does with the Database widget and sees of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QWidget

from napari_fish._napari.database.widget import DatabaseWidget
from napari_fish.store.snapshot.store import SnapshotStore

SLIDES = 4
LONG = 240_000


def control(widget: QWidget, name: str) -> Any:
    found = widget.findChild(QWidget, f"database.{name}")
    assert found is not None, name
    return found


def state(widget: DatabaseWidget) -> str:
    return str(control(widget, "state").text())


def choose(widget: DatabaseWidget, folder: Path, labels: bool = True) -> None:
    """Choose slides, labels and the tiny encoder as a user would."""
    form = widget.build.form
    form.encoder.setCurrentIndex(form.encoder.findData("tiny"))
    form.slides.put(folder)
    if labels:
        form.labels.put(folder / "labels.csv")


def seen(qtbot: Any, widget: DatabaseWidget) -> None:
    qtbot.waitUntil(lambda: widget.build.prospect is not None and not widget.build._survey.busy, timeout=LONG)


def finished(qtbot: Any, widget: DatabaseWidget) -> None:
    """Wait until nothing is going on any more, here or in what the widgets share."""
    shared = widget._session
    jobs = (widget.build._build, widget.build._survey, widget.inspect._care, shared, shared._reading)
    qtbot.waitUntil(lambda: not any(job.busy for job in jobs), timeout=LONG)
    qtbot.waitUntil(lambda: not widget.inspect._look.busy, timeout=LONG)


def digest(database: Path) -> str:
    with SnapshotStore(database) as store:
        return store.digest()


def rows(widget: DatabaseWidget) -> dict[str, str]:
    """What the list says became of each slide."""
    return {row[0]: row[1] for row in widget.build.progress.table.shown.rows}


def inspected(qtbot: Any, widget: DatabaseWidget, database: Path) -> None:
    control(widget, "open").setText(str(database))
    control(widget, "open").editingFinished.emit()
    qtbot.waitUntil(lambda: widget.inspect.inspection is not None, timeout=LONG)
    finished(qtbot, widget)


def select(widget: DatabaseWidget, *slides: str) -> None:
    widget.inspect.slides.select(slides)
