"""Pictures of the Database widget in each of its states."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from screenshots.common import wait_until

SIZE_UM = (2100.0, 1700.0)
DIAGNOSES = ("adenocarcinoma", "lymphoma", "sarcoma", "adenocarcinoma", "lymphoma")


@cache
def _slides() -> Path:
    """Return a folder of demo slides with their labels; one of them is broken."""
    from napari_fish.slides.demo import SITE_OF, DemoSpec, write_demo_slide

    folder = Path(tempfile.mkdtemp(prefix="napari-fish-pictures-")) / "archive"
    folder.mkdir()
    lines = ["slide,case,organ,diagnosis"]
    for number, diagnosis in enumerate(DIAGNOSES, 1):
        name, site = f"case-{number:02d}.tif", SITE_OF[diagnosis]
        spec = DemoSpec(name, f"P{number:02d}", site, diagnosis, number, *SIZE_UM)
        write_demo_slide(spec, folder / name)
        lines.append(f"{name},P{number:02d},{site},{diagnosis}")
    (folder / "case-03 copy.svs").write_bytes(b"half of a slide, as a broken download leaves it")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@cache
def _database() -> Path:
    """Return a database of these slides."""
    from napari_fish.building.build import build

    folder = _slides()
    build(folder, folder.with_suffix(".fish"), folder / "labels.csv")
    return folder.with_suffix(".fish")


@contextmanager
def _scene(theme: str = "dark") -> Iterator[tuple[Any, Any]]:
    """Show the widget beside a slide."""
    import napari

    from napari_fish._napari.database_widget import DatabaseWidget
    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import add_slide, arrange

    viewer = napari.Viewer(title="napari-fish", show=False)
    viewer.theme = theme
    add_slide(viewer, _slides() / "case-01.tif")
    arrange(viewer)
    widget = DatabaseWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Database", area="right")
    wait_until(lambda: not widget.build.form.device._job.busy)
    yield viewer, widget
    widget.cancel()
    wait_until(lambda: not widget.busy and not session_of(viewer).busy)
    session_of(viewer).close()
    viewer.close()


def _choose(widget: Any, place: Path) -> None:
    """Choose slides and labels, and wait for the estimate."""
    widget.build.form.slides.put(_slides())
    widget.build.form.labels.put(_slides() / "labels.csv")
    widget.build.form.database.put(place)
    wait_until(lambda: widget.build.prospect is not None)


def empty(file: Path) -> None:
    """Take a picture of the widget before anything was chosen."""
    from napari_fish._napari.show import take_picture

    with _scene() as (viewer, _):
        take_picture(viewer, file)


def ready(file: Path, theme: str = "dark") -> None:
    """Take a picture of slides and labels chosen, with what a build will take."""
    from napari_fish._napari.show import take_picture

    with _scene(theme) as (viewer, widget):
        _choose(widget, _slides().parent / "new.fish")
        take_picture(viewer, file)


def building(file: Path) -> None:
    """Take a picture of a build under way."""
    from napari_fish._napari.show import take_picture

    with tempfile.TemporaryDirectory() as folder, _scene() as (viewer, widget):
        _choose(widget, Path(folder) / "archive.fish")
        widget.build.start()
        progress, news = widget.build.progress, widget.build._news
        wait_until(lambda: progress.counts["added"] >= 1 and news.encoded >= 3)
        # Held, so that the picture takes no longer than the slide.
        widget.build._brake.pause()
        take_picture(viewer, file)


def finished(file: Path, theme: str = "dark") -> None:
    """Take a picture of a finished build, with a slide that could not be read."""
    from napari_fish._napari.show import take_picture

    _database()
    with _scene(theme) as (viewer, widget):
        _choose(widget, _database())
        widget.build.start()
        wait_until(lambda: not widget.busy and widget.inspect.inspection is not None)
        wait_until(lambda: not widget.build._survey.busy)
        table = widget.build.progress.table
        bad = next(i for i, row in enumerate(table.shown.rows) if row[1] == "quarantined")
        table.selectRow(table.proxy.mapFromSource(table.shown.index(bad, 0)).row())
        take_picture(viewer, file)


def inspecting(file: Path, theme: str = "dark") -> None:
    """Take a picture of what is in a database."""
    from napari_fish._napari.show import take_picture

    with _scene(theme) as (viewer, widget):
        widget.open(_database())
        widget.tabs.setCurrentIndex(1)
        wait_until(lambda: widget.inspect.inspection is not None and not widget.inspect._look.busy)
        take_picture(viewer, file)


PICTURES = {
    "database-empty": empty,
    "database-ready": ready,
    "database-building": building,
    "database-finished": finished,
    "database-inspecting": inspecting,
}
