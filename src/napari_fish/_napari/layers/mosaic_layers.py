"""Between mosaics and napari's layers: pure functions, no viewer needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from napari_fish._napari.layers.coordinates import (
    LayerData,
    Points,
    ToWorld,
    drawn_to_level0,
    level0_to_drawn,
)
from napari_fish.mosaic import REASONS, Mosaic, Patch
from napari_fish.mosaic.geojson import TISSUE_COLOUR, colour_of
from napari_fish.mosaic.masks.rings import Polygon
from napari_fish.slides import Slide

TISSUE, PATCHES, DROPPED = "Tissue", "Patches", "Left out"
"""Names of the layers."""
MOSAIC_KEY = "napari_fish_mosaic"
"""Where the metadata of these layers say on which layer they lie."""
MASK_PX = 2048
"""Longer side of the mask that is made of a Labels layer."""
ELLIPSE_CORNERS = 64
CROSS_PX = 9
"""Crosses are at least so large on the screen."""
LETTER_WIDTH, LINE_HEIGHT = 0.7, 1.4
"""Of a letter and of a line, in heights of a letter; somewhat more than fonts have."""
POINTS_PER_PX = 0.75


def tissue_layer(mosaic: Mosaic, to_world: ToWorld, width: float) -> LayerData:
    """Return the outlines as a Shapes layer; ``width`` of the lines in world units."""
    rings, kinds, areas = [], [], []
    for contour in mosaic.contours:
        for number, ring in enumerate((contour.outer, *contour.holes)):
            rings.append(to_world((*ring, ring[0])))
            kinds.append("hole" if number else "tissue")
            areas.append(contour.area_um2)
    colours = [_rgba((0, 0, 255) if kind == "hole" else TISSUE_COLOUR, 1) for kind in kinds]
    options = {
        "name": TISSUE,
        # Paths, because the inside of a polygon of a thousand corners takes napari a second to fill.
        "shape_type": "path",
        "edge_color": _table(colours),
        "face_color": "transparent",
        "edge_width": width,
        "features": {"kind": kinds, "area_um2": areas},
    }
    return rings, options, "shapes"


def patches_layer(mosaic: Mosaic, to_world: ToWorld) -> LayerData:
    """Return the candidates as squares coloured by cluster, those in the mosaic filled."""
    chosen = set(mosaic.patches)
    extra = [patch for patch in mosaic.patches if patch not in set(mosaic.candidates)]
    patches = [*mosaic.candidates, *extra]
    is_chosen = [patch in chosen for patch in patches]
    fill = [_rgba(colour_of(p), 0.35 if c else 0.0) for p, c in zip(patches, is_chosen, strict=True)]
    options = _squares(mosaic, patches, to_world) | {
        "name": PATCHES,
        "symbol": "square",
        "face_color": _table(fill),
        "border_color": _table([_rgba(colour_of(p), 1) for p in patches]),
        "border_width": 0.05,
        "features": _features(patches) | {"cluster": [p.cluster for p in patches], "in_mosaic": is_chosen},
    }
    return options.pop("data"), options, "points"


def dropped_layer(mosaic: Mosaic, to_world: ToWorld) -> LayerData:
    """Return the dropped patches as crosses with the colour of the reason, which is written below them.

    The crosses are small, as one wants to see what was left out, but never too small to be seen. The reasons have the size
    of things on the slide: seen from afar they do not lie over one another.
    """
    patches = mosaic.dropped
    colours = _table([_rgba(colour_of(patch), 1) for patch in patches])
    reasons = [REASONS[patch.reason] for patch in patches]
    options = _squares(mosaic, patches, to_world) | {
        "name": DROPPED,
        "symbol": "x",
        # White inside is seen on ink; from afar napari shows the border alone. "white" would be the feature of that name.
        "face_color": "#ffffff",
        "border_color": colours,
        "border_width": 0.15,
        "canvas_size_limits": (CROSS_PX, 10_000),
        "features": {"reason": reasons} | _features(patches),
    }
    side = _side(mosaic, to_world)
    if patches:
        options["text"] = {
            "string": "{reason}",
            "color": colours,
            "size": POINTS_PER_PX * _letter_height(options["data"], reasons, side),
            "scaling": True,
            "translation": (0.3 * side, 0.0),
        }
    options["size"] = np.asarray(options["size"]) * 0.3
    return options.pop("data"), options, "points"


def _letter_height(centres: Points, words: Sequence[str], side: float) -> float:
    """Return the height of letters, in world units, at which words fit their patches and none lies over another."""
    widths = LETTER_WIDTH * np.array([len(word) for word in words])
    height = 0.8 * side / max(widths.max(), 1.0)
    near = cKDTree(centres).query_pairs(side, output_type="ndarray")
    if len(near):
        first, second = near.T
        down, right = np.abs(centres[first] - centres[second]).T
        # Two words are apart where they are beside or below one another; of patches in one place only one is seen.
        apart = np.maximum(right / ((widths[first] + widths[second]) / 2), down / LINE_HEIGHT)
        height = min(height, max(0.9 * float(apart.min()), side / 40))
    return float(height)


def layers_of(mosaic: Mosaic, to_world: ToWorld) -> list[LayerData]:
    """Return all layers of a mosaic, the lowest first."""
    width = _side(mosaic, to_world) / 20
    return [
        tissue_layer(mosaic, to_world, width),
        patches_layer(mosaic, to_world),
        dropped_layer(mosaic, to_world),
    ]


def polygons_of(shapes: Any, layer: Any, slide: Slide) -> list[Polygon]:
    """Return what is drawn on a Shapes layer as polygons in level-0 px; rows of kind ``hole`` are holes."""
    kinds = shapes.features.get("kind", [""] * len(shapes.data))
    polygons: list[list[Points]] = []
    for corners, shape, kind in zip(shapes.data, shapes.shape_type, kinds, strict=True):
        if shape == "line":
            continue
        ring = drawn_to_level0(shapes, _ellipse(corners) if shape == "ellipse" else corners, layer, slide)
        if kind == "hole" and polygons:
            polygons[-1].append(ring)
        else:
            polygons.append([ring])
    return list(polygons)


def mask_of(labels: Any, layer: Any, slide: Slide) -> NDArray[np.bool_]:
    """Return a Labels layer, wherever it lies, as a mask of the whole slide; any label is tissue."""
    width, height = slide.dimensions
    shrink = max(1.0, max(width, height) / MASK_PX)
    columns, rows = max(1, round(width / shrink)), max(1, round(height / shrink))
    pixels = np.asarray(labels.data[0] if labels.multiscale else labels.data)
    while pixels.ndim > 2:
        pixels = pixels[0]
    x, y = (np.arange(columns) + 0.5) * width / columns, (np.arange(rows) + 0.5) * height / rows
    centres = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    at = np.rint(level0_to_drawn(labels, centres, layer, slide)).astype(np.int64)
    inside = ((at >= 0) & (at < pixels.shape)).all(axis=1)
    mask = np.zeros(len(at), bool)
    mask[inside] = pixels[tuple(at[inside].T)] != 0
    return mask.reshape(rows, columns)


def _squares(mosaic: Mosaic, patches: Sequence[Patch], to_world: ToWorld) -> dict[str, Any]:
    centres = np.array([(p.x, p.y) for p in patches], float).reshape(-1, 2) + mosaic.patch_size / 2
    data = to_world(centres) if len(centres) else np.empty((0, 2))
    return {"data": data, "size": 0.94 * _side(mosaic, to_world)}


def _features(patches: Sequence[Patch]) -> dict[str, list[Any]]:
    return {name: [getattr(p, name) for p in patches] for name in ("x", "y", "white", "artefact", "focus")}


def _side(mosaic: Mosaic, to_world: ToWorld) -> float:
    """Side of a patch in world units."""
    first, second = to_world([(0, 0), (mosaic.patch_size, 0)])
    return float(np.linalg.norm(second - first))


def _ellipse(corners: Points) -> Points:
    """Return points on the ellipse inside four corners."""
    corners = np.asarray(corners, float)
    centre = corners.mean(axis=0)
    along, across = (corners[1] - corners[0]) / 2, (corners[3] - corners[0]) / 2
    angle = np.linspace(0, 2 * np.pi, ELLIPSE_CORNERS, endpoint=False)[:, None]
    return np.asarray(centre + np.cos(angle) * along + np.sin(angle) * across)


def _rgba(colour: tuple[int, int, int], alpha: float) -> tuple[float, ...]:
    return (*(channel / 255 for channel in colour), alpha)


def _table(colours: Sequence[tuple[float, ...]]) -> Any:
    """Return colours as an array; napari wants a name where there is nothing to colour."""
    return np.array(colours) if colours else "white"
