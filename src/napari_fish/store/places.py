"""Where slides are: relative to the database where possible, so that both can be moved together."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TypeGuard


def recorded_path(slide: Path | None, database: Path) -> str:
    """Return a slide's path as it is kept: relative to the database's folder, else absolute."""
    if slide is None:
        return ""
    try:
        path = PurePath(os.path.relpath(slide.resolve(), database.resolve().parent)).as_posix()
    except ValueError:  # another drive of Windows
        path = slide.resolve().as_posix()
    # SQLite keeps valid Unicode only; a slide with another name is refused, but must be named.
    return path.encode("utf-8", "backslashreplace").decode()


def place_of(recorded: str, database: Path) -> Path | None:
    """Return where a slide should be, given the path that is kept; None where none is."""
    return Path(os.path.normpath(database.resolve().parent / recorded)) if recorded else None


def is_there(place: Path | None) -> TypeGuard[Path]:
    """Whether there is a file; none is where no file can be, for a name that is too long, or where nobody may look."""
    return place is not None and os.path.exists(place)
