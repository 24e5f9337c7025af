"""What a catalogue says of the whole database: its encoder, its generation, what builds remember, what was measured."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from napari_fish.errors import DatabaseError
from napari_fish.store.facts import Facts
from napari_fish.store.places import Location
from napari_fish.store.records import Calibration, Quarantined
from napari_fish.store.sqlite.file import SqlFile
from napari_fish.store.sqlite.schema import FILE

log = logging.getLogger(__name__)

#: The parameter that tells a database from any other, so that no snapshot is taken for its own.
IDENTITY = "identity"
#: Words of the longest barcodes: distances from the centres of clusters are kept in 16 bits.
MOST_WORDS = 1023


class StateTables(SqlFile):
    """The part of a catalogue that is no slide's."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        super().__init__(folder / FILE, connection)
        self.folder = folder
        found = self.rows("SELECT id, weights_hash, words FROM encoder")
        if not found:
            raise DatabaseError(f"{folder}: no encoder is recorded; build the database again.")
        self.encoder, self.weights_hash = str(found[0][0]), str(found[0][1])
        with self.making_sense():
            self.words = int(found[0][2])
            if not 0 < self.words <= MOST_WORDS:
                raise ValueError(f"barcodes of {self.words} words")

    @property
    def location(self) -> Location:
        """Where the database is."""
        return self.folder

    @property
    def generation(self) -> int:
        """Raised by every change."""
        with self.making_sense():
            return int(self.rows("SELECT generation FROM state")[0][0])

    @property
    def parameters(self) -> dict[str, Any]:
        """What every slide depends on, besides the encoder."""
        with self.making_sense():
            return {
                name: json.loads(value) for name, value in self.rows("SELECT name, value FROM parameters")
            }

    @property
    def identity(self) -> str:
        """What tells it from any other database; copies of the folder share it."""
        return str(self.parameters.get(IDENTITY, ""))

    @property
    def facts(self) -> Facts:
        """What every slide depends on, and what is remembered of builds."""
        return Facts.recorded(self.encoder, self.weights_hash, self.words, self.parameters)

    def remember(self, **facts: Any) -> None:
        """Change facts, given by name."""
        with self.transaction() as run:
            for name, value in facts.items():
                run(
                    "INSERT OR REPLACE INTO parameters VALUES (?, ?)",
                    (name, json.dumps(value, sort_keys=True)),
                )

    def fingerprint(self) -> list[str | int]:
        """Return what changes whenever the content does; the file that was written last tells copies of a folder apart."""
        if not self.identity:
            return []
        file = self.path.stat()
        return [self.identity, self.generation, file.st_size, file.st_mtime_ns]

    @property
    def calibration(self) -> Calibration | None:
        """The distances of random pairs, where they were measured."""
        with self.making_sense():
            threshold, histogram, note = self.rows("SELECT threshold, histogram, note FROM state")[0]
            if threshold is None:
                return None
            pairs = np.frombuffer(histogram, np.int64)
            if len(pairs) != 64 * self.words + 1:
                raise ValueError("a calibration of the wrong length")
            return Calibration(pairs, int(threshold), note)

    @calibration.setter
    def calibration(self, made: Calibration) -> None:
        with self.transaction() as run:
            histogram = made.histogram.astype(np.int64).tobytes()
            run(
                "UPDATE state SET threshold = ?, histogram = ?, note = ?",
                (made.threshold, histogram, made.note),
            )

    @property
    def quarantined(self) -> list[Quarantined]:
        """Slides that could not be encoded, and why."""
        return [
            Quarantined(*row)
            for row in self.rows("SELECT slide, path, reason FROM quarantine ORDER BY slide")
        ]

    def quarantine(self, bad: Quarantined) -> None:
        """Note a slide that could not be encoded; what was encoded of it before stays."""
        with self.transaction() as run:
            run("INSERT OR REPLACE INTO quarantine VALUES (?, ?, ?)", (bad.slide, bad.path, bad.reason))

    def release(self, slides: Iterable[str]) -> None:
        """Take slides out of quarantine: they are gone, or will be tried again."""
        with self.transaction() as run:
            for slide in slides:
                run("DELETE FROM quarantine WHERE slide = ?", (slide,))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Make many changes while others go on reading; what is left is one file, fit for a read-only or network folder."""
        self.rows("PRAGMA journal_mode = WAL")
        try:
            yield
        finally:
            try:
                self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
                self.rows("PRAGMA journal_mode = DELETE")
            except DatabaseError as error:
                # Somebody is reading; the last one to close the file leaves it complete, too.
                log.info("%s", error)

    @contextmanager
    def _change(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        with self.transaction() as run:
            run("UPDATE state SET generation = generation + 1")
            yield run
