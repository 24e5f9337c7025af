"""Builds in which people say where the tissue is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.building.summary import Summary
from napari_fish.errors import DatabaseError
from napari_fish.texts import Note
from tests.building.test_build import digest, fates, records
from tests.tiny import write_patches, write_slide

pytestmark = pytest.mark.usefixtures("quick")
WIDTH, HEIGHT = 700, 600
SLIDES = ("a/one.tif", "a/two.tif", "b/three.tif")


@pytest.fixture(scope="module")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("painted")
    for number, name in enumerate(SLIDES):
        write_slide(folder / "slides" / name, seed=number)
    return folder


@pytest.fixture
def home(painted: Path, tmp_path: Path) -> Path:
    """Slides to be built; a folder for masks."""
    shutil.copytree(painted / "slides", tmp_path / "slides")
    (tmp_path / "masks").mkdir()
    return tmp_path


def geojson(path: Path, left: int = 60, right: int = 330, name: str = "Tumor") -> Path:
    ring = [[left, 60], [right, 60], [right, 540], [left, 540], [left, 60]]
    classified = {"objectType": "annotation", "classification": {"name": name}}
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": classified,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return path


def png(path: Path, left: int = 60, right: int = 330) -> Path:
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[60:540, left:right] = 255
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(mask).save(path)
    return path


def run(
    home: Path, mask: str | Path | None = None, mask_class: str | None = None, **options: object
) -> Summary:
    params = BuildParams(mask=None if mask is None else str(mask), mask_class=mask_class)
    return build(home / "slides", home / "x.fish", params=params, **options)  # type: ignore[arg-type]


def masks_recorded(home: Path) -> dict[str, str]:
    return {slide: one.choice.mask.partition("#")[0] for slide, one in records(home / "x.fish").items()}


@pytest.mark.parametrize(
    "name",
    ["one.png", "one_mask.png", "one.tif.geojson", "one.geojson", "a/one-MASK.PNG"],
)
def test_masks_are_found_by_the_names_of_their_slides(home: Path, name: str) -> None:
    (png if name.lower().endswith("png") else geojson)(home / "masks" / name)
    summary = run(home, home / "masks")
    assert Note("masks", "1 slide with a mask, 2 without.") in summary.notes
    assert masks_recorded(home) == {"a/one.tif": Path(name).name, "a/two.tif": "", "b/three.tif": ""}
    boxes = _boxes(home, "a/one.tif")
    assert (boxes[:, 0] + boxes[:, 2] / 2 < 400).all(), "only where the mask says"
    assert not summary.quarantined


def test_masks_are_named_by_a_column_of_the_labels(home: Path) -> None:
    geojson(home / "drawn" / "ü 1.geojson")
    absolute = png(home / "elsewhere" / "2.png")
    table = home / "labels.csv"
    lines = [f"one,{'drawn/ü 1.geojson'},x", f"two,{absolute},y", "three,,z"]
    table.write_text("\n".join(["slide,Outline,diagnosis", *lines]), encoding="utf-8")
    summary = build(home / "slides", home / "x.fish", table, BuildParams(mask="outline"))
    assert Note("masks", "2 slides with a mask, 1 without.") in summary.notes
    assert masks_recorded(home) == {"a/one.tif": "ü 1.geojson", "a/two.tif": "2.png", "b/three.tif": ""}


def test_one_slide_may_be_given_its_mask_as_a_file(home: Path) -> None:
    mask = geojson(home / "drawn.geojson")
    with pytest.raises(DatabaseError, match="one mask for 3 slides"):
        run(home, mask)
    assert not (home / "x.fish").exists()
    build(home / "slides" / "a" / "one.tif", home / "x.fish", params=BuildParams(mask=str(mask)))
    assert masks_recorded(home) == {"one.tif": "drawn.geojson"}


def test_a_changed_mask_or_class_is_a_reason_to_encode_again_and_an_unchanged_one_is_not(home: Path) -> None:
    geojson(home / "masks" / "one.geojson")
    geojson(home / "masks" / "two.geojson")
    run(home, home / "masks")
    first = digest(home / "x.fish")
    assert set(fates(run(home, home / "masks")).values()) == {"unchanged"}
    assert set(fates(run(home)).values()) == {"unchanged"}, "nothing is said of masks, so they stay"
    (home / "masks" / "one.geojson").rename(home / "masks" / "one.tif.geojson")
    assert set(fates(run(home, home / "masks")).values()) == {"unchanged"}, "the same mask under another name"

    geojson(home / "masks" / "one.tif.geojson", 350, 640)
    again = fates(run(home, home / "masks"))
    assert again == {"a/one.tif": "replaced", "a/two.tif": "unchanged", "b/three.tif": "unchanged"}
    assert digest(home / "x.fish") != first

    (home / "masks" / "two.geojson").unlink()
    geojson(home / "masks" / "three.geojson")
    again = fates(run(home, home / "masks"))
    assert again == {"a/one.tif": "unchanged", "a/two.tif": "replaced", "b/three.tif": "replaced"}

    again = fates(run(home, home / "masks", "tumor"))
    assert again == {"a/one.tif": "replaced", "a/two.tif": "unchanged", "b/three.tif": "replaced"}
    assert records(home / "x.fish")["a/one.tif"].choice.mask_class == "tumor"
    assert set(fates(run(home, home / "masks", "Tumor")).values()) == {"unchanged"}


def test_a_mask_that_cannot_be_used_costs_its_slide_only(home: Path) -> None:
    (home / "masks" / "one.png").write_bytes(b"no picture")
    geojson(home / "masks" / "two.geojson", 10_000, 20_000)
    summary = run(home, home / "masks")
    reasons = {bad.slide: bad.reason for bad in summary.quarantined}
    assert "cannot be read as a mask" in reasons["a/one.tif"]
    assert "fits another slide" in reasons["a/two.tif"]
    assert fates(summary)["b/three.tif"] == "added"
    # Mended, they leave quarantine.
    png(home / "masks" / "one.png")
    geojson(home / "masks" / "two.geojson")
    assert fates(run(home, home / "masks")) == {
        "a/one.tif": "added", "a/two.tif": "added", "b/three.tif": "unchanged"
    }  # fmt: skip
    assert not run(home, home / "masks").quarantined


def test_a_mask_that_went_bad_quarantines_the_slide_and_keeps_what_is_known_of_it(home: Path) -> None:
    table = home / "labels.csv"
    table.write_text("slide,outline\none,one.png\n")
    png(home / "one.png")
    params = BuildParams(mask="outline")
    build(home / "slides", home / "x.fish", table, params)
    (home / "one.png").unlink()
    summary = build(home / "slides", home / "x.fish", table, params)
    assert [bad.reason for bad in summary.quarantined if "no such mask file" in bad.reason]
    assert records(home / "x.fish")["a/one.tif"].choice.mask.startswith("one.png#")


def test_a_missing_mask_of_a_slide_that_had_none_is_not_overlooked(home: Path) -> None:
    run(home)
    table = home / "labels.csv"
    table.write_text("slide,outline\none,one.png\n")
    summary = build(home / "slides", home / "x.fish", table, BuildParams(mask="outline"))
    assert [bad.slide for bad in summary.quarantined] == ["a/one.tif"]


def test_masks_that_fit_no_slide_or_several_are_named_and_two_for_one_are_refused(home: Path) -> None:
    shutil.copy(home / "slides" / "a" / "two.tif", home / "slides" / "b" / "two.tif")
    write_slide(home / "slides" / "b" / "two.tif", seed=9)
    for name in ("stranger.png", "two.geojson", "one.png", "one.geojson"):
        (png if name.endswith("png") else geojson)(home / "masks" / name)
    summary = run(home, home / "masks")
    assert Note("masks", "Masks that fit no slide: stranger.png.") in summary.notes
    assert any(
        note.text.startswith("Masks not used, as several slides fit: two.geojson") for note in summary.notes
    )
    (bad,) = summary.quarantined
    assert bad.slide == "a/one.tif" and "several masks" in bad.reason


def test_masks_may_lie_among_the_slides_and_are_not_taken_for_such(home: Path) -> None:
    png(home / "slides" / "masks" / "one.png")
    assert set(fates(run(home, home / "slides" / "masks"))) == set(SLIDES)
    shutil.rmtree(home / "slides" / "masks")
    png(home / "slides" / "a" / "two_mask.png")
    geojson(home / "slides" / "a" / "one.geojson", 350, 640)
    summary = run(home, home / "slides")
    assert set(fates(summary)) == set(SLIDES)
    assert masks_recorded(home) == {
        "a/one.tif": "one.geojson",
        "a/two.tif": "two_mask.png",
        "b/three.tif": "",
    }
    assert summary.notes[0].text == "2 slides with a mask, 1 without."


def test_a_mask_that_marks_the_whole_slide_is_said(home: Path) -> None:
    png(home / "masks" / "one.png").unlink()
    Image.new("L", (70, 60), 1).save(home / "masks" / "one.png")
    summary = run(home, home / "masks")
    assert any("marks the whole slide" in note.text and "a/one.tif" in note.text for note in summary.notes)


def test_a_slide_under_two_names_with_two_masks_does_not_change_from_build_to_build(home: Path) -> None:
    shutil.copy(home / "slides" / "a" / "one.tif", home / "slides" / "b" / "copy.tif")
    geojson(home / "masks" / "one.geojson")
    geojson(home / "masks" / "copy.geojson", 350, 640)
    run(home, home / "masks")
    before = digest(home / "x.fish")
    again = fates(run(home, home / "masks"))
    assert sorted(again.values()) == ["twice", "unchanged", "unchanged", "unchanged"]
    assert digest(home / "x.fish") == before


@pytest.mark.parametrize(
    ("mask", "mask_class", "said"),
    [
        ("nowhere", None, "neither a folder or file that is there nor a column"),
        (None, "Tumor", "state these with --mask"),
    ],
)
def test_what_was_not_meant_is_said_before_anything_is_made(
    home: Path, mask: str | None, mask_class: str | None, said: str
) -> None:
    with pytest.raises(DatabaseError, match=said):
        run(home, mask, mask_class)
    assert not (home / "x.fish").exists()


def test_images_that_are_one_patch_have_no_masks(tmp_path: Path) -> None:
    write_patches(tmp_path / "patches", each=1)
    (tmp_path / "masks").mkdir()
    with pytest.raises(DatabaseError, match="one patch"):
        build(
            tmp_path / "patches",
            tmp_path / "x.fish",
            params=BuildParams(patches=True, mask=str(tmp_path / "masks")),
        )
    assert not (tmp_path / "x.fish").exists()


def _boxes(home: Path, slide: str) -> np.ndarray:
    from napari_fish.store.snapshot.store import SnapshotStore

    with SnapshotStore(home / "x.fish") as store:
        number = store.catalogue.number(slide)
        assert number is not None
        return store.catalogue.patches_of(number).boxes
