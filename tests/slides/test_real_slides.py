"""Real slides: what the file is known to hold is what is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_fish.errors import SlideError
from napari_fish.slides import MppSource, open_slide
from napari_fish.slides.openslide import open_openslide
from napari_fish.slides.resample import resample


@dataclass(frozen=True)
class Known:
    """What is known about a file; colour is the mean RGB of the thumbnail, judged by eye once."""

    name: str
    backend: str
    size: tuple[int, int]
    levels: int
    mpp: float | None
    source: MppSource
    colour: tuple[int, int, int]


SKIN, UNKNOWN = (214, 195, 208), MppSource.UNKNOWN
SLIDES = [
    Known("tcga-du-6399.svs", "openslide", (31872, 13835), 3, 0.2457, MppSource.FILE, (236, 232, 234)),
    Known("cmu-1-small-region.svs", "openslide", (2220, 2967), 1, 0.499, MppSource.FILE, SKIN),
    Known("cmu-1-small-region.ome.tiff", "tifffile", (2220, 2967), 2, 0.499, MppSource.FILE, SKIN),
    Known("cmu-1-small-region.ome.zarr", "zarr", (2220, 2967), 2, 0.499, MppSource.FILE, SKIN),
    Known("cmu-1-small-region.dicom", "openslide", (2220, 2967), 1, 0.499, MppSource.FILE, SKIN),
    Known("cmu-1-small-region.jpeg.tiff", "tifffile", (2220, 2967), 1, None, UNKNOWN, SKIN),
    Known("cmu-1-small-region.jp2.tiff", "tifffile", (2220, 2967), 1, None, UNKNOWN, SKIN),
    Known("cmu-1-small-region.webp.tiff", "tifffile", (2220, 2967), 1, None, UNKNOWN, SKIN),
    Known("tcga-cr-7395.svs", "openslide", (4443, 3567), 2, None, UNKNOWN, (217, 158, 188)),
    Known("kidney-glomeruli.svs", "openslide", (2930, 3675), 1, None, UNKNOWN, (112, 88, 117)),
    Known("prostate-pyramid.tiff", "tifffile", (2500, 2500), 6, None, UNKNOWN, (214, 175, 196)),
    Known("ink.jpeg", "image", (5600, 1000), 1, None, UNKNOWN, (237, 223, 229)),
    Known("tma-spots.jpeg", "image", (1331, 3206), 1, None, UNKNOWN, (248, 245, 249)),
]


@pytest.mark.parametrize("known", SLIDES, ids=lambda k: k.name)
def test_a_real_slide_opens_with_its_true_facts_and_colours(real_data: Path, known: Known) -> None:
    with open_slide(real_data / "slides" / known.name) as slide:
        assert slide.backend == known.backend
        assert slide.dimensions == known.size
        assert len(slide.level_dimensions) == known.levels
        assert slide.mpp == (None if known.mpp is None else pytest.approx(known.mpp))
        assert slide.mpp_source == known.source
        assert slide.kind == "slide"
        thumbnail = slide.thumbnail(256)
    np.testing.assert_allclose(thumbnail.mean((0, 1)), known.colour, atol=2)
    assert thumbnail.std() > 8


def test_every_readable_file_is_in_the_list_above(real_data: Path) -> None:
    there = {p.name for p in (real_data / "slides").iterdir()}
    assert there == {k.name for k in SLIDES} | {"broken.svs"}
    with pytest.raises(SlideError, match=r"broken\.svs"):
        open_slide(real_data / "slides" / "broken.svs")


@pytest.mark.parametrize("ending", ["ome.tiff", "ome.zarr", "dicom", "jpeg.tiff", "jp2.tiff", "webp.tiff"])
def test_the_same_tissue_looks_the_same_in_every_container(real_data: Path, ending: str) -> None:
    box = (900, 1200, 300, 300, 0.499)
    with open_slide(real_data / "slides" / "cmu-1-small-region.svs") as slide:
        expected = slide.read(*box)
    with open_slide(real_data / "slides" / f"cmu-1-small-region.{ending}", mpp=0.499) as slide:
        got = slide.read(*box)
    assert expected.std() > 20
    # Recompressed, so not the same to the bit; two pixels aside it would already be far less alike.
    assert correlation(got, expected) > 0.9
    assert correlation(got[:, 2:], expected[:, :-2]) < correlation(got, expected) - 0.1


def correlation(one: NDArray[np.uint8], two: NDArray[np.uint8]) -> float:
    """Return how alike two pictures are, 1 for the same."""
    return float(np.corrcoef(one.ravel(), two.ravel())[0, 1])


@pytest.mark.parametrize(("x", "y"), [(17_000, 8_000), (26_000, 6_000), (3_000, 6_000)])
def test_the_levels_of_a_scanned_pyramid_lie_on_each_other(real_data: Path, x: int, y: int) -> None:
    with open_slide(real_data / "slides" / "tcga-du-6399.svs") as slide:
        coarse = slide.read(x, y, 200, 200, slide.mpp * 4.1)
        around = slide.read_level(0, x - 10, y - 10, 850, 850)
    likeness = {
        (dx, dy): correlation(resample(around, (200, 200), (10.0 + dy, 10.0 + dx), (4.1, 4.1)), coarse)
        for dx in (-1, 0, 1)
        for dy in (-1, 0, 1)
    }
    # The levels were made from these pixels: any shift by a quarter of a coarse pixel is less alike.
    assert max(likeness, key=likeness.__getitem__) == (0, 0)
    assert likeness[0, 0] > 0.97


def test_labels_are_listed_and_never_taken_for_the_slide(real_data: Path) -> None:
    for name in ("tcga-du-6399.svs", "cmu-1-small-region.ome.tiff", "cmu-1-small-region.ome.zarr"):
        with open_slide(real_data / "slides" / name) as slide:
            assert {"slide", "label", "macro"} <= {s.kind for s in slide.series}
            assert slide.kind == "slide"
            label = next(s for s in slide.series if s.kind == "label")
        with open_slide(real_data / "slides" / name, series=label.index) as chosen:
            assert chosen.kind == "label"
            assert chosen.dimensions == (label.width, label.height)


def test_all_instances_of_a_dicom_slide_are_one_slide(real_data: Path) -> None:
    folder = real_data / "slides" / "cmu-1-small-region.dicom"
    hashes = set()
    for instance in [folder, *folder.glob("*.dcm")]:
        with open_slide(instance) as slide:
            hashes.add(slide.content_hash)
    assert len(hashes) == 1


@pytest.mark.parametrize("name", ["cmu-1-small-region.jpeg.tiff", "prostate-pyramid.tiff"])
def test_both_libraries_show_a_generic_tiff_in_the_same_colours(real_data: Path, name: str) -> None:
    path = real_data / "slides" / name
    with open_slide(path) as one, open_openslide(path) as other:
        assert one.level_dimensions == other.level_dimensions
        ours, theirs = (s.read_level(0, 900, 900, 300, 300).astype(int) for s in (one, other))
    assert np.abs(ours - theirs).mean() < 1
