"""Real slides: tissue where tissue is, and errors where there is none to be had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_fish.errors import SlideError
from napari_fish.mosaic import make_mosaic, segment
from napari_fish.slides import open_slide


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
