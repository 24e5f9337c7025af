"""Pictures of the Search widget in each of its states."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from screenshots.common import demo_slide, put_box, scene, search_slide, wait_until


def no_database(file: Path) -> None:
    """Take a picture of the widget as it is first seen."""
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    with scene(results=False) as (viewer, _, _):
        session_of(viewer).close()
        take_picture(viewer, file)


def ready(file: Path, theme: str = "dark") -> None:
    """Take a picture with a database open and a slide shown."""
    from napari_fish._napari.show import take_picture

    with scene(theme, results=False) as (viewer, _, _):
        take_picture(viewer, file)


def box(file: Path, theme: str = "dark") -> None:
    """Take a picture of a box, drawn and searched for."""
    from napari_fish._napari.show import take_picture

    with scene(theme) as (viewer, search, results):
        put_box(viewer, search, results)
        take_picture(viewer, file)


def answered(file: Path, theme: str = "dark") -> None:
    """Take a picture of a slide, searched for: its mosaics are coloured by contribution."""
    from napari_fish._napari.show import take_picture

    with scene(theme) as (viewer, search, results):
        search_slide(viewer, search, results)
        search.history_fold.open()
        take_picture(viewer, file)


def queue(file: Path) -> None:
    """Take a picture of several slides, searched for one after the other, of which the first is done."""
    from napari_fish._napari.search_batch import Task

    from napari_fish._napari.show import take_picture

    with scene() as (viewer, search, _):
        slides = [demo_slide().with_name(f"demo-{number:03}.tif") for number in (1, 5, 8, 13)]
        search.queue_fold.open()
        search.queue([Task(one.name, one) for one in slides])
        wait_until(lambda: search.batch.tasks[0].answer is not None)
        take_picture(viewer, file)
        search.batch.stop()
        wait_until(lambda: not search.batch.running)


def running(file: Path, cancel: bool = False) -> None:
    """Take a picture of a search under way, or given up."""
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    with scene() as (viewer, search, _):
        session = session_of(viewer)
        take_picture(viewer, file)  # once everything has been drawn, so that the next one is quick
        search.search_slide()
        wait_until(lambda: search.status.bar.maximum() > 0 or not session.busy)
        if cancel:
            session.cancel()
            wait_until(lambda: not session.busy)
        viewer.screenshot(str(file), canvas_only=False, flash=False)
        wait_until(lambda: not session.busy)


def error(file: Path) -> None:
    """Take a picture of a query that cannot be answered."""
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    with scene() as (viewer, search, _):
        session = session_of(viewer)
        broken = demo_slide().parent.parent / "broken.svs"
        broken.write_text("this is no slide")
        search.search_file(broken)
        wait_until(lambda: not session.busy)
        take_picture(viewer, file)


PICTURES: dict[str, Any] = {
    "search-no-database": no_database,
    "search-ready": ready,
    "search-ready-light": partial(ready, theme="light"),
    "search-box": box,
    "search-box-light": partial(box, theme="light"),
    "search-slide": answered,
    "search-slide-light": partial(answered, theme="light"),
    "search-queue": queue,
    "search-running": running,
    "search-cancelled": partial(running, cancel=True),
    "search-error": error,
}
