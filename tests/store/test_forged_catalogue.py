"""Values in fish.sqlite that no program of ours wrote are named as damage, whoever asks for them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from napari_fish.database import open_database
from napari_fish.database.inspection import inspect_database
from napari_fish.errors import DatabaseError, FishError
from napari_fish.store.snapshot.store import SnapshotStore
from tests.store.conformance import SLIDES
from tests.store.forging import database_of, execute

FORGED = [
    "UPDATE encoder SET words = 4611686018427387904",
    "UPDATE encoder SET words = -1",
    "UPDATE encoder SET words = 0",
    "UPDATE slides SET mosaics = -1",
    "UPDATE slides SET mosaics = 4611686018427387904",
    "UPDATE slides SET mosaics = mosaics - 1",
    "UPDATE slides SET generation = 255 WHERE number = 1",
    "UPDATE slides SET generation = -5 WHERE number = 1",
    "UPDATE state SET generation = 0",
    "UPDATE mosaics SET key = key - 4611686018427387904",
    "UPDATE mosaics SET key = key + 1125899906842624",
    "UPDATE mosaics SET x = 9223372036854775807",
    "UPDATE mosaics SET height = -9223372036854775808",
]


@pytest.mark.parametrize("sql", FORGED)
def test_impossible_numbers_are_named_as_damage(tmp_path: Path, sql: str) -> None:
    folder = database_of(tmp_path / "x.fish", SLIDES[:2])
    shutil.rmtree(folder / "snapshot")
    execute(folder, sql)
    with pytest.raises(DatabaseError, match=r"fish\.sqlite is damaged"), SnapshotStore(folder) as store:
        assert len(store)


def test_a_patient_rule_that_is_no_text_is_no_rule(tmp_path: Path) -> None:
    folder = database_of(tmp_path / "x.fish", SLIDES[:1])
    with SnapshotStore(folder, writer=True) as store:
        store.catalogue.remember(patient={"a": []})
    with open_database(folder) as database:
        assert database._patient("P1.tif") == ""


def test_a_path_too_long_for_any_file_is_that_of_a_slide_that_is_away(tmp_path: Path) -> None:
    folder = database_of(tmp_path / "x.fish", SLIDES[:1])
    execute(folder, "UPDATE slides SET path = ?", ("x" * 100_000,))
    assert inspect_database(folder).away == {SLIDES[0].record.slide}
    with open_database(folder) as database, pytest.raises(FishError, match="is not at"):
        database.place(database.store.slides[0])
