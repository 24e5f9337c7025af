"""Shows the patches of the current query on its slide."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from napari.layers import Shapes

from napari_fish._napari.layers.queries import Pixels, drawn_corners, lying_like, unwrapped
from napari_fish._napari.layers.query_layers import LAYER, query_regions
from napari_fish._napari.search.box_tool import LAYER as BOX_LAYER
from napari_fish._napari.session.session import Answer
from napari_fish.building.slide_task import Region


class QueryView:
    """Keeps one Shapes layer with the patches of the query that is shown.

    Parameters
    ----------
    viewer
        Where the query slide is open.
    """

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer

    def show(self, answer: Answer) -> None:
        """Draw the patches of an answer on its slide; where that is not open, nothing is drawn."""
        layers = [unwrapped(layer) for layer in self._viewer.layers]
        slide = next((layer for layer in layers if answer.layer and layer.name == answer.layer), None)
        if slide is None or answer.asked.size is None:
            self.clear()
            return
        corners, options = query_regions(answer.results, partial(_corners, slide, answer.asked.size))
        features = options.pop("features")
        shapes = self._ready(slide)
        self.clear()
        if corners:
            shapes.add(corners, shape_type="rectangle", **options)
            shapes.features = features

    def clear(self) -> None:
        """Take the patches away; their layer stays, for removing one takes napari long."""
        shapes = self._layer()
        if shapes is not None and len(shapes.data):
            shapes.selected_data = set()
            shapes.data = []

    def _layer(self) -> Any:
        found = (unwrapped(layer) for layer in self._viewer.layers if layer.name == LAYER)
        return next((layer for layer in found if isinstance(layer, Shapes)), None)

    def _ready(self, slide: Any) -> Any:
        """Return the layer of the patches, lying like the slide."""
        place = lying_like(slide)
        shapes = self._layer()
        if shapes is None:
            shapes = Shapes(ndim=2, name=LAYER, **place)
            selected = [unwrapped(layer) for layer in self._viewer.layers.selection]
            names = [layer.name for layer in self._viewer.layers]
            # Under the box, or the box could not be seen on a patch of its own size.
            self._viewer.layers.insert(names.index(BOX_LAYER) if BOX_LAYER in names else len(names), shapes)
            self._viewer.layers.selection = selected
        elif not np.allclose(shapes.affine.affine_matrix, place["affine"]) or any(
            shapes.scale != place["scale"]
        ):
            shapes.units = place["units"]
            shapes.scale, shapes.affine = place["scale"], place["affine"]
        return shapes


def _corners(slide: Any, size: tuple[int, int], region: Region) -> Any:
    """Return the corners of a box in level-0 px of a slide as data of a layer that lies like the slide's."""
    columns, rows = Pixels.of(slide).dimensions
    across, down = columns / size[0], rows / size[1]
    x, y, width, height = region
    return drawn_corners((x * across, y * down, width * across, height * down))
