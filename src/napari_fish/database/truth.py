"""The truth about a database: one SQLite file, one transaction a slide.

Every change raises the generation. Slides keep the generation they came with, and their numbers are never used again,
so a snapshot made at some generation knows what it lacks and what it must no longer show.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.database.records import Calibration, EncodedSlide, SlideRecord, content_digest, slide_digest
from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Barcodes, Keys

FILE = "fish.sqlite"
APPLICATION, VERSION = 0x46495348, 1
_SCHEMA = (
    """CREATE TABLE encoder (
    one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, weights_hash TEXT NOT NULL, words INTEGER NOT NULL
) STRICT""",
    """CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), generation INTEGER NOT NULL, threshold INTEGER, histogram BLOB, note TEXT
) STRICT""",
    """CREATE TABLE slides (
    number INTEGER PRIMARY KEY AUTOINCREMENT, slide TEXT NOT NULL UNIQUE, name TEXT NOT NULL, patient TEXT NOT NULL,
    site TEXT NOT NULL, diagnosis TEXT NOT NULL, labels TEXT NOT NULL, path TEXT NOT NULL, generation INTEGER NOT NULL
) STRICT""",
    """CREATE TABLE mosaics (
    key INTEGER NOT NULL, id INTEGER NOT NULL, slide INTEGER NOT NULL REFERENCES slides (number) ON DELETE CASCADE,
    x INTEGER NOT NULL, y INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, barcode BLOB NOT NULL,
    PRIMARY KEY (key, id)
) STRICT, WITHOUT ROWID""",
    "CREATE INDEX mosaics_of_slide ON mosaics (slide)",
)


@dataclass(frozen=True, eq=False)
class Mosaics:
    """Mosaics by slide and, in a slide, in the order in which they came.

    Attributes
    ----------
    keys : int64, shape (n,)
    barcodes : uint64, shape (n, words)
    numbers : int64, shape (n,)
        The number of each one's slide.
    boxes : int32, shape (n, 4)
        x, y, width, height in level-0 px.
    """

    keys: Keys
    barcodes: Barcodes
    numbers: NDArray[np.int64]
    boxes: NDArray[np.int32]


class Truth:
    """Slides, mosaics, labels and calibration in SQLite; use :meth:`create` or :meth:`open`."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection
        with self._clear_errors():
            row = connection.execute("SELECT id, weights_hash, words FROM encoder").fetchone()
        if row is None:
            raise DatabaseError(f"{folder}: no encoder is recorded; build the database again.")
        self.encoder, self.weights_hash, self.words = str(row[0]), str(row[1]), int(row[2])

    @classmethod
    def create(cls, folder: Path, *, words: int, encoder: str, weights_hash: str) -> Truth:
        """Make an empty database; the folder must not hold one.

        Parameters
        ----------
        folder
            ``NAME.fish``; made where missing.
        words
            64-bit words a barcode.
        encoder, weights_hash
            The one encoder whose barcodes it will hold.
        """
        if (folder / FILE).exists():
            raise DatabaseError(f"{folder}: there is a database already; open it, or choose another name.")
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / (FILE + ".new")
        new.unlink(missing_ok=True)
        connection = sqlite3.connect(new, isolation_level=None)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("BEGIN")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO encoder VALUES (1, ?, ?, ?)", (encoder, weights_hash, words))
        connection.execute("INSERT INTO state VALUES (1, 0, NULL, NULL, NULL)")
        connection.execute("COMMIT")
        connection.close()
        # A file that is there is a whole database, even after a crash in here.
        new.rename(folder / FILE)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False) -> Truth:
        """Open a database, refusing what is not exactly one of ours."""
        path = folder / FILE
        if not path.is_file():
            raise DatabaseError(f"{folder}: no database here ({FILE} is missing).")
        uri = path.resolve().as_uri()
        if read_only:
            # A finished database has no journal: nothing can change under an immutable reader.
            uri += "?mode=ro" if path.with_name(FILE + "-wal").exists() else "?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5.0)
        try:
            _check(connection, folder)
            return cls(folder, connection)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def begin_build(self) -> None:
        """Prepare for many commits: readers go on reading while slides are added."""
        with self._clear_errors():
            self._connection.execute("PRAGMA journal_mode = WAL")

    def end_build(self) -> None:
        """Leave one complete file, fit for a read-only or network folder."""
        with self._clear_errors():
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.execute("PRAGMA journal_mode = DELETE")

    @property
    def generation(self) -> int:
        """Raised by every change."""
        with self._clear_errors():
            return int(self._connection.execute("SELECT generation FROM state").fetchone()[0])

    def commit(self, slide: EncodedSlide) -> int:
        """Add a slide, or replace it, in one transaction; return its number."""
        n, record = len(slide.keys), slide.record
        if slide.barcodes.shape != (n, self.words) or slide.barcodes.dtype != np.uint64:
            raise DatabaseError(
                f"Slide {record.slide}: barcodes of shape {slide.barcodes.shape} do not fit this database of "
                f"{self.words}-word barcodes, made with encoder {self.encoder}."
            )
        with self._transaction() as run:
            run("DELETE FROM slides WHERE slide = ?", (record.slide,))
            number = run(
                "INSERT INTO slides (slide, name, patient, site, diagnosis, labels, path, generation) "
                "SELECT ?, ?, ?, ?, ?, ?, ?, generation FROM state",
                (record.slide, record.name, record.patient, record.site, record.diagnosis,
                 json.dumps(dict(record.labels), sort_keys=True), record.path),
            ).lastrowid  # fmt: skip
            number = int(number)
            codes = np.ascontiguousarray(slide.barcodes)
            self._connection.executemany(
                "INSERT INTO mosaics VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (key, number << 24 | i, number, *box, codes[i].tobytes())
                    for i, (key, box) in enumerate(
                        zip(slide.keys.tolist(), slide.boxes.tolist(), strict=True)
                    )
                ),
            )
        return number

    def remove(self, slide: str) -> None:
        """Forget a slide."""
        with self._transaction() as run:
            if not run("DELETE FROM slides WHERE slide = ?", (slide,)).rowcount:
                raise DatabaseError(f"{self.folder}: no slide {slide!r} to remove.")

    def slides(self) -> list[tuple[int, SlideRecord]]:
        """Return all slides with their numbers, in the order of these."""
        with self._clear_errors():
            rows = self._connection.execute(
                "SELECT number, slide, name, patient, site, diagnosis, labels, path FROM slides ORDER BY number"
            ).fetchall()
        return [
            (number, SlideRecord(slide, name, patient, site, diagnosis, json.loads(labels), path))
            for number, slide, name, patient, site, diagnosis, labels, path in rows
        ]

    def mosaics(self, after: int = -1) -> Mosaics:
        """Return the mosaics of slides that came after a generation, all by default."""
        with self._clear_errors():
            rows = self._connection.execute(
                "SELECT m.key, m.slide, m.x, m.y, m.width, m.height, m.barcode FROM slides s "
                "JOIN mosaics m ON m.slide = s.number WHERE s.generation > ? ORDER BY m.id",
                (after,),
            ).fetchall()
        table = np.array([row[:6] for row in rows], np.int64).reshape(len(rows), 6)
        codes = np.frombuffer(b"".join(row[6] for row in rows), np.uint64).reshape(len(rows), self.words)
        return Mosaics(table[:, 0].copy(), codes, table[:, 1].copy(), table[:, 2:].astype(np.int32))

    @property
    def calibration(self) -> Calibration | None:
        """The distances of random pairs, where they were measured."""
        with self._clear_errors():
            threshold, histogram, note = self._connection.execute(
                "SELECT threshold, histogram, note FROM state"
            ).fetchone()
        return None if threshold is None else Calibration(np.frombuffer(histogram, np.int64), threshold, note)

    @calibration.setter
    def calibration(self, made: Calibration) -> None:
        with self._transaction(changes=False) as run:
            histogram = made.histogram.astype(np.int64).tobytes()
            run(
                "UPDATE state SET threshold = ?, histogram = ?, note = ?",
                (made.threshold, histogram, made.note),
            )

    def digest(self) -> str:
        """Return a digest of slides and mosaics, the same whatever the order in which they came."""
        found = self.mosaics()
        return content_digest(
            slide_digest(record, found.keys[mine], found.barcodes[mine], found.boxes[mine])
            for number, record in self.slides()
            for mine in [slice(*np.searchsorted(found.numbers, [number, number + 1]))]
        )

    def verify(self) -> list[str]:
        """Read everything and return what is wrong, in words."""
        with self._clear_errors():
            said = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check")]
            said += [f"mosaics of a slide that is not there: {r}" for r in self._connection.execute("PRAGMA foreign_key_check")]  # fmt: skip
        return [text for text in said if text != "ok"]

    @contextmanager
    def _transaction(self, changes: bool = True) -> Iterator[Any]:
        with self._clear_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if changes:
                    self._connection.execute("UPDATE state SET generation = generation + 1")
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _in_words(error, self.folder) from error


def _check(connection: sqlite3.Connection, folder: Path) -> None:
    """Refuse files that are not ours, are newer, or have tables we did not make."""
    try:
        for pragma in (
            "trusted_schema = OFF",
            "cell_size_check = ON",
            "foreign_keys = ON",
            "synchronous = FULL",
        ):
            connection.execute(f"PRAGMA {pragma}")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        found = {row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE sql NOTNULL")}
    except sqlite3.Error as error:
        raise _in_words(error, folder) from error
    if application != APPLICATION:
        raise DatabaseError(f"{folder}: {FILE} is not a database of napari-fish.")
    if version > VERSION:
        raise DatabaseError(f"{folder}: made by a newer napari-fish (format {version}); update to open it.")
    if found - {"CREATE TABLE sqlite_sequence(name,seq)"} != set(_SCHEMA):
        raise DatabaseError(
            f"{folder}: the tables in {FILE} are not those napari-fish makes; it is not opened."
        )


def _in_words(error: sqlite3.Error, folder: Path) -> DatabaseError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return DatabaseError(
            f"{folder}: another program is writing to this database; wait for it or stop it."
        )
    if "readonly" in text or "read-only" in text:
        return DatabaseError(f"{folder}: cannot be written to; copy the database to a folder of your own.")
    if "full" in text:
        return DatabaseError(
            f"{folder}: the disk is full; make room and run again, finished slides are kept."
        )
    return DatabaseError(f"{folder}: {FILE} is damaged or not a database ({text}); restore it from a copy.")
