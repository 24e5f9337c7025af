"""One writer at a time; the lock of a program that was killed is free."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from napari_fish.errors import DatabaseError

LOCK = "write.lock"


def write_lock(folder: Path) -> FileLock:
    """Take the lock of a database, or say who is in the way; release it when done."""
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise DatabaseError(
            f"{folder}: another program is writing to this database; wait for it or stop it."
        ) from error
    except NotImplementedError as error:
        raise DatabaseError(
            f"{folder}: files cannot be locked on this network disk; build on a local disk and copy the database."
        ) from error
    except OSError as error:
        raise DatabaseError(
            f"{folder}: cannot be written to ({error.strerror or error}); "
            "copy the database to a folder of your own."
        ) from error
    return lock
