"""Arrays in a folder, memory-mapped: written once, whole or not at all, and checked when opened.

A part (the main part or a delta) is a folder of ``.npy`` files and a manifest with the size and checksum of each and
the generation of the data they were made from. Sizes and generation are checked when a part is opened, checksums
when asked for. Parts are disposable: whatever is wrong with one, it is made again from the truth.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import DatabaseError

MANIFEST = "manifest.json"
FORMAT = 1
_CHUNK = 1 << 24


class SnapshotError(DatabaseError):
    """A part is missing, stale or damaged: make it again."""


def write_part(folder: Path, arrays: Mapping[str, NDArray[Any]], generation: int) -> None:
    """Write arrays as a part, replacing what was there; a crash leaves the old part or none, never half of one.

    Parameters
    ----------
    folder
        Where the part will be.
    arrays
        What it consists of, by name.
    generation
        Of the data the arrays were made from.
    """
    new = folder.with_name(folder.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    files = {}
    for name, array in arrays.items():
        path = new / f"{name}.npy"
        with path.open("wb") as file:
            np.save(file, array, allow_pickle=False)
            _to_disk(file.fileno())
        files[name] = {"size": path.stat().st_size, "checksum": _checksum(path)}
    with (new / MANIFEST).open("w", encoding="utf-8") as text:
        json.dump({"format": FORMAT, "generation": generation, "files": files}, text, indent=1)
        text.flush()
        _to_disk(text.fileno())
    _folder_to_disk(new)
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    _folder_to_disk(folder.parent)
    # Readers that have the old files mapped keep them until they let go.
    shutil.rmtree(old, ignore_errors=True)


def open_part(folder: Path, generation: int) -> dict[str, NDArray[Any]]:
    """Map the arrays of a part, by name; raise :class:`SnapshotError` when it is not what it should be."""
    manifest = _manifest(folder)
    if manifest["generation"] != generation:
        raise SnapshotError(
            f"{folder}: made from generation {manifest['generation']} of the data, which is at {generation} now."
        )
    arrays = {}
    for name, facts in manifest["files"].items():
        path = folder / f"{name}.npy"
        try:
            if path.stat().st_size != facts["size"]:
                raise SnapshotError(f"{path}: {path.stat().st_size} bytes, {facts['size']} were written.")
            arrays[name] = _mapped(path)
        except (OSError, ValueError) as error:
            raise SnapshotError(f"{path}: cannot be read ({error}).") from error
    return arrays


def verify_part(folder: Path) -> list[str]:
    """Read everything and return what is wrong, in words; nothing if all is well."""
    try:
        manifest = _manifest(folder)
    except SnapshotError as error:
        return [str(error)]
    wrong = []
    for name, facts in manifest["files"].items():
        path = folder / f"{name}.npy"
        if not path.is_file():
            wrong.append(f"{path}: missing.")
        elif path.stat().st_size != facts["size"]:
            wrong.append(f"{path}: {path.stat().st_size} bytes, {facts['size']} were written.")
        elif _checksum(path) != facts["checksum"]:
            wrong.append(f"{path}: the content is not what was written.")
    return wrong


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise SnapshotError(
                f"{folder}: written in format {manifest['format']}, this program reads {FORMAT}."
            )
        for name, facts in manifest["files"].items():
            if Path(name).name != name or not isinstance(facts["size"], int):
                raise ValueError(f"entry {name!r}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SnapshotError(f"{folder}: no readable manifest ({error}).") from error
    return manifest


def _mapped(path: Path) -> NDArray[Any]:
    # numpy cannot map an array without elements.
    small = np.load(path, allow_pickle=False) if path.stat().st_size <= 128 else None
    return np.asarray(small if small is not None else np.load(path, mmap_mode="r", allow_pickle=False))


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value = zlib.crc32(chunk, value)
    return value


def _to_disk(handle: int) -> None:
    os.fsync(handle)


def _folder_to_disk(folder: Path) -> None:
    """Make a rename last; folders cannot be opened on Windows, where it is not needed."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
