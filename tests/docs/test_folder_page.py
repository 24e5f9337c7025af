"""The page about the folder of a database has the tables and arrays that are in one, and no others."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from napari_fish.store.opening import open_store
from napari_fish.store.sqlite.schema import FORMATS
from tests.cli.test_cli import run
from tests.tiny import write_slide

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "folder.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of a section's table."""
    section = re.search(rf"^### {heading}$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section, f"{heading} is not on the page"
    return [line.split("|")[1:-1] for line in section[1].splitlines() if line.startswith("|")]


def on_the_page(heading: str) -> list[str]:
    """Return the names in the first column of a section's table, in their order."""
    return [name for row in rows(heading) for name in re.findall(r"`([^`]+)`", row[0])]


def tables(file: Path) -> dict[str, list[str]]:
    """Return the columns of each table."""
    with closing(sqlite3.connect(file)) as opened:
        found = opened.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        names = [name for (name,) in found.fetchall()]
        return {
            name: [row[1] for row in opened.execute(f"PRAGMA table_info({name})").fetchall()]
            for name in names
        }


def test_the_page_has_the_tables_of_the_catalogue_and_of_the_pictures(tiny_home: Path) -> None:
    catalogue = tables(tiny_home / "a b.fish" / "fish.sqlite")
    sections = PAGE.partition("## Pictures")[0]
    assert set(re.findall(r"^### (\w+)$", sections, re.MULTILINE)) == set(catalogue)
    assert {name: on_the_page(name) for name in catalogue} == catalogue
    pictures = tables(tiny_home / "a b.fish" / "thumbnails.sqlite")
    assert {
        "overviews": on_the_page("overviews"),
        "mosaics": on_the_page("pictures of patches: `mosaics`"),
    } == pictures
    assert f"`user_version` {len(FORMATS)}" in PAGE


def test_the_page_has_the_arrays_of_the_snapshot_with_their_types(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = home / "a b.fish"
    write_slide(home / "new" / "more.tif", seed=77)
    assert run(capsys, "add", database, home / "new")[0] == 0
    with open_store(database) as store:
        assert len(store)
    for part, heading in (("main", "main"), ("delta-*", "delta")):
        (folder,) = (database / "snapshot").glob(part)
        kinds = {file.stem: np.load(file).dtype.name for file in folder.glob("*.npy")}
        assert set(on_the_page(heading)) == set(kinds)
        for names, text in rows(heading):
            stated = re.findall(r"\bu?int\d+\b", text)
            for i, name in enumerate(re.findall(r"`(\w+)`", names)):
                assert not stated or kinds[name] == stated[min(i, len(stated) - 1)]


def test_the_page_has_what_lies_in_the_folder(tiny_home: Path) -> None:
    first = PAGE.partition("## ")[0]
    named = set(re.findall(r"^\| `([\w.]+)/?` \|", first, re.MULTILINE))
    there = {path.name for path in (tiny_home / "a b.fish").iterdir()}
    assert there <= named and named - there == {"codes.zarr"}
