"""One cell of a comparison: an image layer that shows now this picture, now that."""

from __future__ import annotations

from typing import Any

import numpy as np
from napari.layers import Image

from napari_fish._napari.layers.coordinates import micrometres
from napari_fish._napari.layers.hit_layers import CELL_KEY, KEPT_PICTURE, Picture

LABEL_PT = 8
LETTER_PX = 7.5
"""Width of a letter of a label, about."""
MICROMETRE = "micrometer"
"""As napari and pint write it."""
LABEL_BOX = (0.0, 0.0, 0.0, 0.8)
QUERY_COLOUR = "#ffd54a"


def new_cell() -> Image:
    """Make a cell that shows nothing yet."""
    return Image(
        [np.full((2, 2, 3), 255, np.uint8)],
        rgb=True,
        multiscale=True,
        units=(MICROMETRE, MICROMETRE),
        axis_labels=("y", "x"),
        contrast_limits=(0, 255),
        interpolation2d="linear",
        metadata={CELL_KEY: True},
    )


def fill(
    layer: Image, picture: Picture, title: str, anchor: tuple[float, ...], unit: tuple[str, float]
) -> None:
    """Give a cell another picture, with its region at the anchor; ``unit`` has a name and a length in µm."""
    name, um = unit
    layer.data = picture.levels
    # napari measures the whole scene anew for each of these, even where they stay as they are.
    if any(str(own) != name for own in layer.units):
        layer.units = (name, name)
    if not np.allclose(layer.scale, picture.um_per_px / um, rtol=1e-9, atol=0):
        layer.scale = (picture.um_per_px / um,) * 2
    layer.translate = tuple(t / um for t in picture.translate(anchor))
    layer.name = f"{title} · {KEPT_PICTURE}" if picture.kept else title


def scene_unit(viewer: Any) -> tuple[str, float]:
    """Return the unit of length of the scene and how many µm it is; µm where it has none.

    napari reads the wrong part of a multiscale layer whose units are not the scene's.
    """
    units = viewer.layers.units
    um = None if units is None else micrometres(units[-1])
    return (MICROMETRE, 1.0) if um is None else (str(units[-1]), um)


def label(layer: Image, colour: str) -> None:
    """Write a cell's name into it, on black in every theme: it lies on bright tissue."""
    overlay = layer.name_overlay
    overlay.position, overlay.font_size = "top_left", LABEL_PT
    overlay.box, overlay.box_color = True, LABEL_BOX
    overlay.color = colour
    overlay.visible = True
