"""Show slides in napari: ``python -m napari_fish._napari.show PATH… [--screenshot FILE]``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SIZE = (1400, 900)
"""Width and height of the window in px for a screenshot."""
SECONDS_TO_RENDER = 60.0
"""How long a screenshot waits for the slide to be drawn."""


def main(argv: Sequence[str] | None = None) -> int:
    """Open slides in a viewer, and run it or take its picture.

    Parameters
    ----------
    argv : sequence of str, optional
        Command line arguments.

    Returns
    -------
    int
        0, or 1 when no slide could be opened.
    """
    arguments = _parser().parse_args(argv)
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        print("There is no display to open a window on; use xvfb-run for a virtual one.", file=sys.stderr)
        return 1
    if not _any_opens(arguments.paths):
        return 1
    if arguments.screenshot is None:
        return _show(arguments)
    with tempfile.TemporaryDirectory() as folder:
        # A picture must not depend on, or change, how the user's own viewer was left.
        os.environ["NAPARI_CONFIG"] = os.path.join(folder, "settings.yaml")
        return _show(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m napari_fish._napari.show", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="slides to open")
    parser.add_argument("--screenshot", type=Path, metavar="FILE", help="write a picture and leave")
    parser.add_argument("--title", default="napari-fish", help="title of the window")
    return parser


def _any_opens(paths: Sequence[Path]) -> bool:
    """Whether there is anything to show, found out before the viewer takes its seconds to start."""
    from napari_fish.errors import SlideError
    from napari_fish.slides import open_slide

    refused = []
    for path in paths:
        try:
            open_slide(path).close()
            return True
        except SlideError as error:
            refused.append(str(error))
    print(*refused, sep="\n", file=sys.stderr)
    return False


def _show(arguments: argparse.Namespace) -> int:
    import napari

    viewer = napari.Viewer(title=arguments.title, show=arguments.screenshot is None)
    for path in arguments.paths:
        add_slide(viewer, path)
    if not viewer.layers:
        viewer.close()
        return 1
    arrange(viewer)
    if arguments.screenshot is None:
        napari.run()
    else:
        take_picture(viewer, arguments.screenshot)
        viewer.close()
    return 0


def add_slide(viewer: Any, path: str | Path) -> None:
    """Open a slide in a viewer with our reader; one that cannot be opened is reported and left out."""
    from napari_fish._napari.jobs.notify import alert_user
    from napari_fish._napari.reader.reader import PLUGIN

    shown = list(viewer.layers)
    try:
        viewer.open(path, plugin=PLUGIN)
    except (OSError, ValueError) as error:
        # napari's own: there is no such file, or it is none of ours.
        alert_user(str(error))
    # Visible until its overview has been read, for the layer list shows it.
    for layer in shown:
        layer.visible = False


def arrange(viewer: Any) -> None:
    """Show the first slide, fitted to the canvas and with a scale bar; the others wait in the list."""
    first = viewer.layers[0]
    for layer in viewer.layers:
        layer.visible = layer is first
    viewer.layers.selection.active = first
    bar = viewer.canvas.overlays.scale_bar
    bar.visible = True
    bar.box = True
    viewer.fit_to_view(layers=[first], margin=0.03)


def take_picture(viewer: Any, file: Path) -> None:
    """Write a picture of the whole window, once everything visible has been drawn."""
    from qtpy.QtWidgets import QApplication

    file.parent.mkdir(parents=True, exist_ok=True)
    viewer.show()
    viewer.window.resize(*SIZE)
    end = time.monotonic() + SECONDS_TO_RENDER
    quiet = 0
    while quiet < 6 and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.05)
        quiet = quiet + 1 if all(layer.loaded for layer in viewer.layers if layer.visible) else 0
        if quiet == 3:
            # Only now has the canvas its final size.
            viewer.fit_to_view(layers=[layer for layer in viewer.layers if layer.visible], margin=0.03)
    viewer.screenshot(str(file), canvas_only=False, flash=False)


if __name__ == "__main__":
    sys.exit(main())
