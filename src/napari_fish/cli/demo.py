"""The command that tells the whole story without any slide of the user's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from napari_fish.cli.answer_text import print_answer
from napari_fish.cli.options import progress_bar
from napari_fish.errors import FishError


def demo(
    out: Annotated[Path, typer.Option(help="Where to write everything.")] = Path("demo"),
    gui: Annotated[bool, typer.Option("--gui/--no-gui", help="Open the viewer at the end.")] = True,
) -> None:
    """Run the whole story on synthetic slides: no slides of your own needed."""
    from napari_fish.building.build import build
    from napari_fish.slides.demo import write_demo

    with progress_bar("Painting demo slides") as progress:
        paths = write_demo(out / "slides", progress=progress)
    typer.echo(f"{len(paths)} demo slides and their labels are in {out / 'slides'}")
    with progress_bar("Building a database") as progress:
        summary = build(out / "slides", out / "demo.fish", out / "slides" / "labels.csv", progress=progress)
    typer.echo(str(summary))
    _search(out / "demo.fish", paths[0], out / "results.html")
    if gui:
        _show(paths, out / "viewer.png")


def _search(database: Path, slide: Path, page: Path) -> None:
    """Ask for a slide and for a box in it, and see how well the database answers for all its slides."""
    from napari_fish.database import open_database
    from napari_fish.search import to_html

    with open_database(database) as opened:
        whole = opened.search(slide)
        # The region that matched best: a box somebody might draw.
        box = whole.hits[0].matches[0].query_box if whole.hits else whole.query_boxes[0]
        typer.echo(f"\nWhich slides are like {slide.name}?")
        print_answer(whole)
        part = opened.search(slide, box=box)
        typer.echo(f"\nWhich are like the box {','.join(map(str, box))} in it?")
        print_answer(part)
        records = [record for record in opened.store.slides if record.slide]
        asked = [opened.ask(f"id:{record.slide}") for record in records]
        answers = opened.answer(asked)
        page.write_text(to_html([whole, part], database=database.name), encoding="utf-8")
    same = [
        sum(hit.diagnosis == record.diagnosis for hit in answer.hits)
        for record, answer in zip(records, answers, strict=True)
    ]
    typer.echo(
        f"\nOver all {len(same)} slides, their own patients left out, {sum(same) / len(same):.2f} of 5 slides found "
        f"share the diagnosis.\nBoth answers, with pictures, are in {page}"
    )


def _show(slides: Sequence[Path], picture: Path) -> None:
    """Open slides in napari: on the screen, or without one on a virtual display that is photographed.

    A process of its own, because nothing above the plugin may import it.
    """
    command = [sys.executable, "-m", "napari_fish._napari.show", *map(str, slides)]
    if _has_display():
        _run_viewer(command)
        return
    virtual = shutil.which("xvfb-run")
    if virtual is None:
        raise FishError(
            "There is no display, and xvfb-run, which makes a virtual one, is not installed: "
            "install it (Debian and Ubuntu: apt-get install xvfb xauth), or add --no-gui."
        )
    command += ["--screenshot", str(picture)]
    _run_viewer([virtual, "-a", "-s", "-screen 0 1600x1000x24", *command])
    typer.echo(f"No display here: a picture of the viewer is in {picture}")


def _run_viewer(command: Sequence[str]) -> None:
    """Run the viewer and wait for it to be closed."""
    code = subprocess.run(command, check=False).returncode
    if code:
        raise FishError(
            f"The viewer ended with code {code}. Is napari installed with Qt (pip install 'napari-fish[all]')?"
        )


def _has_display() -> bool:
    """Whether a window could be opened."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
