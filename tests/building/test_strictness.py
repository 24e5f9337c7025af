"""What is left out of slides: said, recorded, overruled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.building.settings import recorded_mosaic
from napari_fish.building.strictness import could_differ
from napari_fish.building.summary import MOST_NAMED, Summary
from napari_fish.building.survey import survey
from napari_fish.database import open_database
from napari_fish.database.again import encode_again
from napari_fish.database.inspection import inspect_database
from napari_fish.errors import DatabaseError
from napari_fish.mosaic.left_out import is_much, told
from napari_fish.store.copy import export
from napari_fish.store.records import Choice
from napari_fish.store.snapshot.store import SnapshotStore
from tests.building.test_build import digest, fates, records
from tests.tiny import ink_on, write_patches, write_slide

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def inked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with ink on one of two slides, and the database ``a.fish`` made of them."""
    ink_on(monkeypatch, "inked")
    for number, name in enumerate(("clean", "inked")):
        write_slide(tmp_path / "slides" / f"{name}.tif", "normal", number)
    build(tmp_path / "slides", tmp_path / "a.fish")
    return tmp_path


def artefacts(database: Path) -> str:
    with SnapshotStore(database) as store:
        return recorded_mosaic(store.catalogue)[0].artefacts


def test_one_sentence_says_what_was_left_out() -> None:
    assert told(18, {"blur": 1, "ink": 2}) == "18 patches; 3 left out: 2 ink, 1 blurred"
    assert told(1, {}) == "1 patch; none left out"
    assert told(2, {"of the future": 1}) == "2 patches; 1 left out: 1 of the future"


def test_more_than_a_fifth_of_the_tissue_is_much_and_glass_is_no_tissue() -> None:
    assert not is_much(8, {"ink": 2}) and is_much(8, {"ink": 3})
    assert not is_much(8, {"white": 30, "ink": 2})
    assert not is_much(0, {})


def test_a_summary_says_how_much_was_left_out_and_names_ten_slides_of_which_much_was(inked: Path) -> None:
    said = str(build(inked / "slides", inked / "a.fish"))
    choices = {slide: record.choice for slide, record in records(inked / "a.fish").items()}
    spoilt = choices["inked.tif"]
    assert spoilt.left_out["ink"] == 2 and choices["clean.tif"].left_out == {}
    total = sum(choice.candidates for choice in choices.values())
    assert f"on tissue    {total} patches; 2 left out: 2 ink" in said, (
        "what an earlier build left out counts, too"
    )
    assert f"inked.tif: {told(spoilt.candidates, spoilt.left_out)}" in said and "clean.tif" not in said
    assert "of the tissue of one slide was left out: look at it (napari-fish mosaic SLIDE" in said
    many = {f"{n}.tif": Choice(1, {"blur": n + 1}, "normal") for n in range(MOST_NAMED + 3)}
    summary = Summary(Path("a.fish"), (), (), 13, 13, 1.0, choices=many)
    text = str(summary)
    assert text.count(".tif: ") == MOST_NAMED and "and 3 more" in text and "each of 13 slides" in text
    assert summary.much_left_out[0] == "12.tif"


def test_an_inspection_has_the_total_and_the_warning(inked: Path) -> None:
    seen = inspect_database(inked / "a.fish")
    assert seen.judged == (sum(record.choice.candidates for record in seen.slides), {"ink": 2})
    assert len(seen.warnings) == 1 and "of one slide" in seen.warnings[0]
    encode_again(inked / "a.fish", ["inked.tif"], BuildParams(artefacts="off"))
    assert inspect_database(inked / "a.fish").warnings == []


def test_a_database_made_before_says_nothing_and_warns_of_nothing() -> None:
    old = Summary(Path("a.fish"), (), (), 1, 5, 1.0, choices={"a.tif": Choice()})
    assert "left out" not in str(old) and "on tissue" not in str(old) and not old.warnings


@pytest.mark.parametrize(
    ("own", "left_out", "asked", "differs"),
    [
        ("normal", {"ink": 1}, None, False),
        ("normal", {"ink": 1}, "normal", False),
        ("normal", {"ink": 1}, "off", True),
        ("normal", {}, "off", False),
        ("strict", {"white": 3}, "normal", False),
        ("normal", {}, "strict", True),
        ("off", {}, "normal", True),
        ("", {}, "normal", True),
    ],
)
def test_a_slide_is_encoded_again_only_where_its_patches_could_differ(
    own: str, left_out: dict[str, int], asked: str | None, differs: bool
) -> None:
    assert could_differ(Choice(3, left_out, own), asked) == differs


def test_another_setting_encodes_the_slides_again_that_it_makes_a_difference_to(inked: Path) -> None:
    slides, database = inked / "slides", inked / "a.fish"
    before = records(database)["inked.tif"].choice
    assert [one.slide for one in survey(slides, database, "off").to_do] == ["inked.tif"]
    assert fates(build(slides, database)) == {"clean.tif": "unchanged", "inked.tif": "unchanged"}
    summary = build(slides, database, params=BuildParams(artefacts="off"))
    assert fates(summary) == {"clean.tif": "unchanged", "inked.tif": "replaced"}
    known = {slide: record.choice for slide, record in records(database).items()}
    assert {choice.artefacts for choice in known.values()} == {"off"} and artefacts(database) == "off"
    assert known["inked.tif"].left_out == {}
    assert known["inked.tif"].candidates == before.candidates + 2
    assert build(slides, database, params=BuildParams(artefacts="off")).counts == {"unchanged": 2}
    write_slide(slides / "new.tif", "normal", 9)
    build(slides, database)
    assert records(database)["new.tif"].choice.artefacts == "off", "slides to come follow the database"
    with open_database(database) as opened:
        assert opened._mosaic().artefacts == "off", "and so do queries"


def test_a_new_database_records_the_setting_it_is_made_with(inked: Path) -> None:
    build(inked / "slides", inked / "b.fish", params=BuildParams(artefacts="off"))
    assert artefacts(inked / "b.fish") == "off"
    assert records(inked / "b.fish")["inked.tif"].choice.left_out == {}
    asked = BuildParams(artefacts="off", preset="default")
    assert build(inked / "slides", inked / "b.fish", params=asked).counts == {"unchanged": 2}


def test_some_slides_are_kept_and_left_out_again_and_the_others_stay_as_they_are(inked: Path) -> None:
    database, before = inked / "a.fish", digest(inked / "a.fish")
    summary = encode_again(database, ["inked.tif"], BuildParams(artefacts="off"))
    assert fates(summary) == {"inked.tif": "replaced"}
    known = records(database)
    assert known["inked.tif"].choice.artefacts == "off" and known["clean.tif"].choice.artefacts == "normal"
    assert artefacts(database) == "normal" and digest(database) != before
    write_slide(inked / "slides" / "inked.tif", "normal", 5)
    build(inked / "slides", database)
    assert records(database)["inked.tif"].choice.artefacts == "off", "a changed slide keeps its own way"
    write_slide(inked / "slides" / "inked.tif", "normal", 1)
    build(inked / "slides", database)
    encode_again(database, ["inked.tif"], BuildParams(artefacts="normal"))
    assert digest(database) == before


def test_slides_encoded_again_keep_the_scale_that_was_stated_for_them(inked: Path) -> None:
    database = inked / "b.fish"
    build(inked / "slides", database, params=BuildParams(mpp=1.5))
    encode_again(database, ["inked.tif"], BuildParams(artefacts="off"))
    assert records(database)["inked.tif"].mpp == 1.5


def test_what_cannot_be_encoded_again_is_named_with_the_remedy(inked: Path) -> None:
    database = inked / "a.fish"
    (inked / "slides" / "clean.tif").unlink()
    summary = encode_again(database, ["clean.tif", "inked.tif"], BuildParams(artefacts="off"))
    assert fates(summary) == {"inked.tif": "replaced"}
    assert any("relocate" in note.text and "clean.tif" in note.text for note in summary.notes)
    with pytest.raises(DatabaseError, match="relocate"):
        encode_again(database, ["clean.tif"], BuildParams(artefacts="off"))
    with SnapshotStore(database, writer=True) as store:
        record = records(database)["inked.tif"]
        store.catalogue.relabel([replace(record, choice=replace(record.choice, mask="m.png#1"))])
    with pytest.raises(DatabaseError, match="masks"):
        encode_again(database, ["inked.tif"], BuildParams(artefacts="normal"))


@pytest.fixture
def masked(inked: Path) -> Path:
    """A database ``m.fish`` of the slide with ink, its tissue marked by a mask in a folder of its own."""
    mask = inked / "masks" / "inked.png"
    mask.parent.mkdir()
    marked = np.zeros((60, 70), np.uint8)
    marked[5:, 5:] = 255
    Image.fromarray(marked).save(mask)
    summary = build(inked / "slides" / "inked.tif", inked / "m.fish", params=BuildParams(mask=str(mask)))
    assert summary.judged[1], "or there is nothing to keep"
    return inked


def test_what_was_left_out_of_a_slide_with_a_mask_is_kept_with_that_mask(masked: Path) -> None:
    database = masked / "m.fish"
    before = records(database)["inked.tif"]
    summary = encode_again(database, ["inked.tif"], BuildParams(artefacts="off"))
    assert fates(summary) == {"inked.tif": "replaced"}
    choice = records(database)["inked.tif"].choice
    assert (choice.mask, choice.artefacts, choice.left_out) == (before.choice.mask, "off", {})
    assert choice.candidates == before.choice.candidates + sum(before.choice.left_out.values())
    again = build(masked / "slides" / "inked.tif", database, params=BuildParams(artefacts="normal"))
    assert fates(again) == {"inked.tif": "replaced"}
    assert records(database)["inked.tif"].choice == before.choice


def test_masks_are_found_again_by_a_whole_copy_and_not_named_by_one_without_names(masked: Path) -> None:
    (masked / "far").mkdir()
    export(masked / "m.fish", masked / "far" / "copy.fish")
    summary = encode_again(masked / "far" / "copy.fish", ["inked.tif"], BuildParams(artefacts="off"))
    assert fates(summary) == {"inked.tif": "replaced"}
    export(masked / "m.fish", masked / "given.fish", deidentify=True)
    with SnapshotStore(masked / "given.fish") as store:
        assert store.catalogue.facts.mask_folders == ()


def test_a_mask_that_was_changed_or_lost_must_be_given_again(masked: Path) -> None:
    slides, database, mask = masked / "slides", masked / "m.fish", masked / "masks" / "inked.png"
    before = records(database)["inked.tif"]
    content = mask.read_bytes()
    Image.new("1", (70, 60), 1).save(mask)
    with pytest.raises(DatabaseError, match="beside the slides"):
        encode_again(database, ["inked.tif"], BuildParams(artefacts="off"))
    summary = build(slides / "inked.tif", database, params=BuildParams(artefacts="off"))
    (bad,) = summary.quarantined
    assert "inked.png" in bad.reason and "--mask" in bad.reason
    assert records(database)["inked.tif"] == before, "what was encoded before stays"
    mask.unlink()
    (slides / "inked.png").write_bytes(content)
    summary = encode_again(database, ["inked.tif"], BuildParams(artefacts="off"))
    assert fates(summary) == {"inked.tif": "replaced"} and not summary.quarantined


def test_settings_that_make_no_sense_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    write_slide(tmp_path / "slides" / "a.tif")
    with pytest.raises(DatabaseError, match="strict, normal, off"):
        build(tmp_path / "slides", tmp_path / "a.fish", params=BuildParams(artefacts="much"))
    write_patches(tmp_path / "patches", 1)
    asked = BuildParams(patches=True, artefacts="off")
    with pytest.raises(DatabaseError, match="one patch each"):
        build(tmp_path / "patches", tmp_path / "a.fish", params=asked)
    assert not (tmp_path / "a.fish").exists()
