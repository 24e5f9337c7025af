"""The box that is searched: placed by a click or drawn freely, dragged, kept on a Shapes layer of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from napari.layers import Shapes
from qtpy.compat import isalive
from qtpy.QtCore import QObject, Signal

from napari_fish._napari.layers.coordinates import world_to_data
from napari_fish._napari.layers.queries import (
    cursor_on,
    drawn_corners,
    lying_like,
    region_drawn,
    slide_layers,
    slide_under,
    unwrapped,
)
from napari_fish.building.slide_task import Region

LAYER = "Search box"
COLOUR = "#ffd166"
FILL = "transparent"
EDGE = 1 / 40
"""Width of the outline as a share of the box's side."""
STOP_KEY = "Escape"
"""Stops placing the box. Bound to its layer, and only meanwhile, so it takes nothing from napari."""
MOST_OF_CANVAS = 0.5
"""A box that covers more of the canvas is in the way: there the mouse moves the view, as everywhere else."""
CLICK_PX = 4
"""A mouse that moved no further between press and release has clicked."""


class BoxTool(QObject):
    """Puts the box into a viewer and watches it.

    Parameters
    ----------
    viewer
        Where the slides are shown.
    """

    changed = Signal()
    """The box was placed, drawn, moved or removed."""
    placing_changed = Signal(bool)
    """Whether the box is being placed or drawn."""

    def __init__(self, viewer: Any, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self._slide: Any = None
        self._side = 0.0
        self._before: list[Any] = []
        self._state = ""
        self._quiet = False
        viewer.mouse_move_callbacks.append(self._move)
        viewer.mouse_drag_callbacks.append(self._press)
        viewer.layers.events.removed.connect(self._removed)

    def forget(self) -> None:
        """Let go of the viewer; the box stays."""
        self.stop()
        for callbacks, ours in (
            (self._viewer.mouse_move_callbacks, self._move),
            (self._viewer.mouse_drag_callbacks, self._press),
        ):
            if ours in callbacks:
                callbacks.remove(ours)
        self._viewer.layers.events.removed.disconnect(self._removed)

    @property
    def placing(self) -> bool:
        """Whether the box is being placed or drawn."""
        return bool(self._state)

    @property
    def layer(self) -> Any:
        """The layer of the box; None where there is none."""
        found = (unwrapped(layer) for layer in self._viewer.layers if layer.name == LAYER)
        return next((layer for layer in found if isinstance(layer, Shapes)), None)

    def box(self) -> tuple[Any, Region] | None:
        """Return the slide layer that the box lies on, and the box in px of it; None where there is none."""
        shapes = self.layer
        if shapes is None or not len(shapes.data) or self._state == "place":
            return None
        chosen = list(shapes.selected_data)
        index = chosen[0] if len(chosen) == 1 else len(shapes.data) - 1
        corners, kind = shapes.data[index], shapes.shape_type[index]
        slides = slide_layers(self._viewer.layers)
        preferred = [unwrapped(self._viewer.layers.selection.active), self._slide]
        # A slide that was opened since covers the box, which was not drawn on it.
        order = [id(unwrapped(layer)) for layer in self._viewer.layers]
        lower = set(order[: order.index(id(shapes))])
        below = [layer for layer in slides if id(layer) in lower]
        slide = slide_under(shapes, corners, below, preferred) or slide_under(
            shapes, corners, slides, preferred
        )
        return None if slide is None else (slide, region_drawn(shapes, corners, kind, slide))

    def place(self, slide: Any, side: float) -> None:
        """Let a square of ``side`` px of the slide layer follow the cursor until a click places it."""
        self._start(slide, side, "place")

    def draw(self, slide: Any, side: float) -> None:
        """Let the user draw a rectangle; ``side`` is that of a patch, for the width of its outline."""
        self._start(slide, side, "draw")
        self.layer.mode = "add_rectangle"

    def put(self, slide: Any, region: Region) -> None:
        """Put the box somewhere, in px of a slide layer."""
        self._show(slide, region, min(region[2:]))
        self._finish()

    def stop(self) -> None:
        """Stop placing; the box is where it was before."""
        if not self._state:
            return
        shapes = self.layer
        if shapes is not None:
            self._quiet = True  # napari finishes what is half drawn
            shapes.mode = "pan_zoom"
            if self._state == "place" or len(shapes.data) != len(self._before):
                self._set(shapes, self._before)
            self._quiet = False
        self._set_state("")

    def _start(self, slide: Any, side: float, state: str) -> None:
        self.stop()
        shapes = self._ready(slide, side)
        self._before = list(shapes.data)
        self._slide, self._side = slide, side
        self._viewer.layers.selection.active = shapes
        shapes.visible = True
        self._set_state(state)

    def _set_state(self, state: str) -> None:
        if state != self._state:
            self._state = state
            shapes = self.layer
            if shapes is not None:
                shapes.bind_key(STOP_KEY, self._stop_by_key if state else None, overwrite=True)
            self.placing_changed.emit(bool(state))

    def _stop_by_key(self, _: Any) -> None:
        """Stop placing the box."""
        self.stop()

    def _ready(self, slide: Any, side: float) -> Any:
        """Return the layer of the box, on top and lying like the slide."""
        place = lying_like(slide)
        shapes = self.layer
        if shapes is None:
            shapes = Shapes(ndim=2, name=LAYER, edge_color=COLOUR, face_color=FILL, **place)
            shapes.current_edge_color, shapes.current_face_color = COLOUR, FILL
            shapes.events.data.connect(self._edited)
            selected = list(self._viewer.layers.selection)
            self._viewer.add_layer(shapes)
            self._viewer.layers.selection = selected
        elif slide is not self._slide:
            self._set(shapes, [])
            shapes.units = place["units"]
            shapes.scale, shapes.affine = place["scale"], place["affine"]
        shapes.current_edge_width = max(1.0, side * EDGE)
        at = [unwrapped(layer) for layer in self._viewer.layers].index(shapes)
        if at != len(self._viewer.layers) - 1:
            self._viewer.layers.move(at, len(self._viewer.layers))
        return shapes

    def _show(self, slide: Any, region: Region, side: float) -> None:
        shapes = self._ready(slide, side)
        self._slide, self._side = slide, side
        self._set(shapes, [drawn_corners(region)])

    def _set(self, shapes: Any, boxes: list[Any]) -> None:
        """Show boxes without taking it for the user's doing."""
        self._quiet = True
        try:
            # Each of these draws the layer anew, so only what changes is set: a dragged box must be quick.
            if shapes.selected_data:
                shapes.selected_data = set()
            shapes.data = [(box, "rectangle") for box in boxes]
            width = max(1.0, self._side * EDGE)
            if boxes and list(shapes.edge_width) != [width]:
                shapes.edge_color, shapes.face_color, shapes.edge_width = COLOUR, FILL, width
        finally:
            self._quiet = False

    def _finish(self) -> None:
        shapes = self.layer
        if shapes is not None:
            shapes.mode = "pan_zoom"
        self._set_state("")
        self.changed.emit()

    def _edited(self, event: Any) -> None:
        """React to what the user did to the layer by napari's own means."""
        action = str(getattr(event, "action", "")).lower()
        if self._quiet or not action.endswith(("added", "changed", "removed")):
            return
        shapes = self.layer
        if self._state == "draw" and shapes is not None and action.endswith("added"):
            newest = shapes.data[-1]
            if np.ptp(newest, axis=0).min() < 1:
                return
            self._set(shapes, [newest])
            self._finish()
        elif not self._state:
            self.changed.emit()

    def _removed(self, event: Any) -> None:
        if isalive(self) and event.value.name == LAYER:
            self._set_state("")
            self._slide = None
            self.changed.emit()

    def _under_cursor(self, event: Any) -> Any:
        return cursor_on(self._slide, event.position, self._viewer.layers.units)

    def _follow(self, event: Any) -> None:
        x, y = self._under_cursor(event)
        half = self._side / 2
        self._show(self._slide, (x - half, y - half, self._side, self._side), self._side)

    def _move(self, _: Any, event: Any) -> None:
        if isalive(self) and self._state == "place":
            self._follow(event)

    def _press(self, _: Any, event: Any) -> Iterator[None]:
        """Place the box by a click; drag it when the mouse went down inside."""
        if not isalive(self):
            return
        if self._state == "place":
            start = np.asarray(event.pos)
            yield
            while event.type == "mouse_move":
                yield
            if np.abs(np.asarray(event.pos) - start).max() <= CLICK_PX:
                self._follow(event)
                self._finish()
        elif self._grabbed(event):
            yield from self._drag(event)

    def _grabbed(self, event: Any) -> bool:
        """Whether the mouse went down inside the box, and nothing else wants to use it there."""
        active = self._viewer.layers.selection.active
        shapes = self.layer
        if self._state or shapes is None or not shapes.visible or not len(shapes.data) or event.button != 1:
            return False
        if list(event.modifiers) or (active is not None and active.mode != "pan_zoom"):
            return False
        point = self._data_point(shapes, event)
        corners = np.asarray(shapes.data[-1])[:, -2:]
        low, high = corners.min(axis=0), corners.max(axis=0)
        inside = bool(np.all(point >= low) and np.all(point <= high))
        return inside and self._share_of_canvas(shapes, low, high) <= MOST_OF_CANVAS

    def _share_of_canvas(self, shapes: Any, low: Any, high: Any) -> float:
        """Return how much of the canvas lies in a box, given in data of the box's layer."""
        camera = self._viewer.scene.camera
        centre, half = np.asarray(camera.center)[-2:], np.asarray(self._viewer.canvas.size) / camera.zoom / 2
        ends = world_to_data(shapes, [centre - half, centre + half], units=self._viewer.layers.units)
        first, last = ends.min(axis=0)[-2:], ends.max(axis=0)[-2:]
        shown = np.clip(np.minimum(high, last) - np.maximum(low, first), 0, None)
        return float(np.prod(shown) / np.prod(last - first))

    def _data_point(self, shapes: Any, event: Any) -> Any:
        """Return where the cursor is, in data of the box's layer."""
        return world_to_data(shapes, [event.position], units=self._viewer.layers.units)[0]

    def _drag(self, event: Any) -> Iterator[None]:
        shapes = self.layer
        camera = self._viewer.scene.camera
        before = np.asarray(shapes.data[-1])[:, -2:]
        start = self._data_point(shapes, event)
        camera.mouse_pan = False
        moved = False
        try:
            yield
            while event.type == "mouse_move":
                self._set(shapes, [before + self._data_point(shapes, event) - start])
                moved = True
                self.changed.emit()
                yield
        finally:
            camera.mouse_pan = True
        if moved:
            self.changed.emit()
