"""Mosaics for QuPath."""

from __future__ import annotations

from typing import Any

from napari_fish.mosaic.tissue.contours import Ring
from napari_fish.mosaic.values import REASONS, Mosaic, Patch

CLUSTER_COLOURS: tuple[tuple[int, int, int], ...] = (
    (31, 119, 180),
    (255, 127, 14),
    (44, 160, 44),
    (148, 103, 189),
    (140, 86, 75),
    (227, 119, 194),
    (23, 190, 207),
    (188, 189, 34),
    (214, 39, 40),
)
"""Colour of each colour cluster; repeated when there are more clusters."""
REASON_COLOURS: dict[str, tuple[int, int, int]] = {
    "white": (150, 150, 150),
    "ink": (0, 70, 220),
    "fold": (150, 0, 90),
    "debris": (110, 70, 20),
    "artefact": (0, 0, 0),
    "blur": (255, 200, 0),
}
"""Colour of each reason to drop a patch."""
TISSUE_COLOUR = (0, 160, 60)


def feature_collection(mosaic: Mosaic, everything: bool = False) -> dict[str, Any]:
    """Return tissue and patches as a GeoJSON FeatureCollection; see :meth:`Mosaic.to_geojson`."""
    features = [
        _feature(
            [_closed(contour.outer), *map(_closed, contour.holes)],
            "Tissue",
            TISSUE_COLOUR,
            "annotation",
            {"area_um2": contour.area_um2},
        )
        for contour in mosaic.contours
    ]
    features += [_patch(patch, mosaic, "Mosaic") for patch in mosaic.patches]
    if everything:
        chosen = {(patch.x, patch.y) for patch in mosaic.patches}
        features += [
            _patch(patch, mosaic, "Candidate")
            for patch in mosaic.candidates
            if (patch.x, patch.y) not in chosen
        ]
        features += [_patch(patch, mosaic, f"Left out: {REASONS[patch.reason]}") for patch in mosaic.dropped]
    return {"type": "FeatureCollection", "features": features}


def colour_of(patch: Patch) -> tuple[int, int, int]:
    """Return the colour of a patch: that of its reason when it was dropped, else of its cluster."""
    if patch.reason:
        return REASON_COLOURS[patch.reason]
    return CLUSTER_COLOURS[patch.cluster % len(CLUSTER_COLOURS)]


def _patch(patch: Patch, mosaic: Mosaic, name: str) -> dict[str, Any]:
    """Return the part of a patch that lies on the slide: those of the paper may hang over its edge."""
    width, height = mosaic.dimensions
    left, top = max(0, patch.x), max(0, patch.y)
    right, bottom = min(width, patch.x + mosaic.patch_size), min(height, patch.y + mosaic.patch_size)
    ring: list[list[float]] = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    values: dict[str, float] = {"white": patch.white, "artefact": patch.artefact, "focus": patch.focus}
    if not patch.reason:
        values["cluster"] = patch.cluster
    return _feature([ring], name, colour_of(patch), "detection", values)


def _feature(
    rings: list[list[list[float]]],
    name: str,
    colour: tuple[int, int, int],
    kind: str,
    measurements: dict[str, float],
) -> dict[str, Any]:
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": rings},
        "properties": {
            "objectType": kind,
            "classification": {"name": name, "color": list(colour)},
            "measurements": measurements,
        },
    }


def _closed(ring: Ring) -> list[list[float]]:
    return [list(point) for point in (*ring, ring[0])]
