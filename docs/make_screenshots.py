"""Write the pictures of the documentation from the running program, so that they never lie.

``python docs/make_screenshots.py [NAME…]``: all of them, or those named. Needs a display, or xvfb-run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from napari_fish.slides.demo import demo_specs, write_demo_slide

IMAGES = Path(__file__).parent / "images"


def viewer(file: Path) -> None:
    """Take a picture of a demo slide in the viewer."""
    spec = next(s for s in demo_specs() if s.diagnosis == "adenocarcinoma" and not s.artefacts)
    with tempfile.TemporaryDirectory() as folder:
        slide = write_demo_slide(spec, Path(folder) / f"{spec.name}.tif")
        show = [sys.executable, "-m", "napari_fish._napari.show", str(slide), "--screenshot", str(file)]
        subprocess.run(show, check=True)


PICTURES = {"viewer": viewer}


def main(names: list[str]) -> None:
    """Write the named pictures, or all."""
    IMAGES.mkdir(exist_ok=True)
    for name in names or PICTURES:
        file = IMAGES / f"{name}.png"
        PICTURES[name](file)
        # A palette is enough for a screenshot, and a third of the size.
        Image.open(file).convert("RGB").quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(
            file, optimize=True
        )
        print(file)


if __name__ == "__main__":
    main(sys.argv[1:])
