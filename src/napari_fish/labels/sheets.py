"""A table from a CSV, TSV or Excel file as cells of text, whatever program wrote it."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import struct
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from napari_fish.errors import DatabaseError

Row = tuple[int, Sequence[str]]
"""Line of the file, or row of the Excel sheet, counted from 1; its cells."""

DELIMITERS = "\t;,|"
LARGEST_FILE = 256 * 2**20
"""Bytes; whatever is larger was named by mistake, a slide for instance."""
MOST_ROWS = 1_000_000
"""About as many as an Excel sheet can have; kept in memory they take a gigabyte."""
LAST_EXCEL_ROW = 2**20
MOST_CELLS = 20_000_000
MOST_COLUMNS = 1000
"""More are a table of measurements, not of labels."""
LARGEST_PART = 2**28
"""Bytes to which a part of an Excel file may unfold; a sheet of a million rows is half as large."""
LARGEST_WHOLE_PART = 2**26
"""The same for parts that are held in memory as a whole, all but the sheets."""
LONGEST_LINE = 2**23
"""Characters; a line of so many is none of a table of labels."""
SAMPLE = 100_000
"""Characters at the beginning that tell the delimiter."""
PIECE = 2**20
"""Bytes that are looked at together."""
NAMED_AT_MOST = 10
"""Things named in a note before it says how many more there are."""
ZIP_MAGIC = b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# UTF-32 first: the mark of UTF-16 is the beginning of its own.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
ENCODING_NAMES = {
    "utf-32": "UTF-32",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": "Windows-1252",
}
REMEDY = "Save the table as CSV (UTF-8) or as .xlsx."
_CONTROL = re.compile(r"[\x01-\x08\x0e-\x1f\x7f]")
_SEPARATOR_LINE = re.compile(r'\s*"?sep=([\t;,|])"?[ \t]*(?:\r\n|\r|\n)', re.IGNORECASE)
_END = "\0"
DOS_END = "\x1a"
"""The end of a file, to DOS."""


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
        warnings.simplefilter(
            "ignore"
        )  # of styles and extensions of Excel, which say nothing about the cells
        start = file.read(len(OLE_MAGIC))
        file.seek(0)
        if start == OLE_MAGIC:
            raise DatabaseError(
                f"{path}: this is an old Excel file (.xls), or one with a password. "
                "Save it as .xlsx without a password, or as CSV (UTF-8)."
            )
        read = _excel_rows if start.startswith(ZIP_MAGIC) else _text_rows
        return _sheet(path, read(path, file, notes), notes)


def enumerated(things: Sequence[str]) -> str:
    """Join things for a note, the first few by name."""
    more = len(things) - NAMED_AT_MOST
    return ", ".join(things[:NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


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
                raise _too_large(path)
            yield file
    except FileNotFoundError as error:
        raise DatabaseError(f"{path}: there is no such file. Check its name.") from error
    except OSError as error:
        raise DatabaseError(
            f"{path}: cannot be read ({error.strerror or error}). Check its permissions and its disk; "
            "if it is open in another program, close it there."
        ) from error


def _too_large(path: Path) -> DatabaseError:
    return DatabaseError(
        f"{path}: too large for a table of labels ({MOST_ROWS} rows, {MOST_COLUMNS} columns at most). Check that it is the "
        "file you meant, and leave out rows of slides that are not here."
    )


def _encoding(path: Path, file: BinaryIO) -> str:
    """Return the encoding that fits all of a file; what is no text in any is refused."""
    start = file.read(2**16)
    encoding = _encoding_of_start(start)
    for guess in (encoding,) if encoding else ("utf-8", "cp1252"):
        try:
            _check_text(path, file, guess)
        except UnicodeDecodeError:
            continue
        return guess
    raise _no_text(path)


def _encoding_of_start(start: bytes) -> str:
    for mark, encoding in MARKS:
        if start.startswith(mark):
            return encoding
    even, odd, half = start[::2].count(0), start[1::2].count(0), len(start) / 2
    # Latin letters have a zero byte each in UTF-16, on one side only.
    if odd > 0.3 * half and even < 0.1 * odd:
        return "utf-16-le"
    if even > 0.3 * half and odd < 0.1 * even:
        return "utf-16-be"
    return ""


def _check_text(path: Path, file: BinaryIO, encoding: str) -> None:
    """Read a file once, piece by piece: whether it is text in an encoding, and of no more lines than there may be."""
    decoder = codecs.getincrementaldecoder(encoding)()
    size = controls = lines = 0
    has_zeros, ending = False, ""
    file.seek(0)
    while True:
        piece = file.read(PIECE)
        lines += piece.count(b"\n")
        if lines > MOST_ROWS + 1 or file.tell() > LARGEST_FILE:
            raise _too_large(path)
        read = ending + decoder.decode(piece, final=not piece)
        text = read.rstrip(DOS_END)
        ending = read[len(text) :]
        size += len(text)
        controls += len(_CONTROL.findall(text))
        has_zeros = has_zeros or "\0" in text
        if not piece:
            break
    # A stray one happens in clinical text; where the encoding is a guess, one is enough to doubt it.
    surely_text = encoding in ("utf-8", "utf-8-sig") and controls * 20 <= size
    if has_zeros or (controls and not surely_text):
        raise _no_text(path)


def _no_text(path: Path) -> DatabaseError:
    if path.suffix.lower() == ".xls":
        return DatabaseError(
            f"{path}: old Excel files (.xls) are not read. Save it as .xlsx, or as CSV (UTF-8)."
        )
    return DatabaseError(
        f"{path}: this is no table but binary data, or text in an unknown encoding. {REMEDY}"
    )


def _text_rows(path: Path, file: BinaryIO, notes: list[str]) -> Iterator[Row]:
    encoding = _encoding(path, file)
    if encoding in ENCODING_NAMES:
        notes.append(f"The file is not UTF-8; it was read as {ENCODING_NAMES[encoding]}.")
    file.seek(0)
    text = io.TextIOWrapper(file, encoding, newline="")
    start = text.read(SAMPLE).rstrip(DOS_END)
    text.seek(0)
    declared = _SEPARATOR_LINE.match(start)
    if declared is not None:
        delimiter, before = declared[1], len(re.findall(r"\r\n|\r|\n", declared[0]))
        text.read(declared.end())
    else:
        delimiter, before = _delimiter(start), 0
    reader = csv.reader(_lines(path, text), delimiter=delimiter, skipinitialspace=True)
    line, cells = before + 1, [""]
    try:
        for cells in reader:
            if cells == [_END]:
                return
            if cells and cells[-1].endswith(_END):
                break
            yield line, cells
            line = before + reader.line_num + 1
    except UnicodeDecodeError as error:  # somebody writes to it
        raise _no_text(path) from error
    except csv.Error as error:
        raise DatabaseError(
            f"{path}: the row at line {line} cannot be read ({error}). Correct its quotation marks."
        ) from error
    raise DatabaseError(
        f'{path}: the row at line {line} opens a quotation mark (") that is never closed. Close it or remove it.'
    )


def _lines(path: Path, text: TextIO) -> Iterator[str]:
    """Give the lines of a text, and one that comes back as a row of its own, unless a quotation mark was never closed."""
    line = text.readline(LONGEST_LINE)
    while line:
        if len(line) == LONGEST_LINE:
            raise _too_large(path)
        following = text.readline(LONGEST_LINE)
        yield line if following else line.rstrip(DOS_END) + "\n"
        line = following
    yield _END


def _delimiter(text: str) -> str:
    """Return the delimiter by which most rows have as many cells as the header, and the header most."""
    best, best_score = ",", (0.0, 1)
    for delimiter in DELIMITERS:
        lines = io.StringIO(text, newline="")
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        widths = [len(cells) for cells in islice((row for row in reader if any(row)), 100)]
        if not widths or widths[0] < 2:
            continue
        alike = sum(width == widths[0] for width in widths) / len(widths)
        if (alike, widths[0]) > best_score:
            best, best_score = delimiter, (alike, widths[0])
    return best


def _excel_rows(path: Path, file: BinaryIO, notes: list[str]) -> Iterator[Row]:
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
            raise _too_large(path)


def _sheet_rows(path: Path, sheet: Any, errors: list[str]) -> Iterator[Row]:
    """Give the rows of a sheet that are not empty, without empty cells at their ends."""
    looked_at = kept = 0
    for number, cells in enumerate(sheet.iter_rows(), 1):
        looked_at += len(cells)
        texts = [_cell_text(cell, errors) for cell in cells]
        while texts and not texts[-1]:
            texts.pop()
        kept += len(texts)
        too_many = kept > MOST_CELLS or looked_at > 5 * MOST_CELLS or number > LAST_EXCEL_ROW
        if too_many or len(texts) > MOST_COLUMNS:
            raise _too_large(path)
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
            raise _too_large(path)
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
    return _CONTROL.sub(" ", cell).strip()
