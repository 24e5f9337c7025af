"""Name a slide by its content, in milliseconds, so that it is known again after a move."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable
from pathlib import Path

VERSION = "fish1"
"""Goes in front of every hash; changes whenever the way of computing it does."""
EDGE_BYTES = 64 * 1024
SAMPLE_BYTES = 16 * 1024
SAMPLES = 8
LATEST = 2**63 - 1
"""ns that a database can keep: in the year 2262. Clocks that are wrong give files of later times."""


def hash_files(paths: Iterable[Path]) -> str:
    """Hash the sizes and sampled blocks of all files of a slide, whatever they are called."""
    parts = [_hash_file(path) for path in paths]
    if not parts:
        raise ValueError("without files there is nothing that could tell one slide from another")
    return combine(parts)


def combine(parts: Iterable[bytes]) -> str:
    """Join the digests of a slide's parts, in any order, to one version-tagged hash."""
    whole = hashlib.blake2b(digest_size=16)
    for part in sorted(parts):
        whole.update(part)
    return f"{VERSION}-{whole.hexdigest()}"


def digest(*pieces: bytes) -> bytes:
    """Hash one part of a slide."""
    part = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        part.update(len(piece).to_bytes(8, "little"))
        part.update(piece)
    return part.digest()


def _hash_file(path: Path) -> bytes:
    """Hash a file's size, its ends (where TIFF keeps its directories) and a few blocks between."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        inner = max(0, size - 2 * EDGE_BYTES - SAMPLE_BYTES)
        blocks = [(0, EDGE_BYTES), (max(0, size - EDGE_BYTES), EDGE_BYTES)]
        blocks += [(EDGE_BYTES + inner * i // SAMPLES, SAMPLE_BYTES) for i in range(SAMPLES)]
        pieces = [size.to_bytes(8, "little")]
        for start, count in blocks:
            file.seek(start)
            pieces.append(file.read(count))
    return digest(*pieces)


def stamp(path: Path) -> tuple[int, int]:
    """Return the bytes of all files of a slide and the time of their last change in ns, without reading them.

    A folder counts with everything in it, and so does the folder that belongs to a Mirax file.
    """
    files = [path]
    if path.suffix.lower() == ".mrxs" and path.with_suffix("").is_dir():
        files.append(path.with_suffix(""))
    size = mtime = 0
    seen: set[tuple[int, int]] = set()
    while files:
        file = files.pop()
        status = file.stat()
        mtime = max(mtime, status.st_mtime_ns)
        if not stat.S_ISDIR(status.st_mode):
            size += status.st_size
        elif (status.st_dev, status.st_ino) not in seen:
            # Links may lead in circles.
            seen.add((status.st_dev, status.st_ino))
            files += file.iterdir()
    return size, min(mtime, LATEST)
