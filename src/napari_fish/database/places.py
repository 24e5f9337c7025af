"""Where slides are: relative to the database where possible, so that both can be moved together."""

from __future__ import annotations

import os
from pathlib import Path, PurePath


def recorded_path(slide: Path | None, database: Path) -> str:
    """Return a slide's path as it is kept: relative to the database's folder, else absolute."""
    if slide is None:
        return ""
    try:
        return PurePath(os.path.relpath(slide.resolve(), database.resolve().parent)).as_posix()
    except ValueError:  # another drive of Windows
        return slide.resolve().as_posix()


def place_of(recorded: str, database: Path) -> Path | None:
    """Return where a slide should be, given the path that is kept; None where none is."""
    return Path(os.path.normpath(database.resolve().parent / recorded)) if recorded else None
