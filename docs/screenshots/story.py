"""The story in one moving picture: a slide, a box, its answer, the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image
from screenshots.common import demo_database, demo_slide, wait_until

WINDOW = (1280, 800)
SHOWN = (960, 600)
"""Size of the moving picture in px."""
SECONDS = {"slide": 1.6, "box": 1.2, "answer": 3.2, "moved": 2.4, "compared": 3.6}


def box_to_results(file: Path) -> None:
    """Write the frames as a GIF."""
    import napari

    from napari_fish._napari.compare import comparison_of
    from napari_fish._napari.docks import show_widget
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import add_slide, arrange

    viewer = napari.Viewer(title="napari-fish", show=True)
    viewer.window.resize(*WINDOW)
    frames: dict[str, Image.Image] = {}

    def take(name: str) -> None:
        wait_until(lambda: True)
        picture = Image.fromarray(viewer.screenshot(canvas_only=False, flash=False)).convert("RGB")
        frames[name] = picture.resize(SHOWN, Image.Resampling.LANCZOS)

    viewer.window._qt_viewer.dockLayerControls.hide()
    viewer.window._qt_viewer.dockLayerList.hide()
    add_slide(viewer, demo_slide())
    arrange(viewer)
    search, session = show_widget(viewer, "Search"), session_of(viewer)
    session.open(demo_database())
    wait_until(lambda: session.database is not None and not session.busy)
    wait_until(lambda: search.query.facts is not None)
    viewer.fit_to_view()
    take("slide")
    search.query.live.setChecked(False)
    _put(search, -0.5)
    take("box")
    search.search_box()
    wait_until(lambda: session.current is not None and not session.busy)
    results = show_widget(viewer, "Results")
    wait_until(lambda: not results.loading)
    take("answer")
    first = session.current
    _put(search, 0.9)
    search.search_box()
    wait_until(lambda: session.current is not first and not session.busy and not results.loading)
    take("moved")
    results._in_viewer.compare()
    comparison = comparison_of(viewer)
    wait_until(lambda: comparison.shown and not comparison.busy)
    take("compared")
    comparison.clear()
    session.close()
    viewer.close()
    _write(frames, file)


def _put(search: Any, at: float) -> None:
    """Put the box on the slide, so many patches from its middle."""
    facts, side = search.query.facts, search.query.side()
    x, y = facts.width / 2 + at * side, facts.height / 2 + at * side / 2 - side / 2
    search.query.box.put(search.query.layer, (x - side / 2, y, side, side))


def _write(frames: dict[str, Image.Image], file: Path) -> None:
    pictures = [frame.quantize(192, dither=Image.Dither.NONE) for frame in frames.values()]
    durations = [round(1000 * SECONDS[name]) for name in frames]
    pictures[0].save(
        file, save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True
    )


PICTURES = {"box-to-results.gif": box_to_results}
