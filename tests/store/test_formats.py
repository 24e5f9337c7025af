"""Databases of earlier formats go on working, and say how patches were chosen once they are of the newest."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_fish.errors import DatabaseError
from napari_fish.search import Query, SearchParams, search_many
from napari_fish.store import EncodedSlide, MemoryStore
from napari_fish.store.copy import export
from napari_fish.store.records import Choice
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import FILE, SqliteCatalogue
from napari_fish.store.sqlite.schema import FORMATS
from tests.search.archives import demo_slides

#: The tables of the first format as they were written, never to be changed.
FIRST = (
    """CREATE TABLE encoder (
    one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, weights_hash TEXT NOT NULL, words INTEGER NOT NULL
) STRICT""",
    """CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), generation INTEGER NOT NULL, threshold INTEGER, histogram BLOB, note TEXT
) STRICT""",
    "CREATE TABLE parameters (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE slides (
    number INTEGER PRIMARY KEY AUTOINCREMENT, slide TEXT NOT NULL UNIQUE, name TEXT NOT NULL, patient TEXT NOT NULL,
    site TEXT NOT NULL, diagnosis TEXT NOT NULL, path TEXT NOT NULL, content_hash TEXT NOT NULL, size INTEGER NOT NULL,
    mtime INTEGER NOT NULL, mpp REAL NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
    mosaics INTEGER NOT NULL, generation INTEGER NOT NULL
) STRICT""",
    "CREATE INDEX slides_by_generation ON slides (generation)",
    "CREATE INDEX slides_by_hash ON slides (content_hash)",
    """CREATE TABLE labels (
    name TEXT NOT NULL, slide INTEGER NOT NULL REFERENCES slides (number) ON DELETE CASCADE, value TEXT NOT NULL,
    PRIMARY KEY (name, slide)
) STRICT, WITHOUT ROWID""",
    "CREATE INDEX labels_of_slide ON labels (slide)",
    """CREATE TABLE mosaics (
    key INTEGER NOT NULL, id INTEGER NOT NULL, slide INTEGER NOT NULL REFERENCES slides (number) ON DELETE CASCADE,
    x INTEGER NOT NULL, y INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, barcode BLOB NOT NULL,
    PRIMARY KEY (key, id)
) STRICT, WITHOUT ROWID""",
    "CREATE INDEX mosaics_of_slide ON mosaics (slide)",
    "CREATE TABLE removed (number INTEGER PRIMARY KEY, generation INTEGER NOT NULL) STRICT",
    """CREATE TABLE quarantine (
    slide TEXT PRIMARY KEY, path TEXT NOT NULL, reason TEXT NOT NULL
) STRICT, WITHOUT ROWID""",
)
CHOICE = Choice(120, {"ink": 2, "blur": 1}, "normal", "Müller.geojson#3fa2c1", "Tumor")


@pytest.fixture(scope="module")
def slides() -> list[EncodedSlide]:
    return list(demo_slides(np.random.default_rng(1), n=6))


@pytest.fixture
def old(tmp_path: Path, slides: list[EncodedSlide]) -> Path:
    """A database of the first format, written as the first version wrote it."""
    folder = tmp_path / "old.fish"
    folder.mkdir()
    file = sqlite3.connect(folder / FILE, isolation_level=None)
    file.execute("PRAGMA application_id = 1179210568")
    file.execute("PRAGMA user_version = 1")
    for statement in FIRST:
        file.execute(statement)
    file.execute("INSERT INTO encoder VALUES (1, 'fish-lite', 'abc', 4)")
    file.execute("INSERT INTO state VALUES (1, 6, NULL, NULL, NULL)")
    file.execute("INSERT INTO parameters VALUES ('identity', '\"0123456789abcdef\"')")
    for number, slide in enumerate(slides, 1):
        one = slide.record
        values = (
            number,
            one.slide,
            one.name,
            one.patient,
            one.site,
            one.diagnosis,
            "",
            "",
            0,
            0,
            0.0,
            0,
            0,
            25,
        )
        file.execute(f"INSERT INTO slides VALUES ({', '.join('?' * 14)}, {number})", values)
        for name, value in one.labels.items():
            file.execute("INSERT INTO labels VALUES (?, ?, ?)", (name, number, value))
        for i, (key, box) in enumerate(zip(slide.keys.tolist(), slide.boxes.tolist(), strict=True)):
            code = slide.barcodes[i].tobytes()
            file.execute(
                f"INSERT INTO mosaics VALUES ({', '.join('?' * 8)})",
                (key, number << 24 | i, number, *box, code),
            )
    file.close()
    return folder


def test_the_first_format_is_still_made_of_the_same_words() -> None:
    assert FORMATS[0] == FIRST


def test_a_database_of_the_first_format_is_read_as_it_is(old: Path, slides: list[EncodedSlide]) -> None:
    before = (old / FILE).read_bytes()
    with SnapshotStore(old) as store:
        assert [record for _, record in store.catalogue.slides()] == [slide.record for slide in slides]
        assert store.catalogue.record(1).choice == Choice()
        assert store.catalogue.digest() == store.digest() == MemoryStore(4, slides).digest()
        asked = Query("s0", slides[0].keys, slides[0].barcodes, slides[0].boxes)
        (answer,) = search_many(store, [asked], SearchParams(k=2))
        assert {hit.slide for hit in answer.hits} == {"s0", "s1"}
        assert store.verify() == []
    assert (old / FILE).read_bytes() == before


def test_a_database_of_the_first_format_can_be_read_in_a_folder_nobody_may_write_to(
    old: Path, slides: list[EncodedSlide], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever runs the tests may be allowed everything.
    monkeypatch.setattr("napari_fish.store.sqlite.file.os.access", lambda *_: False)
    truth = SqliteCatalogue.open(old, read_only=True)
    assert truth.digest() == MemoryStore(4, slides).digest()
    truth.close()


def test_a_writer_brings_a_database_to_the_newest_format_with_all_that_was_in_it(
    old: Path, slides: list[EncodedSlide]
) -> None:
    with SnapshotStore(old, writer=True) as store:
        assert [record for _, record in store.catalogue.slides()] == [slide.record for slide in slides]
        store.catalogue.commit(_with_choice(slides[0]))
        assert store.catalogue.rows("PRAGMA user_version")[0][0] == len(FORMATS) > 1
    with SnapshotStore(old) as store:
        assert store.verify() == []
        assert store.digest() == MemoryStore(4, slides).digest()
        choices = {record.slide: record.choice for _, record in store.catalogue.slides()}
    assert choices == {slide.record.slide: Choice() for slide in slides} | {"s0": CHOICE}


def test_a_database_that_cannot_be_brought_to_the_newest_format_stays_as_it_was(
    old: Path, slides: list[EncodedSlide]
) -> None:
    other = sqlite3.connect(old / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError, match="another program is writing"):
        SqliteCatalogue.open(old)
    other.execute("ROLLBACK")
    other.close()
    truth = SqliteCatalogue.open(old, read_only=True)
    assert truth.rows("PRAGMA user_version")[0][0] == 1
    assert truth.digest() == MemoryStore(4, slides).digest()
    truth.close()


def test_an_old_database_with_tables_of_another_is_refused(old: Path) -> None:
    file = sqlite3.connect(old / FILE)
    file.execute("ALTER TABLE slides ADD COLUMN choice TEXT NOT NULL DEFAULT 'guest'")
    file.close()
    for read_only in (True, False):
        with pytest.raises(DatabaseError, match="not those"):
            SqliteCatalogue.open(old, read_only=read_only)


def test_how_patches_were_chosen_comes_back_and_outlives_new_labels(
    tmp_path: Path, slides: list[EncodedSlide]
) -> None:
    truth = SqliteCatalogue.create(tmp_path / "a.fish", words=4, encoder="fish-lite", weights_hash="abc")
    truth.commit(slides[0])
    plain = truth.digest()
    truth.commit(_with_choice(slides[0]))
    assert truth.digest() == plain
    number, record = truth.slides()[0]
    truth.relabel([replace(record, diagnosis="KIRP")])
    assert truth.record(number).choice == CHOICE
    truth.close()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "7",
        "{}",
        CHOICE.to_json().replace("120", "-1"),
        CHOICE.to_json().replace("120", '"many"'),
        CHOICE.to_json().replace('{"blur": 1, "ink": 2}', "null"),
        CHOICE.to_json().replace('"ink": 2', '"ink": 2.5'),
        CHOICE.to_json().replace('"Tumor"', "3"),
        CHOICE.to_json().replace("mask_class", "masks"),
    ],
)
def test_a_choice_that_was_not_written_by_us_is_named_as_damage(
    tmp_path: Path, slides: list[EncodedSlide], text: str
) -> None:
    truth = SqliteCatalogue.create(tmp_path / "a.fish", words=4, encoder="fish-lite", weights_hash="abc")
    truth.commit(slides[0])
    with truth.transaction() as run:
        run("UPDATE slides SET choice = ?", (text,))
    with pytest.raises(DatabaseError, match=r"fish\.sqlite is damaged"):
        truth.slides()
    truth.close()


def test_a_copy_to_give_away_keeps_the_counts_but_not_the_name_of_the_mask(
    tmp_path: Path, slides: list[EncodedSlide]
) -> None:
    truth = SqliteCatalogue.create(tmp_path / "a.fish", words=4, encoder="fish-lite", weights_hash="abc")
    truth.commit(_with_choice(slides[0]))
    truth.close()
    export(tmp_path / "a.fish", tmp_path / "given.fish", deidentify=True)
    export(tmp_path / "a.fish", tmp_path / "whole.fish")
    copy, whole = (
        SqliteCatalogue.open(tmp_path / name, read_only=True) for name in ("given.fish", "whole.fish")
    )
    given = copy.slides()[0][1].choice
    assert (given.candidates, given.left_out, given.artefacts) == (120, {"ink": 2, "blur": 1}, "normal")
    assert given.mask and not given.mask_class
    assert whole.slides()[0][1].choice == CHOICE
    copy.close()
    whole.close()
    assert "Müller".encode() not in (tmp_path / "given.fish" / FILE).read_bytes()


def test_an_old_database_can_be_copied(old: Path, tmp_path: Path, slides: list[EncodedSlide]) -> None:
    shutil.rmtree(old / "snapshot", ignore_errors=True)
    export(old, tmp_path / "copy.fish")
    with SnapshotStore(tmp_path / "copy.fish") as store:
        assert store.digest() == MemoryStore(4, slides).digest()


def _with_choice(slide: EncodedSlide) -> EncodedSlide:
    return replace(slide, record=replace(slide.record, choice=CHOICE))
