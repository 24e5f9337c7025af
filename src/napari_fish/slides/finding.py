"""Find slides: files and folders that look like one by name."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from napari_fish.errors import SlideError
from napari_fish.slides.formats import HAMAMATSU, NOT_READ, SUFFIXES
from napari_fish.slides.opening import expanded

log = logging.getLogger(__name__)

MOST_OF_VMS = 2**20
"""Bytes; such a file names its parts in a few lines."""


def find_slides(folder: str | Path, unread: Counter[str] | None = None) -> Iterator[Path]:
    """Yield whatever in a folder and its subfolders looks like a slide by name, in sorted order.

    Parameters
    ----------
    folder
        Where to look.
    unread
        Where to count images of formats that are not read, by ending.

    Notes
    -----
    Nothing but headers of DICOM files and ``.vms`` files is read. An OME-Zarr folder is one slide, and so is a folder of the
    DICOM files of one series. Files that belong to another one (the folder of a ``.mrxs``, the pictures of a
    ``.vms``) are passed over, and so are folders that cannot be read, with a line in the log.
    """
    folder = expanded(folder)
    if not folder.is_dir():
        raise SlideError(f"{folder}: there is no such folder.")
    yield from _slides_below(folder, set(), Counter() if unread is None else unread)


def _slides_below(folder: Path, seen: set[tuple[int, int]], unread: Counter[str]) -> Iterator[Path]:
    from napari_fish.slides.zarr_files import METADATA

    try:
        status = folder.stat()
        entries = sorted(folder.iterdir())
        folders = {e for e in entries if e.is_dir()}
    except OSError as error:
        log.warning("%s: passed over, it cannot be listed (%s)", folder, error)
        return
    if (status.st_dev, status.st_ino) in seen:
        return
    seen.add((status.st_dev, status.st_ino))
    if any(e.name in METADATA for e in entries):
        yield folder
        return
    suffixes = {e.suffix.lower() for e in entries}
    passed_over = {e.stem for e in entries if e.suffix.lower() == ".mrxs"}
    parts = {name.lower() for e in entries if e.suffix.lower() in HAMAMATSU for name in parts_of_vms(e)}
    wanted = SUFFIXES - {".dcm"}
    if ".dcm" in suffixes:
        yield from _dicom_slides(folder, entries)
    for entry in entries:
        if entry.name.startswith(".") or entry.name.lower() in parts:
            continue
        if entry in folders:
            if entry.name not in passed_over:
                yield from _slides_below(entry, seen, unread)
        elif entry.suffix.lower() in wanted or entry.name.lower().endswith(".zarr.zip"):
            yield entry
        elif entry.suffix.lower() in NOT_READ:
            unread[entry.suffix.lower()] += 1


def parts_of_vms(path: Path) -> set[str]:
    """Return the names of the files that make up the slide of a ``.vms`` or ``.vmu`` file."""
    try:
        # To open a pipe could take for ever.
        if not path.is_file():
            return set()
        with path.open("rb") as file:
            text = file.read(MOST_OF_VMS).decode("utf-8", "replace")
    except OSError:
        return set()
    values = {line.partition("=")[2].strip() for line in text.splitlines()}
    return {value for value in values if value and "\0" not in value}


def told_unread(unread: Mapping[str, int]) -> str:
    """Say how many images were passed over; empty where there were none."""
    if not unread:
        return ""
    number = sum(unread.values())
    each = ", ".join(
        f"{n} {ending}" for ending, n in sorted(unread.items(), key=lambda item: (-item[1], item[0]))
    )
    return f"{number} file{'s' * (number != 1)} of formats that are not read: {each}."


def _dicom_slides(folder: Path, entries: Sequence[Path]) -> list[Path]:
    """Return a folder with one DICOM series, or one file of each series."""
    from napari_fish.slides.dicom import one_of_each_series

    firsts = one_of_each_series(entry for entry in entries if entry.suffix.lower() == ".dcm")
    return [folder] if len(firsts) == 1 else firsts
