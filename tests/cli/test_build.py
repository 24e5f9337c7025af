"""Building and caring for databases on the command line: exit codes, JSON, messages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from napari_fish.store.snapshot.store import SnapshotStore
from tests.building.test_build import NAMES, digest, records
from tests.building.test_masks import geojson
from tests.cli.test_cli import run
from tests.slides.conftest import write_image
from tests.tiny import PATCHES, ink_on, tissue, write_empty_slide, write_slide

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def slides(tmp_path: Path) -> Path:
    folder = tmp_path / "mit Leerzeichen ü"
    for i in range(2):
        write_slide(folder / f"P{i}-a.tif", "normal", i)
    return folder


def test_build_writes_one_json_document_and_extends_what_is_there(slides: Path, capsys) -> None:
    target = slides.parent / "Archiv ü.fish"
    code, out, _ = run(capsys, "build", slides, "-o", target, "--patient", r"^(P\d)", "--json")
    said = json.loads(out)
    assert (code, said["slides"], said["counts"]) == (0, 2, {"added": 2})
    assert said["database"] == str(target) and said["mosaics"] >= 2 and said["seconds"] > 0
    assert [one["slide"] for one in said["done"]] == ["P0-a.tif", "P1-a.tif"]
    assert sum(one["mosaics"] for one in said["done"]) == said["mosaics"], "the name that scripts know"
    assert records(target)["P1-a.tif"].patient == "P1"
    code, out, err = run(capsys, "build", slides, "-o", target)
    assert (code, "2 unchanged" in out) == (0, True)
    assert "Building" in err


def test_a_build_that_could_not_take_every_slide_ends_with_3_and_lists_them(slides: Path, capsys) -> None:
    write_empty_slide(slides / "glass.tif")
    code, out, _ = run(capsys, "build", slides, "-o", slides.parent / "x.fish")
    assert code == 3
    assert "2 slides" in out and "quarantined  glass.tif: " in out and "no tissue" in out
    code, out, _ = run(capsys, "build", slides, "-o", slides.parent / "x.fish", "--json")
    said = json.loads(out)
    assert (code, [bad["slide"] for bad in said["quarantined"]]) == (3, ["glass.tif"])
    (slides / "glass.tif").unlink()
    assert run(capsys, "build", slides, "-o", slides.parent / "x.fish")[0] == 0


def test_build_says_what_was_left_out_of_each_slide_and_over_all(
    slides: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    ink_on(monkeypatch, "P1")
    database = slides.parent / "x.fish"
    code, out, err = run(capsys, "build", slides, "-o", database)
    known = records(database)
    kept = {name: known[f"{name}-a.tif"].choice.candidates for name in ("P0", "P1")}
    assert code == 0
    assert f"P0-a.tif: {kept['P0']} patches; none left out" in err
    assert f"P1-a.tif: {kept['P1']} patches; 2 left out: 2 ink" in err
    assert f"on tissue    {sum(kept.values())} patches; 2 left out: 2 ink" in out
    assert "warning" in out and "--artefacts off" in out
    code, out, _ = run(capsys, "build", slides, "-o", database, "--artefacts", "strict", "--json")
    said = json.loads(out)
    assert (code, said["left_out"], said["much_left_out"]) == (0, {"ink": 2}, ["P1-a.tif"])
    assert {one["slide"]: one["left_out"] for one in said["done"]} == {"P0-a.tif": {}, "P1-a.tif": {"ink": 2}}
    assert said["candidates"] == sum(kept.values()) and len(said["warnings"]) == 1
    code, out, _ = run(capsys, "build", slides, "-o", database, "--artefacts", "off")
    assert code == 0 and "1 unchanged, 1 replaced" in out and "none left out" in out and "warning" not in out


def test_labels_at_the_build_are_shown_as_they_were_understood(slides: Path, capsys) -> None:
    labels = slides.parent / "Liste.csv"
    labels.write_bytes("Präparat;slide_id;label\n1;P0-a;Ödem\n2;P9-a;Ödem\n".encode("cp1252"))
    code, out, _ = run(capsys, "build", slides, "-o", slides.parent / "x.fish", "--labels", labels)
    assert code == 0
    assert "slide = “slide_id”" in out and "diagnosis = “label”" in out and "not here: P9-a" in out
    assert records(slides.parent / "x.fish")["P0-a.tif"].diagnosis == "Ödem"


@pytest.mark.parametrize(
    "arguments",
    [["--preset", "mine"], ["--artefacts", "some"], ["--mpp", "much"], ["--no-such-option"]],
    ids=lambda a: a[0],
)
def test_wrong_usage_of_build_is_exit_code_2(slides: Path, arguments: list[str], capsys) -> None:
    code, out, err = run(capsys, "build", slides, "-o", slides.parent / "x.fish", *arguments)
    assert (code, out) == (2, "") and "Usage" in err
    assert not (slides.parent / "x.fish").exists()


def test_errors_of_build_are_one_message_and_exit_code_1(home: Path, capsys) -> None:
    slides, database = home / "Schnitte ü", home / "a b.fish"
    for arguments, said in (
        ((slides, "-o", database, "--encoder", "other"), "built with encoder 'quick'"),
        ((slides, "-o", database, "--encoder", "nobody's"), "there is no encoder"),
        ((slides, "-o", database, "--patches"), "two kinds do not mix"),
        ((slides, "-o", database, "--labels", home / "none.csv"), "none.csv"),
        ((slides, "-o", database, "--patient", "("), "neither a column"),
        ((home / "nowhere", "-o", database), "no such file or folder"),
    ):
        code, out, err = run(capsys, "build", *arguments)
        assert (code, out) == (1, ""), arguments
        assert said in err and "Traceback" not in err and "napari-fish: " in err
    code, _, err = run(capsys, "add", home / "none.fish", slides)
    assert code == 1 and "napari-fish build" in err


def test_patch_images_become_a_database_on_the_command_line(tmp_path: Path, capsys) -> None:
    for kind in ("normal", "lymphoma"):
        (tmp_path / "p" / kind).mkdir(parents=True)
        write_image(tmp_path / "p" / kind / "1.png", tissue(kind, 1, 64))
    code, out, _ = run(capsys, "build", tmp_path / "p", "-o", tmp_path / "x.fish", "--patches", "--json")
    assert (code, json.loads(out)["mosaics"]) == (0, 2)
    assert records(tmp_path / "x.fish")["lymphoma/1.png"].diagnosis == "lymphoma"


def test_slides_are_added_labelled_and_removed(home: Path, capsys) -> None:
    database = home / "a b.fish"
    new = write_slide(home / "neu.tif", "normal", 40)
    code, out, _ = run(capsys, "add", database, new, "--json")
    assert (code, json.loads(out)["counts"]) == (0, {"added": 1})
    (home / "l.csv").write_text("slide,grade\nneu,3\nwho,4\n")
    code, out, _ = run(capsys, "labels", database, home / "l.csv", "--json")
    said = json.loads(out)
    assert (code, said["labelled"], said["others"], said["unknown"]) == (0, 1, ["grade"], ["who"])
    assert said["understood"] == {"slide": "slide"}
    assert run(capsys, "labels", database, home / "l.csv")[1].startswith("1 slides labelled: slide = “slide”")
    assert run(capsys, "labels", database, home / "l.csv", "--column", "slide")[0] == 2
    code, out, _ = run(capsys, "remove", database, "neu", "--json")
    assert (code, json.loads(out)) == (0, {"removed": ["neu.tif"]})
    code, _, err = run(capsys, "remove", database, "neu")
    assert code == 1 and "no slide 'neu'" in err


def test_columns_of_the_labels_can_be_named_when_slides_are_built_or_added(home: Path, capsys) -> None:
    new = write_slide(home / "neu.tif", "normal", 41)
    (home / "odd.csv").write_text("what,finding,by\nneu.tif,a gland,me\n")
    named = ("--labels", home / "odd.csv", "--column", "slide=what", "--column", "Diagnosis=finding")
    assert run(capsys, "add", home / "a b.fish", new, *named)[0] == 0
    assert records(home / "a b.fish")["neu.tif"].diagnosis == "a gland"
    assert run(capsys, "build", new, "-o", home / "odd.fish", *named)[0] == 0
    assert records(home / "odd.fish")["neu.tif"].diagnosis == "a gland"
    code, _, err = run(capsys, "add", home / "a b.fish", new, *named[2:])
    assert code == 2 and "--labels" in err


def test_verify_reports_a_digest_mends_snapshots_and_names_damage(home: Path, capsys) -> None:
    database = home / "a b.fish"
    code, out, _ = run(capsys, "verify", database, "--json")
    said = json.loads(out)
    assert (code, said["slides"], said["mosaics"], said["wrong"]) == (0, 9, PATCHES, [])
    assert said["digest"] == digest(database)
    assert "all is well" in run(capsys, "verify", database)[1]
    main = database / "snapshot" / "main"
    content = bytearray((main / "head.npy").read_bytes())
    content[-1] ^= 1
    (main / "head.npy").write_bytes(content)
    code, out, _ = run(capsys, "verify", database)
    assert code == 0 and "head.npy" in out and "made again" in out
    assert "all is well" in run(capsys, "verify", database)[1]
    pages = bytearray((database / "fish.sqlite").read_bytes())
    pages[-4096:] = b"\xa5" * 4096
    (database / "fish.sqlite").write_bytes(pages)
    code, _, err = run(capsys, "verify", database)
    assert code == 1 and "restore it from a copy" in err and "Traceback" not in err


def test_compact_leaves_one_part_without_what_was_removed(home: Path, capsys) -> None:
    database = home / "a b.fish"
    run(capsys, "add", database, write_slide(home / "neu.tif", "normal", 40))
    run(capsys, "remove", database, "P00-0 ü")
    code, out, _ = run(capsys, "compact", database, "--json")
    with SnapshotStore(database) as store:
        assert (code, json.loads(out)) == (0, {"mosaics": int(store.patches_per_slide.sum())})
        assert len(store) == store.patches_per_slide.sum()
    assert [path.name for path in (database / "snapshot").iterdir()] == ["main"]


def test_relocate_says_what_was_found_and_what_is_missing(home: Path, capsys) -> None:
    (home / "Schnitte ü").rename(home / "neu")
    (home / "neu" / NAMES[0]).unlink()
    code, out, _ = run(capsys, "relocate", home / "a b.fish", home / "neu")
    assert code == 0
    assert "8 found again, 0 where they were, 1 missing" in out and f"missing  {NAMES[0]}" in out
    code, out, _ = run(capsys, "relocate", home / "a b.fish", home / "neu", "--json")
    said = json.loads(out)
    assert (said["found"], said["in_place"], said["missing"]) == ([], 8, [NAMES[0]])


def test_export_copies_and_deidentifies(home: Path, capsys) -> None:
    code, out, _ = run(capsys, "export", home / "a b.fish", "-o", home / "copy.fish", "--json")
    assert (code, json.loads(out)) == (0, {"database": str(home / "copy.fish")})
    assert digest(home / "copy.fish") == digest(home / "a b.fish")
    code, _, _ = run(
        capsys, "export", home / "a b.fish", "-o", home / "d.fish", "--deidentify", "--keep", "scanner"
    )
    known = records(home / "d.fish")
    assert code == 0 and len({record.patient for record in known.values()}) == 6
    assert {record.labels["Scanner"] for record in known.values()} == {"P1000", "GT450"}
    code, _, err = run(capsys, "export", home / "a b.fish", "-o", home / "copy.fish")
    assert code == 1 and "is there already" in err


@pytest.mark.parametrize("command", ["verify", "compact", "remove", "labels", "relocate", "export", "search"])
def test_no_database_of_another_program_version_or_none_at_all_is_touched(
    home: Path, command: str, capsys
) -> None:
    import sqlite3

    database = home / "a b.fish"
    more = {"remove": ["x"], "labels": [home / "Schnitte ü" / "labels.csv"], "relocate": [home],
            "export": ["-o", home / "o.fish"], "search": ["id:x"]}.get(command, [])  # fmt: skip
    sqlite3.connect(database / "fish.sqlite").execute("PRAGMA user_version = 99")
    code, out, err = run(capsys, command, database, *more)
    assert (code, out) == (1, "") and "newer napari-fish (format 99); update" in err
    shutil.rmtree(database)
    code, out, err = run(capsys, command, database, *more)
    assert (code, out) == (1, "") and "no database here" in err


def test_masks_are_options_of_build_and_add(slides: Path, capsys) -> None:
    target, masks = slides.parent / "x.fish", slides.parent / "Masken ü"
    geojson(masks / "P0-a.geojson")
    code, out, _ = run(capsys, "build", slides, "-o", target, "--mask", masks, "--mask-class", "Tumor")
    assert code == 0 and "1 slide with a mask, 1 without." in out
    assert records(target)["P0-a.tif"].choice.mask_class == "Tumor"
    code, out, _ = run(
        capsys,
        "add",
        target,
        slides,
        "--mask",
        masks,
        "--mask-class",
        "Fat",
        "--mask-class",
        "Tumor",
        "--json",
    )
    said = json.loads(out)
    assert (code, said["counts"]) == (0, {"replaced": 1, "unchanged": 1})
    assert records(target)["P0-a.tif"].choice.mask_class == "Fat, Tumor"
    encoded = next(one for one in said["done"] if one["fate"] == "replaced")
    assert encoded["candidates"] > 0 and isinstance(encoded["left_out"], dict)
    code, _, err = run(
        capsys, "build", slides, "-o", slides.parent / "y.fish", "--mask", slides.parent / "no"
    )
    assert code == 1 and "neither a folder" in err


def test_the_class_that_no_mask_has_quarantines_its_slide(slides: Path, capsys) -> None:
    geojson(slides.parent / "masks" / "P0-a.geojson")
    code, out, _ = run(
        capsys, "build", slides, "-o", slides.parent / "x.fish", "--mask", slides.parent / "masks", "--mask-class", "Fat"
    )  # fmt: skip
    assert code == 3 and "no annotation of class Fat; there are Tumor" in out


def test_slides_are_added_with_what_would_be_left_out_on_request(
    slides: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    database, more = tmp_path / "x.fish", tmp_path / "more"
    assert run(capsys, "build", slides, "-o", database)[0] == 0
    ink_on(monkeypatch, "inked")
    write_slide(more / "inked.tif", "normal", 7)
    code, out, err = run(capsys, "add", database, more, "--artefacts", "off", "--json")
    assert code == 0, err
    assert json.loads(out)["left_out"] == {}
    assert records(database)["inked.tif"].choice.artefacts == "off"
    code, _, err = run(capsys, "add", database, more, "--artefacts", "some")
    assert code == 2 and "strict, normal, off" in err
