"""Pictures of what is done with hits in the viewer: compare, magnify, jump."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from screenshots.common import SLIDE as QUERY
from screenshots.common import demo_slide, wait_until
from screenshots.results import scene

DOCK_PX = 230


def _box(session: Any) -> Any:
    """Return the region of the query slide that is asked for."""
    return tuple(float(v) for v in session.database.ask(f"id:{QUERY}").query.boxes[3])


def _compared(viewer: Any, widget: Any, session: Any, k: int) -> Any:
    """Search for a box on the query slide and compare what was found."""
    from napari_fish._napari.compare import comparison_of
    from napari_fish._napari.reader import PLUGIN
    from napari_fish.search.colours import Colours

    slides = session.database.path.parent / "slides"
    viewer.open(slides / QUERY, plugin=PLUGIN)
    box = _box(session)
    from napari_fish.search import SearchParams
    from napari_fish.slides import open_slide

    session.search(open_slide(slides / QUERY), box, SearchParams(k=k), layer=Path(QUERY).stem)
    wait_until(lambda: session.current is not None and not session.busy and not widget.loading)
    comparison = comparison_of(viewer)
    colours = Colours.of_answers([session.current.results])
    comparison.show(session.current, session.database, lambda label: colours.of(label, dark=True))
    wait_until(lambda: comparison.shown and not comparison.busy)
    return comparison


def compare(
    file: Path, k: int = 5, objective: float | None = None, theme: str = "dark", away: bool = False
) -> None:
    """Show query and hits side by side; ``away`` without the slide of the second hit."""
    with scene(theme=theme, px=DOCK_PX) as (viewer, widget, session), tempfile.TemporaryDirectory() as folder:
        if away:
            source = session.database.path
            copy = Path(folder) / source.name
            shutil.copytree(source, copy)
            shutil.copytree(source.parent / "slides", Path(folder) / "slides")
            second = session.database.search(demo_slide(), _box(session)).hits[1]
            (Path(folder) / "slides" / second.slide).unlink()
            session.open(copy)
            wait_until(lambda: session.database.path == copy and not session.busy)
        comparison = _compared(viewer, widget, session, k)
        if objective is not None:
            comparison.zoom_to(objective)
            wait_until(lambda: True)
        viewer.screenshot(str(file), canvas_only=False, flash=False)
        comparison.clear()
        session.close()


def jump(file: Path) -> None:
    """Show the slide of a hit with the regions that match."""
    from napari_fish._napari.navigate import draw_matches

    with scene(px=DOCK_PX) as (viewer, widget, session):
        _compared(viewer, widget, session, 5).clear()
        done: list[Any] = []
        draw_matches(viewer, session.current, session.current.results.hits[1], done=done.append)
        wait_until(lambda: bool(done))
        viewer.screenshot(str(file), canvas_only=False, flash=False)


PICTURES = {
    "compare": compare,
    "compare-20x": partial(compare, objective=20),
    "compare-twelve": partial(compare, k=11),
    "compare-light": partial(compare, theme="light"),
    "compare-away": partial(compare, away=True),
    "jump": jump,
}
