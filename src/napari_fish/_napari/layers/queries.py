"""What the user is looking at becomes a question: the slide behind a layer, or a box drawn on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Image

from napari_fish._napari.layers.coordinates import (
    Points,
    drawn_to_level0,
    image_shape,
    placement,
    world_to_level0,
)
from napari_fish._napari.layers.hit_layers import shows_hits
from napari_fish._napari.layers.slide_layers import slide_of
from napari_fish.building.slide_task import Region
from napari_fish.slides import Slide, open_slide
from napari_fish.slides.mpp import MppSource


class Pixels(NamedTuple):
    """Stands for a slide where only its size counts; with that of a layer, positions are px of the layer."""

    dimensions: tuple[int, int]

    @classmethod
    def of(cls, layer: Any) -> Pixels:
        """Return the size of a layer."""
        rows, columns = image_shape(layer)
        return cls((columns, rows))


def unwrapped(thing: Any) -> Any:
    """Return a layer or viewer itself, where napari gives plugins a proxy of it."""
    return getattr(thing, "__wrapped__", thing)


@dataclass(frozen=True, eq=False)
class LayerQuestion:
    """A slide shown by a layer, or a region of it, to be opened where waiting keeps nobody.

    Attributes
    ----------
    layer
        Shows the slide.
    others
        All layers: the other colours of the slide may be among them.
    region
        x, y, width, height in px of the layer; None for all of it.
    mpp
        µm per level-0 px, when the user knows better.
    """

    layer: Any
    others: Sequence[Any] = ()
    region: Region | None = None
    mpp: float | None = None

    def __call__(self) -> tuple[Slide, Region | None]:
        """Open the slide; return it with the region in level-0 px."""
        slide = slide_of(self.layer, self.others, mpp=self.mpp)
        if self.region is None:
            return slide, None
        columns, rows = Pixels.of(self.layer).dimensions
        across, down = slide.dimensions[0] / columns, slide.dimensions[1] / rows
        x, y, width, height = self.region
        return slide, (x * across, y * down, width * across, height * down)


@dataclass(frozen=True)
class FileQuestion:
    """A slide or image on disk, to be opened where waiting keeps nobody.

    Attributes
    ----------
    path
        The file.
    mpp
        µm per level-0 px, where the file does not say.
    """

    path: Path
    mpp: float | None = None

    def __call__(self) -> tuple[Slide, None]:
        """Open it."""
        slide = open_slide(self.path)
        if slide.mpp is None and self.mpp is not None:
            slide.close()
            slide = open_slide(self.path, mpp=self.mpp)
        return slide, None


@dataclass(frozen=True)
class LayerFacts:
    """What is known of the slide behind a layer.

    Attributes
    ----------
    width, height
        In level-0 px.
    mpp
        µm per level-0 px; None where not known.
    source
        Where that comes from.
    um_per_pixel
        µm per px of the layer; None where not known.
    notes
        What the user should know.
    """

    width: int
    height: int
    mpp: float | None
    source: MppSource
    um_per_pixel: float | None
    notes: tuple[str, ...] = ()


def facts_of(question: LayerQuestion, progress: Any = None, should_stop: Any = None) -> LayerFacts:
    """Open the slide behind a layer and say what is known of it; for a worker."""
    slide, _ = question()
    with slide:
        width, height = slide.dimensions
        um = None if slide.mpp is None else slide.mpp * width / Pixels.of(question.layer).dimensions[0]
        return LayerFacts(
            width=width,
            height=height,
            mpp=slide.mpp,
            source=slide.mpp_source,
            um_per_pixel=um,
            notes=tuple(slide.notes),
        )


def slide_layers(layers: Iterable[Any]) -> list[Any]:
    """Return the layers that may show a slide, top first; of the three colours of one, the first."""
    found: list[Any] = []
    for layer in map(unwrapped, layers):
        if shows_hits(layer):
            continue
        if isinstance(layer, Image) and not any(_same_image(layer, other) for other in found):
            found.append(layer)
    return found[::-1]


def _same_image(layer: Any, other: Any) -> bool:
    """Whether two grey layers are colours of one image."""
    return (
        not layer.rgb
        and not other.rgb
        and layer.source.path is not None
        and layer.source.path == other.source.path
        and image_shape(layer) == image_shape(other)
    )


def looked_at(layers: Sequence[Any], active: Any) -> Any:
    """Return which of the slide layers the user is looking at: the active one, else the topmost visible."""
    active = unwrapped(active)
    for layer in layers:
        if layer is active or (isinstance(active, Image) and _same_image(layer, active)):
            return layer
    return next((layer for layer in layers if layer.visible), None)


def region_drawn(drawn: Any, corners: Any, kind: str, layer: Any) -> Region:
    """Return what was drawn on another layer as an upright box in px of a slide layer.

    A rectangle keeps its centre and its sides, however slide and drawing are turned against each other;
    of other shapes the box around them counts.
    """
    points = drawn_to_level0(drawn, corners, layer, Pixels.of(layer))
    if kind == "rectangle" and len(points) == 4:
        centre = points.mean(axis=0)
        first, second = points[1] - points[0], points[2] - points[1]
        along, across = (first, second) if _lies(first) >= _lies(second) else (second, first)
        size = np.array([np.linalg.norm(along), np.linalg.norm(across)])
        low = centre - size / 2
    else:
        low, size = points.min(axis=0), np.ptp(points, axis=0)
    return float(low[0]), float(low[1]), float(size[0]), float(size[1])


def _lies(edge: Points) -> float:
    """Return how much an edge lies along x."""
    length = float(np.linalg.norm(edge))
    return abs(float(edge[0])) / length if length else 0.0


def slide_under(drawn: Any, corners: Any, layers: Sequence[Any], preferred: Sequence[Any]) -> Any:
    """Return the slide layer that a drawn shape lies on, by its centre; None where there is none.

    Parameters
    ----------
    drawn, corners
        The layer that was drawn on, and the corners of the shape.
    layers
        Slide layers, the topmost first.
    preferred
        Those that count first where several lie under the shape, such as the active one.
    """
    centre = np.mean(np.asarray(corners, float), axis=0)
    under = [
        layer for layer in layers if contains(layer, drawn_to_level0(drawn, centre, layer, Pixels.of(layer)))
    ]
    first = [layer for layer in preferred if any(layer is other for other in under)]
    return next((layer for layer in (*first, *(u for u in under if u.visible))), None)


def contains(layer: Any, point: Points) -> bool:
    """Whether a position in px of a layer lies on it."""
    columns, rows = Pixels.of(layer).dimensions
    x, y = np.ravel(point)[:2]
    return bool(0 <= x <= columns and 0 <= y <= rows)


def cursor_on(layer: Any, position: Sequence[float], scene_units: Any) -> Points:
    """Return x and y in px of a layer under a position of the scene, such as the cursor's."""
    on_layer: Points = world_to_level0(layer, Pixels.of(layer), [position], units=scene_units)[0]
    return on_layer


def drawn_corners(region: Region) -> Points:
    """Return the corners of a region as data of a Shapes layer that lies like the slide's: rows, columns."""
    x, y, width, height = region
    corners = np.array([(y, x), (y, x + width), (y + height, x + width), (y + height, x)], float)
    # Data of an image start at the centre of its first pixel, regions at its corner.
    return corners - 0.5


def lying_like(layer: Any) -> dict[str, Any]:
    """Return scale, place and units for a layer whose data are to be px of a slide layer, turned as it is."""
    matrix, offset = placement(layer)
    scale = np.linalg.norm(matrix, axis=0)
    affine = np.eye(3)
    # The scale apart, because napari draws handles and edges by it.
    affine[:2, :2], affine[:2, 2] = matrix / scale, offset
    return {"scale": scale, "affine": affine, "units": layer.units[-2:]}
