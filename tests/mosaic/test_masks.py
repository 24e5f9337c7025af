"""Tissue given by the user."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from napari_fish.errors import FishError, NoTissue
from napari_fish.mosaic import TissueParams
from napari_fish.mosaic.masks import MaskLike, polygons_from_geojson, tissue_from_mask
from napari_fish.mosaic.tissue import Tissue

from .conftest import ArraySlide, glass

SQUARE = [[1000, 500], [3000, 500], [3000, 2500], [1000, 2500], [1000, 500]]
HOLE = [[1500, 1000], [2500, 1000], [2500, 2000], [1500, 2000], [1500, 1000]]
AREA_UM2 = (2000**2 - 1000**2) * 0.25


def given(mask: MaskLike) -> Tissue:
    return tissue_from_mask(ArraySlide(glass(3000, 4000), 0.5, levels=1), mask, TissueParams(), 1024)


def picture(step: int) -> np.ndarray:
    mask = np.zeros((3000 // step, 4000 // step), bool)
    mask[500 // step : 2500 // step, 1000 // step : 3000 // step] = True
    mask[1000 // step : 2000 // step, 1500 // step : 2500 // step] = False
    return mask


def feature(*rings: list[list[int]], name: str = "Tissue") -> dict[str, object]:
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": list(rings)},
        "properties": {"objectType": "annotation", "classification": {"name": name, "color": [0, 1, 2]}},
    }


def check(tissue: Tissue) -> None:
    (contour,) = tissue.contours
    assert contour.area_um2 == pytest.approx(AREA_UM2, rel=0.04)
    outer = np.array(contour.outer)
    assert outer.min(axis=0) == pytest.approx([1000, 500], abs=25)
    assert outer.max(axis=0) == pytest.approx([3000, 2500], abs=25)
    (hole,) = contour.holes
    assert np.mean(hole, axis=0) == pytest.approx([2000, 1500], abs=60)


@pytest.mark.parametrize("step", [4, 20, 50])
def test_a_picture_of_any_resolution(step: int) -> None:
    check(given(picture(step)))


def test_an_image_file(tmp_path: Path) -> None:
    path = tmp_path / "Maske ü.png"
    Image.fromarray(picture(10).astype(np.uint8) * 255).save(path)
    check(given(path))


def test_polygons_as_arrays() -> None:
    check(given([[np.array(SQUARE), np.array(HOLE)]]))


@pytest.mark.parametrize(
    "document",
    [
        {"type": "FeatureCollection", "features": [feature(SQUARE, HOLE)]},
        [feature(SQUARE, HOLE), feature([[0, 0], [900, 0], [900, 400]], name="Ignore*")],
        {"type": "Feature", "geometry": {"type": "MultiPolygon", "coordinates": [[SQUARE, HOLE]]}},
        {"type": "Polygon", "coordinates": [SQUARE, HOLE]},
    ],
    ids=["collection", "list", "multipolygon", "geometry"],
)
def test_geojson_in_all_the_forms_qupath_writes(tmp_path: Path, document: object) -> None:
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps(document), encoding="utf-8")
    check(given(path))


def test_points_and_lines_are_no_tissue() -> None:
    assert polygons_from_geojson({"type": "Point", "coordinates": [1, 2]}) == []


def test_a_mask_of_other_proportions_is_refused() -> None:
    with pytest.raises(FishError, match="proportions"):
        given(np.ones((300, 300), bool))


@pytest.mark.parametrize(
    "text", ["{not json", '{"type": "Polygon"}', '{"type": "Polygon", "coordinates": [[1]]}']
)
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.geojson"
    path.write_text(text)
    with pytest.raises(FishError, match=r"broken\.geojson"):
        given(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FishError, match="no such mask file"):
        given(tmp_path / "nothing.png")


def test_an_empty_mask_marks_no_tissue() -> None:
    with pytest.raises(NoTissue, match="marks no tissue"):
        given(np.zeros((30, 40), bool))
