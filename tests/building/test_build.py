"""Folder to database: what is new is added, what is there stays, what is bad is named."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_fish.building import settings
from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.building.settings import is_papers, recorded_mosaic
from napari_fish.building.summary import Summary, Under, Watch
from napari_fish.building.survey import survey
from napari_fish.database.questions import encode_question
from napari_fish.encode.bundle.keys import keys_from_codes
from napari_fish.encode.importing import paper_card
from napari_fish.errors import Cancelled, DatabaseError, EncoderError, SlideError
from napari_fish.mosaic import make_mosaic, preset
from napari_fish.slides import open_slide
from napari_fish.store import SlideRecord
from napari_fish.store.latent_codes import has_codes, read_codes
from napari_fish.store.opening import create_database
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.pictures import Thumbnails
from tests.slides.conftest import write_tiff
from tests.tiny import KINDS, QuickEncoder, picture, write_empty_slide, write_patches, write_slide

pytestmark = pytest.mark.usefixtures("quick")
NAMES = [f"{kind}/P{k}{p}-{n} ü.tif" for k, kind in enumerate(KINDS) for p, n in ((0, 0), (0, 1), (1, 0))]


def records(database: Path) -> dict[str, SlideRecord]:
    with SnapshotStore(database) as store:
        return {record.slide: record for record in store.slides if record.slide}


def digest(database: Path) -> str:
    with SnapshotStore(database) as store:
        return store.digest()


def fates(summary: Summary) -> dict[str, str]:
    return {done.slide: done.fate for done in summary.done}


def test_a_folder_becomes_a_database_with_everything_a_result_depends_on(tiny_home: Path) -> None:
    with SnapshotStore(tiny_home / "a b.fish") as store:
        known = {record.slide: record for record in store.slides}
        assert sorted(known) == NAMES
        one = known["lymphoma/P10-1 ü.tif"]
        assert (one.patient, one.site, one.diagnosis) == ("P10", "lymph node", "lymphoma")
        assert one.labels == {"Scanner": "P1000"}
        assert one.path == "Schnitte ü/lymphoma/P10-1 ü.tif"
        assert (one.mpp, one.width, one.height) == (pytest.approx(2.0), 700, 600)
        assert one.size == (tiny_home / one.path).stat().st_size and one.content_hash.startswith("fish1-")
        assert (store.patches_per_slide > 0).all()
        assert store.catalogue.facts.preset == "default" and store.catalogue.facts.version != "?"
        assert store.calibration is not None and store.calibration.histogram.sum() == 100_000
        assert store.verify() == []
    assert not list((tiny_home / "a b.fish").glob("*-wal")), "a finished database is complete without a log"


def test_a_build_records_how_the_patches_of_each_slide_were_chosen(tmp_path: Path) -> None:
    write_slide(tmp_path / "slides" / "one.tif")
    seen: list[Under] = []
    summary = build(tmp_path / "slides", tmp_path / "a.fish", watch=Watch(started=seen.append))
    choice = records(tmp_path / "a.fish")["one.tif"].choice
    with open_slide(tmp_path / "slides" / "one.tif") as slide:
        mosaic = make_mosaic(slide, preset())
    assert seen[0].dimensions == (700, 600) and len(seen[0].boxes) == summary.done[0].patches
    assert choice.candidates == len(mosaic.candidates) > 0
    assert choice.left_out == {why: n for why, n in mosaic.dropped_counts.items() if n}
    assert (choice.artefacts, choice.mask) == ("normal", "")
    assert (summary.done[0].candidates, summary.done[0].left_out) == (choice.candidates, choice.left_out)
    again = build(tmp_path / "slides", tmp_path / "a.fish")
    assert (again.done[0].candidates, again.done[0].left_out) == (0, {})


def test_a_database_knows_whether_its_barcodes_are_the_papers(tiny_home: Path, tmp_path: Path) -> None:
    with SnapshotStore(tiny_home / "a b.fish") as store:
        assert not store.paper_barcodes
    papers = paper_card(256, np.arange(128, dtype=np.uint8))
    assert is_papers(papers) and not is_papers(replace(papers, barcode_length=512))
    papers = replace(papers, sha256="0")
    create_database(tmp_path / "x.fish", settings._facts(tmp_path / "x.fish", BuildParams(), papers))
    with SnapshotStore(tmp_path / "x.fish") as store:
        assert store.paper_barcodes


def test_thumbnails_of_slides_and_mosaics_are_kept(tiny_home: Path) -> None:
    from io import BytesIO

    from PIL import Image

    kept = Thumbnails.open_to_read(tiny_home / "a b.fish")
    assert kept is not None
    with SnapshotStore(tiny_home / "a b.fish") as store:
        number = store.slides.number(NAMES[0])
        boxes = {record.box for record in store.regions(store.rows_of([number]))}
    pictures = dict(kept.patches(NAMES[0]))
    assert set(pictures) == boxes
    assert {Image.open(BytesIO(jpeg)).size for jpeg in pictures.values()} == {(128, 128)}
    assert Image.open(BytesIO(kept.overview(NAMES[0]) or b"")).size == (512, 439)


def test_an_unchanged_folder_is_not_even_opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("napari_fish.building.encoding.open_slide", lambda *a, **k: pytest.fail("opened"))
    before = digest(home / "a b.fish")
    assert survey(home / "Schnitte ü", home / "a b.fish").to_do == ()
    summary = build(home / "Schnitte ü", home / "a b.fish")
    assert summary.counts == {"unchanged": 9} and summary.slides == 9
    assert digest(home / "a b.fish") == before


def test_new_slides_are_added_and_a_changed_one_is_encoded_again_and_keeps_its_labels(home: Path) -> None:
    slides, database = home / "Schnitte ü", home / "a b.fish"
    write_slide(slides / "new one.tif", "normal", 77)
    write_slide(slides / NAMES[0], "lymphoma", 78)
    seen: list[tuple[int, int]] = []
    started: list[Under] = []
    summary = build(
        slides, database, progress=lambda *done: seen.append(done), watch=Watch(started=started.append)
    )
    assert summary.counts == {"unchanged": 8, "added": 1, "replaced": 1}
    assert seen[-1] == (10, 10)
    assert {one.slide for one in started} == {"new one.tif", NAMES[0]} and started[0].overview.startswith(
        b"\xff\xd8"
    )
    known = records(database)
    assert len(known) == 10
    assert (known[NAMES[0]].diagnosis, known[NAMES[0]].labels) == ("carcinoma", {"Scanner": "P1000"})
    assert build(slides, database).counts == {"unchanged": 10}


def test_a_file_that_was_only_touched_or_copied_is_recognised_by_its_content(home: Path) -> None:
    slides, database = home / "Schnitte ü", home / "a b.fish"
    before = digest(database)
    os.utime(slides / NAMES[3], ns=(1, 1))
    assert build(slides, database).counts == {"unchanged": 9}
    assert records(database)[NAMES[3]].mtime == 1
    assert digest(database) == before


def test_a_moved_slide_is_the_same_slide_at_its_new_place(home: Path) -> None:
    slides, database = home / "Schnitte ü", home / "a b.fish"
    (slides / "other").mkdir()
    (slides / NAMES[5]).rename(slides / "other" / "renamed.tif")
    labels = home / "later.csv"
    labels.write_text("slide,site\nother/renamed.tif,spleen\n")
    summary = build(slides, database, labels)
    assert fates(summary)[NAMES[5]] == "moved" and summary.slides == 9
    moved = records(database)[NAMES[5]]
    assert (moved.path, moved.name) == ("Schnitte ü/other/renamed.tif", "renamed.tif")
    assert (moved.patient, moved.site) == ("P11", "spleen")
    assert build(slides, database).counts == {"unchanged": 9}


def test_the_same_slide_under_two_names_is_added_once(tmp_path: Path) -> None:
    write_slide(tmp_path / "s" / "b.tif", seed=1)
    shutil.copy(tmp_path / "s" / "b.tif", tmp_path / "s" / "a.tif")
    summary = build(tmp_path / "s", tmp_path / "x.fish")
    assert fates(summary) == {"a.tif": "added", "b.tif": "twice"}
    assert "the same slide as a.tif" in str(summary)
    assert fates(build(tmp_path / "s", tmp_path / "x.fish")) == {"a.tif": "unchanged", "b.tif": "twice"}
    (tmp_path / "s" / "a.tif").unlink()
    assert build(tmp_path / "s", tmp_path / "x.fish").counts == {"moved": 1}


def test_a_slide_that_made_room_for_another_is_not_lost(tmp_path: Path) -> None:
    slides, database = tmp_path / "s", tmp_path / "x.fish"
    write_slide(slides / "a.tif", "carcinoma", 1)
    build(slides, database)
    (slides / "old").mkdir()
    (slides / "a.tif").rename(slides / "old" / "a.tif")
    write_slide(slides / "a.tif", "lymphoma", 2)
    summary = build(slides, database)
    assert summary.counts == {"moved": 1, "added": 1} and summary.slides == 2
    assert records(database)["a.tif"].path == "s/old/a.tif"
    assert build(slides, database).counts == {"unchanged": 2}


def test_another_slide_of_the_same_name_from_elsewhere_replaces_nothing(tmp_path: Path) -> None:
    write_slide(tmp_path / "one" / "a.tif", "carcinoma", 1)
    write_slide(tmp_path / "two" / "a.tif", "lymphoma", 2)
    labels = tmp_path / "two.csv"
    labels.write_text("slide,patient\na.tif,P2\n")
    build(tmp_path / "one", tmp_path / "x.fish")
    (tmp_path / "one").rename(tmp_path / "drive is away")
    summary = build(tmp_path / "two", tmp_path / "x.fish", labels)
    assert summary.counts == {"added": 1} and summary.slides == 2
    known = records(tmp_path / "x.fish")
    (other,) = set(known) - {"a.tif"}
    assert other.startswith("a (") and other.endswith(").tif")
    assert (known["a.tif"].patient, known[other].patient) == ("", "P2")
    assert build(tmp_path / "two", tmp_path / "x.fish", labels).counts == {"unchanged": 1}
    assert records(tmp_path / "x.fish")["a.tif"].patient == "", "labels go by place, not only by name"


def test_bad_slides_are_quarantined_with_reason_and_tried_again(tmp_path: Path) -> None:
    slides, database = tmp_path / "s", tmp_path / "x.fish"
    write_slide(slides / "good.tif")
    (slides / "broken.svs").write_bytes(b"rubbish" * 100)
    write_empty_slide(slides / "glass.tif")
    write_tiff(slides / "no scale.tif", picture("normal", 3), 1, resolution=(1, 1), resolutionunit="NONE")
    summary = build(slides, database)
    assert summary.counts == {"quarantined": 3, "added": 1}
    reasons = {bad.slide: bad.reason for bad in summary.quarantined}
    assert "not a slide" in reasons["broken.svs"] and "no tissue" in reasons["glass.tif"]
    assert "--mpp" in reasons["no scale.tif"]
    assert all(str(slides / name) in reason for name, reason in reasons.items())
    assert "quarantined  broken.svs" in str(summary)
    write_slide(slides / "broken.svs", "lymphoma", 4)
    (slides / "glass.tif").unlink()
    summary = build(slides, database, params=BuildParams(mpp=2.0))
    assert summary.quarantined == () and summary.slides == 3


def test_a_slide_that_breaks_and_comes_back_leaves_quarantine(home: Path) -> None:
    slides, database = home / "Schnitte ü", home / "a b.fish"
    broken = slides / NAMES[1]
    shutil.copy2(broken, home / "backup")
    broken.write_bytes(b"half")
    summary = build(slides, database)
    assert fates(summary)[NAMES[1]] == "quarantined" and summary.slides == 9, "what was encoded stays"
    shutil.copy2(home / "backup", broken)
    assert build(slides, database).quarantined == ()


def test_a_slide_that_does_what_no_slide_did_before_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from napari_fish.building import choosing

    for i in range(3):
        write_slide(tmp_path / "s" / f"{i}.tif", seed=i)
    real = choosing.make_mosaic

    def moody(slide, *args, **options):
        if slide.path.name == "1.tif":
            raise ZeroDivisionError("in the depths of a library")
        return real(slide, *args, **options)

    monkeypatch.setattr(choosing, "make_mosaic", moody)
    summary = build(tmp_path / "s", tmp_path / "x.fish")
    assert summary.counts == {"added": 2, "quarantined": 1}
    assert "depths of a library" in summary.quarantined[0].reason


@pytest.mark.skipif(os.name != "posix", reason="such names exist on POSIX only")
def test_a_name_that_is_not_unicode_is_refused_by_name(tmp_path: Path) -> None:
    write_slide(tmp_path / "s" / "a.tif")
    (tmp_path / "s" / os.fsdecode(b"\xff\xfe.tif")).write_bytes((tmp_path / "s" / "a.tif").read_bytes())
    summary = build(tmp_path / "s", tmp_path / "x.fish")
    assert summary.counts == {"added": 1, "quarantined": 1}
    assert "Rename it" in summary.quarantined[0].reason


def test_a_stopped_build_keeps_what_is_finished_and_the_next_one_ends_the_same(
    tiny_home: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(tiny_home / "Schnitte ü", tmp_path / "Schnitte ü"))
    done: list[str] = []
    with pytest.raises(Cancelled):
        build(
            home,
            tmp_path / "x.fish",
            home / "labels.csv",
            watch=Watch(finished=lambda one: done.append(one.slide)),
            should_stop=lambda: len(done) >= 4,
        )
    assert sorted(records(tmp_path / "x.fish")) == sorted(done) and len(done) == 4
    with SnapshotStore(tmp_path / "x.fish") as store:
        assert store.calibration is not None, "half a database can be searched, too"
    summary = build(home, tmp_path / "x.fish", home / "labels.csv")
    assert summary.counts == {"unchanged": 4, "added": 5}
    assert digest(tmp_path / "x.fish") == digest(tiny_home / "a b.fish")


def test_the_patient_may_be_told_by_a_column_or_by_the_file_name(tmp_path: Path) -> None:
    slides, database = tmp_path / "s", tmp_path / "x.fish"
    write_slide(slides / "TCGA-AA-0001-01.tif", seed=1)
    labels = tmp_path / "l.csv"
    labels.write_text("slide;Fallnummer\nTCGA-AA-0001-01;F 7\n")
    build(slides, database, labels, BuildParams(patient="fallnummer"))
    assert records(database)["TCGA-AA-0001-01.tif"].patient == "F 7"
    build(slides, database, params=BuildParams(patient=r"^(TCGA-\w\w-\w{4})"))
    assert records(database)["TCGA-AA-0001-01.tif"].patient == "TCGA-AA-0001"
    write_slide(slides / "TCGA-BB-0002-01.tif", seed=2)
    build(slides, database)
    assert records(database)["TCGA-BB-0002-01.tif"].patient == "TCGA-BB-0002", "the expression is remembered"
    with pytest.raises(DatabaseError, match="neither a column"):
        build(slides, database, params=BuildParams(patient="(unclosed"))


def test_labels_for_unknown_slides_and_slides_without_labels_are_named(tmp_path: Path) -> None:
    write_slide(tmp_path / "s" / "a.tif")
    labels = tmp_path / "l.csv"
    labels.write_bytes("slide,diagnosis\nelsewhere.tif,Sézary\n".encode("utf-16"))
    notes = "\n".join(map(str, build(tmp_path / "s", tmp_path / "x.fish", labels).notes))
    assert "not here: elsewhere.tif" in notes and "without labels: a.tif" in notes


def test_folders_of_patch_images_are_classes_and_each_image_is_one_patch(tmp_path: Path) -> None:
    patches = write_patches(tmp_path / "Klassen", each=3)
    params = BuildParams(patches=True, patient=r"^\d+", store_codes=True)
    summary = build(patches, tmp_path / "x.fish", params=params)
    assert (summary.slides, summary.patches) == (9, 9)
    known = records(tmp_path / "x.fish")
    assert known["lymphoma/01-ly 1.png"].diagnosis == "lymphoma"
    assert known["lymphoma/01-ly 1.png"].patient == "01"
    assert build(patches, tmp_path / "x.fish", params=BuildParams(mpp=0.3)).counts == {"unchanged": 9}
    with pytest.raises(DatabaseError, match="two kinds do not mix"):
        build(tmp_path / "Klassen", tmp_path / "x.fish", params=BuildParams(patches=False))


def test_latent_codes_are_kept_and_give_the_keys_again(tmp_path: Path) -> None:
    write_slide(tmp_path / "s" / "a ü.tif")
    build(tmp_path / "s", tmp_path / "x.fish", params=BuildParams(store_codes=True))
    write_slide(tmp_path / "s" / "b.tif", seed=3)
    build(tmp_path / "s", tmp_path / "x.fish")
    with SnapshotStore(tmp_path / "x.fish") as store:
        patches = store.catalogue.patches_of(store.catalogue.number("a ü.tif"))
    assert (keys_from_codes(read_codes(tmp_path / "x.fish", "a ü.tif")) == patches.keys).all()
    with pytest.raises(DatabaseError, match="--store-codes"):
        read_codes(tmp_path / "x.fish", "b.tif")


def test_a_slide_that_is_encoded_again_without_its_codes_leaves_none_of_its_former_patches(
    tmp_path: Path,
) -> None:
    for seed, name in enumerate(("a.tif", "b.tif")):
        write_slide(tmp_path / "s" / name, seed=seed)
    build(tmp_path / "s", tmp_path / "x.fish", params=BuildParams(store_codes=True))
    write_slide(tmp_path / "s" / "a.tif", seed=7)
    assert build(tmp_path / "s", tmp_path / "x.fish").counts == {"replaced": 1, "unchanged": 1}
    assert not has_codes(tmp_path / "x.fish", "a.tif") and has_codes(tmp_path / "x.fish", "b.tif")


def test_what_does_not_fit_a_database_is_refused(home: Path) -> None:
    slides, database = home / "Schnitte ü", home / "a b.fish"
    with pytest.raises(EncoderError, match=r"built with encoder 'quick'.*not with 'other'"):
        build(slides, database, params=BuildParams(encoder="other"))
    with pytest.raises(DatabaseError, match="another preset than 'paper'"):
        build(slides, database, params=BuildParams(preset="paper"))
    with pytest.raises(DatabaseError, match="no preset 'mine'"):
        build(slides, database, params=BuildParams(preset="mine"))
    with pytest.raises(DatabaseError, match="holds other files"):
        build(slides, home)
    with pytest.raises(DatabaseError, match="is a file"):
        build(slides, slides / "labels.csv")
    with pytest.raises(SlideError, match="no such file or folder"):
        build(home / "nowhere", database)
    (home / "empty").mkdir()
    with pytest.raises(SlideError, match="no slides in this folder"):
        build(home / "empty", database)


def test_patches_have_the_scale_of_the_encoder_in_builds_and_in_questions(tmp_path: Path) -> None:
    coarse = QuickEncoder()
    coarse.card = coarse.card.renamed(mpp=1.0)
    slides, database = tmp_path / "s", tmp_path / "x.fish"
    write_slide(slides / "a.tif")
    with pytest.raises(DatabaseError, match="looks at 1 µm/px"):
        build(slides, database, params=BuildParams(preset="paper"), encoder=coarse)
    assert not database.exists()
    build(slides, database, params=BuildParams(preset="default"), encoder=coarse)
    with SnapshotStore(database) as store:
        boxes = {record.box[2:] for record in store.regions(store.rows_of([0]))}
        mosaic, _ = recorded_mosaic(store.catalogue)
    assert boxes == {(512, 512)}, "1024 px of 1 µm are 512 px of 2 µm"
    with open_slide(slides / "a.tif") as slide:
        whole = encode_question(slide, coarse, box=None, mosaic=mosaic)
        part = encode_question(slide, coarse, box=(100, 100, 300, 300), mosaic=mosaic)
    sides = {tuple(box[2:]) for asked in (whole, part) for box in asked.query.boxes.tolist()}
    assert sides == {(512, 512)}
    assert build(slides, database, params=BuildParams(preset="default"), encoder=coarse).counts == {
        "unchanged": 1
    }


def test_what_a_killed_program_left_in_an_empty_folder_is_no_obstacle(tmp_path: Path) -> None:
    write_slide(tmp_path / "s" / "a.tif")
    (tmp_path / "x.fish").mkdir()
    for name in ("fish.sqlite.new", "fish.sqlite.new-journal", "write.lock", ".DS_Store"):
        (tmp_path / "x.fish" / name).write_bytes(b"half of something")
    assert build(tmp_path / "s", tmp_path / "x.fish").slides == 1


def test_a_database_among_the_slides_is_not_taken_for_one(tmp_path: Path) -> None:
    write_slide(tmp_path / "s" / "a.tif")
    database = tmp_path / "s" / "plain name"
    build(tmp_path / "s", database, params=BuildParams(store_codes=True))
    assert build(tmp_path / "s", database).counts == {"unchanged": 1}


def test_slides_stay_found_when_they_move_together_with_the_database(home: Path, tmp_path: Path) -> None:
    home.rename(tmp_path / "elsewhere")
    summary = build(tmp_path / "elsewhere" / "Schnitte ü", tmp_path / "elsewhere" / "a b.fish")
    assert summary.counts == {"unchanged": 9}
