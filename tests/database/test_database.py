"""Questions to a database: slides, boxes, images, arrays, slides it has; and what belongs to the answer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import napari_fish as fish
from napari_fish.building.params import BuildParams
from napari_fish.database import Database
from napari_fish.errors import DatabaseError, EncoderError, FishError, NoTissue, SlideError
from napari_fish.search import SearchParams, engine
from napari_fish.search.neighbours import find_neighbours
from napari_fish.store import EncodedSlide, MemoryStore, SlideRecord
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from tests.building.test_build import NAMES
from tests.search.archives import commit
from tests.slides.conftest import write_image, write_ome_tiff, write_tiff
from tests.tiny import (
    KINDS,
    PATCHES,
    QuickEncoder,
    picture,
    tissue,
    write_empty_slide,
    write_patches,
    write_slide,
)

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def database(tiny_home: Path) -> Iterator[Database]:
    with fish.open_database(tiny_home / "a b.fish") as opened:
        opened.use_encoder(QuickEncoder())
        yield opened


@pytest.mark.parametrize("name", NAMES)
def test_the_nearest_slide_of_another_patient_has_the_same_diagnosis(database: Database, name: str) -> None:
    results = database.search(f"id:{name}", k=3)
    kind, patient = name.split("/")[0], name.split("/")[1][:3]
    assert results.hits[0].diagnosis == kind
    assert len(results) == 3 and all(hit.patient != patient for hit in results.hits)


def test_a_file_of_the_database_is_recognised_and_gives_the_answer_of_its_id(
    database: Database, tiny_home: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "anonym.tif"
    shutil.copy(tiny_home / "Schnitte ü" / NAMES[3], copied)
    by_file, by_id = database.search(copied), database.search(f"id:{NAMES[3]}")
    assert [(h.slide, h.distance) for h in by_file.hits] == [(h.slide, h.distance) for h in by_id.hits]
    assert by_file.query == "anonym.tif" and by_file.elapsed_ms["encode"] > 0 == by_id.elapsed_ms["encode"]
    with_own = database.search(copied, exclude_query=False)
    assert NAMES[3] in [hit.slide for hit in with_own.hits if hit.distance == 0]


@pytest.mark.parametrize("name", NAMES)
def test_a_slide_of_the_database_asks_with_its_patches_in_the_order_of_its_mosaic_as_its_file_does(
    database: Database, tiny_home: Path, name: str
) -> None:
    by_file = database.ask(tiny_home / "Schnitte ü" / name).query
    by_id = database.ask(f"id:{name}").query
    for mine, theirs in (
        (by_id.boxes, by_file.boxes),
        (by_id.keys, by_file.keys),
        (by_id.barcodes, by_file.barcodes),
    ):
        assert np.array_equal(mine, theirs)
    assert (np.diff(by_id.keys) < 0).any(), "which is not the order of keys"


def test_equal_keys_of_one_slide_keep_the_order_of_its_mosaic(tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    made = [
        EncodedSlide(
            SlideRecord(f"s{i}"),
            dice.integers(0, 3, 12),
            dice.integers(0, 2**64, (12, 2), np.uint64),
            np.column_stack([np.arange(12), np.ones((12, 3))]).astype(np.int32),
        )
        for i in range(4)
    ]
    SqliteCatalogue.create(tmp_path / "a.fish", words=2, encoder="x", weights_hash="0").close()
    with SnapshotStore(tmp_path / "a.fish", writer=True) as disk:
        commit(disk, *made[:2])
        disk.compact()
        commit(disk, *made[2:])  # these stay outside the main part
        for store in (disk, MemoryStore(2, made)):
            for i, slide in enumerate(made):
                keys, barcodes = store.encoded(store.patch_rows(i))
                assert np.array_equal(keys, slide.keys) and np.array_equal(barcodes, slide.barcodes)


def test_a_filter_by_a_value_that_no_slide_has_is_refused_beside_one_that_some_have(
    database: Database,
) -> None:
    with pytest.raises(
        FishError, match=r"No slide has the diagnosis 'Lymphona'; of 3 values the nearest are: lymphoma"
    ):
        database.search(f"id:{NAMES[0]}", where=("diagnosis=normal", "diagnosis=Lymphona"))


def test_a_slide_is_asked_for_by_any_name_that_fits_only_one(database: Database) -> None:
    assert database.search("id:P11-0 ü").query == "P11-0 ü.tif"
    with pytest.raises(DatabaseError, match="no slide 'nobody'"):
        database.search("id:nobody")
    with pytest.raises(SlideError, match="no such file"):
        database.search("nowhere.svs")


def test_an_open_slide_a_new_slide_and_an_array_are_questions_too(database: Database, tmp_path: Path) -> None:
    path = write_slide(tmp_path / "new one.tif", "lymphoma", 112)
    answer = database.search(path, k=2)
    assert [hit.diagnosis for hit in answer.hits] == ["lymphoma", "lymphoma"]
    with fish.open_slide(path) as slide:
        assert [h.slide for h in database.search(slide, k=2).hits] == [h.slide for h in answer.hits]
        assert slide.read(0, 0, 8, 8, 2.0).shape == (8, 8, 3), "it stays open"
    array = database.search(tissue("normal", 7), k=1, mpp=2.0)
    assert (array.query, array.hits[0].diagnosis) == ("pasted image", "normal")
    with pytest.raises(SlideError, match="uint8"):
        database.search(np.zeros((10, 10)))


def test_an_image_without_scale_is_one_patch_and_says_so(database: Database, tmp_path: Path) -> None:
    path = write_image(tmp_path / "aus dem Lehrbuch.png", tissue("normal", 9, 200))
    answer = database.search(path, k=1)
    assert answer.hits[0].diagnosis == "normal" and len(answer.query_boxes) == 1
    assert "one patch" in answer.notes[0].text and "--mpp" in answer.notes[0].text


def test_a_box_asks_only_for_what_is_in_it(database: Database, tmp_path: Path) -> None:
    both = picture("normal", 3)
    both[300:560, 350:640] = tissue("lymphoma", 4, 300)[:260, :290]
    path = write_tiff(tmp_path / "two kinds.tif", both, 1, resolution=(5e3, 5e3))
    answer = database.search(path, box=(360, 300, 256, 256), k=2)
    assert {hit.diagnosis for hit in answer.hits} == {"lymphoma"}
    assert answer.query == "two kinds.tif [360,300,256,256]"
    assert answer.query_boxes == ((360, 300, 256, 256),)
    assert database.search(path, box=(60, 60, 256, 230), k=1).hits[0].diagnosis == "normal"
    large = database.search(path, box=(60, 60, 560, 480), k=1)
    assert len(large.query_boxes) == 6 and large.query_boxes[0][:2] == (60, 60)


def test_a_box_in_a_slide_of_the_database_is_read_from_its_file(home: Path) -> None:
    with fish.open_database(home / "a b.fish") as database:
        answer = database.search(f"id:{NAMES[0]}", box=(100, 100, 256, 256), k=1)
        assert answer.hits[0].patient == "P01"
        shutil.rmtree(home / "Schnitte ü")
        with pytest.raises(FishError, match=r"is not at .*relocate a b.fish FOLDER"):
            database.search(f"id:{NAMES[0]}", box=(100, 100, 256, 256))
        assert database.search(f"id:{NAMES[0]}").hits, "but the slide itself is known"


def test_boxes_that_cannot_be_searched_say_why(database: Database, tiny_home: Path, tmp_path: Path) -> None:
    slide = tiny_home / "Schnitte ü" / NAMES[0]
    for outside in ((900, 0, 100, 100), (-300, 0, 200, 200), (0, 0, 0, 100), (0, 0, 50, -5)):
        with pytest.raises(SlideError, match="outside the slide of 700 x 600 px"):
            database.search(slide, box=outside)
    for tiny in ((100, 100, 3, 3), (-95, 100, 100, 100)):
        with pytest.raises(SlideError, match="draw one of at least 16 px"):
            database.search(slide, box=tiny)
    partly = database.search(slide, box=(400, 300, 400, 400), k=1)
    assert "beyond the slide" in partly.notes[0].text
    small = database.search(slide, box=(200, 200, 30, 30), k=1)
    assert "smaller than a patch: the 512 µm around it" in small.notes[0].text
    with pytest.raises(NoTissue, match="only glass"):
        database.search(write_empty_slide(tmp_path / "glass.tif"), box=(10, 10, 200, 200))
    with pytest.raises(NoTissue, match=r"glass\.tif"):
        database.search(tmp_path / "glass.tif")


def test_without_a_scale_there_is_no_box_unless_the_database_or_the_user_knows_it(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    nothing = {"resolution": (1, 1), "resolutionunit": "NONE"}
    path = write_tiff(tmp_path / "s" / "a.tif", picture("normal", 3), 1, **nothing)
    other = write_tiff(tmp_path / "b.tif", picture("normal", 4), 1, **nothing)
    with fish.build(tmp_path / "s", tmp_path / "x.fish", mpp=2.0) as database:
        assert database.search(path, box=(60, 60, 256, 256), exclude_query=False).hits
        with pytest.raises(SlideError, match="--mpp"):
            database.search(other, box=(60, 60, 256, 256))
        with pytest.raises(SlideError, match="--mpp"):
            database.search(other)
        assert database.search(other, box=(60, 60, 256, 256), mpp=2.0).hits


def test_label_and_macro_images_are_never_asked_with(database: Database, tmp_path: Path) -> None:
    path = write_ome_tiff(tmp_path / "a.ome.tif", picture("normal", 1))
    with fish.open_slide(path, mpp=2.0, series=0) as label:
        assert label.kind == "label"
        for box in (None, (0, 0, 40, 40)):
            with pytest.raises(SlideError, match="never"):
                database.search(label, box=box)


def test_a_mask_may_be_an_array_polygons_or_a_file(database: Database, tmp_path: Path) -> None:
    query = write_slide(tmp_path / "query.tif", "lymphoma", 112)
    left = np.zeros((60, 70), bool)
    left[6:54, 6:33] = True
    ring = [[60, 60], [330, 60], [330, 540], [60, 540]]
    asked = [database.ask(query, mask=left), database.ask(query, mask=[[ring]])]
    Image.fromarray(left).save(tmp_path / "left.png")
    asked.append(database.ask(query, mask=str(tmp_path / "left.png")))
    whole = database.ask(query)
    for one in asked:
        assert len(one.query.boxes) < len(whole.query.boxes) or not np.array_equal(
            one.query.boxes, whole.query.boxes
        )
        assert (one.query.boxes[:, 0] + one.query.boxes[:, 2] / 2 < 400).all()
    assert database.search(query, mask=left, k=1).hits[0].diagnosis == "lymphoma"
    with pytest.raises(FishError, match="Only a GeoJSON file has classes"):
        database.ask(query, mask=left, mask_class="Tumor")


def test_filters_are_applied_during_the_search(database: Database) -> None:
    answer = database.search(f"id:{NAMES[0]}", k=3, where=("DIAGNOSIS=Lymphoma",))
    assert [hit.diagnosis for hit in answer.hits] == ["lymphoma"] * 3
    answer = database.search(f"id:{NAMES[0]}", k=9, where=("site!=breast", "scanner=gt450"))
    assert [hit.slide for hit in answer.hits] == ["lymphoma/P11-0 ü.tif"]
    assert "leave only 1" in answer.notes[-1].text
    with pytest.raises(FishError, match="No column 'grade'"):
        database.search(f"id:{NAMES[0]}", where=("grade=3",))
    with pytest.raises(FishError, match="no column 'grade' to rank by"):
        database.search(f"id:{NAMES[0]}", target="grade")


def test_k_is_what_is_asked_for_last(database: Database) -> None:
    params = SearchParams(k=2, mode="exact", fill=True)
    assert len(database.search(f"id:{NAMES[0]}", params=params)) == 2
    assert len(database.search(f"id:{NAMES[0]}", k=3, params=params)) == 3
    assert len(database.search(f"id:{NAMES[0]}")) == 5


def test_the_patient_of_an_unknown_query_is_told_by_its_file_name(tmp_path: Path) -> None:
    for i, name in enumerate(("P1-a", "P1-b", "P2-a")):
        write_slide(tmp_path / "s" / f"{name}.tif", "normal", i)
    query = write_slide(tmp_path / "P1-c.tif", "normal", 9)
    with fish.build(tmp_path / "s", tmp_path / "x.fish", patient=r"^(P\d)-") as database:
        assert [hit.slide for hit in database.search(query).hits] == ["P2-a.tif"]
        assert len(database.search(query, exclude_query=False)) == 3


@pytest.mark.parametrize("labelled", [0, 1, 3])
def test_an_archive_without_labels_or_with_few_answers_too(tmp_path: Path, labelled: int) -> None:
    lines = ["slide,diagnosis"]
    for i in range(6):
        kind = list(KINDS)[i % 2]
        write_slide(tmp_path / "s" / f"{i}.tif", kind, i)
        lines += [f"{i}.tif,{kind}"] if i < labelled else []
    (tmp_path / "l.csv").write_text("\n".join(lines) + "\n")
    with fish.build(tmp_path / "s", tmp_path / "x.fish", labels=tmp_path / "l.csv") as database:
        for ranking in ("auto", "label-free", "fish"):
            answer = database.search("id:5.tif", k=2, ranking=ranking)
            assert {hit.slide for hit in answer.hits} == {"1.tif", "3.tif"}, ranking
        assert database.search("id:5.tif", ranking="auto").ranking == "label-free"


def test_a_database_of_patch_images_is_asked_with_images(tmp_path: Path) -> None:
    patches = write_patches(tmp_path / "Klassen", each=3)
    with fish.build(patches, tmp_path / "x.fish", patches=True) as database:
        query = write_image(tmp_path / "q.png", tissue("carcinoma", 77, 150))
        answer = database.search(query, k=3)
        assert [hit.diagnosis for hit in answer.hits] == ["carcinoma"] * 3
        assert answer.notes == () or "one patch" not in answer.notes[0].text
        assert answer.pictures is not None
        assert answer.pictures.hit(answer.hits[0].slide, answer.hits[0].matches[0].hit_box)


def test_answers_show_pictures_after_the_database_is_closed_and_the_slides_are_gone(home: Path) -> None:
    with fish.open_database(home / "a b.fish") as database:
        results = database.search(f"id:{NAMES[0]}", k=2)
    sharp = results.save(home / "sharp.html").read_text(encoding="utf-8")
    shutil.rmtree(home / "Schnitte ü")
    kept = results.save(home / "kept.html").read_text(encoding="utf-8")
    for page in (sharp, kept):
        assert page.count("data:image/jpeg;base64") >= 4
    assert len(sharp) > len(kept), "pictures from slides are larger than those that were kept"
    assert "P01-0 ü" in results.to_frame()["slide"][0] and "regions voted" in results.explain()


def test_a_file_that_became_another_slide_is_not_shown_for_the_old_one(home: Path) -> None:
    with fish.open_database(home / "a b.fish") as database:
        results = database.search(f"id:{NAMES[0]}", k=1)
        hit = results.hits[0]
        assert results.pictures is not None
        (home / "Schnitte ü" / hit.slide).write_bytes(b"something else")
        box = hit.matches[0].hit_box
        assert results.pictures.hit(hit.slide, box) == results.pictures.thumbnail(hit.slide, box)


def test_the_encoder_must_be_that_of_the_database(home: Path) -> None:
    with fish.open_database(home / "a b.fish") as database:
        with pytest.raises(EncoderError, match="built with encoder 'quick'"):
            database.use_encoder(QuickEncoder("other", 2))
        assert len(database) == 9 and f"9 slides, {PATCHES} patches" in repr(database)


def test_an_open_database_shows_what_is_added_and_removed(home: Path) -> None:
    with fish.open_database(home / "a b.fish") as database:
        new = write_slide(home / "Schnitte ü" / "new.tif", "normal", 90)
        assert database.add(new, params=BuildParams()).counts == {"added": 1}
        assert len(database) == 10
        assert database.remove("P20-0 ü", "P20-1 ü") == ["normal/P20-0 ü.tif", "normal/P20-1 ü.tif"]
        found = [hit.slide for hit in database.search("id:new.tif", k=10).hits]
        assert len(database) == 8 and len(found) == 7 and found[0] == "normal/P21-0 ü.tif"


def test_a_slide_that_is_replaced_during_a_search_is_looked_for_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slides = []
    with Database(home / "a b.fish") as database, SnapshotStore(home / "a b.fish", writer=True) as writer:
        asked = database.ask(f"id:{NAMES[0]}")
        truth = writer.catalogue
        for number, record in truth.slides():
            patches = truth.patches_of(number)
            slides.append(EncodedSlide(record, patches.keys, patches.barcodes, patches.boxes))
        before = database.answer([asked])[0]

        def replaced_meanwhile(*arguments: Any) -> Any:
            if slides:
                truth.commit(slides.pop())
                truth.commit(slides.pop(0))
            return find_neighbours(*arguments)

        monkeypatch.setattr(engine, "find_neighbours", replaced_meanwhile)
        after = database.answer([asked])[0]
    assert [(hit.slide, hit.distance) for hit in after.hits] == [
        (hit.slide, hit.distance) for hit in before.hits
    ]


def test_a_closed_database_says_that_it_is_closed(home: Path) -> None:
    database = fish.open_database(home / "a b.fish")
    database.close()
    with pytest.raises(DatabaseError, match="was closed; open it again"):
        database.search(f"id:{NAMES[0]}")


def test_an_encoder_without_a_name_is_found_where_it_was(tmp_path: Path) -> None:
    from napari_fish.building.settings import choose_encoder
    from napari_fish.store.sqlite.catalogue import SqliteCatalogue

    write_slide(tmp_path / "s" / "a.tif")
    asked: list[str] = []

    def remember(name: object, device: str) -> QuickEncoder:
        asked.append(str(name))
        return QuickEncoder()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napari_fish.building.settings.load_encoder", remember)
        patch.setattr("napari_fish.building.settings.card_of", lambda name: QuickEncoder().card)
        (tmp_path / "bundle").mkdir()
        fish.build(tmp_path / "s", tmp_path / "x.fish", encoder=str(tmp_path / "bundle")).close()
        truth = SqliteCatalogue.open(tmp_path / "x.fish")
        choose_encoder(truth).load()
        (tmp_path / "bundle").rmdir()
        choose_encoder(truth).load()
        truth.close()
    assert asked == [str(tmp_path / "bundle"), str(tmp_path / "bundle"), "quick"]
