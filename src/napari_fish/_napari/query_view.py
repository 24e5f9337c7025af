"""Shows the mosaics of the current query on its slide."""

from __future__ import annotations

from functools import partial
from typing import Any

from napari_fish._napari.box_tool import LAYER as BOX_LAYER
from napari_fish._napari.queries import Pixels, drawn_corners, lying_like, unwrapped
from napari_fish._napari.query_layers import LAYER, query_mosaics
from napari_fish._napari.session import Answer
from napari_fish.archive.asking import Region


class QueryView:
    """Keeps one Shapes layer with the mosaics of the query that is shown.

    Parameters
    ----------
    viewer
        Where the query slide is open.
    """

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer

    def show(self, answer: Answer) -> None:
        """Draw the mosaics of an answer on its slide; where that is not open, nothing is drawn."""
        layers = [unwrapped(layer) for layer in self._viewer.layers]
        slide = next((layer for layer in layers if answer.layer and layer.name == answer.layer), None)
        visible = LAYER not in self._viewer.layers or self._viewer.layers[LAYER].visible
        self.clear()
        if slide is None or answer.asked.size is None:
            return
        corners, options = query_mosaics(answer.results, partial(_corners, slide, answer.asked.size))
        if not corners:
            return
        selected = [layer for layer in layers if layer in self._viewer.layers.selection]
        # Under the box, or the box could not be seen on a mosaic of its own size.
        self._viewer.add_shapes(
            corners, shape_type="rectangle", name=LAYER, visible=visible, **options, **lying_like(slide)
        )
        if BOX_LAYER in self._viewer.layers:
            names = [layer.name for layer in self._viewer.layers]
            self._viewer.layers.move(names.index(LAYER), names.index(BOX_LAYER))
        self._viewer.layers.selection = [layer for layer in selected if layer in self._viewer.layers]

    def clear(self) -> None:
        """Take the mosaics away."""
        if LAYER in self._viewer.layers:
            selected = [unwrapped(layer) for layer in self._viewer.layers.selection if layer.name != LAYER]
            self._viewer.layers.remove(LAYER)
            self._viewer.layers.selection = selected


def _corners(slide: Any, size: tuple[int, int], region: Region) -> Any:
    """Return the corners of a box in level-0 px of a slide as data of a layer that lies like the slide's."""
    columns, rows = Pixels.of(slide).dimensions
    across, down = columns / size[0], rows / size[1]
    x, y, width, height = region
    return drawn_corners((x * across, y * down, width * across, height * down))
