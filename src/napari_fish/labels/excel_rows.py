"""Rows of an Excel workbook, as a person sees them."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, BinaryIO

from napari_fish.errors import DatabaseError
from napari_fish.labels.limits import MOST_COLUMNS, REMEDY, Row, too_large
from napari_fish.texts import enumerated

LAST_ROW = 2**20
MOST_CELLS = 20_000_000
LARGEST_PART = 2**28
"""Bytes to which a part of an Excel file may unfold; a sheet of a million rows is half as large."""
LARGEST_WHOLE_PART = 2**26
"""The same for parts that are held in memory as a whole, all but the sheets."""


def excel_rows(path: Path, file: BinaryIO, notes: list[str]) -> Iterator[Row]:
    """Give the rows of the first sheet that is visible and not empty."""
    _check_parts(path, file)
    try:
        import openpyxl
    except ImportError as error:
        raise DatabaseError(
            f"{path}: Excel files need openpyxl. Install it (pip install openpyxl), or save the table as CSV."
        ) from error
    title, errors = "", list[str]()
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        for sheet in sheets:
            sheet.reset_dimensions()  # they are what the file claims, often a million of empty rows
            errors = []
            for row in _sheet_rows(path, sheet, errors):
                title = sheet.title
                yield row
            if title:
                break
    except DatabaseError:
        raise
    except Exception as error:  # openpyxl lets through whatever its parsers meet: zip, XML, key, type errors
        raise DatabaseError(
            f"{path}: this is no Excel workbook that can be read ({type(error).__name__}: {error}). {REMEDY}"
        ) from error
    if title and len(sheets) > 1:
        notes.append(f"Of {len(sheets)} sheets only “{title}” was read.")
    if title and errors:
        notes.append(f"Cells with an Excel error are empty: {enumerated(errors)}.")


def _check_parts(path: Path, file: BinaryIO) -> None:
    """Refuse an Excel file that unfolds to more than can be held."""
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error):
        return  # whoever reads it will say what is wrong
    for part in parts:
        is_sheet = "/worksheets/" in f"/{part.filename}"
        if part.file_size > (LARGEST_PART if is_sheet else LARGEST_WHOLE_PART):
            raise too_large(path)


def _sheet_rows(path: Path, sheet: Any, errors: list[str]) -> Iterator[Row]:
    """Give the rows of a sheet that are not empty, without empty cells at their ends."""
    looked_at = kept = 0
    for number, cells in enumerate(sheet.iter_rows(), 1):
        looked_at += len(cells)
        texts = [_cell_text(cell, errors) for cell in cells]
        while texts and not texts[-1]:
            texts.pop()
        kept += len(texts)
        too_many = kept > MOST_CELLS or looked_at > 5 * MOST_CELLS or number > LAST_ROW
        if too_many or len(texts) > MOST_COLUMNS:
            raise too_large(path)
        if texts:
            yield number, texts


def _cell_text(cell: Any, errors: list[str]) -> str:
    """Return the value of an Excel cell as Excel would write it to CSV, dates as ISO."""
    value = cell.value
    if value is None:
        return ""
    if cell.data_type == "e":
        errors.append(f"{cell.coordinate} ({value})")
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, int | float):
        text = str(int(value)) if value == int(value) else f"{value:.15g}"
        # Numbers of patients are often shown with leading zeros by a format such as 00000.
        return text.zfill(len(cell.number_format)) if re.fullmatch("0+", cell.number_format) else text
    return str(value)
