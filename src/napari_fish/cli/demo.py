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

from napari_fish.errors import FishError


def demo(
    out: Annotated[Path, typer.Option(help="Where to write everything.")] = Path("demo"),
    gui: Annotated[bool, typer.Option("--gui/--no-gui", help="Open the viewer at the end.")] = True,
) -> None:
    """Run the whole story on synthetic slides: no slides of your own needed."""
    from napari_fish.slides.demo import write_demo

    with typer.progressbar(length=1000, label="Painting demo slides", file=sys.stderr) as bar:
        paths = write_demo(
            out / "slides", progress=lambda done, total: bar.update(1000 * done // total - bar.pos)
        )
    typer.echo(f"{len(paths)} demo slides and their labels are in {out / 'slides'}")
    if gui:
        _show(paths, out / "viewer.png")


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
