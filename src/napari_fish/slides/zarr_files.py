"""The files of a zarr hierarchy as they are stored, in a folder or a zip file."""

from __future__ import annotations

import math
import stat
import zipfile
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from zarr.storage import LocalStore, ZipStore

from napari_fish.errors import SlideError
from napari_fish.slides.pixels import MAX_BLOCK_BYTES

METADATA = ("zarr.json", ".zgroup", ".zattrs", ".zarray")
TEXTS = (*METADATA, ".zmetadata", "METADATA.ome.xml")
MOST_TEXT = 16 * 2**20
"""Bytes of a file that is parsed: as Python's values it takes many times as much memory."""
MOST_UNFOLDED = 2**28
"""Bytes of a part that a zip file has compressed: chunks are so already, so that a large one is suspect."""
EDGE_BYTES = 16 * 1024
"""Of a file's beginning and end that go into its digest."""
GOLDEN = (5**0.5 - 1) / 2


class CheckedFolder(LocalStore):
    """A folder of which only ordinary files of a bearable size are read."""

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return a file or a part of it, None when there is none."""
        check_file(self.root, key, whole=byte_range is None)
        return await super().get(key, prototype, byte_range)


class CheckedZip(ZipStore):
    """A zip file of which only what unfolds to a bearable size is read."""

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Return a file or a part of it, None when there is none."""
        with self._lock:
            if not self._is_open:
                self._sync_open()
            check_member(self._zf, key, whole=byte_range is None)
        return await super().get(key, prototype, byte_range)


def check_file(root: Path, key: str, whole: bool = True) -> None:
    """Refuse what is no ordinary file, for to read a pipe can take for ever, and what is too large to be read whole."""
    path = root / key
    try:
        status = path.stat()
    except OSError:
        return  # reading it will say why
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise SlideError(
            f"{path}: is no ordinary file, so it cannot be a part of a slide. Copy the slide again."
        )
    if whole and status.st_size > _most(key):
        raise SlideError(f"{path}: is too large to be read. Store the slide in smaller chunks.")


def check_member(archive: zipfile.ZipFile, key: str, whole: bool = True) -> None:
    """Refuse a part of a zip file that would unfold to more than can be held, or that takes long to skip through."""
    try:
        info = archive.getinfo(key)
    except KeyError:
        return
    folded = info.compress_type != zipfile.ZIP_STORED
    if (whole or folded) and info.file_size > min(_most(key), MOST_UNFOLDED if folded else MAX_BLOCK_BYTES):
        raise SlideError(
            f"{archive.filename}: {key} unfolds to {info.file_size} bytes, too large to be read. Store the slide in "
            "smaller chunks."
        )


def _most(key: str) -> int:
    return MOST_TEXT if PurePosixPath(key).name in TEXTS else MAX_BLOCK_BYTES


class ZarrFiles:
    """Gives stored files by key; a context manager, so that a zip file is opened once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._archive = None if path.is_dir() else zipfile.ZipFile(path)

    def read(self, key: str) -> bytes:
        """Return a whole file; nothing when there is none."""
        try:
            with self._open(key) as file:
                return file.read()
        except (FileNotFoundError, KeyError):
            return b""

    def edges(self, key: str) -> bytes:
        """Return a file's size and both its ends; nothing when there is none."""
        try:
            with self._open(key) as file:
                head = file.read(EDGE_BYTES)
                size = file.seek(0, 2)
                file.seek(max(len(head), size - EDGE_BYTES))
                return size.to_bytes(8, "little") + head + file.read(EDGE_BYTES)
        except (FileNotFoundError, KeyError):
            return b""

    def _open(self, key: str) -> IO[bytes]:
        key = key.lstrip("/")
        if self._archive is None:
            check_file(self.path, key, whole=PurePosixPath(key).name in TEXTS)
            return (self.path / key).open("rb")
        check_member(self._archive, key)
        return self._archive.open(key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._archive is not None:
            self._archive.close()


def spread(counts: list[int], samples: int) -> list[tuple[int, ...]]:
    """Choose places in a grid of chunks, all of them if they are few, else spread over every axis."""
    total = math.prod(counts)
    numbers = set(range(total)) if total <= samples else {int(i * GOLDEN % 1 * total) for i in range(samples)}
    return [tuple(int(i) for i in np.unravel_index(n, counts)) for n in sorted(numbers)]
