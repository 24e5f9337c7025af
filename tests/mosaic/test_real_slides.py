"""Real slides: tissue where tissue is, and errors where there is none to be had."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from napari_fish.errors import SlideError
from napari_fish.mosaic import make_mosaic, segment
from napari_fish.mosaic.masks.annotations import polygons_from_geojson
from napari_fish.mosaic.masks.rings import draw
from napari_fish.slides import open_slide

TRUTH = Path(__file__).parent / "truth"
SLIDES = {
    "slides/tcga-du-6399.svs": None,
    "slides/cmu-1-small-region.svs": None,
    "slides/cmu-1-small-region.ome.tiff": None,
    "slides/cmu-1-small-region.ome.zarr": None,
    "slides/cmu-1-small-region.dicom": None,
    "slides/cmu-1-small-region.jpeg.tiff": 0.499,
    "slides/cmu-1-small-region.jp2.tiff": 0.499,
    "slides/cmu-1-small-region.webp.tiff": 0.499,
    "slides/tcga-cr-7395.svs": 0.5,
    "slides/kidney-glomeruli.svs": 0.25,
    "slides/prostate-pyramid.tiff": 0.5,
    "slides/ink.jpeg": 2.0,
    "slides/tma-spots.jpeg": 4.0,
    "sections/her2st-c3.jpg": 0.69,
    "sections/her2st-c6.jpg": 0.69,
}
"""µm per px where the file does not say, or says nonsense; those of the two thumbnails are made up."""


def hand_drawn(name: str, dimensions: tuple[int, int], step: float) -> np.ndarray:
    """Return where somebody who looked at the slide drew tissue."""
    truth = TRUTH / f"{Path(name).name.split('.')[0]}.geojson"
    return draw(polygons_from_geojson(json.loads(truth.read_text(encoding="utf-8"))), dimensions, step)


@pytest.mark.parametrize("name", SLIDES)
def test_tissue_is_where_a_person_drew_it_and_patches_hold_it(real_data: Path, name: str) -> None:
    path = real_data / name
    if path.is_dir() and path.suffix == ".dicom":
        path = min(path.iterdir())
    with open_slide(path, mpp=SLIDES[name]) as slide:
        mosaic = make_mosaic(slide)
        step = max(1.0, 4 / mosaic.mpp)
        truth = hand_drawn(name, slide.dimensions, step)
    found = draw([[c.outer, *c.holes] for c in mosaic.contours], mosaic.dimensions, step)
    assert (found & truth).sum() / (found | truth).sum() >= 0.9
    side = round(mosaic.patch_size / step)
    held = np.zeros_like(truth)
    for patch in (*mosaic.candidates, *mosaic.dropped):
        x, y = round(patch.x / step), round(patch.y / step)
        held[y : y + side, x : x + side] = True
    assert held[truth].mean() >= 0.95
    if name.startswith("sections"):
        shown = [truth[round(p.y / step) :, round(p.x / step) :][:side, :side].mean() for p in mosaic.patches]
        assert np.mean(np.array(shown) >= 0.5) >= 0.95
        assert len(mosaic.candidates) >= 0.95 * (len(mosaic.candidates) + len(mosaic.dropped))


def test_a_brain_slide_has_two_pieces_and_is_not_an_artefact(real_data: Path) -> None:
    with open_slide(real_data / "slides" / "tcga-du-6399.svs") as slide:
        mosaic = make_mosaic(slide)
    assert len(mosaic.contours) == 2
    assert 3 < mosaic.tissue_mm2 < 4.5
    assert len(mosaic.candidates) >= 18
    assert mosaic.patches


def test_the_same_tissue_is_found_in_every_format(real_data: Path) -> None:
    areas = []
    for name in ("cmu-1-small-region.svs", "cmu-1-small-region.ome.tiff", "cmu-1-small-region.ome.zarr"):
        with open_slide(real_data / "slides" / name) as slide:
            areas.append(sum(c.area_um2 for c in segment(slide).contours))
    assert areas == pytest.approx([areas[0]] * 3, rel=0.03)
    assert 0.5e6 < areas[0] < 0.8e6


@pytest.mark.parametrize(
    "ending", ["svs", "ome.tiff", "ome.zarr", "dicom", "jpeg.tiff", "jp2.tiff", "webp.tiff"]
)
def test_no_file_of_the_skin_slide_loses_its_follicle(real_data: Path, ending: str) -> None:
    with open_slide(real_data / "slides" / f"cmu-1-small-region.{ending}", mpp=0.499) as slide:
        mosaic = make_mosaic(slide)
    assert len(mosaic.candidates) >= 5
    assert not [patch.reason for patch in mosaic.dropped if patch.reason != "white"]


def test_pen_ink_on_a_real_slide_is_dropped(real_data: Path) -> None:
    with open_slide(real_data / "slides" / "ink.jpeg", mpp=2.0) as slide:
        mosaic = make_mosaic(slide)
        overview = slide.read(0, 0, *(round(n / 4) for n in slide.dimensions), 8.0)
    red, blue = overview[..., 0].astype(int), overview[..., 2].astype(int)
    ink = (blue < 140) & (red < 70)
    step = mosaic.patch_size / 4

    def share(x: int, y: int) -> float:
        part = ink[int(y / 4) : int(y / 4 + step), int(x / 4) : int(x / 4 + step)]
        return float(np.mean(part)) if part.size else 0.0

    inked = [p for p in (*mosaic.candidates, *mosaic.dropped) if share(p.x, p.y) > 0.1]
    assert inked
    assert all(p.reason for p in inked)
    assert len(mosaic.candidates) > 0.8 * (len(mosaic.candidates) + len(mosaic.dropped))


@pytest.mark.parametrize("name", ["kidney-glomeruli.svs", "tcga-cr-7395.svs", "prostate-pyramid.tiff"])
def test_an_unknown_pixel_size_is_refused_with_the_remedy(real_data: Path, name: str) -> None:
    with open_slide(real_data / "slides" / name) as slide, pytest.raises(SlideError, match="--mpp"):
        make_mosaic(slide)


def test_the_label_of_a_slide_is_never_taken_for_tissue(real_data: Path) -> None:
    path = real_data / "slides" / "cmu-1-small-region.ome.tiff"
    with open_slide(path) as slide:
        others = [s for s in slide.series if s.kind != "slide"]
    assert others
    for info in others:
        with (
            open_slide(path, mpp=0.5, series=info.index) as image,
            pytest.raises(SlideError, match=info.kind),
        ):
            make_mosaic(image)
