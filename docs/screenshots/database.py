"""Pictures of the Database widget in each of its states."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from screenshots.common import demo_database, demo_slide, wait_until

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
def _scene(theme: str = "dark", slide: Path | None = None) -> Iterator[tuple[Any, Any]]:
    """Show the widget beside a slide, by default that which a reader of the tutorial has opened."""
    import napari
    from napari_fish._napari.database_widget import DatabaseWidget

    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import add_slide, arrange

    viewer = napari.Viewer(title="napari-fish", show=False)
    viewer.theme = theme
    add_slide(viewer, slide or demo_slide())
    arrange(viewer)
    widget = DatabaseWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Database", area="right")
    wait_until(lambda: not widget.build.form.device._job.busy)
    yield viewer, widget
    widget.cancel()
    wait_until(lambda: not widget.busy and not session_of(viewer).busy)
    session_of(viewer).close()
    viewer.close()


def _choose(widget: Any, place: Path, slides: Path | None = None) -> None:
    """Choose slides, by default those with a broken one among them, and wait for the estimate."""
    slides = slides or _slides()
    widget.build.form.slides.put(slides)
    widget.build.form.labels.put(slides / "labels.csv")
    widget.build.form.database.put(place)
    wait_until(lambda: widget.build.prospect is not None)


@contextmanager
def _demo_folder() -> Iterator[Path]:
    """Lend the folder that ``napari-fish demo`` leaves behind, under a name that is not of this machine."""
    demo_database()
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "demo"
        demo.mkdir()
        shutil.copytree(demo_slide().parent, demo / "slides")
        yield demo


def empty(file: Path) -> None:
    """Take a picture of the widget before anything was chosen."""
    from napari_fish._napari.show import take_picture

    with _scene() as (viewer, _):
        take_picture(viewer, file)


def ready(file: Path, theme: str = "dark") -> None:
    """Take a picture of the demo's slides chosen, with what a build will take."""
    from napari_fish._napari.show import take_picture

    with _demo_folder() as demo, _scene(theme) as (viewer, widget):
        _choose(widget, demo / "my.fish", demo / "slides")
        take_picture(viewer, file)


def building(file: Path, theme: str = "dark", state: str = "building") -> None:
    """Take a picture of a build of the demo's slides: under way, paused or cancelled."""
    from napari_fish._napari.show import take_picture

    with _demo_folder() as demo, _scene(theme) as (viewer, widget):
        _choose(widget, demo / "my.fish", demo / "slides")
        widget.build.start()
        progress, news = widget.build.progress, widget.build._news
        wait_until(lambda: progress.counts["added"] >= 2 and news.patches >= 1)
        if state == "cancelled":
            widget.cancel()
            wait_until(lambda: not widget.busy)
        elif state == "paused":
            widget.hold.click()
        else:
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
    "database-ready-light": partial(ready, theme="light"),
    "database-building": building,
    "database-building-light": partial(building, theme="light"),
    "database-paused": partial(building, state="paused"),
    "database-cancelled": partial(building, state="cancelled"),
    "database-finished": finished,
    "database-inspecting": inspecting,
    "database-inspecting-light": partial(inspecting, theme="light"),
}
