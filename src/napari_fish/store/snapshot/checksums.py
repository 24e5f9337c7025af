"""Checksums of files: of all of one, and of a few blocks that can be compared whenever it is opened."""

from __future__ import annotations

import mmap
import zlib
from pathlib import Path

from napari_fish.work import ShouldStop

#: Blocks of a file that are compared when it is opened, evenly spread, the first and the last among them; and their bytes.
BLOCKS, BLOCK = 16, 4096
_CHUNK = 1 << 24


def checksum(path: Path) -> int:
    """Return the checksum of a file."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value = zlib.crc32(chunk, value)
    return value


def checksum_of_blocks(path: Path) -> int:
    """Return the checksum of some blocks of a file."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return sampled(content)


def sampled(content: mmap.mmap) -> int:
    """Return the checksum of some blocks of what a file holds: a few pages are read of it."""
    last, value = max(0, len(content) - BLOCK), 0
    for block in range(BLOCKS):
        start = last * block // (BLOCKS - 1)
        value = zlib.crc32(content[start : start + BLOCK], value)
    return value


def whole(content: mmap.mmap, should_stop: ShouldStop = lambda: False) -> int | None:
    """Return the checksum of all that a file holds; None when stopped. Other threads run meanwhile."""
    value = 0
    with memoryview(content) as octets:
        for start in range(0, len(octets), _CHUNK):
            if should_stop():
                return None
            value = zlib.crc32(octets[start : start + _CHUNK], value)
    return value
