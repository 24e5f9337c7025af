"""The files of a zarr hierarchy as they are stored, in a folder or a zip file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np

EDGE_BYTES = 16 * 1024
"""Of a file's beginning and end that go into its digest."""
GOLDEN = (5**0.5 - 1) / 2


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
        return (self.path / key).open("rb") if self._archive is None else self._archive.open(key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._archive is not None:
            self._archive.close()


def spread(counts: list[int], samples: int) -> list[tuple[int, ...]]:
    """Choose places in a grid of chunks, all of them if they are few, else spread over every axis."""
    total = int(np.prod(counts))
    numbers = set(range(total)) if total <= samples else {int(i * GOLDEN % 1 * total) for i in range(samples)}
    return [tuple(int(i) for i in np.unravel_index(n, counts)) for n in sorted(numbers)]
