"""Where slides are: relative to the database where possible, so that both can be moved together."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TypeGuard

Location = str | Path
"""Where a database is; a plain value, of which nobody but a store knows whether it is a folder."""


def absolute(database: Location) -> Location:
    """Return a location that means the same to any process."""
    return Path(database).resolve()


def recorded_path(slide: Path | None, database: Location) -> str:
    """Return a slide's path as it is kept: relative to where the database is, else absolute."""
    if slide is None:
        return ""
    try:
        path = PurePath(os.path.relpath(slide.resolve(), _beside(database))).as_posix()
    except ValueError:  # another drive of Windows
        path = slide.resolve().as_posix()
    # SQLite keeps valid Unicode only; a slide with another name is refused, but must be named.
    return path.encode("utf-8", "backslashreplace").decode()


def place_of(recorded: str, database: Location) -> Path | None:
    """Return where a slide should be, given the path that is kept; None where none is."""
    return Path(os.path.normpath(_beside(database) / recorded)) if recorded else None


def _beside(database: Location) -> Path:
    return Path(database).resolve().parent


def is_there(place: Path | None) -> TypeGuard[Path]:
    """Whether there is a file; none is where no file can be, for a name that is too long, or where nobody may look."""
    return place is not None and os.path.exists(place)
