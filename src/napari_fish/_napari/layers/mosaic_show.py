"""The mosaic of a slide in the viewer, over the layer that shows the slide."""

from __future__ import annotations

from functools import partial
from typing import Any

from napari_fish._napari.layers.coordinates import level0_to_world
from napari_fish._napari.layers.mosaic_layers import DROPPED, MOSAIC_KEY, PATCHES, TISSUE, layers_of
from napari_fish._napari.layers.queries import Pixels
from napari_fish.mosaic import Mosaic


def show_mosaic(viewer: Any, layer: Any, mosaic: Mosaic, reveal: bool = False) -> None:
    """Show a mosaic over the layer of its slide, in place of the one shown before.

    Parameters
    ----------
    viewer, layer
        Where.
    mosaic
        What to show.
    reveal
        Show layers, too, that were hidden before.
    """
    to_world = partial(level0_to_world, layer, Pixels(mosaic.dimensions))
    about = {"units": layer.units[-2:], "metadata": {MOSAIC_KEY: layer.unique_id}}
    for data, options, kind in layers_of(mosaic, to_world):
        _replace_layer(viewer, data, options | about, kind, reveal)


def remove_mosaic(viewer: Any) -> None:
    """Take the mosaic that is shown away."""
    for name in (TISSUE, PATCHES, DROPPED):
        if name in viewer.layers:
            viewer.layers.remove(name)


def _replace_layer(viewer: Any, data: Any, options: dict[str, Any], kind: str, reveal: bool) -> None:
    """Replace a layer of ours by a new one, with the same visibility unless it is to be seen."""
    name = options["name"]
    selected = list(viewer.layers.selection)
    visible = True
    if name in viewer.layers:
        visible = reveal or viewer.layers[name].visible
        viewer.layers.remove(name)
    getattr(viewer, f"add_{kind}")(data if len(data) else None, ndim=2, visible=visible, **options)
    viewer.layers.selection = [layer for layer in selected if layer in viewer.layers]
