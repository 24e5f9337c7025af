"""Small pictures of patches and slides, so that results show when the slides' disk is away.

They may be deleted at any time: whatever is wrong with the file, it is made anew, without the pictures that were in it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from napari_fish.errors import DatabaseError
from napari_fish.store.records import Box
from napari_fish.store.sqlite.file import SqlFile

log = logging.getLogger(__name__)

Run = Callable[..., sqlite3.Cursor]

FILE = "thumbnails.sqlite"
FORMATS = (
    (
        "CREATE TABLE overviews (slide TEXT PRIMARY KEY, jpeg BLOB NOT NULL) STRICT, WITHOUT ROWID",
        """CREATE TABLE mosaics (
    slide TEXT NOT NULL, x INTEGER NOT NULL, y INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
    jpeg BLOB NOT NULL, PRIMARY KEY (slide, x, y, width, height)
) STRICT, WITHOUT ROWID""",
    ),
)


class Thumbnails(SqlFile):
    """JPEG pictures by slide and box; use :meth:`open_to_read` or :meth:`open_to_write`."""

    @classmethod
    def open_to_read(cls, folder: Path) -> Thumbnails | None:
        """Open the pictures of a database; None where there are none to be had."""
        path = folder / FILE
        try:
            return cls(path, cls.connect(path, FORMATS, read_only=True)) if path.is_file() else None
        except DatabaseError as error:
            log.info("%s", error)
            return None

    @classmethod
    def open_to_write(cls, folder: Path) -> Thumbnails:
        """Open the pictures of a database, making the file anew where it is missing or damaged."""
        path = folder / FILE
        try:
            if path.is_file():
                return cls(path, cls.connect(path, FORMATS, durable=False))
        except DatabaseError as error:
            log.warning("%s The thumbnails are made anew.", error)
        return cls(path, cls._made_anew(path))

    @classmethod
    def _made_anew(cls, path: Path) -> sqlite3.Connection:
        try:
            for ending in ("", "-journal", "-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
        except OSError as error:
            raise DatabaseError(f"{path}: cannot be replaced ({error.strerror}).") from error
        cls.create_file(path, FORMATS, lambda run: None)
        return cls.connect(path, FORMATS, durable=False)

    def save(
        self, slide: str, overview: bytes, boxes: Sequence[Sequence[int]], patches: Sequence[bytes]
    ) -> None:
        """Keep the pictures of a slide instead of those it had.

        Parameters
        ----------
        slide
            Its id.
        overview
            JPEG of the whole slide; empty for none.
        boxes, patches
            x, y, width, height in level-0 px of each patch, and its JPEG.
        """

        def keep(run: Run) -> None:
            _forget(run, slide)
            if overview:
                run("INSERT INTO overviews VALUES (?, ?)", (slide, overview))
            for box, jpeg in zip(boxes, patches, strict=True):
                run("INSERT OR REPLACE INTO mosaics VALUES (?, ?, ?, ?, ?, ?)", (slide, *map(int, box), jpeg))

        self._change(keep)

    def remove(self, slide: str) -> None:
        """Forget the pictures of a slide."""
        self._change(lambda run: _forget(run, slide))

    def _change(self, change: Callable[[Run], None]) -> None:
        """Change the file; one that turns out to be damaged is made anew."""
        try:
            with self.transaction() as run:
                change(run)
        except DatabaseError as error:
            if not isinstance(error.__cause__, sqlite3.DatabaseError) or "malformed" not in str(error):
                raise
            log.warning("%s The thumbnails are made anew.", error)
            self._connection.close()
            self._connection = self._made_anew(self.path)
            with self.transaction() as run:
                change(run)

    def overview(self, slide: str) -> bytes | None:
        """Return the JPEG of a whole slide."""
        found = self._found("SELECT jpeg FROM overviews WHERE slide = ?", (slide,))
        return bytes(found[0][0]) if found else None

    def patch(self, slide: str, box: Box) -> bytes | None:
        """Return the JPEG of a patch."""
        found = self._found(
            "SELECT jpeg FROM mosaics WHERE slide = ? AND x = ? AND y = ? AND width = ? AND height = ?",
            (slide, *box),
        )
        return bytes(found[0][0]) if found else None

    def patches(self, slide: str) -> list[tuple[Box, bytes]]:
        """Return all boxes of a slide with their pictures."""
        rows = self._found("SELECT x, y, width, height, jpeg FROM mosaics WHERE slide = ?", (slide,))
        return [(Box(*row[:4]), bytes(row[4])) for row in rows]

    def _found(self, sql: str, values: Sequence[object]) -> list[Any]:
        """Return the lines of an answer; none where the file is damaged: pictures are not worth an error."""
        try:
            return self.rows(sql, values)
        except DatabaseError as error:
            log.info("%s", error)
            return []


def _forget(run: Run, slide: str) -> None:
    run("DELETE FROM overviews WHERE slide = ?", (slide,))
    run("DELETE FROM mosaics WHERE slide = ?", (slide,))
