"""From the cards into the real viewer: compare, magnify, clear, open, jump."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from qtpy.QtCore import QPoint
from qtpy.QtWidgets import QLabel, QPushButton

from napari_fish._napari.compare.compare import comparison_of
from napari_fish._napari.docks import DockedWidget
from napari_fish._napari.reader.reader import PLUGIN
from napari_fish._napari.results.explain_panel import Pair
from napari_fish._napari.results.widget import ResultsWidget
from napari_fish._napari.session.session import session_of
from tests._napari.results.measured_archive import ask, magnification, make_archive, open_archive


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_archive(tmp_path_factory.mktemp("archive"))


@pytest.fixture
def viewer(qtbot: Any, make_viewer: Callable[..., Any], archive: Path) -> Iterator[Any]:
    """A viewer with the query slide open and the answer to a box on it."""
    viewer = make_viewer(show=True)
    session = session_of(viewer)
    session._opened(open_archive(archive))
    (layer,) = viewer.open(archive.parent / "slides" / "s0.tif", plugin=PLUGIN)
    session.show(ask(session.database, layer=layer.name))
    yield viewer
    comparison_of(viewer).clear()
    session.close()


@pytest.fixture
def widget(qtbot: Any, viewer: Any) -> Iterator[ResultsWidget]:
    widget = ResultsWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Results", area="bottom")
    yield widget
    qtbot.waitUntil(lambda: not widget.loading)


def press(widget: ResultsWidget, name: str) -> None:
    button = widget.findChild(QPushButton, f"results.{name}")
    assert button.isEnabled(), name
    button.click()


def test_compare_magnify_and_clear(qtbot: Any, viewer: Any, widget: ResultsWidget) -> None:
    comparison = comparison_of(viewer)
    with qtbot.waitSignal(comparison.changed, timeout=30_000):
        press(widget, "compare")
    assert len(comparison.layers) == 1 + len(widget.answer.results.hits) and viewer.canvas.grid.enabled
    for objective in (5, 40):
        press(widget, f"x{objective}")
        assert magnification(viewer) == pytest.approx(objective, rel=1e-3)
    press(widget, "clear")
    assert not comparison.shown and not viewer.canvas.grid.enabled and len(viewer.layers) == 1
    assert not widget.findChild(QPushButton, "results.clear").isEnabled()


def test_a_double_click_opens_the_slide_and_jump_draws_on_both(
    qtbot: Any, viewer: Any, widget: ResultsWidget
) -> None:
    one, other = widget.answer.results.hits[:2]
    widget.gallery.opened.emit(one)
    qtbot.waitUntil(lambda: one.name.removesuffix(".tif") in viewer.layers, timeout=30_000)
    widget.gallery.setCurrentIndex(widget.gallery.model().index_of(other.slide))
    press(widget, "jump")
    qtbot.waitUntil(lambda: sum("Matches" in layer.name for layer in viewer.layers) >= 3, timeout=30_000)
    names = [layer.name for layer in viewer.layers]
    for slide in ("s0", one.name.removesuffix(".tif"), other.name.removesuffix(".tif")):
        assert slide in names and f"Matches · {slide}" in names


def test_a_comparison_can_be_stopped_while_slides_are_opened(
    qtbot: Any, viewer: Any, widget: ResultsWidget
) -> None:
    said = widget.findChild(QLabel, "results.state")
    press(widget, "compare")
    assert said.text().startswith("Opening slides to compare")
    press(widget, "clear")
    assert said.text() == "" and not widget.findChild(QPushButton, "results.clear").isEnabled()
    qtbot.waitUntil(lambda: not comparison_of(viewer)._job.busy, timeout=30_000)
    assert said.text() == "" and len(viewer.layers) == 1


def test_two_double_clicks_open_a_slide_once_and_say_so_meanwhile(
    qtbot: Any, viewer: Any, widget: ResultsWidget
) -> None:
    hit = widget.answer.results.hits[0]
    said = widget.findChild(QLabel, "results.state")
    for _ in range(2):
        widget.gallery.opened.emit(hit)
        assert said.text() == f"Opening {hit.name} …"
    qtbot.waitUntil(lambda: said.text() == "", timeout=30_000)
    qtbot.wait(300)
    assert [layer.name for layer in viewer.layers] == ["s0", "s1", "Matches · s1"]


def test_a_widget_at_the_side_keeps_its_height_and_what_matters_is_in_sight_in_a_window_of_ordinary_size(
    qtbot: Any, viewer: Any
) -> None:
    viewer.window.resize(1400, 900)
    side, results = DockedWidget(), ResultsWidget(viewer)
    side.setMinimumWidth(370)
    for widget in (side, results):
        viewer.window.add_dock_widget(widget, name=type(widget).__name__, area="right")
    in_sight = ("search_region", "search_slide", "export", "reset")
    buttons = [results.findChild(QPushButton, f"results.{name}") for name in in_sight]

    def is_whole(part: Any) -> bool:
        return bool(part.visibleRegion().boundingRect().size() == part.size())

    # Docks are settled and laid out by and by.
    qtbot.waitUntil(lambda: results.height() < 500 < results.width(), timeout=20_000)
    qtbot.waitUntil(lambda: side.height() > 700, timeout=20_000)
    assert side.mapToGlobal(QPoint(0, side.height())).y() >= results.mapToGlobal(QPoint(0, 300)).y()
    qtbot.waitUntil(lambda: all(is_whole(one) for one in buttons), timeout=20_000)
    pairs = results.findChildren(Pair)
    qtbot.waitUntil(lambda: any(not one.visibleRegion().isEmpty() for one in pairs), timeout=20_000)
    rows = {
        results.findChild(QPushButton, f"results.{name}").mapTo(results, QPoint(0, 0)).y()
        for name in ("refine", "reset")
    }
    assert len(rows) == 1
    qtbot.waitUntil(lambda: not results.loading)


def test_a_window_that_grew_beyond_the_lower_edge_of_its_screen_is_brought_back(
    qtbot: Any, viewer: Any
) -> None:
    side = DockedWidget()
    viewer.window.add_dock_widget(side, name="side", area="right")
    window = side.window()
    screen = window.screen().availableGeometry()
    window.move(40, screen.bottom() - 300)
    window.resize(1000, 660)
    qtbot.waitUntil(lambda: window.frameGeometry().bottom() > screen.bottom())
    results = ResultsWidget(viewer)
    viewer.window.add_dock_widget(results, name="Results", area="right")
    qtbot.waitUntil(lambda: window.frameGeometry().bottom() <= screen.bottom(), timeout=20_000)
    assert window.frameGeometry().top() >= screen.top()
    qtbot.waitUntil(lambda: not results.loading)
