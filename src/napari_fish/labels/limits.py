"""How large a table of labels may be, and what is said of one that is larger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from napari_fish.errors import DatabaseError

Row = tuple[int, Sequence[str]]
"""Line of the file, or row of the Excel sheet, counted from 1; its cells."""

LARGEST_FILE = 256 * 2**20
"""Bytes; whatever is larger was named by mistake, a slide for instance."""
MOST_ROWS = 1_000_000
"""About as many as an Excel sheet can have; kept in memory they take a gigabyte."""
MOST_COLUMNS = 1000
"""More are a table of measurements, not of labels."""
REMEDY = "Save the table as CSV (UTF-8) or as .xlsx."


def too_large(path: Path) -> DatabaseError:
    """Return the error for a table that is larger."""
    return DatabaseError(
        f"{path}: too large for a table of labels ({MOST_ROWS} rows, {MOST_COLUMNS} columns at most). Check that it is the "
        "file you meant, and leave out rows of slides that are not here."
    )
