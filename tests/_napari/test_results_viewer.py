"""From the cards into the real viewer: compare, magnify, clear, open, jump."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from qtpy.QtWidgets import QPushButton

from napari_fish._napari.compare import comparison_of
from napari_fish._napari.magnification import magnification
from napari_fish._napari.reader import PLUGIN
from napari_fish._napari.results_widget import ResultsWidget
from napari_fish._napari.session import session_of
from tests._napari.measured_archive import ask, make_archive, open_archive


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
