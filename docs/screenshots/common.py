"""What the pictures share: the demo archive, kept between runs, what a reader of the tutorial sees, and patience."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

DEMO = Path(__file__).parents[1] / "_build" / "demo"
"""Where the demo slides and their database are kept between runs."""
SLIDE = "demo-001.tif"
"""The slide that is asked for, as in the tutorial: a lymphoma, which has its like in the demo."""
BOX = (64.0, 1152.0, 1024.0, 1024.0)
OTHER_BOX = (1088.0, 1152.0, 1024.0, 1024.0)
"""Regions of it that others are near to, in level-0 px."""
WINDOW = (1400, 900)
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


@contextmanager
def scene(theme: str = "dark", results: bool = True, search: bool = True) -> Iterator[tuple[Any, Any, Any]]:
    """Show the slide with Search and Results where they are put by themselves, and the demo database open."""
    import napari

    from napari_fish._napari.docks import show_widget
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import add_slide, arrange

    viewer = napari.Viewer(title="napari-fish", show=False)
    viewer.theme = theme
    viewer.show()
    viewer.window.resize(*WINDOW)
    add_slide(viewer, demo_slide())
    arrange(viewer)
    widgets = [show_widget(viewer, "Search") if search else None]
    wait_until(lambda: True)
    widgets.append(show_widget(viewer, "Results") if results else None)
    session = session_of(viewer)
    wait_until(lambda: not session.busy)
    session.open(demo_database())
    wait_until(lambda: session.database is not None and not session.busy)
    if widgets[1] is not None:
        widgets[1]._controls.reset()
    if widgets[0] is not None:
        wait_until(
            lambda: widgets[0].params.filters.values.count() > 0 and widgets[0].query.facts is not None
        )
    yield viewer, widgets[0], widgets[1]
    session.close()
    viewer.close()


def put_box(viewer: Any, search: Any, results: Any, box: tuple[float, ...] = BOX) -> Any:
    """Put a box on the slide and wait for its answer; return it."""
    from napari_fish._napari.session import session_of

    session = session_of(viewer)
    before = session.current
    search.query.box.put(search.query.layer, box)
    wait_until(lambda: session.current is not before and not session.busy)
    wait_until(lambda: results is None or not results.loading)
    return session.current


def search_slide(viewer: Any, search: Any, results: Any) -> Any:
    """Search for the whole slide and wait for the answer; return it."""
    from napari_fish._napari.session import session_of

    session = session_of(viewer)
    before = session.current
    search.search_slide()
    wait_until(lambda: session.current is not before and not session.busy)
    wait_until(lambda: results is None or not results.loading)
    return session.current


def in_few_colours(
    picture: Image.Image, colours: int = 256, dither: Image.Dither = Image.Dither.FLOYDSTEINBERG
) -> Image.Image:
    """Return a picture with a palette, a third of the size: flat colours as they are, the rest as near as it gets.

    A palette made of all pixels alike serves the tissue only, and makes yellow warnings pink.
    """
    pixels = np.asarray(picture).reshape(-1, 3)
    found, counts = np.unique(pixels, axis=0, return_counts=True)
    grey = np.ptp(found.astype(int), axis=1) < 12
    flat = found[np.argsort(-counts)[: colours // 4]]
    # Few px, but each of them is to be read: saturated colours that tissue does not have (yellow, green, blue).
    red, green, blue = found.T.astype(int)
    rare = found[~grey & ((green > red + 25) | (green > blue + 25))]
    chosen = [flat]
    for part, n in ((rare, colours // 4), (pixels[:: max(1, len(pixels) // 400_000)], colours // 2)):
        if len(part):
            strip = Image.fromarray(np.ascontiguousarray(part).reshape(1, -1, 3))
            palette = strip.quantize(n, method=Image.Quantize.MEDIANCUT).getpalette()[: 3 * n]
            chosen.append(np.array(palette, np.uint8).reshape(-1, 3))
    table = Image.new("P", (1, 1))
    table.putpalette(np.concatenate(chosen)[:colours].tobytes())
    return picture.quantize(palette=table, dither=dither)


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
