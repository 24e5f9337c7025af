"""Databases to be forged, and values in them that no program of ours wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from napari_fish.store import EncodedSlide
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from tests.search.archives import commit


def create(folder: Path) -> Path:
    """Make an empty database."""
    SqliteCatalogue.create(folder, words=4, encoder="fish-lite", weights_hash="abc").close()
    return folder


def database_of(
    folder: Path, slides: Sequence[EncodedSlide], later: Sequence[EncodedSlide] | None = None
) -> Path:
    """Make a database of some slides; with those that came later, the others are in the main part of its snapshot."""
    with SnapshotStore(create(folder), writer=True) as store:
        commit(store, *slides)
        if later is not None:
            store.compact()
        commit(store, *(later or ()))
    return folder


def execute(folder: Path, sql: str, values: Sequence[object] = ()) -> None:
    """Change fish.sqlite behind the back of the program."""
    with closing(sqlite3.connect(folder / "fish.sqlite", isolation_level=None)) as file:
        file.execute(sql, values)
