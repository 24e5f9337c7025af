"""Pictures of the Results widget in each of its states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from screenshots.common import demo_database, wait_until

WINDOW = (1400, 900)
QUERY = "id:demo-001.tif"


@contextmanager
def scene(theme: str = "dark", area: str = "bottom", px: int = 400) -> Iterator[tuple[Any, Any, Any]]:
    """Show the widget in a viewer, with the demo database open."""
    import napari
    from qtpy.QtCore import Qt

    from napari_fish._napari.results_widget import ResultsWidget
    from napari_fish._napari.session import session_of

    viewer = napari.Viewer(title="napari-fish", show=False)
    viewer.theme = theme
    widget = ResultsWidget(viewer)
    widget._controls.reset()
    dock = viewer.window.add_dock_widget(widget, name="Results", area=area)
    viewer.show()
    viewer.window.resize(*WINDOW)
    session = session_of(viewer)
    session.open(demo_database())
    wait_until(lambda: session.database is not None and not session.busy)
    # The widget has settled below the canvas by now, wherever it was put.
    window, right = viewer.window._qt_window, area == "right"
    areas, sides = Qt.DockWidgetArea, Qt.Orientation
    window.addDockWidget(areas.RightDockWidgetArea if right else areas.BottomDockWidgetArea, dock)
    window.resizeDocks([dock], [px], sides.Horizontal if right else sides.Vertical)
    yield viewer, widget, session
    session.close()
    viewer.close()


def ask(widget: Any, session: Any, query: str = QUERY, box: Any = None, **params: Any) -> None:
    """Search and wait for the answer and its pictures."""
    from napari_fish.search import SearchParams

    session.search(query, box, SearchParams(**{"k": 12} | params))
    wait_until(lambda: session.current is not None and not session.busy and not widget.loading)


def choose(widget: Any, name: str, text: str) -> None:
    """Choose an entry of one of the widget's boxes."""
    from qtpy.QtWidgets import QComboBox

    widget.findChild(QComboBox, f"results.{name}").setCurrentText(text)
    wait_until(lambda: not widget.loading)


def _picture(viewer: Any, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    viewer.screenshot(str(file), canvas_only=False, flash=False)


def gallery(file: Path) -> None:
    """Show large cards, in a dark theme."""
    with scene() as (viewer, widget, session):
        ask(widget, session)
        choose(widget, "size", "large")
        _picture(viewer, file)


def small(file: Path) -> None:
    """Show small cards, in a light theme."""
    with scene("light") as (viewer, widget, session):
        ask(widget, session, "id:demo-003.tif", k=24)
        choose(widget, "size", "small")
        _picture(viewer, file)


def grouped(file: Path) -> None:
    """Show cards under the headings of their diagnoses, in a narrow dock."""
    with scene(area="right", px=400) as (viewer, widget, session):
        ask(widget, session, "id:demo-003.tif")
        choose(widget, "group", "diagnosis")
        _picture(viewer, file)


def explanation(file: Path) -> None:
    """Show what became of the regions of the query."""
    with scene() as (viewer, widget, session):
        ask(widget, session)
        widget._panel.setCurrentIndex(1)
        wait_until(lambda: not widget.loading)
        _picture(viewer, file)


def refined(file: Path) -> None:
    """Show an answer that was refined, with another thumb waiting."""
    with scene() as (viewer, widget, session):
        ask(widget, session)
        first = session.current
        hits = first.results.hits
        widget.judge(hits[0], True)
        widget.judge(hits[-1], False)
        session.refine()
        wait_until(lambda: session.current is not first and not session.busy and not widget.loading)
        widget.judge(session.current.results.hits[1], True)
        wait_until(lambda: not widget.loading)
        _picture(viewer, file)


def nothing_similar(file: Path) -> None:
    """Show an answer without all that is like the query: the widget says so."""
    with scene("light") as (viewer, widget, session):
        ask(widget, session, where=("diagnosis!=lymphoma",), k=8)
        _picture(viewer, file)


def hover(file: Path) -> None:
    """Show the wider field around a hit."""
    from qtpy.QtCore import QRect

    with scene() as (viewer, widget, session):
        ask(widget, session)
        view = widget.gallery
        index = view.model().index(2, 0)
        place = view.cards.card(view.visualRect(index)).picture
        corner = view.viewport().mapToGlobal(place.topLeft())
        widget._field.show_hit(view.model().hit(index), QRect(corner, place.size()))
        wait_until(lambda: not widget.loading)
        file.parent.mkdir(parents=True, exist_ok=True)
        viewer.window._qt_window.screen().grabWindow(0).save(str(file))
        widget._field.hide()


def empty(file: Path) -> None:
    """Show the widget before the first search."""
    with scene() as (viewer, _, _session):
        _picture(viewer, file)


def figure(file: Path) -> None:
    """Draw the figure that an answer can be exported as."""
    from napari_fish.archive import open_database

    with open_database(demo_database()) as database:
        file.parent.mkdir(parents=True, exist_ok=True)
        database.search(QUERY, k=5).save(file)


PICTURES = {
    "results-gallery": gallery,
    "results-small": small,
    "results-grouped": grouped,
    "results-explanation": explanation,
    "results-refined": refined,
    "results-nothing-similar": nothing_similar,
    "results-hover": hover,
    "results-empty": empty,
    "results-figure": figure,
}
