"""Texts that leave the program: what names of files may not do to a terminal, a spreadsheet or a folder; JSON that comes in."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

LONGEST_NAME = 255
"""Bytes that common file systems allow in the name of a file."""
NAMED_AT_MOST = 10
"""Things named in a note before it says how many more there are."""
# Control characters of both sets, line separators, and what turns the direction of writing around.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NUMBERS = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?(,[+-]?\d+(\.\d+)?)*")
_FORMULA = ("=", "+", "-", "@", "\t")

NoteKind = Literal[
    "query",
    "patient",
    "threshold",
    "neighbours",
    "filled",
    "short",
    "far",
    "labels",
    "masks",
    "files",
    "workers",
]
"""What a note is about; code goes by this, never by words."""


@dataclass(frozen=True)
class Note:
    """What the reader must know.

    Attributes
    ----------
    kind
        What it is about: what of the query was searched, whose slide it is, what counts as near, how neighbours were found,
        what was filled in, why there is less than was asked for, that nothing is near; labels, masks or files of a build, and who worked.
    text
        The same in words.
    """

    kind: NoteKind
    text: str

    def __str__(self) -> str:
        return self.text


def noted(kind: NoteKind, texts: Iterable[str]) -> list[Note]:
    """Return texts as notes of one kind."""
    return [Note(kind, text) for text in texts]


def printable(text: str, keep: str = "\n\t") -> str:
    """Return a text in which control characters are written out, as Python writes them, but for those to keep."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in keep else _written_out(found[0]), text)


def one_line(text: str) -> str:
    """Return a text, such as the name of a file, that cannot look like several lines or columns."""
    return printable(text, keep="")


def parsed_json(document: str | bytes) -> Any:
    """Return what a JSON document says; whatever is wrong with it is a ValueError, nesting without end included."""
    try:
        return json.loads(document)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def json_safe(document: str) -> str:
    """Return a JSON document whose strings hold no control characters, but their escapes."""
    return _CONTROL.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", document)


def cell(value: Any) -> Any:
    """Return a value for a table that spreadsheets open: text that would be a formula gets an apostrophe in front.

    Numbers, and text that is nothing but numbers, stay as they are; control characters are written out, as a carriage
    return would begin another line of the table.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBERS.fullmatch(text) else text


def file_stem(text: str, reserved: int) -> str:
    """Return a text as part of the name of a file.

    Parameters
    ----------
    text
        Any text; where it is shortened, a digest of all of it keeps it apart from others that begin alike.
    reserved
        Bytes that the rest of the name takes.
    """
    stem = re.sub(r"[^\w.,\- ()]+", "_", text).strip(". ") or "query"
    room = LONGEST_NAME - reserved
    if len(stem.encode(errors="replace")) <= room:
        return stem
    digest = hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=5).hexdigest()
    short = stem.encode(errors="replace")[: room - len(digest) - 1].decode(errors="ignore")
    return f"{short.strip('. ')}-{digest}"


def count(number: int, what: str) -> str:
    """Return a number of things in words."""
    ending = "" if number == 1 else "es" if what.endswith("ch") else "s"
    return f"{number:,} {what}{ending}".replace(",", "\u202f")


def enumerated(things: Sequence[str]) -> str:
    """Join things for a note, the first few by name."""
    more = len(things) - NAMED_AT_MOST
    return ", ".join(things[:NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    """Lay rows out for a terminal, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def in_bytes(size: float) -> str:
    """Return a size for people."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def duration(seconds: float) -> str:
    """Return a time span for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours / 24:.1f} days"


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode()
