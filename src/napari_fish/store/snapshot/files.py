"""Arrays in a folder, memory-mapped: written once, whole or not at all, and checked when opened.

A part (the main part or a delta) is a folder of ``.npy`` files and a manifest with type, shape, size and checksum of
each and the generation of the data they were made from. When a part is opened, the manifest, all sizes, the content of
small files and some blocks of large ones are checked; the rest of these in the background, or when asked for. Parts are
disposable: whatever is wrong with one, it is made again from the catalogue.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from napari_fish.errors import DatabaseError
from napari_fish.store.snapshot.checksums import checksum, checksum_of_blocks, sampled, whole
from napari_fish.work import ShouldStop

MANIFEST = "manifest.json"
FORMAT = 3
#: Files up to this size, in bytes, are read and compared with their checksum whenever a part is opened.
SMALL = 1 << 21
LARGEST_MANIFEST = 1 << 20
_CHUNK = 1 << 24


#: Said of a file whose checksum is another one.
OTHER_CONTENT = "the content is not what was written."
#: The content of files and their checksums.
Unread = Mapping[Path, tuple[mmap.mmap, int]]


class SnapshotError(DatabaseError):
    """A part is missing, stale or damaged: make it again."""


class StaleSnapshot(SnapshotError):
    """A part is whole, but of another state, another database or another version."""


class PartWriter:
    """Writes a part, replacing what was there; a crash leaves the old part or none, never half of one.

    Use it as a context manager; leaving it without an error puts the part in its place.

    Parameters
    ----------
    folder
        Where the part will be.
    generation
        Of the data the arrays are made from.
    facts
        What else to remember, as plain values.
    durable
        Wait until the disk has it; a part that is checked in full whenever it is opened need not wait.
    """

    def __init__(
        self, folder: Path, generation: int, facts: Mapping[str, Any] | None = None, *, durable: bool = True
    ) -> None:
        self.folder, self.generation, self.facts = folder, generation, dict(facts or {})
        self._durable = durable
        self._new = folder.with_name(folder.name + ".new")
        self._files: dict[str, dict[str, Any]] = {}

    def new(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array in a file, to be filled."""
        self._note(name, shape, dtype)
        path = self._new / f"{name}.npy"
        if 0 in shape:
            # An array without elements cannot be mapped.
            np.save(path, np.empty(shape, dtype), allow_pickle=False)
            return np.empty(shape, dtype)
        mapped = np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
        with path.open("rb+") as file:
            _reserve(file, path.stat().st_size)
        return mapped

    def scratch(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array in a file that nobody else sees and that is gone when the array is."""
        if 0 in shape:
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile(dir=self._new) as file:
            _reserve(file, math.prod(shape) * np.dtype(dtype).itemsize)
            return np.memmap(file, dtype, "w+", shape=shape)

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Write an array that is in memory."""
        plain = np.ascontiguousarray(array)
        self._note(name, plain.shape, plain.dtype)
        np.save(self._new / f"{name}.npy", plain, allow_pickle=False)

    def _note(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._files[name] = {"dtype": np.dtype(dtype).str, "shape": [int(side) for side in shape]}

    def __enter__(self) -> Self:
        shutil.rmtree(self._new, ignore_errors=True)
        self._new.mkdir(parents=True)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            shutil.rmtree(self._new, ignore_errors=True)
            return
        for name, facts in self._files.items():
            path = self._new / f"{name}.npy"
            if self._durable:
                with path.open("rb+") as file:
                    os.fsync(file.fileno())
            facts |= {
                "size": path.stat().st_size,
                "checksum": checksum(path),
                "sampled": checksum_of_blocks(path),
            }
        about = {"format": FORMAT, "generation": self.generation, "facts": self.facts, "files": self._files}
        with (self._new / MANIFEST).open("w", encoding="utf-8") as text:
            json.dump({**about, "checksum": _sum_of(about)}, text, indent=1)
            text.flush()
            if self._durable:
                os.fsync(text.fileno())
        old = self.folder.with_name(self.folder.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        if self.folder.exists():
            self.folder.rename(old)
        if self._durable:
            _folder_to_disk(self._new)
        self._new.rename(self.folder)
        if self._durable:
            _folder_to_disk(self.folder.parent)
        # Readers that have the old files mapped keep them until they let go.
        shutil.rmtree(old, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class Part:
    """A part that was opened.

    Attributes
    ----------
    arrays
        By name, mapped.
    generation, facts
        What is remembered of it.
    unread
        Files whose checksum was not compared, with their content and what it should be.
    """

    arrays: Mapping[str, NDArray[Any]]
    generation: int
    facts: Mapping[str, Any]
    unread: Unread


def open_part(folder: Path, arrays: Iterable[str], *, checked: bool = False) -> Part:
    """Map the arrays of a part; raise :class:`SnapshotError` when it is not what it should be.

    Parameters
    ----------
    folder
        Where the part is.
    arrays
        Their names.
    checked
        Compare the checksums of large files, too.
    """
    manifest = _manifest(folder)
    mapped, unread = {}, {}
    for name in arrays:
        path = folder / f"{name}.npy"
        try:
            facts = manifest["files"][name]
            mapped[name], content = _mapped(path, facts, SMALL if not checked else None)
            if content is not None:
                unread[path] = content, int(facts["checksum"])
        except SnapshotError:
            raise
        except Exception as error:
            # Whatever it is, the part is not what was written.
            raise SnapshotError(f"{path}: cannot be read ({error}).") from error
    return Part(mapped, manifest["generation"], manifest["facts"], unread)


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
        elif checksum(path) != facts["checksum"]:
            wrong.append(f"{path}: {OTHER_CONTENT}")
    return wrong


def first_damaged(unread: Unread, should_stop: ShouldStop = lambda: False) -> str:
    """Compare files with their checksums; say which is the first that is not what was written, nothing if none is."""
    for path, (content, expected) in unread.items():
        if whole(content, should_stop) not in (None, expected):
            return f"{path}: {OTHER_CONTENT}"
    return ""


def read_through(folder: Path, should_stop: ShouldStop = lambda: False) -> int:
    """Read the arrays of a part once, from end to end, so that searches find them in memory; return the bytes read.

    Read in this way they come in large pieces, where the system can; small ones that are fetched as searches come upon them lie
    scattered, and every look at them costs more. Nothing is read where memory could not hold it.
    """
    files = sorted(folder.glob("*.npy"))
    if sum(path.stat().st_size for path in files) > _memory() // 4:
        return 0
    done = 0
    for path in files:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # not every system has them
                content.madvise(mmap.MADV_HUGEPAGE)
        octets = np.frombuffer(content, np.uint8)
        for start in range(0, len(octets), _CHUNK):
            if should_stop():
                return done
            part = octets[start : start + _CHUNK]
            # One octet of each page. NumPy lets other threads run meanwhile: a window must not wait for the disk.
            part[:: mmap.PAGESIZE].max()
            done += len(part)
    return done


def _memory() -> int:
    """Return the bytes of memory that this machine has; 0 where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        # Anything else than a file could be waited for without end, and a large one is none of ours.
        if not path.is_file() or path.stat().st_size > LARGEST_MANIFEST:
            raise ValueError("it is no small file")
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise StaleSnapshot(
                f"{folder}: written in format {manifest['format']}, this program reads {FORMAT}."
            )
        if manifest.pop("checksum") != _sum_of(manifest):
            raise ValueError("it is not what was written")
        generation, facts, files = manifest["generation"], manifest["facts"], manifest["files"]
        if type(generation) is not int or not isinstance(facts, dict) or not isinstance(files, dict):
            raise ValueError("it does not say what a manifest says")
        for name, known in files.items():
            if Path(name).name != name:
                raise ValueError("a file elsewhere")
            if not {"dtype", "shape", "size", "checksum"} <= set(known):
                raise ValueError(f"it does not say what {name} is")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SnapshotError(f"{folder}: no readable manifest ({error}).") from error
    return manifest


def _sum_of(manifest: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def _mapped(path: Path, facts: Mapping[str, Any], up_to: int | None) -> tuple[NDArray[Any], mmap.mmap | None]:
    """Map a file by what the manifest says of it.

    Up to so many bytes, or always, its checksum is compared; of a larger file that of some blocks, and its content is returned
    for the rest of it to be compared later.
    """
    shape, dtype, size = tuple(facts["shape"]), np.dtype(facts["dtype"]), int(facts["size"])
    if not path.is_file():
        raise SnapshotError(f"{path}: missing.")
    with path.open("rb") as file:
        there = os.fstat(file.fileno()).st_size
        if there != size:
            raise SnapshotError(f"{path}: {there} bytes, {size} were written.")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    is_small = up_to is None or size <= up_to
    found, expected = (
        (whole(content), facts["checksum"]) if is_small else (sampled(content), facts.get("sampled"))
    )
    # Parts that were written before blocks were compared do not have their checksum.
    if found != expected and expected is not None:
        raise SnapshotError(f"{path}: {OTHER_CONTENT}")
    count = math.prod(shape)
    # The header of a .npy file is for other programs: one that is damaged would have numpy see other numbers.
    array = np.frombuffer(content, dtype, count, offset=size - count * dtype.itemsize).reshape(shape)
    return array, None if is_small else content


def _reserve(file: IO[bytes], size: int) -> None:
    """Take the room of a file on the disk now: a disk that is full is an error here, a crash in a mapped array."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)


def _folder_to_disk(folder: Path) -> None:
    """Make a rename last; folders cannot be opened on Windows, where it is not needed."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
