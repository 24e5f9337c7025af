"""A table from a CSV, TSV or Excel file as cells of text, whatever program wrote it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from napari_fish.errors import DatabaseError
from napari_fish.labels.excel_rows import excel_rows
from napari_fish.labels.limits import LARGEST_FILE, MOST_COLUMNS, MOST_ROWS, REMEDY, Row, too_large
from napari_fish.labels.text_rows import CONTROL, text_rows
from napari_fish.texts import enumerated

ZIP_MAGIC = b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@dataclass(frozen=True)
class Sheet:
    """A table of text.

    Attributes
    ----------
    header
        Names of the columns, stripped, as they are in the file.
    rows
        Line and cells of each row that is not empty, stripped, as many as the header has.
    notes
        What had to be guessed or was left out.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    notes: tuple[str, ...]


def read_sheet(path: Path) -> Sheet:
    """Read a table; its content decides what it is, not the ending of its name.

    Raises
    ------
    DatabaseError
        When the file is missing, empty or no table; the message says what to do.
    """
    notes: list[str] = []
    with _opened(path) as file, warnings.catch_warnings():
        # Of styles and extensions of Excel, which say nothing about the cells.
        warnings.simplefilter("ignore")
        start = file.read(len(OLE_MAGIC))
        file.seek(0)
        if start == OLE_MAGIC:
            raise DatabaseError(
                f"{path}: this is an old Excel file (.xls), or one with a password. "
                "Save it as .xlsx without a password, or as CSV (UTF-8)."
            )
        read = excel_rows if start.startswith(ZIP_MAGIC) else text_rows
        return _sheet(path, read(path, file, notes), notes)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if path.is_dir():
            raise DatabaseError(f"{path}: this is a folder. Name the labels file itself.")
        if path.exists() and not path.is_file():
            # To read a pipe could take for ever.
            raise DatabaseError(f"{path}: this is no ordinary file. Save the table as a file and name that.")
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > LARGEST_FILE:
                raise too_large(path)
            yield file
    except FileNotFoundError as error:
        raise DatabaseError(f"{path}: there is no such file. Check its name.") from error
    except OSError as error:
        raise DatabaseError(
            f"{path}: cannot be read ({error.strerror or error}). Check its permissions and its disk; "
            "if it is open in another program, close it there."
        ) from error


def _sheet(path: Path, rows: Iterable[Row], notes: list[str]) -> Sheet:
    """Take the first row that is not empty as header and fit the others to it."""
    header: list[str] = []
    kept: list[tuple[int, tuple[str, ...]]] = []
    beyond: list[str] = []
    for line, raw in rows:
        cells = [_stripped(path, line, cell) for cell in raw]
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            continue
        if len(cells) > MOST_COLUMNS or len(kept) > MOST_ROWS:
            raise too_large(path)
        if not header:
            header = [" ".join(cell.split()) for cell in cells]
            continue
        if len(cells) > len(header):
            beyond.append(str(line))
        kept.append((line, tuple(cells[: len(header)] + [""] * (len(header) - len(cells)))))
    if not header:
        raise DatabaseError(
            f"{path}: the file is empty. It needs a row with the names of columns and one row for each slide."
        )
    if beyond:
        notes.append(
            f"Cells beyond the last named column were left out, in line {enumerated(beyond)}; "
            "a delimiter inside a cell needs quotation marks around the cell."
        )
    return Sheet(tuple(header), tuple(kept), tuple(notes))


def _stripped(path: Path, line: int, cell: str) -> str:
    if "\0" in cell:
        raise DatabaseError(f"{path}: line {line} has a NUL character in it. {REMEDY}")
    return CONTROL.sub(" ", cell).strip()
