"""Whether what OME-XML claims can be true, judged before a library believes it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import tifffile

from napari_fish.errors import SlideError
from napari_fish.slides.tiff_directories import MOST_DIRECTORIES, why_endless

MOST_TEXT = 16 * 2**20
"""Characters; parsed, XML takes thirty times as much memory."""
MOST_PLANES = 2**24
"""A list as long as this is still made; real slides need a few, or many where a small label lies beside a large scan."""
COUNTS = ("SizeC", "SizeZ", "SizeT", "FirstC", "FirstZ", "FirstT", "NumPlanes", "PlaneCount", "IFD", "SamplesPerPixel")  # fmt: skip


def check_ome(path: Path, tiff: tifffile.TiffFile) -> None:
    """Refuse an OME-TIFF that declares more than there can be, or that names what is no file."""
    text = tiff.ome_metadata or ""
    if len(text) > MOST_TEXT:
        raise SlideError(f"{path}: its OME-XML is too long to be read. Export the slide without annotations.")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return
    elements = list(root.iter())
    for name in COUNTS:
        if any(_number(element.get(name)) > MOST_DIRECTORIES for element in elements):
            raise _beyond_reason(path, name)
    if any(_steps(element) > MOST_DIRECTORIES for element in elements if "Along" in element.tag):
        raise _beyond_reason(path, "Modulo")
    pages = [*tiff.pages, *(page for other in _others(path, elements) for page in _pages(other))]
    smallest = min(max(1, page.imagewidth * page.imagelength) for page in pages)
    for element in elements:
        sizes = [_number(element.get(f"Size{axis}")) for axis in "XYCZT" if element.get(f"Size{axis}")]
        if math.prod(sizes) / smallest > MOST_PLANES:
            raise _beyond_reason(path, "Size")


def _others(path: Path, elements: Iterable[ElementTree.Element]) -> Iterator[Path]:
    """Give the further files that hold pixels, those that are there."""
    names = {element.get("FileName") for element in elements} - {None, path.name}
    for other in (path.parent / str(name) for name in sorted(map(str, names))):
        if not other.exists():
            continue
        if not other.is_file():
            raise SlideError(
                f"{path}: names {other}, which is no ordinary file. Copy the slide again with all its files."
            )
        problem = why_endless(other)
        if problem:
            raise SlideError(f"{path}: names {other}: {problem}")
        yield other


def _pages(path: Path) -> list[Any]:
    try:
        with tifffile.TiffFile(path) as tiff:
            return list(tiff.pages)
    except Exception:  # noqa: BLE001 - whoever reads it will say what is wrong
        return []


def _number(text: str | None) -> float:
    try:
        return abs(float(text or 0))
    except ValueError:
        return 0.0


def _steps(along: ElementTree.Element) -> float:
    start, end, step = (_number(along.get(name)) for name in ("Start", "End", "Step"))
    return (start + end) / (step or 1)


def _beyond_reason(path: Path, what: str) -> SlideError:
    return SlideError(
        f"{path}: its OME-XML declares more planes ({what}) than it can hold; the file is damaged. Copy it again."
    )
