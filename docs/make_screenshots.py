"""Write the pictures of the documentation from the running program, so that they never lie.

``python docs/make_screenshots.py [NAME…]``: all of them, or those named. Needs a display, or xvfb-run.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from screenshots.common import demo_slide, in_few_colours

IMAGES = Path(__file__).parent / "images"
REAL_SLIDE = Path(__file__).parents[2] / "shared" / "data" / "slides" / "tcga-du-6399.svs"


def viewer(file: Path) -> None:
    """Take a picture of the tutorial's slide in the viewer."""
    show = [sys.executable, "-m", "napari_fish._napari.show", str(demo_slide()), "--screenshot", str(file)]
    subprocess.run(show, check=True)


def mosaic(file: Path) -> None:
    """Take a picture of the Tissue & mosaic widget on a real slide."""
    import time

    import napari
    from qtpy.QtWidgets import QApplication

    from napari_fish._napari.mosaic.widget import MosaicWidget
    from napari_fish._napari.show import add_slide, arrange, take_picture

    if not REAL_SLIDE.exists():
        raise SystemExit(f"{REAL_SLIDE} is missing: this picture shows a real slide")
    view = napari.Viewer(title="napari-fish", show=False)
    add_slide(view, REAL_SLIDE)
    arrange(view)
    widget = MosaicWidget(view)
    view.window.add_dock_widget(widget, name="Tissue & mosaic", area="right")
    widget.preview()
    end = time.monotonic() + 120
    while widget.mosaic is None and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.05)
    take_picture(view, file)
    view.close()


PICTURES = {"viewer": viewer, "mosaic": mosaic}


def all_pictures() -> dict[str, Callable[[Path], None]]:
    """Return what draws each picture: those of this file, and those of each file in ``screenshots/``."""
    found = dict(PICTURES)
    for path in sorted((Path(__file__).parent / "screenshots").glob("*.py")):
        found |= getattr(importlib.import_module(f"screenshots.{path.stem}"), "PICTURES", {})
    return found


def _place(name: str) -> Path:
    """Return where a picture goes: to the documentation where a page shows it, else to be looked at only."""
    here = Path(__file__).parent
    pages = [*here.glob("*.md"), here.parent / "README.md"]
    shown = any(f"images/{name}" in page.read_text(encoding="utf-8") for page in pages)
    folder = IMAGES if shown else here / "_build" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def main(names: list[str]) -> None:
    """Write the named pictures, or all."""
    pictures = all_pictures()
    for name in names or pictures:
        file = _place(name if "." in name else f"{name}.png")
        pictures[name](file)
        if file.suffix == ".png":
            in_few_colours(Image.open(file).convert("RGB")).save(file, optimize=True)
        print(f"{file}: {file.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
