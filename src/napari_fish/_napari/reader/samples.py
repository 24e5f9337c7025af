"""Demo slides in napari's *Open Sample* menu: drawn once, kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import napari
from platformdirs import user_cache_path

from napari_fish._napari.jobs.notify import tell_user
from napari_fish._napari.jobs.worker import wait_for
from napari_fish._napari.reader.reader import LayerData, slide_layer
from napari_fish.errors import SlideError
from napari_fish.slides import open_slide
from napari_fish.slides.demo import SITE_OF, DemoSpec, write_demo_slide
from napari_fish.slides.demo.files import description

SIZE_UM = (2200.0, 1800.0)
"""Width and height of the slides in µm."""


def adenocarcinoma() -> list[LayerData]:
    """Return a slide with glands."""
    return _sample("adenocarcinoma")


def solid_carcinoma() -> list[LayerData]:
    """Return a slide with solid sheets and nests."""
    return _sample("solid carcinoma")


def papillary_carcinoma() -> list[LayerData]:
    """Return a slide with papillary fronds."""
    return _sample("papillary carcinoma")


def lymphoma() -> list[LayerData]:
    """Return a slide with sheets of lymphoid cells."""
    return _sample("lymphoma")


def sarcoma() -> list[LayerData]:
    """Return a slide with bundles of spindle cells."""
    return _sample("sarcoma")


def mucinous_carcinoma() -> list[LayerData]:
    """Return a slide with pools of mucin."""
    return _sample("mucinous carcinoma")


def sample_path(spec: DemoSpec) -> Path:
    """Return where a demo slide is kept, drawing it when it is not there yet (seconds).

    A slide that is asked for differently, or drawn by another version, has a folder of its own.
    """
    version = hashlib.blake2b(description(spec).encode(), digest_size=6).hexdigest()
    for cache in (user_cache_path("napari-fish"), Path(tempfile.gettempdir()) / "napari-fish"):
        path = cache / "samples" / version / f"{spec.name}.tif"
        if path.is_file():
            return path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return _drawn(spec, path)
        except OSError as error:
            refused = error
    raise SlideError(f"{path.parent}: the demo slides cannot be kept there ({refused}).") from refused


def _sample(diagnosis: str) -> list[LayerData]:
    number = 1 + list(SITE_OF).index(diagnosis)
    spec = DemoSpec(
        name=f"demo {diagnosis}",
        patient=f"sample-{number}",
        site=SITE_OF[diagnosis],
        diagnosis=diagnosis,
        seed=number,
        width_um=SIZE_UM[0],
        height_um=SIZE_UM[1],
    )
    # An error is napari's to tell: it takes a sample without layers for another one.
    return [slide_layer(open_slide(sample_path(spec)))]


def _drawn(spec: DemoSpec, path: Path) -> Path:
    """Draw a slide; where a viewer is open it says so and stays alive."""
    if napari.current_viewer() is None:
        return write_demo_slide(spec, path)
    tell_user(f"Drawing {spec.name}: this takes some seconds, and only the first time.")
    drawn: Path = wait_for(write_demo_slide, spec, path)
    return drawn
