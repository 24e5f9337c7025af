"""Pictures of the Evaluate widget on the demo database."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

DEMO = Path(__file__).parents[1] / "_build" / "demo"
"""Where the demo slides and their database are kept between runs."""
SECONDS = 300.0


def demo_database() -> Path:
    """Return the database that ``napari-fish demo`` makes, made when it is not there yet (minutes)."""
    from napari_fish.building.build import build
    from napari_fish.slides.demo import write_demo

    database = DEMO / "demo.fish"
    if not (database / "snapshot").exists():
        write_demo(DEMO / "slides")
        build(DEMO / "slides", database, DEMO / "slides" / "labels.csv")
    return database


def wait_until(done: Callable[[], bool]) -> None:
    """Let the program run until something has happened, and a little longer for it to be painted."""
    from qtpy.QtWidgets import QApplication

    end, calm = time.monotonic() + SECONDS, 0
    while calm < 8:
        if time.monotonic() > end:
            raise SystemExit("the widget does not come to rest")
        QApplication.processEvents()
        time.sleep(0.02)
        calm = calm + 1 if done() else 0


def picture(file: Path, *, tab: int = 0, theme: str = "dark", run: bool = True) -> None:
    """Take a picture of the widget in a viewer with a demo slide."""
    import napari
    from qtpy.QtCore import Qt

    from napari_fish._napari.evaluate_widget import EvaluateWidget
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    viewer = napari.Viewer(title="napari-fish", show=False)
    viewer.theme = theme
    widget = EvaluateWidget(viewer)
    dock = viewer.window.add_dock_widget(widget, name="Evaluate", area="right")
    viewer.show()
    viewer.window.resize(1250, 900)
    viewer.window._qt_window.resizeDocks([dock], [430], Qt.Orientation.Horizontal)
    if run:
        session = session_of(viewer)
        session.open(demo_database())
        wait_until(lambda: session.database is not None and not session.busy)
        widget.run()
        wait_until(lambda: widget.evaluation is not None)
        widget._tabs.setCurrentIndex(tab)
    wait_until(lambda: True)
    take_picture(viewer, file)
    viewer.close()


PICTURES = {
    "evaluate": picture,
    "evaluate-labels": partial(picture, tab=1),
}
