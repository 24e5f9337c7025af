"""Objective magnifications on the screen: at 20x, one px of the canvas shows 0.5 µm."""

from __future__ import annotations

from typing import Any

from napari.layers import Image

from napari_fish._napari.layers.coordinates import image_shape, micrometres, world_um_per_pixel
from napari_fish._napari.layers.slide_layers import slide_of, stated_mpp
from napari_fish.errors import FishError, SlideError

OBJECTIVES = (5, 10, 20, 40)
UM_PER_PX_AT_1X = 10.0
"""A 20x scan has 0.5 µm/px: the convention of slide scanners."""


def mpp_at(objective: float) -> float:
    """Return µm per px of the screen at an objective magnification."""
    return UM_PER_PX_AT_1X / objective


def zoom_to(viewer: Any, objective: float, layer: Any = None) -> None:
    """Show a slide as through an objective, about the middle of the canvas.

    Parameters
    ----------
    viewer : napari.Viewer
        The viewer.
    objective : float
        Such as 20.
    layer : napari.layers.Image, optional
        Whose size counts; by default the slide that is looked at.

    Raises
    ------
    FishError
        When no slide is shown, or the size of its pixels is unknown.
    """
    viewer.scene.camera.zoom = um_per_world_unit(viewer, layer) / mpp_at(objective)


def um_per_world_unit(viewer: Any, layer: Any = None) -> float:
    """Return how many µm one unit of the scene is, as a layer is drawn in it.

    The scene has the smallest unit of all layers, unless some are in px and some in µm: then every layer
    is drawn by its own numbers, and what one of them means depends on the layer.
    """
    units = viewer.layers.units
    if units is not None and (length := micrometres(units[-1])) is not None:
        return length
    layer = layer if layer is not None else looked_at(viewer)
    if layer is None:
        raise FishError("No slide is shown. Open one first.")
    if (length := micrometres(layer.units[-1])) is not None:
        return length
    return _um_per_px(layer, viewer.layers) / abs(float(layer.scale[-1]))


def looked_at(viewer: Any) -> Any:
    """Return the image that is active, else the topmost visible one; None for none."""
    active = viewer.layers.selection.active
    if isinstance(active, Image) and active.visible:
        return active
    return next((one for one in reversed(viewer.layers) if isinstance(one, Image) and one.visible), None)


def _um_per_px(layer: Any, layers: Any) -> float:
    """Return the size of a px of a layer whose own units are no length."""
    assert world_um_per_pixel(layer) is None
    stated, _ = stated_mpp(layer)
    if stated is not None:  # opening the slide would hold up the viewer, and say the same
        return stated
    with slide_of(layer, layers) as slide:
        if slide.mpp is None:
            raise SlideError(
                f"{layer.name}: the size of a pixel is unknown, so there is no magnification. "
                "Set the layer's scale and units (µm), or open the slide with its pixel size."
            )
        return slide.mpp * slide.dimensions[0] / image_shape(layer)[1]
