"""Pictures of the Search widget in each of its states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from screenshots.common import demo_database, demo_slide, wait_until

SIZE = (1400, 900)


@contextmanager
def _scene(slide: Path | None, database: Path | None) -> Iterator[tuple[Any, Any]]:
    """Show a slide and the widget, with a database open."""
    import napari

    from napari_fish._napari.search_widget import SearchWidget
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import add_slide, arrange

    viewer = napari.Viewer(title="napari-fish", show=False)
    viewer.window.resize(*SIZE)
    if slide is not None:
        add_slide(viewer, slide)
        arrange(viewer)
    widget = SearchWidget(viewer)
    session = session_of(viewer)
    wait_until(lambda: not session.busy)
    viewer.window.add_dock_widget(widget, name="Search", area="right")
    if database is None:
        session.close()
    else:
        session.open(database)
        wait_until(lambda: not session.busy)
        wait_until(lambda: widget.params.filters.values.count() > 0)
    yield viewer, widget
    session.close()
    viewer.close()


def _box(viewer: Any, widget: Any) -> None:
    """Put a box on the tissue and wait for the answer."""
    from napari_fish._napari.session import session_of

    session = session_of(viewer)
    wait_until(lambda: widget.query.facts is not None)
    side = widget.query.side()
    facts = widget.query.facts
    widget.query.box.put(widget.query.layer, (facts.width / 2 - side, facts.height / 2 - side, side, side))
    wait_until(lambda: session.current is not None and not session.busy)


def no_database(file: Path) -> None:
    """Take a picture of the widget as it is first seen."""
    from napari_fish._napari.show import take_picture

    with _scene(demo_slide(), None) as (viewer, _):
        take_picture(viewer, file)


def ready(file: Path) -> None:
    """Take a picture with a database open and a slide shown."""
    from napari_fish._napari.show import take_picture

    with _scene(demo_slide(), demo_database()) as (viewer, _):
        take_picture(viewer, file)


def box(file: Path) -> None:
    """Take a picture of a box, drawn and searched for."""
    from napari_fish._napari.show import take_picture

    with _scene(demo_slide(), demo_database()) as (viewer, widget):
        _box(viewer, widget)
        widget.history_fold.open()
        take_picture(viewer, file)


def answered(file: Path) -> None:
    """Take a picture of a slide, searched for with a filter: its mosaics are coloured by contribution."""
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    with _scene(demo_slide(), demo_database()) as (viewer, widget):
        session = session_of(viewer)
        widget.params.filters.set_where(("site!=lymph node",))
        widget.search_slide()
        wait_until(lambda: session.current is not None and not session.busy)
        take_picture(viewer, file)


def running(file: Path) -> None:
    """Take a picture of a search under way."""
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    with _scene(demo_slide(), demo_database()) as (viewer, widget):
        session = session_of(viewer)
        take_picture(viewer, file)  # once everything has been drawn, so that the next one is quick
        widget.search_slide()
        wait_until(lambda: widget.status.bar.maximum() > 0 or not session.busy)
        viewer.screenshot(str(file), canvas_only=False, flash=False)
        wait_until(lambda: not session.busy)


def error(file: Path) -> None:
    """Take a picture of a query that cannot be answered."""
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    with _scene(demo_slide(), demo_database()) as (viewer, widget):
        session = session_of(viewer)
        broken = demo_slide().parent.parent / "broken.svs"
        broken.write_text("this is no slide")
        widget.search_file(broken)
        wait_until(lambda: not session.busy)
        take_picture(viewer, file)


PICTURES = {
    "search-no-database": no_database,
    "search-ready": ready,
    "search-box": box,
    "search-slide": answered,
    "search-running": running,
    "search-error": error,
}
