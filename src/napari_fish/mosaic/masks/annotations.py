"""Annotations of GeoJSON files, as QuPath writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from napari_fish.errors import FishError
from napari_fish.mosaic.masks.rings import Polygon, as_points
from napari_fish.texts import enumerated

_DETECTIONS = {"detection", "cell", "tile", "pathdetectionobject", "pathcellobject", "pathtileobject"}


@dataclass(frozen=True, eq=False)
class Annotation:
    """What somebody, or a program, marked.

    Attributes
    ----------
    polygons
        Its area.
    named
        Its class, such as ``Tumor: Positive``; empty where it has none.
    detected
        Whether it is a detection (a cell, a tile), which a program made by the thousand, and no annotation.
    """

    polygons: list[Polygon]
    named: str = ""
    detected: bool = False

    def is_of(self, asked: str) -> bool:
        """Whether it has a class, or one derived from it, in any case."""
        own, wanted = _parts(self.named), _parts(asked)
        return own[: len(wanted)] == wanted


def split_classes(text: str | None) -> tuple[str, ...]:
    """Return the classes named in a text, separated by commas."""
    names = {name.strip().casefold(): name.strip() for name in (text or "").split(",") if name.strip()}
    return tuple(names[key] for key in sorted(names))


def polygons_from_geojson(
    document: Any, classes: Sequence[str] = (), name: str = "The mask"
) -> list[Polygon]:
    """Return the polygons of a GeoJSON document: a FeatureCollection, a Feature, a geometry, or a list.

    Parameters
    ----------
    document
        What was read from JSON.
    classes
        Classes of annotations that count, in any case; a derived class such as ``Tumor: Positive`` counts for
        ``Tumor``. By default all count but those that QuPath ignores (``Ignore*``).
    name
        What it is called in errors.

    Raises
    ------
    FishError
        When there are only detections, or no annotation of any of the classes.
    """
    found = [one for one in _annotations(document) if one.polygons]
    drawn = [one for one in found if not one.detected]
    if found and not drawn:
        raise FishError(
            f"{name}: holds {len(found)} detections (cells, tiles), but no annotation. Export annotations from QuPath."
        )
    if not classes:
        return [polygon for one in drawn if not one.named.endswith("*") for polygon in one.polygons]
    chosen = [one for one in drawn if any(one.is_of(asked) for asked in classes)]
    if not chosen:
        raise FishError(
            f"{name}: has no annotation of class {' or '.join(classes)}; {_there_are(drawn)}. "
            "Check the name of the class (--mask-class)."
        )
    return [polygon for one in chosen for polygon in one.polygons]


def _there_are(annotations: Sequence[Annotation]) -> str:
    names = list(dict.fromkeys(one.named for one in annotations if one.named))
    if not names:
        return "none of its annotations has a class" if annotations else "it has no annotations"
    return f"there are {enumerated(names)}"


def _annotations(document: Any) -> Iterator[Annotation]:
    if isinstance(document, list):
        for part in document:
            yield from _annotations(part)
        return
    if not isinstance(document, dict):
        raise TypeError("not a GeoJSON object")
    kind = document.get("type")
    if kind == "FeatureCollection":
        yield from _annotations(document.get("features") or [])
    elif kind == "Feature":
        known = document.get("properties")
        known = known if isinstance(known, dict) else {}
        yield Annotation(
            _polygons(document.get("geometry") or {}), _class_of(known), _is_detection(document, known)
        )
    else:
        yield Annotation(_polygons(document))


def _polygons(geometry: dict[str, Any]) -> list[Polygon]:
    kind = geometry.get("type")
    if kind == "Polygon":
        return [_rings(geometry["coordinates"])]
    if kind == "MultiPolygon":
        return [_rings(polygon) for polygon in geometry["coordinates"]]
    if kind == "GeometryCollection":
        return [polygon for part in geometry.get("geometries") or [] for polygon in _polygons(part)]
    return []


def _rings(rings: Any) -> Polygon:
    return [as_points([point[:2] for point in ring]) for ring in rings]


def _class_of(properties: dict[str, Any]) -> str:
    """Return the class of a feature: its classification, or else, as other programs have none, its name."""
    said = properties.get("classification")
    if isinstance(said, dict):
        names = said.get("names")
        said = ": ".join(map(str, names)) if isinstance(names, list) else said.get("name")
    return str(said or properties.get("name") or "").strip()


def _is_detection(feature: dict[str, Any], properties: dict[str, Any]) -> bool:
    # Before 0.3 QuPath wrote the kind of an object as its id.
    said = properties.get("objectType") or properties.get("object_type") or feature.get("id") or ""
    return str(said).lower() in _DETECTIONS or properties.get("isDetection") is True


def _parts(name: str) -> list[str]:
    return [part.strip().casefold() for part in name.split(":")]
