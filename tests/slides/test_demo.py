from __future__ import annotations

import csv
import itertools
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import openslide
import pytest
import tifffile
from scipy import ndimage

from napari_fish.slides.demo import (
    ARTEFACTS,
    DIAGNOSES,
    GLASS,
    SITE_OF,
    DemoImage,
    DemoSpec,
    demo_specs,
    render,
    write_demo,
    write_demo_slide,
    write_glass,
)
from napari_fish.slides.demo.stain import stain_of


def small(
    diagnosis: str = "adenocarcinoma", seed: int = 3, size_um: float = 300.0, **changes: object
) -> DemoSpec:
    spec = DemoSpec("small", "P1", SITE_OF.get(diagnosis, "none"), diagnosis, seed, size_um, size_um)
    return replace(spec, **changes)  # type: ignore[arg-type]


def at_truth(image: DemoImage) -> np.ndarray:
    """Mean colour of the slide under each pixel of the truth."""
    block = round(image.truth.um_per_px / image.spec.mpp)
    rows, columns = image.truth.tissue.shape
    rgb = image.rgb[: rows * block, : columns * block].astype(np.float32)
    return rgb.reshape(rows, block, columns, block, 3).mean((1, 3))


def eroded(mask: np.ndarray, pixels: int = 3) -> np.ndarray:
    return ndimage.binary_erosion(mask, iterations=pixels)


@pytest.fixture(scope="module")
def marked() -> DemoImage:
    """A slide with every artefact."""
    return render(small("solid carcinoma", 8, 700.0, artefacts=ARTEFACTS))


@pytest.fixture(scope="module")
def unmarked() -> DemoImage:
    """The same slide without artefacts."""
    return render(small("solid carcinoma", 8, 700.0))


def test_there_are_at_least_six_diagnoses_and_each_has_a_site() -> None:
    assert len(DIAGNOSES) >= 6
    assert all(SITE_OF[diagnosis] for diagnosis in DIAGNOSES)
    assert len(set(SITE_OF.values())) >= 3


@pytest.mark.parametrize("diagnosis", DIAGNOSES)
def test_the_same_spec_gives_the_same_bytes_and_another_seed_another_slide(diagnosis: str) -> None:
    first, again = render(small(diagnosis)), render(small(diagnosis))
    assert first.rgb.tobytes() == again.rgb.tobytes()
    np.testing.assert_array_equal(first.truth.tissue, again.truth.tissue)
    other = render(small(diagnosis, seed=4))
    assert (first.rgb != other.rgb).any(-1).mean() > 0.5


def test_the_bytes_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    specs = [small(d, artefacts=ARTEFACTS, name=f"t{i}") for i, d in enumerate(DIAGNOSES[:3])]
    write_demo(tmp_path / "together", specs)
    for spec in specs:
        write_demo_slide(spec, tmp_path / f"{spec.name}.tif")
        together = (tmp_path / "together" / f"{spec.name}.tif").read_bytes()
        assert together == (tmp_path / f"{spec.name}.tif").read_bytes()


def test_slides_of_one_patient_share_a_stain_and_other_patients_have_their_own() -> None:
    assert np.array_equal(stain_of("A").dyes, stain_of("A").dyes)
    first, second = (render(small("lymphoma", patient=patient)) for patient in "AB")
    np.testing.assert_array_equal(first.truth.tissue, second.truth.tissue)
    tissue = eroded(first.truth.tissue)
    assert np.abs(at_truth(first)[tissue].mean(0) - at_truth(second)[tissue].mean(0)).max() > 5
    strengths = np.array([np.linalg.norm(stain_of(f"P{n}").dyes, axis=1) for n in range(40)])
    assert (strengths.std(0) / strengths.mean(0) > 0.05).all()


def test_twenty_and_forty_times_show_the_same_geometry() -> None:
    coarse = render(small("papillary carcinoma", artefacts=("ink", "fold")))
    fine = render(replace(coarse.spec, mpp=0.25))
    assert fine.rgb.shape == (1200, 1200, 3)
    assert coarse.rgb.shape == (600, 600, 3)
    for mask in ("tissue", "ink", "fold"):
        np.testing.assert_array_equal(getattr(coarse.truth, mask), getattr(fine.truth, mask))
    averaged = fine.rgb.reshape(600, 2, 600, 2, 3).mean((1, 3))
    assert np.corrcoef(averaged.ravel(), coarse.rgb.ravel())[0, 1] > 0.97
    assert np.abs(averaged - coarse.rgb).mean() < 6


def test_glass_is_nearly_white_and_tissue_is_stained(unmarked: DemoImage) -> None:
    colour = at_truth(unmarked)
    glass = colour[eroded(~unmarked.truth.tissue)]
    tissue = colour[eroded(unmarked.truth.tissue)]
    assert glass.min() > 230
    assert np.ptp(glass, axis=1).max() < 8
    saturation = np.ptp(tissue, axis=1) / tissue.max(1) * 255
    assert (saturation > 12).mean() > 0.97
    assert tissue[:, 1].mean() < tissue[:, [0, 2]].mean(), "haematoxylin and eosin let least green through"


def test_the_tissue_mask_is_where_tissue_was_painted(unmarked: DemoImage) -> None:
    seen = at_truth(unmarked)[..., 1] < 225
    filled = ndimage.binary_fill_holes(ndimage.binary_opening(seen))
    tissue = unmarked.truth.tissue
    assert (filled & tissue).sum() / (filled | tissue).sum() > 0.95


def test_a_slide_without_artefacts_has_empty_artefact_masks(unmarked: DemoImage) -> None:
    assert not any(getattr(unmarked.truth, name).any() for name in ARTEFACTS)


@pytest.mark.parametrize("name", ARTEFACTS)
def test_pixels_change_within_the_mask_of_an_artefact_and_nowhere_else(
    unmarked: DemoImage, name: str
) -> None:
    marked = render(replace(unmarked.spec, artefacts=(name,)))
    mask = getattr(marked.truth, name)
    assert mask.any()
    change = np.abs(at_truth(marked) - at_truth(unmarked)).max(-1)
    assert (change[mask] > 3).mean() > (0.5 if name == "blur" else 0.8)
    # Focus fades out over 30 µm; everything else ends within a few µm.
    assert change[~ndimage.binary_dilation(mask, iterations=20 if name == "blur" else 5)].max() < 1.5


def test_ink_is_coloured_over_tissue_and_glass_alike(unmarked: DemoImage) -> None:
    marked = render(replace(unmarked.spec, artefacts=("ink",)))
    before, after = at_truth(unmarked), at_truth(marked)
    ink, tissue = marked.truth.ink, marked.truth.tissue
    assert (ink & tissue).any() and (ink & ~tissue).any()
    assert (after[eroded(ink)] < before[eroded(ink)] - 5).any(-1).all()


def test_out_of_focus_areas_are_less_sharp(unmarked: DemoImage) -> None:
    marked = render(replace(unmarked.spec, artefacts=("blur",)))
    inside = np.kron(eroded(marked.truth.blur & marked.truth.tissue, 12), np.ones((8, 8), bool))

    def sharpness(image: DemoImage) -> float:
        return float(ndimage.laplace(image.rgb[..., 1].astype(np.float32))[inside].var())

    assert inside.sum() > 1000
    assert sharpness(marked) < 0.25 * sharpness(unmarked)


def test_folds_and_dust_are_darker_than_what_they_cover(marked: DemoImage, unmarked: DemoImage) -> None:
    difference = at_truth(unmarked).mean(-1) - at_truth(marked).mean(-1)
    fold = eroded(marked.truth.fold & ~marked.truth.blur, 2)
    assert np.median(difference[fold]) > 25
    assert np.median(difference[marked.truth.dust & ~marked.truth.blur]) > 25
    assert not (marked.truth.fold & ~marked.truth.tissue).any()


def test_truth_covers_the_slide_exactly_at_four_micrometres() -> None:
    image = render(small(size_um=203.0, height_um=150.0, mpp=0.5))
    assert image.rgb.shape == (300, 406, 3)
    assert image.truth.um_per_px == 4.0
    assert image.truth.tissue.shape == (38, 51)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("diagnosis", (*DIAGNOSES, GLASS))
@pytest.mark.parametrize("width, height, mpp", [(8.0, 8.0, 0.25), (40.0, 9.5, 0.5), (101.3, 57.7, 0.46)])
def test_a_slide_may_be_as_small_as_a_cell(diagnosis: str, width: float, height: float, mpp: float) -> None:
    spec = small(diagnosis, size_um=width, height_um=height, mpp=mpp, artefacts=ARTEFACTS)
    image = render(spec)
    assert image.rgb.shape == (round(height / mpp), round(width / mpp), 3)
    assert image.rgb.std() > 0


def test_the_standard_set_is_balanced_and_another_seed_gives_another_set() -> None:
    specs = demo_specs()
    assert 24 <= len(specs) <= 40
    assert len({spec.name for spec in specs}) == len(specs)
    per_diagnosis = Counter(spec.diagnosis for spec in specs)
    assert set(per_diagnosis) == set(DIAGNOSES) and len(set(per_diagnosis.values())) == 1
    for spec in specs:
        others = {s.name for s in specs if s.diagnosis == spec.diagnosis and s.patient != spec.patient}
        assert len(others) >= 4, "a search that leaves out the patient needs four right answers"
    assert {0.5, 0.25} == {spec.mpp for spec in specs}
    assert set(ARTEFACTS) == {name for spec in specs for name in spec.artefacts}
    assert sum(not spec.artefacts for spec in specs) >= len(specs) // 3
    assert len({(spec.patient, spec.diagnosis) for spec in specs}) == len({spec.patient for spec in specs})
    other = demo_specs(seed=1)
    assert not {s.seed for s in specs} & {s.seed for s in other}
    assert not {s.patient for s in specs} & {s.patient for s in other}
    assert demo_specs() == specs


def test_the_order_of_the_standard_set_does_not_tell_the_diagnosis() -> None:
    diagnoses = [spec.diagnosis for spec in demo_specs()]
    runs = sum(a == b for a, b in itertools.pairwise(diagnoses))
    assert runs < len(diagnoses) // 3


@pytest.mark.parametrize(
    "changes", [{"diagnosis": "gout"}, {"artefacts": ("jam",)}, {"width_um": 0.0}, {"mpp": 0.0}]
)
def test_a_spec_that_makes_no_sense_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"unknown|needs"):
        small(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("mpp", [0.5, 0.25])
def test_openslide_reads_levels_pixel_size_and_colours(tmp_path: Path, mpp: float) -> None:
    spec = small("mucinous carcinoma", size_um=600.0, height_um=400.0, mpp=mpp)
    path = write_demo_slide(spec, tmp_path / "ä slide.tif")
    rgb = render(spec).rgb
    with openslide.OpenSlide(path) as slide:
        assert slide.dimensions == (600 / mpp, 400 / mpp)
        assert float(slide.properties["openslide.mpp-x"]) == pytest.approx(mpp, rel=1e-4)
        assert float(slide.properties["openslide.mpp-y"]) == pytest.approx(mpp, rel=1e-4)
        assert slide.level_count == {0.5: 3, 0.25: 4}[mpp]
        assert slide.level_downsamples == pytest.approx([2.0**n for n in range(slide.level_count)])
        assert max(slide.level_dimensions[-1]) <= 512
        seen = np.asarray(slide.read_region((0, 0), 0, slide.dimensions))[..., :3].astype(int)
        assert np.abs(seen - rgb).mean() < 4
        assert np.abs((seen - rgb).mean((0, 1))).max() < 0.7, "no channel is shifted by the JPEG colour space"
        lowest = slide.level_count - 1
        small_one = np.asarray(slide.read_region((0, 0), lowest, slide.level_dimensions[lowest]))[..., :3]
        block = 2**lowest
        height, width = (n // block for n in rgb.shape[:2])
        exact = rgb[: height * block, : width * block].reshape(height, block, width, block, 3).mean((1, 3))
        # Smaller pictures have more detail in each pixel, which JPEG keeps less well.
        assert np.abs(small_one - exact).mean() < 6
        assert np.abs((small_one - exact).mean((0, 1))).max() < 0.8


def test_tifffile_reads_tiles_reduced_pages_and_the_name_of_the_demo(tmp_path: Path) -> None:
    path = write_demo_slide(small(size_um=600.0), tmp_path / "a.tif")
    with tifffile.TiffFile(path) as tiff:
        assert [page.subfiletype for page in tiff.pages] == [0, 1, 1]
        assert all(page.is_tiled and page.tile == (256, 256) for page in tiff.pages)
        assert all(page.compression == tifffile.COMPRESSION.JPEG for page in tiff.pages)
        assert "napari-fish demo slide" in tiff.pages.first.description
        assert tiff.pages.first.resolutionunit == tifffile.RESUNIT.CENTIMETER
        assert np.abs(tiff.asarray().astype(int) - render(small(size_um=600.0)).rgb).mean() < 4


def test_writing_a_demo_twice_writes_each_slide_once(tmp_path: Path) -> None:
    specs = [small(diagnosis, name=f"demo-{i:03d}") for i, diagnosis in enumerate(DIAGNOSES)]
    seen: list[tuple[int, int]] = []
    paths = write_demo(tmp_path / "d", specs, progress=lambda done, total: seen.append((done, total)))
    assert paths == [tmp_path / "d" / f"{spec.name}.tif" for spec in specs]
    assert seen[0] == (0, 6) and seen[-1] == (6, 6)
    assert not [path for path in (tmp_path / "d").iterdir() if path.suffix not in (".tif", ".csv")]
    with (tmp_path / "d" / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {"slide": f"{s.name}.tif", "patient": s.patient, "site": s.site, "diagnosis": s.diagnosis}
        for s in specs
    ]
    times = [path.stat().st_mtime_ns for path in paths]
    changed = [*specs[:5], replace(specs[5], seed=99)]
    paths[0].write_bytes(paths[0].read_bytes()[:100])
    assert write_demo(tmp_path / "d", changed) == paths
    rewritten = [path.stat().st_mtime_ns != before for path, before in zip(paths, times, strict=True)]
    assert rewritten == [True, False, False, False, False, True]


def test_stopping_a_demo_keeps_the_finished_slides(tmp_path: Path) -> None:
    specs = [small(name=f"demo-{i:03d}", seed=i) for i in range(6)]
    finished: list[int] = []
    paths = write_demo(
        tmp_path,
        specs,
        progress=lambda done, _: finished.append(done),
        should_stop=lambda: max(finished) >= 2,
    )
    assert 2 <= len(paths) < 6
    assert sorted(tmp_path.glob("*.tif")) == sorted(paths)
    assert not list(tmp_path.glob(".*"))


def test_a_slide_of_glass_is_blank(tmp_path: Path) -> None:
    path = write_glass(tmp_path / "glass.tif", 400.0, 300.0)
    with openslide.OpenSlide(path) as slide:
        assert slide.dimensions == (800, 600)
        pixels = np.asarray(slide.read_region((0, 0), 0, (800, 600)))[..., :3]
    assert pixels.min() > 230
    assert 0 < pixels.std() < 4
    truth = render(small(GLASS)).truth
    assert not truth.tissue.any()


def test_importing_the_demo_does_not_import_numba() -> None:
    code = "import sys, napari_fish.slides.demo; print('numba' in sys.modules, 'tifffile' in sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert shown.stdout.split() == ["False", "False"]
