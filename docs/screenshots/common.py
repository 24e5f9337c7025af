"""What the pictures share: the demo archive, kept between runs, and patience."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

DEMO = Path(__file__).parents[1] / "_build" / "demo"
"""Where the demo slides and their database are kept between runs."""
SLIDE = "demo-003.tif"
"""The slide that is asked for."""
SECONDS = 1200.0


def demo_database() -> Path:
    """Return the database that ``napari-fish demo`` makes, made when it is not there yet (minutes)."""
    from napari_fish.building.build import build
    from napari_fish.slides.demo import write_demo

    database = DEMO / "demo.fish"
    if not (database / "snapshot").exists():
        write_demo(DEMO / "slides")
        build(DEMO / "slides", database, DEMO / "slides" / "labels.csv")
    return database


def demo_slide() -> Path:
    """Return the slide that is asked for."""
    return demo_database().parent / "slides" / SLIDE


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
