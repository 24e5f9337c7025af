"""Tissue given by the user: a picture, polygons, or a file with either."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.errors import FishError, NoTissue
from napari_fish.mosaic.params import TissueParams
from napari_fish.mosaic.reading import known_mpp
from napari_fish.mosaic.tissue import Tissue, regions
from napari_fish.slides import Slide

Polygon = Sequence[ArrayLike]
"""Rings of corners (x, y) in level-0 px: the outline, then its holes."""
MaskLike = str | Path | NDArray[Any] | Sequence[Polygon]
PATCH_PX = 64
"""Px along a patch on which polygons are drawn."""
STRETCH = 0.05
"""How far the proportions of a mask may differ from those of the slide."""


def tissue_from_mask(slide: Slide, mask: MaskLike, params: TissueParams, size: int) -> Tissue:
    """Return the tissue that a user gave.

    Parameters
    ----------
    slide : Slide
        The slide.
    mask : path, array or polygons
        A picture of any resolution that covers the whole slide, as an array of shape (rows, columns)
        whose non-zero pixels are tissue, or as an image file; or polygons, each a sequence of rings of
        shape (n, 2) in level-0 px (the outline, then its holes), or a GeoJSON file as QuPath writes it.
    params : TissueParams
        Kept for the record; a mask is taken as it is, whatever its area.
    size : int
        Side of a patch in level-0 px.

    Raises
    ------
    FishError
        When the mask cannot be understood or does not fit the slide.
    NoTissue
        When it is empty.
    """
    name = "the mask"
    if isinstance(mask, str | Path):
        path = Path(mask).expanduser()
        name = str(path)
        mask = _read_mask(path)
    if isinstance(mask, np.ndarray):
        pixels = _fitting(mask, slide, name)
        scale = (slide.dimensions[0] / pixels.shape[1], slide.dimensions[1] / pixels.shape[0])
    else:
        step = max(1.0, size / PATCH_PX)
        scale = (step, step)
        pixels = draw(mask, slide.dimensions, step)
    params = replace(params, min_tissue=0.0, min_hole=0.0, max_holes=10_000, retry=False)
    tissue = regions(pixels, scale, params, 1.0, known_mpp(slide))
    if tissue is None:
        raise NoTissue(f"{slide.path}: {name} marks no tissue on this slide. Draw where the tissue is.")
    return tissue


def draw(polygons: Sequence[Polygon], dimensions: tuple[int, int], step: float) -> NDArray[np.bool_]:
    """Draw polygons, holes left out, on a picture of the slide with ``step`` level-0 px a px."""
    from PIL import Image, ImageDraw

    width, height = (max(1, math.ceil(side / step)) for side in dimensions)
    result = np.zeros((height, width), bool)
    for polygon in polygons:
        one = Image.new("1", (width, height))
        pen = ImageDraw.Draw(one)
        for number, ring in enumerate(polygon):
            corners = np.asarray(ring, np.float64).reshape(-1, 2) / step - 0.5
            if len(corners) >= 3:
                pen.polygon([(float(x), float(y)) for x, y in corners], fill=0 if number else 1)
        result |= np.asarray(one)
    return result


def polygons_from_geojson(document: Any) -> list[Polygon]:
    """Return the polygons of a GeoJSON document: a FeatureCollection, a Feature, a geometry, or a list.

    QuPath's annotations whose class is one it ignores (its name ends in ``*``) are left out.
    """
    if isinstance(document, list):
        return [polygon for part in document for polygon in polygons_from_geojson(part)]
    if not isinstance(document, dict):
        raise TypeError("not a GeoJSON object")
    kind = document.get("type")
    if kind == "FeatureCollection":
        return polygons_from_geojson(document.get("features", []))
    if kind == "GeometryCollection":
        return polygons_from_geojson(document.get("geometries", []))
    if kind == "Feature":
        named = (document.get("properties") or {}).get("classification") or {}
        if isinstance(named, dict) and str(named.get("name", "")).endswith("*"):
            return []
        return polygons_from_geojson(document["geometry"]) if document.get("geometry") else []
    if kind == "Polygon":
        return [[_ring(ring) for ring in document["coordinates"]]]
    if kind == "MultiPolygon":
        return [[_ring(ring) for ring in polygon] for polygon in document["coordinates"]]
    return []


def _ring(points: Any) -> NDArray[np.float64]:
    ring = np.asarray([point[:2] for point in points], np.float64)
    if ring.ndim != 2 or ring.shape[1] != 2 or not np.isfinite(ring).all():
        raise ValueError("a ring must be a list of finite x, y pairs")
    return ring


def _read_mask(path: Path) -> NDArray[Any] | list[Polygon]:
    """Read a mask file by what is in it: JSON, else an image."""
    from PIL import Image

    try:
        with path.open("rb") as file:
            start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
        if start[:1] in (b"{", b"["):
            polygons = polygons_from_geojson(json.loads(path.read_text(encoding="utf-8-sig")))
            if not polygons:
                raise NoTissue(f"{path}: this GeoJSON holds no polygon. Export annotations from QuPath.")
            return polygons
        Image.MAX_IMAGE_PIXELS = None
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB") if image.mode == "P" else image)
    except FileNotFoundError as error:
        raise FishError(f"{path}: there is no such mask file.") from error
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise FishError(
            f"{path}: cannot be read as a mask ({error}). Give a binary image of the whole slide, or "
            "GeoJSON with polygons in level-0 px, as QuPath exports it."
        ) from error


def _fitting(mask: NDArray[Any], slide: Slide, name: str) -> NDArray[np.bool_]:
    """Return a mask as booleans once it is known to cover the slide."""
    if mask.ndim == 3:
        mask = np.asarray(mask[..., : 3 if mask.shape[2] > 2 else 1].any(axis=2))
    if mask.ndim != 2 or mask.size == 0:
        raise FishError(f"{name}: a mask has rows and columns, but this has the shape {mask.shape}.")
    width, height = slide.dimensions
    stretch = (mask.shape[1] / mask.shape[0]) / (width / height)
    # A small mask may be off by the one pixel that rounding takes.
    allowed = STRETCH + 1.5 / min(mask.shape)
    if abs(math.log(stretch)) > allowed:
        raise FishError(
            f"{name}: its {mask.shape[1]} x {mask.shape[0]} px do not have the proportions of the slide "
            f"({width} x {height} px). A mask must cover the whole slide."
        )
    return np.asarray(mask != 0)
