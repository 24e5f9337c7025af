"""The slide behind a layer, whoever opened it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from napari.layers import Image

from napari_fish._napari.layers.coordinates import (
    drawn_to_level0,
    image_shape,
    level0_to_drawn,
    level0_to_world,
    world_to_level0,
    world_um_per_pixel,
)
from napari_fish._napari.layers.layer_slide import LayerSlide
from napari_fish._napari.reader.reader import METADATA_KEY
from napari_fish.errors import SlideError
from napari_fish.slides import Slide, open_slide
from napari_fish.slides.base import PyramidSlide
from napari_fish.slides.mpp import LARGEST, SMALLEST, Mpp, MppSource, decide_mpp, plausible

__all__ = ["drawn_to_level0", "level0_to_drawn", "level0_to_world", "slide_of", "world_to_level0"]

SAME_MPP = 1e-3
"""Relative difference below which a layer repeats what its file says."""
COLOURS = ("red", "green", "blue")


def slide_of(layer: Any, viewer_layers: Iterable[Any] | None = None, mpp: float | None = None) -> Slide:
    """Find the slide behind an image layer, made by any reader or by none.

    Tried in turn: what our reader left in the layer's metadata, the path that the layer came from,
    a path in its metadata, the layer that it is a duplicate of, and at last its own pixels, for which
    the red, green and blue layers of one image are put together. A file counts only when it holds an
    image of the layer's size, so that a cropped layer is itself and a macro image is never taken for
    its slide (look at :attr:`Slide.kind`).

    The pixel size is ``mpp`` where that is given, else what the layer says when its units are a length or its reader left a
    ``resolution``, and that is plausible; otherwise what the file says.

    Parameters
    ----------
    layer : napari.layers.Image
        The layer.
    viewer_layers : iterable of napari.layers.Layer, optional
        Where to look for the other colours of a layer that has only one; those of the current viewer
        by default.
    mpp : float, optional
        µm per level-0 px, when the user knows better.

    Returns
    -------
    Slide
        Open and independent of the layer; the caller closes it. Convert positions with
        :func:`world_to_level0` and its relatives.

    Raises
    ------
    SlideError
        When the layer is no image, or nothing behind it can be read.
    """
    if not isinstance(layer, Image):
        raise SlideError(f"The layer {layer.name!r} is no image. Choose the layer that shows a slide.")
    for path, series in _files(layer):
        slide = _matching(path, series, image_shape(layer))
        if slide is not None:
            return _with_stated_mpp(slide, layer, mpp)
    return _slide_of_pixels(layer, viewer_layers, mpp)


def _files(layer: Any) -> Iterator[tuple[Path, int | None]]:
    """Yield the files that a layer may come from, with the image inside when it is known."""
    while layer is not None:
        ours = layer.metadata.get(METADATA_KEY)
        if isinstance(ours, dict) and ours.get("path"):
            yield Path(ours["path"]), ours.get("series")
        for path in (layer.source.path, layer.metadata.get("path")):
            if isinstance(path, str | Path) and path:
                yield Path(path), None
        parent = layer.source.parent
        layer = parent() if callable(parent) else None


def _matching(path: Path, series: int | None, shape: tuple[int, int]) -> PyramidSlide | None:
    """Open the image of a file that has these rows and columns, at full size or as a coarser level."""
    try:
        slide = open_slide(path, series=series)
    except SlideError:
        return None
    size = shape[::-1]
    if slide.dimensions == size:
        return slide
    for info in slide.series:
        if (info.width, info.height) == size:
            slide.close()
            with contextlib.suppress(SlideError):
                return open_slide(path, series=info.index)
            return None
    if size in slide.level_dimensions:
        return slide
    slide.close()
    return None


def _with_stated_mpp(slide: PyramidSlide, layer: Any, user: float | None) -> PyramidSlide:
    """Return the slide with the pixel size that user or layer state, when it differs from the file's."""
    stated, notes = (user, ()) if user is not None else stated_mpp(layer)
    if stated is not None:
        if user is None:
            stated *= image_shape(layer)[1] / slide.dimensions[0]
        if slide.mpp is None or abs(stated / slide.mpp - 1) > SAME_MPP:
            slide.close()
            slide = open_slide(slide.path, mpp=stated, series=slide.series_index)
    slide.notes = (*slide.notes, *notes)
    return slide


def stated_mpp(layer: Any) -> tuple[float | None, tuple[str, ...]]:
    """Return µm per px as the layer states it, or None and why it was not believed."""
    sizes: Sequence[float] | None = world_um_per_pixel(layer)
    if sizes is not None and layer.source.reader_plugin == "napari-tiff" and set(sizes) == {1.0}:
        return None, ("napari-tiff writes 1 µm/px where a file says nothing, so that was not believed",)
    if sizes is None:
        sizes = _resolution(layer)
    if sizes is None:
        return None, ()
    if not all(map(plausible, sizes)):
        shown = " x ".join(f"{s:.4g}" for s in sizes)
        outside = f"which is outside {SMALLEST:g} to {LARGEST:g} and not believed"
        return None, (f"the layer says {shown} µm/px, {outside}",)
    return decide_mpp(layer.name, file=sizes).value, ()


def _resolution(layer: Any) -> tuple[float, float] | None:
    """Return what napari-wsi leaves behind: µm per px, rows first."""
    try:
        rows, columns = layer.metadata.get("resolution")
        return float(rows), float(columns)
    except (TypeError, ValueError):
        return None


def _slide_of_pixels(layer: Any, viewer_layers: Iterable[Any] | None, user: float | None) -> LayerSlide:
    stated, notes = (user, ()) if user is not None else stated_mpp(layer)
    mpp = Mpp(stated, MppSource.USER if stated is not None else MppSource.UNKNOWN)
    return LayerSlide(_colours(layer, viewer_layers), mpp, notes)


def _colours(layer: Any, viewer_layers: Iterable[Any] | None) -> list[Any]:
    """Return the red, green and blue layers that a layer is one of, or only the layer itself."""
    if layer.rgb:
        return [layer]
    if viewer_layers is None:
        from napari import current_viewer

        viewer = current_viewer()
        viewer_layers = viewer.layers if viewer is not None else ()
    family = [other for other in viewer_layers if _is_sibling(layer, other)]
    by_name = {member.colormap.name: member for member in family}
    if len(family) >= 3 and all(colour in by_name for colour in COLOURS):
        family = [by_name[colour] for colour in COLOURS]
    return family if len(family) == 3 and any(map(partial(_same, layer), family)) else [layer]


def _is_sibling(layer: Any, other: Any) -> bool:
    """Whether a layer is a grey image from the same file, of the same size, or the layer itself."""
    return (
        isinstance(other, Image)
        and not other.rgb
        and (_same(layer, other) or _same_path(layer, other))
        and image_shape(other) == image_shape(layer)
    )


def _same_path(layer: Any, other: Any) -> bool:
    return layer.source.path is not None and layer.source.path == other.source.path


def _same(layer: Any, other: Any) -> bool:
    """Whether two objects are the same layer, be one of them napari's proxy for it."""
    return bool(layer.unique_id == other.unique_id)
