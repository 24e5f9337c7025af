"""Pictures of the Results widget in each of its states."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from screenshots.common import demo_database, put_box, scene, search_slide, wait_until

QUERY = "id:demo-001.tif"


def ask(viewer: Any, widget: Any, query: str = QUERY, box: Any = None, **params: Any) -> Any:
    """Search and wait for the answer and its pictures; return the session."""
    from napari_fish._napari.session import session_of
    from napari_fish.search import SearchParams

    session = session_of(viewer)
    session.search(query, box, SearchParams(**{"k": 12} | params))
    wait_until(lambda: session.current is not None and not session.busy and not widget.loading)
    return session


def choose(widget: Any, name: str, text: str) -> None:
    """Choose an entry of one of the widget's boxes."""
    from qtpy.QtWidgets import QComboBox

    widget.findChild(QComboBox, f"results.{name}").setCurrentText(text)
    wait_until(lambda: not widget.loading)


def _picture(viewer: Any, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    viewer.fit_to_view(layers=[viewer.layers[0]], margin=0.03)
    wait_until(lambda: True)
    viewer.screenshot(str(file), canvas_only=False, flash=False)


def _at_right(viewer: Any, widget: Any, px: int = 400) -> None:
    """Move the widget to the side."""
    from qtpy.QtCore import Qt
    from qtpy.QtWidgets import QDockWidget

    window = viewer.window._qt_window
    dock = next(one for one in window.findChildren(QDockWidget) if one.isAncestorOf(widget))
    window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
    window.resizeDocks([dock], [px], Qt.Orientation.Horizontal)


def gallery(file: Path, theme: str = "dark") -> None:
    """Show the answer to a whole slide, as a reader of the tutorial gets it."""
    with scene(theme) as (viewer, search, widget):
        search_slide(viewer, search, widget)
        _picture(viewer, file)


def large(file: Path) -> None:
    """Show large cards, more of them than are near."""
    with scene(search=False) as (viewer, _, widget):
        ask(viewer, widget)
        choose(widget, "size", "large")
        _picture(viewer, file)


def small(file: Path) -> None:
    """Show small cards, in a light theme."""
    with scene("light", search=False) as (viewer, _, widget):
        ask(viewer, widget, "id:demo-003.tif", k=24)
        choose(widget, "size", "small")
        _picture(viewer, file)


def grouped(file: Path) -> None:
    """Show cards under the headings of their diagnoses, in a narrow dock."""
    with scene(search=False) as (viewer, _, widget):
        _at_right(viewer, widget)
        ask(viewer, widget, "id:demo-003.tif")
        choose(widget, "group", "diagnosis")
        _picture(viewer, file)


def explanation(file: Path, theme: str = "dark") -> None:
    """Show what became of the regions of the query."""
    with scene(theme) as (viewer, search, widget):
        search_slide(viewer, search, widget)
        widget._panel.setCurrentIndex(1)
        # Laid out by and by: the cards and the table reach down to the lower edge.
        wait_until(lambda: not widget.loading and widget.gallery.height() > widget.height() / 2)
        _picture(viewer, file)


def refined(file: Path) -> None:
    """Show an answer that was refined, with another thumb waiting."""
    with scene(search=False) as (viewer, _, widget):
        session = ask(viewer, widget)
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
    with scene("light") as (viewer, search, widget):
        search.params.filters.set_where(("diagnosis!=lymphoma",))
        put_box(viewer, search, widget)
        _picture(viewer, file)


def hover(file: Path) -> None:
    """Show the wider field around a hit."""
    from qtpy.QtCore import QRect

    with scene(search=False) as (viewer, _, widget):
        ask(viewer, widget)
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
    with scene() as (viewer, _, _):
        _picture(viewer, file)


def figure(file: Path) -> None:
    """Draw the figure that an answer can be exported as."""
    from napari_fish.archive import open_database

    with open_database(demo_database()) as database:
        file.parent.mkdir(parents=True, exist_ok=True)
        database.search(QUERY, k=5).save(file)


PICTURES = {
    "results-gallery": gallery,
    "results-gallery-light": partial(gallery, theme="light"),
    "results-large": large,
    "results-small": small,
    "results-grouped": grouped,
    "results-explanation": explanation,
    "results-refined": refined,
    "results-nothing-similar": nothing_similar,
    "results-hover": hover,
    "results-empty": empty,
    "results-figure": figure,
}
