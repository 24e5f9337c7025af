"""Pictures of the Search widget in each of its states."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from napari_fish.slides.demo import demo_specs, write_demo_slide

SIZE = (1400, 900)
SECONDS = 120.0
_made: dict[str, Path] = {}


def _demo() -> tuple[Path, Path]:
    """Return a small database and a slide of it, made when first needed."""
    if not _made:
        from napari_fish.archive import build

        folder = Path(tempfile.mkdtemp(prefix="napari-fish-pictures-"))
        specs = [spec for spec in demo_specs() if not spec.artefacts][:12]
        lines = ["slide,patient,site,diagnosis"]
        for spec in specs:
            write_demo_slide(spec, folder / "slides" / f"{spec.name}.tif")
            lines.append(f"{spec.name},{spec.patient},{spec.site},{spec.diagnosis}")
        labels = folder / "slides" / "labels.csv"
        labels.write_text("\n".join(lines) + "\n")
        build(folder / "slides", folder / "archive.fish", labels).close()
        _made["database"], _made["slide"] = (
            folder / "archive.fish",
            folder / "slides" / f"{specs[0].name}.tif",
        )
    return _made["database"], _made["slide"]


def wait_until(done: Callable[[], bool]) -> None:
    """Let the program run until something has happened."""
    from qtpy.QtWidgets import QApplication

    end = time.monotonic() + SECONDS
    while not done() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.02)


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

    _, slide = _demo()
    with _scene(slide, None) as (viewer, _):
        take_picture(viewer, file)


def ready(file: Path) -> None:
    """Take a picture with a database open and a slide shown."""
    from napari_fish._napari.show import take_picture

    database, slide = _demo()
    with _scene(slide, database) as (viewer, _):
        take_picture(viewer, file)


def box(file: Path) -> None:
    """Take a picture of a box, drawn and searched for."""
    from napari_fish._napari.show import take_picture

    database, slide = _demo()
    with _scene(slide, database) as (viewer, widget):
        _box(viewer, widget)
        widget.history_fold.open()
        take_picture(viewer, file)


def answered(file: Path) -> None:
    """Take a picture of a slide, searched for with a filter: its mosaics are coloured by contribution."""
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    database, slide = _demo()
    with _scene(slide, database) as (viewer, widget):
        session = session_of(viewer)
        widget.params.filters.set_where(("site!=lymph node",))
        widget.search_slide()
        wait_until(lambda: session.current is not None and not session.busy)
        take_picture(viewer, file)


def running(file: Path) -> None:
    """Take a picture of a search under way."""
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    database, slide = _demo()
    with _scene(slide, database) as (viewer, widget):
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

    database, slide = _demo()
    with _scene(slide, database) as (viewer, widget):
        session = session_of(viewer)
        broken = slide.parent.parent / "broken.svs"
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
