"""Databases that the program of their day left still open, answer the same and verify; written to, they go on."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from napari_fish.cli import app
from napari_fish.database import open_database
from napari_fish.store.opening import open_store, pictures_of
from napari_fish.store.sqlite.schema import FILE, FORMATS
from tests.store.golden.make import ADDED, FIRST, HERE, REMOVED, SLIDES, answers, unpack
from tests.tiny import write_slide

STORED = sorted(HERE.glob("format-*.tar.xz"))


def _format_of(database: Path) -> int:
    with closing(sqlite3.connect(database / FILE)) as file:
        return int(file.execute("PRAGMA user_version").fetchone()[0])


@pytest.fixture(params=STORED, ids=[path.name.split(".")[0] for path in STORED])
def stored(request: pytest.FixtureRequest) -> Path:
    """The file a database of an earlier day is packed in."""
    return Path(request.param)


@pytest.fixture
def database(stored: Path, tmp_path: Path) -> Path:
    """That database, to be changed."""
    return unpack(stored, tmp_path)


@pytest.fixture
def said(stored: Path) -> dict[str, Any]:
    """What it must say."""
    found = json.loads(stored.with_name(stored.name.split(".")[0] + ".json").read_text(encoding="utf-8"))
    return dict(found)


def test_every_format_there_was_has_a_database_here(tmp_path: Path) -> None:
    kept = {_format_of(unpack(path, tmp_path / path.name)) for path in STORED}
    assert kept == set(range(1, len(FORMATS) + 1))


def test_it_is_read_without_a_change_and_answers_as_on_its_day(
    database: Path, said: dict[str, Any], quick: None
) -> None:
    before = (database / FILE).read_bytes()
    assert answers(database) == said
    assert (database / FILE).read_bytes() == before


def test_it_answers_the_same_when_its_snapshot_is_gone(
    database: Path, said: dict[str, Any], quick: None
) -> None:
    for path in sorted((database / "snapshot").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert answers(database) == said


def test_it_verifies_latent_codes_and_all_and_has_its_pictures(database: Path, said: dict[str, Any]) -> None:
    assert said["digest"][:16] in _verified(database)
    pictures = pictures_of(database)
    assert pictures is not None
    assert len(pictures.overview(FIRST) or b"") > 1000 and len(pictures.patches(FIRST)) > 0
    pictures.close()


def test_a_writer_brings_it_to_the_newest_format_with_all_that_was_in_it(
    database: Path, said: dict[str, Any], quick: None
) -> None:
    with open_store(database, writer=True):
        pass
    assert _format_of(database) == len(FORMATS)
    assert answers(database) == said


def test_it_goes_on_growing(database: Path, tmp_path: Path, quick: None) -> None:
    write_slide(tmp_path / "new" / "P40-0.tif", "lymphoma", 400)
    ran = CliRunner().invoke(app, ["add", str(database), str(tmp_path / "new")])
    assert ran.exit_code == 0, ran.stderr
    with open_database(database) as opened:
        assert {one.slide for one in opened.store.slides if one.slide} == {*SLIDES, *ADDED, "P40-0.tif"} - {
            REMOVED
        }
        assert opened.search("id:P40-0.tif").hits
    _verified(database)


def _verified(database: Path) -> str:
    """Have a database verified, and return what was said."""
    ran = CliRunner().invoke(app, ["verify", str(database)])
    assert ran.exit_code == 0 and ran.stdout.rstrip().endswith("all is well"), ran.stdout
    return str(ran.stdout)
