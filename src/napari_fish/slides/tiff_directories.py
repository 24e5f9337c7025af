"""The directories of a TIFF, followed before any library does: some follow a circle for ever."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MOST_DIRECTORIES = 100_000
"""More than any slide has, stacks included."""
SUB_DIRECTORIES = 330
NDPI = 65420
"""The tag by which Hamamatsu's TIFFs are known: their offsets have 64 bits though their header says otherwise."""
OFFSET_SIZES = {4: 4, 13: 4, 16: 8, 18: 8}
"""Bytes of the types that offsets are stored as."""


@dataclass(frozen=True)
class Layout:
    """How numbers are stored: order of bytes, and formats of a count of tags, of an offset, of a tag."""

    order: str
    count: str
    offset: str
    tag: str

    def read(self, file: BinaryIO, form: str) -> tuple[int, ...]:
        """Return the numbers at the place of a file."""
        form = self.order + form
        return struct.unpack(form, file.read(struct.calcsize(form)))


CLASSIC, BIG = ("H", "I", "HHI4s"), ("Q", "Q", "HHQ8s")


def why_endless(path: Path) -> str:
    """Say why following the directories of a TIFF would not end; empty when it would. Nothing else is checked."""
    size = path.stat().st_size
    with path.open("rb") as file:
        layout, first = _header(file, size)
        on_the_way, done = set[int](), set[int]()
        # A directory is left by the way it was entered, so that one that two others name is no circle.
        way: list[tuple[int, Iterator[int]]] = [(0, iter([first]))]
        while way:
            here, following = way[-1]
            offset = next((offset for offset in following if 0 < offset < size and offset not in done), None)
            if offset is None:
                way.pop()
                on_the_way.discard(here)
                done.add(here)
            elif offset in on_the_way:
                return "its directories form a circle; the file is damaged. Copy it again."
            elif len(done) + len(way) > MOST_DIRECTORIES:
                return f"holds more than {MOST_DIRECTORIES} images, so it is no slide. Save the one you want by itself."
            else:
                on_the_way.add(offset)
                way.append((offset, iter(_following(file, layout, offset, size))))
    return ""


def _header(file: BinaryIO, size: int) -> tuple[Layout, int]:
    """Return how a TIFF stores numbers, and where its first directory is."""
    start = file.read(16).ljust(16, b"\0")
    order = "<" if start[:2] == b"II" else ">"
    if start[2:4] in (b"+\0", b"\0+"):
        return Layout(order, *BIG), struct.unpack(order + "Q", start[8:])[0]
    (first,), (long,) = struct.unpack(order + "I", start[4:8]), struct.unpack(order + "Q", start[4:12])
    # Only Hamamatsu's offsets can be that long; in other files it is no offset but whatever comes next.
    return Layout(order, *CLASSIC), long if order == "<" and 2**32 <= long < size else first


def _following(file: BinaryIO, layout: Layout, offset: int, size: int) -> list[int]:
    """Return where the directories are that one directory names, the next one last; none where it makes no sense."""
    file.seek(offset)
    try:
        (count,) = layout.read(file, layout.count)
        length = struct.calcsize(layout.order + layout.tag)
        if count * length >= size:
            return []
        tags = list(struct.iter_unpack(layout.order + layout.tag, file.read(count * length)))
        long = any(code == NDPI for code, *_ in tags)
        following = layout.read(file, "Q" if long else layout.offset)
        inner = [_sub_directories(file, layout, *tag[1:]) for tag in tags if tag[0] == SUB_DIRECTORIES]
    except struct.error:
        return []
    return [*(offset for offsets in inner for offset in offsets), *following]


def _sub_directories(file: BinaryIO, layout: Layout, kind: int, count: int, value: bytes) -> tuple[int, ...]:
    width = OFFSET_SIZES.get(kind, 0)
    if not width or count > MOST_DIRECTORIES:
        return ()
    form = f"{count}{'Q' if width == 8 else 'I'}"
    if width * count <= len(value):
        return struct.unpack_from(layout.order + form, value)
    file.seek(struct.unpack(layout.order + layout.offset, value)[0])
    return layout.read(file, form)
