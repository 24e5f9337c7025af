"""Rows of a text file, whatever its encoding, its delimiter and the ends of its lines."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO

from napari_fish.errors import DatabaseError
from napari_fish.labels.limits import LARGEST_FILE, MOST_ROWS, REMEDY, Row, too_large

DELIMITERS = "\t;,|"
LONGEST_LINE = 2**23
"""Characters; a line of so many is none of a table of labels."""
SAMPLE = 100_000
"""Characters at the beginning that tell the delimiter."""
PIECE = 2**20
"""Bytes that are looked at together."""
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
CONTROL = re.compile(r"[\x01-\x08\x0e-\x1f\x7f]")
_SEPARATOR_LINE = re.compile(r'\s*"?sep=([\t;,|])"?[ \t]*(?:\r\n|\r|\n)', re.IGNORECASE)
_END = "\0"
DOS_END = "\x1a"
"""The end of a file, to DOS."""


def text_rows(path: Path, file: BinaryIO, notes: list[str]) -> Iterator[Row]:
    """Give the rows of a text file; what had to be guessed is noted."""
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
            raise too_large(path)
        read = ending + decoder.decode(piece, final=not piece)
        text = read.rstrip(DOS_END)
        ending = read[len(text) :]
        size += len(text)
        controls += len(CONTROL.findall(text))
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


def _lines(path: Path, text: TextIO) -> Iterator[str]:
    """Give the lines of a text, and one that comes back as a row of its own, unless a quotation mark was never closed."""
    line = text.readline(LONGEST_LINE)
    while line:
        if len(line) == LONGEST_LINE:
            raise too_large(path)
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
