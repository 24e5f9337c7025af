"""The catalogue about a database: one SQLite file, one transaction a slide.

Every change raises the generation. Slides keep the generation they came with, their numbers are never used again, and
the numbers of removed ones are noted, so a snapshot made at some generation knows what it lacks and what it must no
longer show.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from napari_fish.errors import DatabaseError
from napari_fish.store.records import EncodedSlide, SlideRecord, content_digest, slide_digest
from napari_fish.store.sqlite.patches import PatchTable
from napari_fish.store.sqlite.schema import FILE, FORMATS
from napari_fish.store.sqlite.slide_rows import CHOICE, PLAIN, SlideRows
from napari_fish.store.sqlite.state import IDENTITY, MOST_WORDS

_SLIDE = (*PLAIN, CHOICE)


class SqliteCatalogue(SlideRows, PatchTable):
    """Slides, patches, labels and calibration in SQLite; use :meth:`create` or :meth:`open`."""

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
                f"INSERT INTO slides ({', '.join(_SLIDE)}, mosaics, generation) "
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
        with self._change() as run:
            for record in records:
                run(
                    f"UPDATE slides SET {', '.join(f'{name} = ?' for name in _SLIDE[1:])} WHERE slide = ?",
                    (*_values(record)[1:], record.slide),
                )
                found = run("SELECT number FROM slides WHERE slide = ?", (record.slide,)).fetchone()
                if found is None:
                    raise DatabaseError(f"{self.folder}: no slide {record.slide!r}.")
                run("DELETE FROM labels WHERE slide = ?", found)
                for name, value in record.labels.items():
                    run("INSERT INTO labels VALUES (?, ?, ?)", (name, found[0], value))

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


def _values(record: SlideRecord) -> list[Any]:
    """Return what is written of a slide, in the order of its columns."""
    return [*(getattr(record, name) for name in PLAIN), record.choice.to_json()]


def _forget(run: Callable[..., sqlite3.Cursor], slide: str) -> bool:
    """Delete a slide and note its number; return whether it was there."""
    found = run("SELECT number FROM slides WHERE slide = ?", (slide,)).fetchone()
    if found is None:
        return False
    run("INSERT INTO removed SELECT ?, generation FROM state", found)
    run("DELETE FROM slides WHERE number = ?", found)
    return True
