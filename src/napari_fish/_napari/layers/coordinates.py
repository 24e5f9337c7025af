"""Between where things are in the viewer and level-0 px of a slide.

napari puts the *centre* of an image's first pixel at 0 and orders axes rows first; a slide's level-0
coordinates (x, y) start at the *corner* of the first pixel, so that pixel ``i`` covers ``i`` to ``i + 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pint
from numpy.typing import ArrayLike, NDArray

Points = NDArray[np.floating[Any]]
ToWorld = Callable[[Any], Points]
"""Takes level-0 px (x, y), shape (n, 2), to world coordinates, rows first."""
LayerData = tuple[Any, dict[str, Any], str]
"""Data, options and kind of a layer, as napari takes them."""
Units = Any
"""One unit or a sequence of units, as napari's layers have them; names will do."""


class Extent(Protocol):
    """A slide, or what stands for one where only its size counts."""

    @property
    def dimensions(self) -> tuple[int, int]:
        """Width and height in level-0 px."""


def world_to_level0(layer: Any, slide: Extent, points: ArrayLike, units: Units = None) -> Points:
    """Convert positions in the viewer to level-0 px.

    Parameters
    ----------
    layer : napari.layers.Image
        The layer that shows the slide, by whichever reader, scaled, moved or rotated.
    slide : Slide, or another thing of its size
        The slide behind it (see :func:`~napari_fish._napari.layers.slide_layers.slide_of`).
    points : array_like, shape (n, 2) or (n, d)
        World coordinates, rows before columns; of d coordinates the last two count.
    units : unit or sequence of units, optional
        Units of the points, such as another layer's ``units`` or the scene's ``viewer.layers.units``;
        the layer's own by default.

    Returns
    -------
    ndarray, shape (n, 2)
        x and y in level-0 px.
    """
    return ((world_to_data(layer, points, units) + 0.5) * _level0_per_pixel(layer, slide))[:, ::-1]


def world_to_data(layer: Any, points: ArrayLike, units: Units = None) -> Points:
    """Convert positions in the viewer to the last two data axes of any layer; units as for the others."""
    matrix, offset = _affine(layer)
    own = _last_two(points) * _unit_factor(units, layer)
    return np.linalg.solve(matrix, (own - offset).T).T


def level0_to_world(layer: Any, slide: Extent, points: ArrayLike, units: Units = None) -> Points:
    """Convert level-0 px to positions in the viewer: the inverse of :func:`world_to_level0`.

    Parameters
    ----------
    layer, slide, units
        As for :func:`world_to_level0`.
    points : array_like, shape (n, 2)
        x and y in level-0 px.

    Returns
    -------
    ndarray, shape (n, 2)
        Rows and columns in world coordinates.
    """
    matrix, offset = _affine(layer)
    data = _last_two(points)[:, ::-1] / _level0_per_pixel(layer, slide) - 0.5
    return (data @ matrix.T + offset) / _unit_factor(units, layer)


def drawn_to_level0(drawn: Any, points: ArrayLike, layer: Any, slide: Extent) -> Points:
    """Convert what was drawn on another layer to level-0 px.

    Parameters
    ----------
    drawn : napari.layers.Layer
        The layer that was drawn on, such as Shapes, in whatever units.
    points : array_like, shape (n, d)
        Its data, such as ``drawn.data[0]``.
    layer, slide
        The layer that shows the slide, and the slide.

    Returns
    -------
    ndarray, shape (n, 2)
        x and y in level-0 px.
    """
    matrix, offset = _affine(drawn)
    return world_to_level0(layer, slide, _last_two(points) @ matrix.T + offset, units=drawn.units)


def level0_to_drawn(drawn: Any, points: ArrayLike, layer: Any, slide: Extent) -> Points:
    """Convert level-0 px (x, y) to data (rows, columns) of a layer to draw on."""
    matrix, offset = _affine(drawn)
    world = level0_to_world(layer, slide, points, units=drawn.units)
    return np.linalg.solve(matrix, (world - offset).T).T


def to_scene(viewer: Any, layer: Any, points: ArrayLike) -> Points:
    """Convert world coordinates in a layer's own units to those of the scene, which the camera has."""
    return _last_two(points) / _unit_factor(viewer.layers.units, layer)


def world_um_per_pixel(layer: Any) -> tuple[float, float] | None:
    """Return the size of a layer's pixel along rows and columns in µm; None when its units are no length."""
    matrix, _ = _affine(layer)
    sizes = np.linalg.norm(matrix, axis=0)
    units = [micrometres(unit) for unit in layer.units[-2:]]
    if units[0] is None or units[1] is None:
        return None
    return float(sizes[0]) * units[0], float(sizes[1]) * units[1]


def placement(layer: Any) -> tuple[Points, Points]:
    """Return matrix and offset that take the last two data axes of a layer to its last two world axes."""
    return _affine(layer)


def image_shape(layer: Any) -> tuple[int, int]:
    """Return rows and columns of an image layer's finest level."""
    shape = layer.data[0].shape if layer.multiscale else layer.data.shape
    rows, columns = shape[-3:-1] if layer.rgb else shape[-2:]
    return int(rows), int(columns)


def _affine(layer: Any) -> tuple[Points, Points]:
    """Return matrix and offset that take the last two data axes to the last two world axes."""
    origin = np.zeros(layer.ndim)
    corner = np.asarray(layer.data_to_world(origin), float)[-2:]
    columns = []
    for axis in (-2, -1):
        step = origin.copy()
        step[axis] = 1
        columns.append(np.asarray(layer.data_to_world(step), float)[-2:] - corner)
    return np.stack(columns, axis=1), corner


def _level0_per_pixel(layer: Any, slide: Extent) -> Points:
    """Return level-0 px per px of the layer, rows first: 1 unless the layer shows a coarser copy."""
    rows, columns = image_shape(layer)
    width, height = slide.dimensions
    return np.array([height / rows, width / columns])


def _unit_factor(units: Units, layer: Any) -> Points:
    """Return by what to multiply coordinates in some units to have them in the layer's units.

    Where one of the two is a length and the other is not, napari takes the numbers as they are.
    """
    if units is None:
        return np.ones(2)
    listed = list(units) if isinstance(units, Sequence) and not isinstance(units, str) else [units]
    pairs = zip((listed * 2)[-2:], layer.units[-2:], strict=True)
    lengths = [(micrometres(given), micrometres(own)) for given, own in pairs]
    return np.array([1.0 if given is None or own is None else given / own for given, own in lengths])


def micrometres(unit: Any) -> float | None:
    """Return how many µm a unit is, or None when it is no length."""
    registry = pint.get_application_registry()
    quantity = registry.Quantity(1.0, registry.Unit(str(unit)))
    return float(quantity.to("micrometer").magnitude) if quantity.check("[length]") else None


def _last_two(points: ArrayLike) -> Points:
    return np.atleast_2d(np.asarray(points, float))[:, -2:]
