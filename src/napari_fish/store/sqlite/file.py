"""Our SQLite files: how they are made, recognised and opened, and what their errors mean in words."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from napari_fish.errors import DatabaseError

APPLICATION = 0x46495348
#: What a journal begins with.
_JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
#: What SQLite raises; of a damaged file even its own words may not be text.
ERRORS = (sqlite3.Error, UnicodeDecodeError)
#: The statements that make each format of a file from the one before, the first from nothing.
Formats = tuple[tuple[str, ...], ...]


class SqlFile:
    """One open SQLite file of ours.

    Parameters
    ----------
    path
        The file.
    connection
        An open connection to it.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._turn, self._asking = threading.RLock(), threading.Lock()
        self._users, self._closing, self._counting = 0, False, threading.Lock()

    @staticmethod
    def create_file(path: Path, formats: Formats, fill: Callable[[Any], None]) -> None:
        """Make a file; one that is there is whole, even after a crash in here.

        Parameters
        ----------
        path
            The file to make.
        formats
            What makes its tables.
        fill
            Called with a function that runs SQL, to write the first rows.
        """
        new = path.with_name(path.name + ".new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for left in (new, new.with_name(new.name + "-journal")):
                left.unlink(missing_ok=True)
            connection = sqlite3.connect(new, isolation_level=None)
        except OSError as error:
            raise DatabaseError(f"{path.parent}: cannot be written to ({error.strerror}).") from error
        except ERRORS as error:
            raise in_words(error, path) from error
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute("BEGIN")
            _advance(connection, formats)
            fill(connection.execute)
            connection.execute("COMMIT")
        except ERRORS as error:
            raise in_words(error, path) from error
        finally:
            connection.close()
        new.rename(path)

    @staticmethod
    def connect(
        path: Path, formats: Formats, *, read_only: bool = False, durable: bool = True
    ) -> sqlite3.Connection:  # fmt: skip
        """Open a file, refusing what is not exactly one of ours; to be written to, it gets the newest format."""
        uri = path.resolve().as_uri()
        if read_only:
            uri += "?mode=ro"
            if _was_interrupted(path):
                _undo(path)
            # A folder we cannot write to changes under nobody, and SQLite could not lock a file in it.
            elif not os.access(path.parent, os.W_OK) and not _has_log(path):
                uri += "&immutable=1"
        try:
            connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, timeout=5.0, check_same_thread=False
            )
        except ERRORS as error:
            raise in_words(error, path) from error
        try:
            version = _check(connection, path, formats)
            if version < len(formats) and not read_only:
                _migrate(connection, path, formats)
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
            # Who was removed must not be readable in the gaps of the file.
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Let go of the file, as soon as no other thread asks it anything: closed under one, Python itself would end."""
        with self._counting:
            self._closing = True
            self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._closing and not self._users:
            self._connection.close()

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        with self._counting:
            self._users += 1
        try:
            yield
        finally:
            with self._counting:
                self._users -= 1
                self._close_if_unused()

    def integrity(self) -> list[str]:
        """Read the whole file and return what is wrong, in words."""
        try:
            with self._in_use():
                said = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check")]
                said += [
                    f"a line of table {row[0]} refers to a slide that is not there"
                    for row in self._connection.execute("PRAGMA foreign_key_check")
                ]
        except ERRORS as error:
            said = [str(error)]
        return [f"{self.path}: {text}" for text in said if text != "ok"]

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a question and return all lines of the answer."""
        # Connections keep their statements: of two threads that ask the same, one would move the other's on.
        with self.clear_errors(), self._asking:
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """Do several changes wholly or not at all."""
        with self._in_one("BEGIN IMMEDIATE"):
            yield self._connection.execute

    def reading(self) -> AbstractContextManager[None]:
        """Ask several questions about one and the same state, whatever others write meanwhile."""
        with self.clear_errors():
            is_nested = self._connection.in_transaction
        return nullcontext() if is_nested else self._in_one("BEGIN")

    @contextmanager
    def _in_one(self, begin: str) -> Iterator[None]:
        with self._turn, self.clear_errors():
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk or a damaged file has ended the transaction already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def making_sense(self) -> Iterator[None]:
        """Make of values what they should be; where that fails, they are not what was written."""
        try:
            yield
        except (TypeError, ValueError, IndexError, OverflowError, AttributeError, RecursionError) as error:
            raise in_words(error, self.path) from error

    @contextmanager
    def clear_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into ours, and keep the file open meanwhile."""
        try:
            with self._in_use():
                yield
        except ERRORS as error:
            raise in_words(error, self.path) from error


def _check(connection: sqlite3.Connection, path: Path, formats: Formats) -> int:
    """Refuse files that are not ours, are newer, or have tables we did not make; return the number of the format."""
    try:
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        found = _tables(connection)
    except ERRORS as error:
        raise in_words(error, path) from error
    if application != APPLICATION:
        raise DatabaseError(f"{path}: not a database of napari-fish.")
    if version > len(formats):
        raise DatabaseError(
            f"{path.parent}: made by a newer napari-fish (format {version}); update to open it."
        )
    if version < 1 or found != _expected(formats[:version]):
        raise DatabaseError(
            f"{path}: its tables are not those napari-fish makes, so it is not opened; restore it from a copy."
        )
    return version


@cache
def _expected(formats: Formats) -> frozenset[str]:
    """Return the tables a file has after these formats."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        _advance(memory, formats)
        return _tables(memory)


def _tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Return what made the tables; versions of SQLite space a column that was added later differently."""
    made = (row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE sql NOTNULL"))
    return frozenset(" ".join(re.sub(r"[(),]", r" \g<0> ", sql).split()) for sql in made)


def _advance(connection: sqlite3.Connection, formats: Formats) -> None:
    """Bring tables from the format they have to the newest."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    for statement in (statement for steps in formats[version:] for statement in steps):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(formats)}")


def _migrate(connection: sqlite3.Connection, path: Path, formats: Formats) -> None:
    """Bring a file to the newest format, wholly or not at all."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            _advance(connection, formats)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    except ERRORS as error:
        raise in_words(error, path) from error


def _has_log(path: Path) -> bool:
    """Whether there are changes beside the file that are not in it yet."""
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _was_interrupted(path: Path) -> bool:
    """Whether there is a journal beside the file, by which a change that was not finished is undone."""
    journal = path.with_name(path.name + "-journal")
    try:
        with journal.open("rb") as file:
            return file.read(len(_JOURNAL)) == _JOURNAL
    except FileNotFoundError:
        return False
    except OSError as error:
        raise DatabaseError(
            f"{journal}: cannot be read ({error.strerror}); check its permissions."
        ) from error


def _undo(path: Path) -> None:
    """Have SQLite undo what a program that was killed had begun; of one that is still at work nothing is undone."""
    if not (os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)):
        raise DatabaseError(
            f"{path.parent}: a change to this database is not finished. If nobody is at work on it, it was interrupted, and undoing "
            f"it means to write to {path.name}, which you may not: open the database once as somebody who may, or copy the "
            "whole folder to one of your own and open the copy."
        )
    try:
        with closing(
            sqlite3.connect(path.resolve().as_uri() + "?mode=rw", uri=True, timeout=5.0)
        ) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except ERRORS as error:
        raise in_words(error, path) from error


def in_words(error: Exception, path: Path) -> DatabaseError:
    """Say what an error of SQLite means for the user."""
    text, folder = str(error), path.parent
    if "closed database" in text:
        return DatabaseError(f"{folder}: this database was closed; open it again.")
    if "locked" in text or "busy" in text:
        return DatabaseError(
            f"{folder}: another program is writing to this database; wait for it or stop it."
        )
    if "unable to open" in text:
        return DatabaseError(
            f"{folder}: {path.name} cannot be opened; check the permissions of file and folder."
        )
    if getattr(error, "sqlite_errorname", "") in ("SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY"):
        return DatabaseError(
            f"{folder}: a program that was changing this database was stopped; what it had begun is undone when you open it again."
        )
    if "readonly" in text or "read-only" in text:
        return DatabaseError(f"{folder}: cannot be written to; copy the database to a folder of your own.")
    if "full" in text:
        return DatabaseError(
            f"{folder}: the disk is full; make room and run again, finished slides are kept."
        )
    if "I/O error" in text:
        return DatabaseError(
            f"{folder}: the disk failed to read or write {path.name} ({text}); check the disk, the network and your "
            "quota, then run again: finished slides are kept."
        )
    return DatabaseError(
        f"{folder}: {path.name} is damaged or not a database ({text}); restore it from a copy, or build it again."
    )
