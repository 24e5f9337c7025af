"""Which slide a DICOM file belongs to, read from its header."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable
from pathlib import Path

MAGIC = b"DICM"
HEADS = (64 * 2**10, 2**20)
"""Bytes of a file that are looked at, more where the first did not tell. What names a series stands near the beginning;
whatever a damaged header says of lengths, no more than this is read."""
DEFLATED = b"1.2.840.10008.1.2.1.99"
"""Headers that are compressed; no slide's is, and a little of one can become very much."""
_SERIES = 0x0020000E


def dicom_series(path: Path) -> str | None:
    """Return the series to which a DICOM file belongs, read from its header; None for any other file."""
    try:
        # To open a pipe could take for ever.
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(HEADS[0])
            if head[128:132] != MAGIC:
                return None
            found = _series_in(head)
            if found is None and len(head) == HEADS[0] and DEFLATED not in head:
                found = _series_in(head + file.read(HEADS[1]))
            return found
    except OSError:
        return None


def one_of_each_series(files: Iterable[Path]) -> list[Path]:
    """Return the first file of each series; a file without a series is one by itself."""
    first_of: dict[str | Path, Path] = {}
    for file in files:
        first_of.setdefault(dicom_series(file) or file, file)
    return list(first_of.values())


def files_of_series(path: Path) -> list[Path]:
    """Return the files beside a DICOM file that belong to its slide, itself included."""
    series = dicom_series(path)
    others = sorted(path.parent.iterdir()) if series is not None else ()
    return [file for file in others if file == path or dicom_series(file) == series] or [path]


def _series_in(head: bytes) -> str | None:
    """Return the series that the beginning of a file names; None where it names none, or makes no sense."""
    from pydicom.filereader import read_partial

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other values that are not as they should be
            header = read_partial(
                io.BytesIO(head), stop_when=lambda tag, vr, length: tag > _SERIES, specific_tags=[_SERIES]
            )
            return str(header.get("SeriesInstanceUID", "")).strip("\0 ") or None
    except Exception:  # noqa: BLE001 - pydicom lets through whatever a damaged header leads it to
        return None
