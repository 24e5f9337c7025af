"""Labels that come later, slides that must go or have moved, copies to give away."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.cli.options import ENDINGS, interruptible
from napari_fish.database.care import import_labels, relocate, remove_slides
from napari_fish.errors import Cancelled, DatabaseError
from napari_fish.store.copy import export
from napari_fish.store.latent_codes import has_codes, read_codes
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.lock import write_lock
from napari_fish.store.sqlite.pictures import Thumbnails
from tests.building.test_build import NAMES, digest, records
from tests.tiny import PATCHES, write_patches, write_slide

pytestmark = pytest.mark.usefixtures("quick")


def test_labels_may_come_later_and_what_they_do_not_say_stays(home: Path) -> None:
    database, later = home / "a b.fish", home / "später.tsv"
    later.write_bytes("Präparat\tBefund\tGrad\nP00-0 ü\tKarzinom\tG2\nP99.svs\tx\ty\n".encode("cp1252"))
    table, matched = import_labels(database, later, columns={"slide": "Präparat", "diagnosis": "Befund"})
    assert matched.unknown == ("P99.svs",) and len(matched.unlabelled) == 8
    assert table.others == ("Grad",)
    known = records(database)
    assert (known[NAMES[0]].diagnosis, known[NAMES[0]].patient) == ("Karzinom", "P00")
    assert known[NAMES[0]].labels == {"Scanner": "P1000", "Grad": "G2"}
    assert known[NAMES[1]].diagnosis == "carcinoma"


def test_a_column_written_in_other_letters_is_the_same_column(home: Path) -> None:
    database, later = home / "a b.fish", home / "later.csv"
    later.write_text(f"slide,SCANNER\n{NAMES[0]},DP200\n", encoding="utf-8")
    import_labels(database, later)
    with SnapshotStore(database) as store:
        record = records(database)[NAMES[0]]
        codes, values = store.slides.numbered("scanner")
        number = store.slides.number(NAMES[0])
        assert record.labels == {"Scanner": "DP200"} and record.column("scanner") == "DP200"
        assert number is not None and values[codes[number]] == "DP200"
        assert store.catalogue.label_columns() == ["Scanner"]


def test_new_patients_mean_new_random_pairs(home: Path) -> None:
    database = home / "a b.fish"
    with SnapshotStore(database) as store:
        before = store.calibration
    import_labels(database, home / "Schnitte ü" / "labels.csv", patient="Diagnosis")
    with SnapshotStore(database) as store:
        after = store.calibration
        assert {record.patient for record in store.slides} == {"carcinoma", "lymphoma", "normal"}
    assert before is not None and after is not None and after.threshold > before.threshold


def test_a_removed_slide_is_gone_from_truth_pictures_and_codes(home: Path) -> None:
    slides, database = home / "Schnitte ü", home / "x.fish"
    build(slides, database, slides / "labels.csv", BuildParams(store_codes=True))
    assert remove_slides(database, ["P21-0 ü", "normal/P21-0 ü.tif"]) == ["normal/P21-0 ü.tif"]
    assert "normal/P21-0 ü.tif" not in records(database) and len(records(database)) == 8
    kept = Thumbnails.open_to_read(database)
    assert kept is not None and kept.overview("normal/P21-0 ü.tif") is None
    assert kept.patches("normal/P21-0 ü.tif") == [] and kept.overview(NAMES[0])
    kept.close()
    assert not has_codes(database, "normal/P21-0 ü.tif") and has_codes(database, NAMES[0])
    for file in database.rglob("*"):
        assert file.is_dir() or "P21" not in file.read_bytes().decode("latin-1"), f"{file} still names it"
    assert build(slides, database).counts == {"unchanged": 8, "added": 1}


def test_a_removed_slide_is_not_in_quarantine_any_more(home: Path) -> None:
    slides, database = home / "Schnitte ü", home / "a b.fish"
    (slides / NAMES[0]).write_bytes(b"rubbish")
    assert [bad.slide for bad in build(slides, database).quarantined] == [NAMES[0]]
    remove_slides(database, [NAMES[0]])
    with SnapshotStore(database) as store:
        assert store.catalogue.quarantined == [] and store.slides.number(NAMES[0]) is None


def test_what_is_not_there_or_may_be_two_slides_is_not_removed(home: Path) -> None:
    write_slide(home / "Schnitte ü" / "normal" / "P00-0 ü.tif", "normal", 60)
    build(home / "Schnitte ü", home / "a b.fish")
    with pytest.raises(DatabaseError, match="no slide 'nobody'"):
        remove_slides(home / "a b.fish", [NAMES[1], "nobody"])
    with pytest.raises(
        DatabaseError, match=r"'P00-0 ü.tif' may be carcinoma/P00-0 ü.tif, normal/P00-0 ü.tif"
    ):
        remove_slides(home / "a b.fish", ["P00-0 ü.tif"])
    assert len(records(home / "a b.fish")) == 10


def test_moved_and_renamed_slides_are_found_again_by_content(home: Path) -> None:
    database, new = home / "a b.fish", home / "neue Platte"
    before = records(database)
    (home / "Schnitte ü").rename(new)
    (new / NAMES[4]).rename(new / "renamed.tif")
    (new / NAMES[8]).unlink()
    (new / "broken.svs").write_bytes(b"rubbish")
    seen: list[tuple[int, int]] = []
    done = relocate(database, new, progress=lambda *step: seen.append(step))
    assert sorted(done.found) == sorted(set(NAMES) - {NAMES[8]})
    assert (done.in_place, done.missing) == (0, (NAMES[8],)) and seen
    after = records(database)
    assert after[NAMES[4]].path == "neue Platte/renamed.tif" and after[NAMES[4]].name == "renamed.tif"
    assert after[NAMES[0]].labels == before[NAMES[0]].labels
    assert relocate(database, new).in_place == 8
    assert build(new, database).counts == {"unchanged": 8, "quarantined": 1}


@pytest.fixture
def secretive(home: Path) -> Path:
    """A database whose every name is one to be kept secret."""
    slides = home / "Geheim"
    slides.mkdir()
    for i in range(4):
        write_slide(slides / f"Mustermann-{i}.tif", "normal", i)
    (slides / "Mustermann-kaputt.svs").write_bytes(b"rubbish")
    labels = home / "Geheimliste.csv"
    rows = [f"Mustermann-{i},Frau Vertraulich {i // 2},colon,adenoma,HE,Dr. Diskret" for i in range(4)]
    labels.write_text("\n".join(["slide,patient,site,diagnosis,stain,Pathologin", *rows]) + "\n")
    params = BuildParams(patient=None, store_codes=True)
    build(slides, home / "geheim.fish", labels, params)
    with SnapshotStore(home / "geheim.fish", writer=True) as store:
        store.catalogue.remember(patient="^Mustermann")
        store.catalogue.remember(bundle="../Geheim/encoder")
    return home / "geheim.fish"


def test_a_deidentified_copy_names_nobody_anywhere(secretive: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "copy.fish"
    export(secretive, target, deidentify=True)
    words = [
        "Mustermann",
        "Vertraulich",
        "Geheim",
        "Diskret",
        "Pathologin",
        "kaputt",
        "fish1-",
        ".tif",
        ".svs",
    ]
    words.append(tmp_path.name)
    for file in [f for f in target.rglob("*") if f.is_file()]:
        content = file.read_bytes()
        for word in words:
            for coded in (word.encode(), word.encode("utf-16-le")):
                assert not re.search(re.escape(coded), content, re.IGNORECASE), f"{word} in {file.name}"
            assert word.lower() not in str(file.relative_to(tmp_path / "out")).lower()
    known = records(target)
    assert sorted(known) == [f"slide-{i:06d}" for i in range(1, 5)]
    assert {(r.site, r.diagnosis, r.labels["stain"], len(r.labels)) for r in known.values()} == {
        ("colon", "adenoma", "HE", 1)
    }
    assert {r.patient for r in known.values()} == {"patient-000001", "patient-000002"}
    assert {(r.path, r.content_hash, r.mtime, r.size) for r in known.values()} == {("", "", 0, 0)}


def test_pseudonyms_are_stable_within_the_copy(secretive: Path, tmp_path: Path) -> None:
    export(secretive, tmp_path / "copy.fish", deidentify=True, keep=["Pathologin"])
    with SnapshotStore(secretive) as old, SnapshotStore(tmp_path / "copy.fish") as new:

        def by_patches(store: SnapshotStore) -> dict[bytes, str]:
            of = {n: record for n, record in store.catalogue.slides()}
            return {
                store.catalogue.patches_of(n).barcodes.tobytes()
                + store.catalogue.patches_of(n).keys.tobytes(): n
                for n in of
            }

        names = {
            old.catalogue.record(n).slide: new.catalogue.record(by_patches(new)[content])
            for content, n in by_patches(old).items()
        }
        assert len(names) == 4
        patients = [names[f"Mustermann-{i}.tif"].patient for i in range(4)]
        assert patients[0] == patients[1] != patients[2] == patients[3]
        assert {record.labels["Pathologin"] for record in names.values()} == {"Dr. Diskret"}
        kept = Thumbnails.open_to_read(tmp_path / "copy.fish")
        assert kept is not None
        for record in names.values():
            assert kept.overview(record.slide) is None, "a pen may have written a name on the glass"
            assert len(kept.patches(record.slide)) == len(read_codes(tmp_path / "copy.fish", record.slide))
        assert new.calibration is not None and new.verify() == []


def test_the_classes_of_patch_images_are_names_of_folders_and_get_pseudonyms(tmp_path: Path) -> None:
    write_patches(tmp_path / "p")
    (tmp_path / "p" / "normal").rename(tmp_path / "p" / "Frau Mustermann")
    build(tmp_path / "p", tmp_path / "x.fish", params=BuildParams(patches=True))
    with SnapshotStore(tmp_path / "x.fish", writer=True) as store:
        store.catalogue.remember(**{"of a later version": "Mustermann"})
    export(tmp_path / "x.fish", tmp_path / "copy.fish", deidentify=True)
    export(tmp_path / "x.fish", tmp_path / "kept.fish", deidentify=True, keep=["Diagnosis"])
    assert Counter(r.diagnosis for r in records(tmp_path / "copy.fish").values()) == {
        f"class-{i:06d}": 4 for i in (1, 2, 3)
    }
    assert b"Mustermann" not in (tmp_path / "copy.fish" / "fish.sqlite").read_bytes()
    assert "Frau Mustermann" in {r.diagnosis for r in records(tmp_path / "kept.fish").values()}
    with SnapshotStore(tmp_path / "copy.fish") as store:
        kept = {"preset", "mosaic", "patches", "version", "paper_barcodes", "identity"}
        assert set(store.catalogue.parameters) == kept


def test_a_copy_deletes_nothing_that_lies_beside_it(home: Path, tmp_path: Path) -> None:
    mine = tmp_path / "copy.fish.part" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("years of work")
    export(home / "a b.fish", tmp_path / "copy.fish")
    assert mine.read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.fish", "copy.fish.part"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from napari_fish.store.copy import export
export(Path(sys.argv[1]), Path(sys.argv[2]), progress=lambda done, _: done < 3 or os.kill(os.getpid(), signal.SIGKILL))
"""


def test_what_a_killed_export_left_is_removed_by_the_next_and_nothing_else(
    home: Path, tmp_path: Path
) -> None:
    place = tmp_path / "given"
    place.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(home / "a b.fish"), str(place / "copy.fish")],
        timeout=100,
        check=False,
    )
    (left,) = place.iterdir()
    assert killed.returncode < 0 and (left / "fish.sqlite").is_file()
    mine = place / "copy.fish.0123abcd.part" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("years of work")
    growing = place / "other.fish.89abcdef.part"
    growing.mkdir()
    with write_lock(growing):
        assert export(home / "a b.fish", place / "another.fish") == [left]
    assert sorted(path.name for path in place.iterdir()) == ["another.fish", mine.parent.name, growing.name]


def test_a_copy_may_have_a_name_as_long_as_the_system_allows(home: Path, tmp_path: Path) -> None:
    target = tmp_path / f"{'ü' * 122}.fish"
    export(home / "a b.fish", target)
    assert digest(target) == digest(home / "a b.fish")


def test_an_export_that_is_told_to_end_cleans_up_behind_it(home: Path, tmp_path: Path) -> None:
    for number in ENDINGS:
        with pytest.raises(KeyboardInterrupt), interruptible(ENDINGS) as should_stop:
            export(
                home / "a b.fish",
                tmp_path / "copy.fish",
                progress=lambda done, _, number=number: os.kill(os.getpid(), number) if done == 3 else None,
                should_stop=should_stop,
            )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_a_whole_copy_is_the_same_and_finds_the_slides(home: Path, tmp_path: Path) -> None:
    (home / "Schnitte ü" / "broken.svs").write_bytes(b"rubbish")
    build(home / "Schnitte ü", home / "a b.fish")
    target = tmp_path / "far" / "away" / "copy.fish"
    export(home / "a b.fish", target)
    assert digest(target) == digest(home / "a b.fish")
    summary = build(home / "Schnitte ü", target)
    assert summary.counts == {"unchanged": 9, "quarantined": 1}
    kept = Thumbnails.open_to_read(target)
    assert kept is not None and kept.overview(NAMES[0])


def test_a_copy_is_there_wholly_or_not_at_all(home: Path, tmp_path: Path) -> None:
    done: list[int] = []
    with pytest.raises(Cancelled):
        export(
            home / "a b.fish",
            tmp_path / "copy.fish",
            progress=lambda n, total: done.append(n),
            should_stop=lambda: len(done) > 3,
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
    with pytest.raises(DatabaseError, match="is the database itself"):
        export(home / "a b.fish", home / "a b.fish")
    with pytest.raises(DatabaseError, match="is there already"):
        export(home / "a b.fish", home / "Schnitte ü")
    export(home / "a b.fish", tmp_path / "copy.fish")
    shutil.rmtree(home)
    with SnapshotStore(tmp_path / "copy.fish") as store:
        assert len(store) == PATCHES
