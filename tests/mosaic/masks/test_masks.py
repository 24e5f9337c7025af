"""Tissue given by the user."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st
from PIL import Image

from napari_fish.errors import FishError, NoTissue
from napari_fish.mosaic import TissueParams, make_mosaic, preset
from napari_fish.mosaic.masks import MaskLike, marks_everything, mask_of, tissue_from_mask
from napari_fish.mosaic.masks.annotations import polygons_from_geojson
from napari_fish.mosaic.masks.maskfile import MaskFile
from napari_fish.mosaic.masks.rings import draw
from napari_fish.mosaic.tissue import Tissue
from napari_fish.slides import open_slide
from tests.mosaic.conftest import ArraySlide, disc, glass, stain

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


def annotation(ring: list[list[float]], **properties: object) -> dict[str, object]:
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def box(x: float, y: float, side: float = 400) -> list[list[float]]:
    return [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]


def written(path: Path, *features: dict[str, object]) -> Path:
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return path


def area(mask: MaskLike) -> float:
    """Return the area of the tissue in level-0 px."""
    return sum(contour.area_um2 for contour in given(mask).contours) / 0.25


CLASSES = (
    annotation(box(0, 0), objectType="annotation", classification={"name": "Tumor", "color": [1, 2, 3]}),
    annotation(box(600, 0), classification={"name": "tumor: Positive"}),
    annotation(box(1200, 0), classification={"names": ["Tumor", "Negative"]}),
    annotation(box(1800, 0), classification="Stroma"),
    annotation(box(2400, 0), name="Necrosis"),
    annotation(box(3000, 0), classification={"name": "Tumorlike"}, name="Tumor"),
    annotation(box(0, 600)),
)


@pytest.mark.parametrize(
    ("asked", "boxes"),
    [("Tumor", 3), ("TUMOR", 3), ("tumor: positive", 1), ("Stroma,Tumor", 4), ("necrosis", 1), (None, 7)],
)
def test_only_annotations_of_the_classes_asked_for_count(
    tmp_path: Path, asked: str | None, boxes: int
) -> None:
    mask = mask_of(written(tmp_path / "a.geojson", *CLASSES), asked)
    assert mask is not None
    assert area(mask) == pytest.approx(boxes * 400**2, rel=0.01)


def test_a_class_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path: Path) -> None:
    path = written(tmp_path / "a.geojson", *CLASSES)
    with pytest.raises(
        FishError, match=r"a\.geojson: has no annotation of class Fat; there are Tumor.*Stroma"
    ):
        given(MaskFile(path, ("Fat",)))
    with pytest.raises(FishError, match="none of its annotations has a class"):
        given(MaskFile(written(tmp_path / "b.geojson", annotation(box(0, 0))), ("Fat",)))


def test_an_image_has_no_classes(tmp_path: Path) -> None:
    Image.fromarray(picture(10)).save(tmp_path / "a.png")
    with pytest.raises(FishError, match="only annotations"):
        given(MaskFile(tmp_path / "a.png", ("Tumor",)))
    with pytest.raises(FishError, match="Only a GeoJSON file has classes"):
        mask_of(picture(10), "Tumor")


@pytest.mark.parametrize(
    "detection",
    [
        annotation(box(2000, 2000), objectType="detection"),
        annotation(box(2000, 2000), objectType="cell"),
        annotation(box(2000, 2000), object_type="tile"),
        annotation(box(2000, 2000), isDetection=True),
        annotation(box(2000, 2000)) | {"id": "PathDetectionObject"},
    ],
)
def test_detections_are_no_tissue_and_a_file_of_nothing_else_says_so(
    tmp_path: Path, detection: dict[str, object]
) -> None:
    core = annotation(box(0, 0), objectType="tma_core")
    old = annotation(box(600, 0)) | {"id": "PathAnnotationObject"}
    assert area(written(tmp_path / "a.geojson", core, old, detection)) == pytest.approx(2 * 400**2, rel=0.01)
    with pytest.raises(FishError, match="holds 1 detections"):
        given(written(tmp_path / "b.geojson", detection))


def test_polygons_of_another_slide_are_refused_but_a_margin_beyond_the_border_is_not(tmp_path: Path) -> None:
    with pytest.raises(FishError, match="another slide"):
        given(written(tmp_path / "a.geojson", annotation(box(0, 0)), annotation(box(9000, 9000, 500))))
    with pytest.raises(FishError, match="another slide"):
        given(written(tmp_path / "b.geojson", annotation(box(3800, 2800))))
    tissue = given(written(tmp_path / "c.geojson", annotation(box(3500, 2500, 600))))
    assert sum(c.area_um2 for c in tissue.contours) / 0.25 == pytest.approx(500**2, rel=0.02)


@pytest.mark.parametrize(
    "corner", ["NaN", "Infinity", "1e308", "-1e300", "1e12", "1" + 400 * "0", '"far"', "null", "{}", "[]"]
)
def test_corners_that_can_be_those_of_no_slide_are_refused(tmp_path: Path, corner: str) -> None:
    path = tmp_path / "a.geojson"
    path.write_text(f'{{"type": "Polygon", "coordinates": [[[0, 0], [500, 0], [{corner}, 500], [0, 0]]]}}')
    with pytest.raises(FishError, match=r"a\.geojson: cannot be read as a mask"):
        given(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"\xff\xfe{\x00",
        b'{"type": "Feature", "properties": {"name": "\xe4"}}',
        b"[" * 200_000,
        b"[" * 500 + b"]" * 500,
        b'{"type": "GeometryCollection", "geometries": [' * 3000,
        b'{"type": "Feature", "geometry": [1], "properties": 3}',
        b'{"type": "Feature", "geometry": {"type": "Polygon", "coordinates": 7}}',
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a" + bytes(3),
        b"II*\x00\x08\x00\x00\x00",
    ],
)
def test_rubbish_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rubbish"
    path.write_bytes(content)
    with pytest.raises(FishError, match="rubbish"):
        given(path)


@pytest.mark.parametrize("length", range(0, 900, 37))
def test_an_image_cut_short_is_refused_in_words(tmp_path: Path, length: int) -> None:
    path = tmp_path / "short.png"
    noise = np.random.default_rng(0).integers(0, 2, (30, 400)).astype(bool)
    Image.fromarray(noise).save(path)
    assert path.stat().st_size > 900
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(FishError, match=r"short\.png: cannot be read"):
        given(path)


@pytest.mark.parametrize(("mode", "side"), [("1", 40_000), ("RGB", 24_000), ("L", 2**30)])
def test_an_image_that_would_fill_the_memory_is_refused_before_it_is_decoded(
    tmp_path: Path, mode: str, side: int
) -> None:
    path = tmp_path / "bomb.png"
    Image.new(mode, (4, 3)).save(path)
    content = bytearray(path.read_bytes())
    content[16:24] = side.to_bytes(4, "big") + (3 * side // 4).to_bytes(4, "big")
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
    path.write_bytes(content)
    before = Image.MAX_IMAGE_PIXELS
    with pytest.raises(FishError, match="Save it smaller"):
        given(path)
    assert before == Image.MAX_IMAGE_PIXELS


def test_an_image_whose_decoder_holds_it_several_times_is_refused_at_a_smaller_size(tmp_path: Path) -> None:
    path = tmp_path / "bomb.webp"
    Image.new("RGB", (4, 3)).save(path, lossless=True)
    content = bytearray(path.read_bytes())
    assert content[12:16] == b"VP8L"
    content[21:25] = (16_383 | 12_287 << 14).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(FishError, match=r"16384 x 12288 px .* \(19 million px at most.* Save it smaller"):
        given(path)


@pytest.mark.parametrize("mode", ["1", "P", "RGBA", "I;16"])
def test_a_picture_finer_than_needed_is_made_smaller_before_it_is_looked_at(
    tmp_path: Path, monkeypatch, mode: str
) -> None:
    monkeypatch.setattr("napari_fish.mosaic.masks.maskfile.MOST_PX", 40_000)
    image = Image.fromarray(picture(10).astype(np.uint16 if mode == "I;16" else np.uint8) * 255)
    (image if mode == "I;16" else image.convert(mode)).save(tmp_path / "mask.tif")
    assert MaskFile(tmp_path / "mask.tif").read().shape == (150, 200)
    check(given(tmp_path / "mask.tif"))


def test_a_file_larger_than_any_annotations_is_not_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("napari_fish.mosaic.masks.maskfile.MOST_BYTES", 100)
    with pytest.raises(FishError, match="without detections"):
        given(written(tmp_path / "a.geojson", *CLASSES))


def test_a_name_too_long_for_any_file_is_refused_in_words() -> None:
    with pytest.raises(FishError, match="mask"):
        given(Path("x" * 5000))
    with pytest.raises(FishError, match="mask"):
        MaskFile(Path("x" * 5000)).identity()


@pytest.mark.skipif(os.name != "posix", reason="pipes in folders are for POSIX")
def test_a_pipe_or_a_folder_is_no_mask_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(FishError, match="no ordinary file"):
        given(tmp_path / "pipe.png")
    with pytest.raises(FishError, match="is a folder"):
        given(tmp_path)


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "RGBA", "P", "I;16", "I", "F", "LA"])
def test_a_mask_may_be_an_image_of_any_kind(tmp_path: Path, mode: str) -> None:
    image = Image.fromarray(picture(10).astype(np.uint8) * 255)
    if mode == "I;16":
        image = Image.fromarray(picture(10).astype(np.uint16) * 7)
    image = image if mode == "I;16" else image.convert(mode)
    image.save(tmp_path / "mask.tif")
    check(given(tmp_path / "mask.tif"))


def test_what_is_not_a_number_is_no_tissue() -> None:
    check(given(np.where(picture(10), 1.0, np.nan)))


def test_a_jpeg_of_one_colour_marks_everything_or_nothing(tmp_path: Path) -> None:
    Image.new("L", (400, 300), 255).save(tmp_path / "white.jpg")
    assert area(tmp_path / "white.jpg") == pytest.approx(4000 * 3000)
    Image.new("L", (400, 300)).save(tmp_path / "black.jpg")
    with pytest.raises(NoTissue, match="marks no tissue"):
        given(tmp_path / "black.jpg")


def test_what_is_transparent_is_no_tissue(tmp_path: Path) -> None:
    white = np.full((300, 400, 4), 255, np.uint8)
    white[..., 3] = picture(10) * 255
    Image.fromarray(white).save(tmp_path / "mask.png")
    check(given(tmp_path / "mask.png"))


@pytest.mark.parametrize("quality", [95, 75, 40])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_mask_saved_as_jpeg_is_still_a_mask(tmp_path: Path, quality: int, mode: str) -> None:
    path = tmp_path / "mask.jpg"
    Image.fromarray(picture(10).astype(np.uint8) * 255).convert(mode).save(path, quality=quality)
    check(given(path))
    Image.open(path).save(tmp_path / "mask.png")
    check(given(tmp_path / "mask.png"))


def test_classes_and_numbered_objects_are_tissue_where_they_are_not_zero() -> None:
    check(given(picture(10) * np.where(np.arange(400) < 200, 1, 255)[None].astype(np.uint8)))
    numbers = 1 + np.arange(300)[:, None] // 10 * 40 + np.arange(400) // 10
    check(given(picture(10) * numbers.astype(np.uint16)))


@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_picture_of_the_slide_is_no_mask(tmp_path: Path, name: str, mode: str) -> None:
    slide = stain(glass(300, 400), disc(300, 400, 150, 200, 100))
    Image.fromarray(slide).convert(mode).save(tmp_path / name)
    with pytest.raises(FishError, match=r"picture with .* shades, not a mask"):
        given(tmp_path / name)


def test_thumbnails_of_real_slides_are_no_masks(real_data: Path, tmp_path: Path) -> None:
    for slide in ("tcga-du-6399.svs", "cmu-1-small-region.svs", "ink.jpeg", "tma-spots.jpeg"):
        with open_slide(real_data / "slides" / slide, mpp=0.5) as opened:
            Image.fromarray(opened.thumbnail(400)).save(tmp_path / "thumbnail.png")
            Image.fromarray(opened.thumbnail(400)).convert("L").save(tmp_path / "thumbnail.jpg")
            for name in ("thumbnail.png", "thumbnail.jpg"):
                with pytest.raises(FishError, match="not a mask"):
                    tissue_from_mask(opened, tmp_path / name, TissueParams(), 1024)


def test_twenty_thousand_polygons_are_drawn_each_with_its_hole() -> None:
    ring = np.array([[0, 0], [60, 0], [60, 60], [0, 60]])
    corners = [(100 * (i % 200), 100 * (i // 200)) for i in range(20_000)]
    drawn = draw([[ring + corner, ring / 2 + corner + 15] for corner in corners], (20_000, 10_000), 10.0)
    assert drawn.sum() == 20_000 * (36 - 9)


@given_values(
    corners=st.lists(st.tuples(st.floats(-50, 150), st.floats(-50, 150)), min_size=3, max_size=12),
    step=st.sampled_from([1.0, 2.5, 7.0]),
)
@settings(max_examples=150, deadline=None)
def test_a_px_is_covered_when_its_middle_lies_in_the_polygon(
    corners: list[tuple[float, float]], step: float
) -> None:
    drawn = draw([[corners]], (100, 80), step)
    rows, columns = np.mgrid[: drawn.shape[0], : drawn.shape[1]]
    x, y = (columns.ravel() + 0.5) * step, (rows.ravel() + 0.5) * step
    inside, on_an_edge = np.zeros(len(x), bool), np.zeros(len(x), bool)
    for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True):
        crosses = (ay <= y) != (by <= y)
        with np.errstate(all="ignore"):
            edge = ax + (y - ay) / (by - ay) * (bx - ax)
        inside ^= crosses & (x >= edge)
        on_an_edge |= crosses & (np.abs(x - edge) < 1e-6)
    wrong = ((drawn.ravel() != inside) & ~on_an_edge).sum()
    assert wrong <= (1 if not inside.any() else 0.01 * drawn.size)


def test_a_polygon_smaller_than_a_px_does_not_vanish() -> None:
    assert draw([[np.array([[31, 31], [33, 31], [33, 33]])]], (100, 100), 10.0).sum() == 1


def test_what_was_exported_gives_the_same_tissue_again_and_stays_on_the_slide(tmp_path: Path) -> None:
    rgb = stain(glass(1005, 1307), disc(1005, 1307, 500, 1200, 400) & ~disc(1005, 1307, 500, 1100, 90))
    slide = ArraySlide(rgb, 2.0)
    mosaic = make_mosaic(slide)
    corners = np.concatenate([np.array(ring) for c in mosaic.contours for ring in (c.outer, *c.holes)])
    assert corners.min() >= 0 and (corners.max(axis=0) <= (1307, 1005)).all()
    (tmp_path / "out.geojson").write_text(json.dumps(mosaic.to_geojson(everything=True)))
    again = make_mosaic(slide, mask=tmp_path / "out.geojson")
    assert again.tissue_mm2 == pytest.approx(mosaic.tissue_mm2, rel=0.01)


def test_annotations_of_patches_that_hang_over_the_edge_stay_on_the_slide() -> None:
    piece = disc(1005, 1307, 500, 1200, 400)
    slide = ArraySlide(stain(glass(1005, 1307), piece), 2.0)
    mosaic = make_mosaic(slide, replace(preset("paper"), artefacts="off"), piece)
    size = mosaic.patch_size
    assert any(p.x + size > 1307 or p.y + size > 1005 for p in mosaic.candidates), "or nothing is tested"
    features = mosaic.to_geojson(everything=True)["features"]
    corners = np.concatenate([np.array(f["geometry"]["coordinates"][0]) for f in features])
    assert corners.min() >= 0 and (corners.max(axis=0) <= (1307, 1005)).all()


def test_a_mask_that_marks_everything_is_known() -> None:
    slide = ArraySlide(stain(glass(1000, 1300), np.ones((1000, 1300), bool)), 2.0)
    assert marks_everything(make_mosaic(slide, mask=np.ones((100, 130), bool)))
    part = np.ones((100, 130), bool)
    part[:, :20] = False
    assert not marks_everything(make_mosaic(slide, mask=part))


def test_the_identity_of_a_mask_is_that_of_its_content(tmp_path: Path) -> None:
    one, two = written(tmp_path / "a.geojson", *CLASSES), written(tmp_path / "b.geojson", *CLASSES)
    first, second = MaskFile(one).identity(), MaskFile(two).identity()
    assert first.startswith("a.geojson#") and first.partition("#")[2] == second.partition("#")[2]
    written(two, annotation(box(0, 0)))
    assert MaskFile(two).identity() != second


@pytest.mark.skipif(os.name != "posix", reason="elsewhere every name is valid Unicode")
def test_a_mask_whose_name_is_not_unicode_can_be_recorded(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/mask\xff.geojson"))
    MaskFile(written(path, *CLASSES)).identity().encode()
