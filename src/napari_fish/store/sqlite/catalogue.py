"""The catalogue about a database: one SQLite file, one transaction a slide.

Every change raises the generation. Slides keep the generation they came with, their numbers are never used again, and
the numbers of removed ones are noted, so a snapshot made at some generation knows what it lacks and what it must no
longer show.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import UNIVERSE
from napari_fish.store.facts import Facts
from napari_fish.store.records import (
    Calibration,
    Choice,
    EncodedSlide,
    Patches,
    Quarantined,
    SlideRecord,
    content_digest,
    slide_digest,
)
from napari_fish.store.sqlite.file import SqlFile, in_words
from napari_fish.store.sqlite.schema import FILE, FORMATS

log = logging.getLogger(__name__)

_PLAIN = "slide, name, patient, site, diagnosis, path, content_hash, size, mtime, mpp, width, height"
_SLIDE = f"{_PLAIN}, choice"
_CHUNK = 20_000
#: The parameter that tells a database from any other, so that no snapshot is taken for its own.
IDENTITY = "identity"
#: Words of the longest barcodes: distances from the centres of clusters are kept in 16 bits.
MOST_WORDS = 1023
#: Of a box, in level-0 px.
LARGEST = 2**31 - 1


class SqliteCatalogue(SqlFile):
    """Slides, patches, labels and calibration in SQLite; use :meth:`create` or :meth:`open`."""

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
        # Only a reader sees a file of the first format: to be written to, it gets the newest.
        first = self.rows("PRAGMA user_version")[0][0] == 1
        self._columns = f"{_PLAIN}, ''" if first else _SLIDE

    @classmethod
    def create(
        cls, folder: Path, *, words: int, encoder: str, weights_hash: str, parameters: Mapping[str, Any] | None = None
    ) -> SqliteCatalogue:  # fmt: skip
        """Make an empty database; the folder must not hold one.

        Parameters
        ----------
        folder
            ``NAME.fish``; made where missing.
        words
            64-bit words a barcode.
        encoder, weights_hash
            The one encoder whose barcodes it will hold.
        parameters
            What else every slide of it depends on, as plain values.
        """
        if (folder / FILE).exists():
            raise DatabaseError(f"{folder}: there is a database already; open it, or choose another name.")
        if words > MOST_WORDS:
            raise DatabaseError(
                f"{folder}: barcodes of {64 * words} bits are longer than a database keeps ({64 * MOST_WORDS}); use another encoder."
            )

        def fill(run: Any) -> None:
            run("INSERT INTO encoder VALUES (1, ?, ?, ?)", (encoder, weights_hash, words))
            run("INSERT INTO state VALUES (1, 0, NULL, NULL, NULL)")
            for name, value in {**(parameters or {}), IDENTITY: secrets.token_hex(8)}.items():
                run("INSERT INTO parameters VALUES (?, ?)", (name, json.dumps(value, sort_keys=True)))

        cls.create_file(folder / FILE, FORMATS, fill)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False) -> SqliteCatalogue:
        """Open a database, refusing what is not exactly one of ours."""
        if not (folder / FILE).is_file():
            raise DatabaseError(
                f"{folder}: no database here ({FILE} is missing); check the name, or build it first."
            )
        connection = cls.connect(folder / FILE, FORMATS, read_only=read_only)
        try:
            return cls(folder, connection)
        except BaseException:
            connection.close()
            raise

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

    def commit(self, slide: EncodedSlide) -> int:
        """Add a slide, or replace it, in one transaction; return its number."""
        n, record = len(slide.keys), slide.record
        if slide.barcodes.shape != (n, self.words) or slide.barcodes.dtype != np.uint64:
            raise DatabaseError(
                f"Slide {record.slide}: barcodes of shape {slide.barcodes.shape} do not fit this database of "
                f"{self.words}-word barcodes, made with encoder {self.encoder}."
            )
        with self._change() as run:
            _forget(run, record.slide)
            run("DELETE FROM quarantine WHERE slide = ?", (record.slide,))
            values = _values(record)
            number = run(
                f"INSERT INTO slides ({_SLIDE}, mosaics, generation) "
                f"SELECT {', '.join('?' * len(values))}, ?, generation FROM state",
                (*values, n),
            ).lastrowid
            assert number is not None
            for name, value in record.labels.items():
                run("INSERT INTO labels VALUES (?, ?, ?)", (name, number, value))
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

    def remove(self, slides: Iterable[str]) -> None:
        """Forget slides, all of them or, if one is not there, none."""
        with self._change() as run:
            for slide in slides:
                if not _forget(run, slide):
                    raise DatabaseError(f"{self.folder}: no slide {slide!r} to remove.")
                run("DELETE FROM quarantine WHERE slide = ?", (slide,))

    def relabel(self, records: Iterable[SlideRecord]) -> None:
        """Change what is known of slides, but not their patches: names, labels, where they are."""
        columns = _SLIDE.split(", ")[1:]
        with self._change() as run:
            for record in records:
                run(
                    f"UPDATE slides SET {', '.join(f'{name} = ?' for name in columns)} WHERE slide = ?",
                    (*_values(record)[1:], record.slide),
                )
                found = run("SELECT number FROM slides WHERE slide = ?", (record.slide,)).fetchone()
                if found is None:
                    raise DatabaseError(f"{self.folder}: no slide {record.slide!r}.")
                run("DELETE FROM labels WHERE slide = ?", found)
                for name, value in record.labels.items():
                    run("INSERT INTO labels VALUES (?, ?, ?)", (name, found[0], value))

    def quarantine(self, bad: Quarantined) -> None:
        """Note a slide that could not be encoded; what was encoded of it before stays."""
        with self.transaction() as run:
            run("INSERT OR REPLACE INTO quarantine VALUES (?, ?, ?)", (bad.slide, bad.path, bad.reason))

    def release(self, slides: Iterable[str]) -> None:
        """Take slides out of quarantine: they are gone, or will be tried again."""
        with self.transaction() as run:
            for slide in slides:
                run("DELETE FROM quarantine WHERE slide = ?", (slide,))

    @property
    def quarantined(self) -> list[Quarantined]:
        """Slides that could not be encoded, and why."""
        return [
            Quarantined(*row)
            for row in self.rows("SELECT slide, path, reason FROM quarantine ORDER BY slide")
        ]

    def numbers(self, after: int = -1) -> dict[int, int]:
        """Return the patches of each slide that came after a generation, by number, in the order of numbers."""
        # Left to itself SQLite would read all slides, to have them in order.
        rows = self.rows(
            "SELECT number, mosaics, generation FROM slides INDEXED BY slides_by_generation WHERE generation > ? "
            "ORDER BY number",
            (after,),
        )
        latest = self.generation  # read after the slides: it only grows
        if any(n < 0 for _, n, _ in rows):
            raise in_words(ValueError("fewer patches than none"), self.path)
        if any(came > latest for _, _, came in rows):
            # It would come after every snapshot that it is already a part of.
            raise in_words(ValueError("a slide that came after the last change"), self.path)
        if after < 0 and len(rows) != self.rows("SELECT count(*) FROM slides")[0][0]:
            # It would be in no snapshot, and nobody would miss it.
            raise in_words(ValueError("a slide that came before the first change"), self.path)
        return {int(number): int(n) for number, n, _ in rows}

    def first_number(self, after: int) -> int | None:
        """Return the lowest number of the slides that came after a generation; None where none did."""
        (found,) = self.rows(
            "SELECT min(number) FROM slides INDEXED BY slides_by_generation WHERE generation > ?", (after,)
        )
        return None if found[0] is None else int(found[0])

    def count(self) -> int:
        """Return how many patches there are."""
        return int(self.rows("SELECT count(*) FROM mosaics")[0][0])

    def patch_counts(self) -> dict[str, int]:
        """Return the patches of each slide, by its id."""
        return dict(self.rows("SELECT slide, mosaics FROM slides ORDER BY number"))

    def removed(self, after: int) -> list[int]:
        """Return the numbers of slides removed after a generation."""
        return [int(n) for (n,) in self.rows("SELECT number FROM removed WHERE generation > ?", (after,))]

    def number(self, slide: str) -> int | None:
        """Return the number of a slide, given by its id."""
        found = self.rows("SELECT number FROM slides WHERE slide = ?", (slide,))
        return int(found[0][0]) if found else None

    def with_hash(self, content_hash: str) -> list[SlideRecord]:
        """Return the slides with this content."""
        return [record for _, record in self._records("WHERE content_hash = ?", (content_hash,))]

    def record(self, number: int) -> SlideRecord:
        """Return what is known of a slide, given by number."""
        return self.records_of([number])[0]

    def records_of(self, numbers: Sequence[int]) -> list[SlideRecord]:
        """Return what is known of slides, given by number."""
        found: dict[int, SlideRecord] = {}
        for some in (numbers[at : at + _CHUNK] for at in range(0, len(numbers), _CHUNK)):
            found |= dict(self._records(f"WHERE number IN ({', '.join('?' * len(some))})", some))
        if gone := [number for number in numbers if number not in found]:
            raise DatabaseError(f"{self.folder}: slide number {gone[0]} is not there any more.")
        return [found[number] for number in numbers]

    def slides(self) -> list[tuple[int, SlideRecord]]:
        """Return all slides with their numbers, in the order of these."""
        return self._records("", ())

    def _records(self, where: str, values: Sequence[Any]) -> list[tuple[int, SlideRecord]]:
        labels: dict[int, dict[str, str]] = {}
        numbers = f"SELECT number FROM slides {where}"
        for number, name, value in self.rows(
            f"SELECT slide, name, value FROM labels WHERE slide IN ({numbers}) ORDER BY slide, name", values
        ):
            labels.setdefault(number, {})[name] = value
        rows = self.rows(f"SELECT number, {self._columns} FROM slides {where} ORDER BY number", values)
        names = _PLAIN.split(", ")
        with self.making_sense():
            return [
                (
                    number,
                    SlideRecord(
                        **dict(zip(names, row, strict=True)),
                        labels=labels.get(number, {}),
                        choice=Choice.from_json(choice),
                    ),
                )
                for number, *row, choice in rows
            ]

    def label_columns(self) -> list[str]:
        """Return the names of further columns."""
        return [str(name) for (name,) in self.rows("SELECT DISTINCT name FROM labels ORDER BY name")]

    def column(self, name: str) -> list[tuple[int, str]]:
        """Return the values of a column, in any case, with the numbers of the slides that have one."""
        low = name.lower()
        if low in ("slide", "name", "patient", "site", "diagnosis"):
            return self.rows(f"SELECT number, {low} FROM slides ORDER BY number")
        names = [other for other in self.label_columns() if other.lower() == low]
        return self.rows(
            f"SELECT slide, value FROM labels WHERE name IN ({', '.join('?' * len(names))}) ORDER BY slide",
            names,
        )

    def patches(self, after: int = -1) -> Patches:
        """Return the patches of slides that came after a generation, by slide and then as they came."""
        rows = self.rows(
            "SELECT m.key, m.slide, m.x, m.y, m.width, m.height, m.barcode FROM slides s "
            "JOIN mosaics m ON m.slide = s.number WHERE s.generation > ? ORDER BY m.id",
            (after,),
        )
        return self._patches(rows)

    def patches_of(self, number: int) -> Patches:
        """Return the patches of one slide, as they came."""
        return self._patches(
            self.rows(
                "SELECT key, slide, x, y, width, height, barcode FROM mosaics WHERE slide = ? ORDER BY id",
                (number,),
            )
        )

    def keys_of(self, number: int) -> NDArray[np.int64]:
        """Return the keys of one slide, as they came."""
        rows = self.rows("SELECT key FROM mosaics WHERE slide = ? ORDER BY id", (number,))
        with self.making_sense():
            return np.array(rows, np.int64).reshape(len(rows))

    def patches_by_key(self) -> Iterator[Patches]:
        """Give all patches in the order of keys, some at a time."""
        with self.clear_errors():
            found = self._connection.execute(
                "SELECT key, slide, x, y, width, height, barcode FROM mosaics ORDER BY key, id"
            )
            while rows := found.fetchmany(_CHUNK):
                yield self._patches(rows)

    def _patches(self, rows: list[Any]) -> Patches:
        with self.making_sense():
            table = np.array([row[:6] for row in rows], np.int64).reshape(len(rows), 6)
            codes = b"".join(row[6] for row in rows)
            if len(codes) != 8 * self.words * len(rows):
                raise ValueError("barcodes of the wrong length")
            keys, boxes = table[:, 0], table[:, 2:]
            # Kernels look for no key outside these bounds, and boxes are kept in 32 bits.
            if len(rows) and not (
                0 <= keys.min() <= keys.max() < UNIVERSE and -LARGEST <= boxes.min() <= boxes.max() <= LARGEST
            ):
                raise ValueError("keys or boxes that no patch has")
        return Patches(
            table[:, 0].copy(),
            np.frombuffer(codes, np.uint64).reshape(len(rows), self.words),
            table[:, 1].copy(),
            table[:, 2:].astype(np.int32),
        )

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

    def digest(self) -> str:
        """Return a digest of slides and patches, the same whatever the order in which they came."""
        return content_digest(self.slide_digests().values())

    def slide_digests(self) -> dict[int, bytes]:
        """Return a digest of each slide and its patches, by number."""
        with self.reading():
            return {
                number: slide_digest(record, found.keys, found.barcodes, found.boxes)
                for number, record in self.slides()
                for found in [self.patches_of(number)]
            }

    @contextmanager
    def _change(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        with self.transaction() as run:
            run("UPDATE state SET generation = generation + 1")
            yield run


def _values(record: SlideRecord) -> list[Any]:
    """Return what is written of a slide, in the order of ``_SLIDE``."""
    return [*(getattr(record, name) for name in _PLAIN.split(", ")), record.choice.to_json()]


def _forget(run: Callable[..., sqlite3.Cursor], slide: str) -> bool:
    """Delete a slide and note its number; return whether it was there."""
    found = run("SELECT number FROM slides WHERE slide = ?", (slide,)).fetchone()
    if found is None:
        return False
    run("INSERT INTO removed SELECT ?, generation FROM state", found)
    run("DELETE FROM slides WHERE number = ?", found)
    return True
