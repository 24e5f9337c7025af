"""The reader that napari finds in the manifest: a slide becomes one lazy multiscale RGB layer in µm."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import napari

from napari_fish._napari.jobs.notify import alert_user, tell_user
from napari_fish._napari.reader.arrays import LevelArray, pyramid
from napari_fish._napari.reader.lazy_slide import LazySlide
from napari_fish._napari.reader.recognise import is_slide
from napari_fish.errors import SlideError
from napari_fish.slides import Slide, open_slide

LayerData = tuple[Any, ...]
PLUGIN = "napari-fish"
METADATA_KEY = "napari_fish"
"""Where a layer's metadata says which slide it shows."""
NOTHING: list[LayerData] = [(None,)]
"""What a reader returns when it dealt with a file and there is no layer to add."""


def get_reader(path: str | Sequence[str]) -> Callable[[Any], list[LayerData]] | None:
    """Return a function that reads a slide, or None for what other readers should have.

    Parameters
    ----------
    path : str or sequence of str
        A file or folder. Several paths at once would be a stack, which slides are not.

    Returns
    -------
    callable or None
        Takes the same path and returns a list with one layer data tuple.
    """
    single = _single(path)
    return read_slide if single is not None and is_slide(single) else None


def read_slide(path: str | Sequence[str]) -> list[LayerData]:
    """Read a slide for napari.

    A slide that cannot be opened is reported in the viewer, which goes on; without a viewer, as in
    a script, the :class:`SlideError` is raised.
    """
    single = _single(path)
    if single is None:
        raise SlideError("Slides cannot be stacked; open them one by one.")
    try:
        # Absolute, for the file must be found again after a change of folder.
        return [slide_layer(open_slide(os.path.abspath(single)), slide_name(single))]
    except SlideError as error:
        if napari.current_viewer() is None:
            raise
        alert_user(str(error))
        return NOTHING


def slide_layer(slide: Slide, name: str | None = None) -> LayerData:
    """Describe a slide as a layer.

    Parameters
    ----------
    slide : Slide
        An open slide; the layer closes it.
    name : str, optional
        Name of the layer; that of the file by default.

    Returns
    -------
    tuple
        Layer data tuple of an image: multiscale RGB in µm, or in px when the pixel size is unknown.
    """
    about = {
        "path": os.fspath(slide.path),
        "series": slide.series_index,
        "mpp": slide.mpp,
        "mpp_source": str(slide.mpp_source),
        "objective_power": slide.objective_power,
        "content_hash": _content_hash(slide),
        "backend": slide.backend,
        "notes": list(slide.notes),
    }
    name = name or slide_name(slide.path)
    if slide.mpp is None:
        name += " (pixel size unknown)"
        why = f" ({'; '.join(slide.notes)})" if slide.notes else ""
        tell_user(f"{slide.path.name}: the size of a pixel is unknown{why}, so it is shown in pixels.")
    watch(napari.current_viewer())
    properties: dict[str, Any] = {
        "name": name,
        "rgb": True,
        "multiscale": True,
        "contrast_limits": (0, 255),
        "interpolation2d": "linear",
        "scale": (slide.mpp or 1.0,) * 2,
        "units": ("µm" if slide.mpp else "pixel",) * 2,
        "axis_labels": ("y", "x"),
        "metadata": {METADATA_KEY: about},
    }
    return pyramid(LazySlide(slide)), properties, "image"


def _content_hash(slide: Slide) -> str | None:
    """Return the content hash; None when a file of the slide cannot be read, which need not spoil the view."""
    try:
        return slide.content_hash
    except (OSError, SlideError):
        return None


def slide_name(path: Path) -> str:
    """Return a slide's name without its endings: ``a.ome.tif`` is ``a``."""
    name = path.name
    for ending in (".zip", ".zarr", ".dicom", path.suffix, ".ome"):
        if ending and name.lower().endswith(ending.lower()) and len(name) > len(ending):
            name = name[: -len(ending)]
    return name


def watch(viewer: Any) -> None:
    """Close slides whose layers are removed from a viewer; calling it again changes nothing."""
    if viewer is not None:
        viewer.layers.events.removed.connect(_on_removed)


def _on_removed(event: Any) -> None:
    still_shown = {id(slide) for layer in event.source for slide in lazy_slides(layer)}
    for slide in lazy_slides(event.value):
        if id(slide) not in still_shown:
            slide.close()


def lazy_slides(layer: Any) -> Iterable[LazySlide]:
    """Return the slides behind a layer that this reader made; none for any other layer."""
    if not getattr(layer, "multiscale", False):
        return ()
    return {level.slide for level in layer.data if isinstance(level, LevelArray)}


def _single(path: str | Sequence[str]) -> Path | None:
    """Return the one path, or None when there are several."""
    if isinstance(path, str | os.PathLike):
        return Path(path)
    return Path(path[0]) if len(path) == 1 else None
