"""Pictures of what is done with hits in the viewer: compare, magnify, jump."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from screenshots.common import put_box, scene, wait_until


def _compared(viewer: Any, results: Any) -> Any:
    """Press Compare and wait."""
    from napari_fish._napari.compare import comparison_of

    results.compare()
    comparison = comparison_of(viewer)
    wait_until(lambda: comparison.shown and not comparison.busy)
    return comparison


def compare(
    file: Path, k: int = 5, objective: float | None = None, theme: str = "dark", away: bool = False
) -> None:
    """Show query and hits side by side; ``away`` without the slide of the second hit."""
    from napari_fish._napari.session import session_of

    with scene(theme) as (viewer, search, results), tempfile.TemporaryDirectory() as folder:
        session = session_of(viewer)
        search.params.k.setValue(k)
        answer = put_box(viewer, search, results)
        if away:
            source = session.database.path
            copy = Path(folder) / source.name
            shutil.copytree(source, copy)
            shutil.copytree(source.parent / "slides", Path(folder) / "slides")
            (Path(folder) / "slides" / answer.results.hits[1].slide).unlink()
            session.open(copy)
            wait_until(lambda: session.database.path == copy and not session.busy)
            put_box(viewer, search, results)
        comparison = _compared(viewer, results)
        if objective is not None:
            comparison.zoom_to(objective)
            wait_until(lambda: True)
        viewer.screenshot(str(file), canvas_only=False, flash=False)
        comparison.clear()


def jump(file: Path) -> None:
    """Show the slide of a hit with the regions that match."""
    from napari_fish._napari.navigate import draw_matches

    with scene() as (viewer, search, results):
        answer = put_box(viewer, search, results)
        done: list[Any] = []
        draw_matches(viewer, answer, answer.results.hits[1], done=done.append)
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
