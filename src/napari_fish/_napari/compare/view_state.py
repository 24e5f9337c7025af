"""How a viewer was left, to put it back exactly so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

CAMERA = ("center", "zoom", "angles", "perspective")
GRID = ("stride", "shape", "spacing", "enabled")
DIMS = ("ndisplay", "order", "point")
BOTH = ("visible", "position", "font_size", "color", "box", "box_color", "gridded", "opacity")
TEXT = (*BOTH, "text")
SCALE_BAR = (*BOTH, "colored", "ticks", "length")


@dataclass(frozen=True, eq=False)
class ViewState:
    """What a viewer shows and how: layers' visibility and selection, camera, dimensions, grid, overlays."""

    visible: tuple[tuple[Any, bool], ...]
    selected: tuple[Any, ...]
    active: Any
    camera: dict[str, Any]
    dims: dict[str, Any]
    grid: dict[str, Any]
    scale_bar: dict[str, Any]
    text: dict[str, Any]

    @classmethod
    def of(cls, viewer: Any) -> ViewState:
        """Take note of a viewer as it is now."""
        overlays = viewer.canvas.overlays
        return cls(
            tuple((layer, layer.visible) for layer in viewer.layers),
            tuple(viewer.layers.selection),
            viewer.layers.selection.active,
            _values(viewer.scene.camera, CAMERA),
            _values(viewer.dims, DIMS),
            _values(viewer.canvas.grid, GRID),
            _values(overlays.scale_bar, SCALE_BAR),
            _values(overlays.text, TEXT),
        )

    def restore(self, viewer: Any) -> None:
        """Put a viewer back; layers that were removed meanwhile are passed over, new ones left alone."""
        still = set(viewer.layers)
        viewer.canvas.grid.enabled = False
        for layer, visible in self.visible:
            if layer in still:
                layer.visible = visible
        viewer.layers.selection = {layer for layer in self.selected if layer in still}
        if self.active in still:
            viewer.layers.selection.active = self.active
        _set(viewer.dims, self.dims)
        _set(viewer.canvas.overlays.scale_bar, self.scale_bar)
        _set(viewer.canvas.overlays.text, self.text)
        _set(viewer.canvas.grid, self.grid)
        # Last, for the others move it.
        _set(viewer.scene.camera, self.camera)


def _values(model: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(model, name) for name in names}


def _set(model: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        if name in ("point", "order") and len(value) != model.ndim:
            continue  # what had more dimensions was removed meanwhile
        setattr(model, name, value)
