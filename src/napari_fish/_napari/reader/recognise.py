"""Which files are slides and which should go to other readers: told from names and headers, quickly."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Any

from napari_fish.slides.formats import endings
from napari_fish.slides.opening import IMAGE_MAGIC, TIFF_MAGIC
from napari_fish.texts import parsed_json

ONLY_SLIDES, MAYBE_SLIDES, TIFFS = (endings(means) for means in ("slide", "maybe", "tiff"))
PLAIN_PX = 4096 * 4096
"""A TIFF without tiles or pyramid is a slide only when it has more px than this."""
PEEKED_PAGES = 8
"""How many pages of a TIFF are looked at to find a slide."""
PEEKED_ENTRIES = 50
"""How many entries of a folder are looked at to see whether it holds a DICOM slide."""


def is_slide(path: Path) -> bool:
    """Whether a file or folder should be opened as a slide.

    Damaged files count when they cannot be anything else, for their reader can say what is wrong.
    """
    name = path.name.lower()
    try:
        if path.is_dir():
            return _is_slide_folder(path)
        # To open a pipe could take for ever; opening it as a slide will say what it is.
        if name.endswith(ONLY_SLIDES) or not path.is_file():
            return name.endswith(ONLY_SLIDES + TIFFS)
        if name.endswith(MAYBE_SLIDES):
            return _openslide_knows(path)
        return name.endswith(TIFFS) and _is_slide_tiff(path)
    except OSError:
        # Unreadable, such as no permission: opening it will say so.
        return name.endswith(ONLY_SLIDES + TIFFS)


def _openslide_knows(path: Path) -> bool:
    import openslide

    return openslide.OpenSlide.detect_format(path) is not None


def _is_slide_tiff(path: Path) -> bool:
    """Whether a TIFF has the character of a slide: RGB, and tiled, pyramidal, large or a scanner's."""
    import tifffile

    with path.open("rb") as file:
        start = file.read(16)
    if not start.startswith(TIFF_MAGIC):
        return not start.startswith(IMAGE_MAGIC)
    try:
        with tifffile.TiffFile(path) as tiff:
            first: Any = tiff.pages.first
            if first.is_svs or first.is_ndpi or first.is_scn or first.is_philips or first.is_bif:
                return True
            planes = first.is_ome and re.search(r'<(\w+:)?Pixels[^>]*\bSizeC="3"', first.description)
            # The slide need not come first: a label or macro image may.
            return any(_is_scan(page, bool(planes)) for page in islice(tiff.pages, PEEKED_PAGES))
    except Exception:  # noqa: BLE001 - tifffile does not check all it parses; opening will say what is wrong
        return True


def _is_scan(page: Any, three_planes: bool) -> bool:
    """Whether a page is in colour and too large to be held in memory, or stored as if it were."""
    if page.samplesperpixel in (3, 4):
        colour = page.dtype is not None and page.dtype.kind == "u"
    else:
        colour = three_planes and page.samplesperpixel == 1 and page.bitspersample == 8
    large = page.imagewidth * page.imagelength > PLAIN_PX
    return colour and bool(page.is_tiled or page.subifds or large)


def _is_slide_folder(path: Path) -> bool:
    """Whether a folder is an OME-Zarr with a colour image, or holds a DICOM slide."""
    attributes = _zarr_attributes(path)
    if attributes is not None:
        if "multiscales" in attributes:
            return _channels(path, attributes["multiscales"]) in (3, 4, None)
        return "bioformats2raw.layout" in attributes or (path / "OME").is_dir()
    with os.scandir(path) as entries:
        names = [e.path for e in islice(entries, PEEKED_ENTRIES) if e.name.lower().endswith(".dcm")]
    return bool(names) and _openslide_knows(Path(names[0]))


def _zarr_attributes(path: Path) -> dict[str, Any] | None:
    """Return the OME attributes of a zarr group, or None when a folder is no zarr group."""
    if (path / "zarr.json").is_file():
        attributes = _json(path / "zarr.json").get("attributes", {})
    elif (path / ".zgroup").is_file() or (path / ".zattrs").is_file():
        attributes = _json(path / ".zattrs")
    else:
        return None
    return attributes.get("ome", attributes) if isinstance(attributes, dict) else {}


def _channels(path: Path, multiscales: Any) -> int | None:
    """Return how many channels an OME-Zarr image has; None when its metadata do not tell."""
    try:
        image = multiscales[0]
        axes = [a["name"] if isinstance(a, dict) else a for a in image["axes"]]
        array = path / image["datasets"][0]["path"]
        about = _json(array / "zarr.json") or _json(array / ".zarray")
        return int(about["shape"][axes.index("c")]) if "c" in axes else 1
    except (LookupError, TypeError, ValueError):
        return None


def _json(path: Path) -> dict[str, Any]:
    """Return a JSON file's content, empty when it is missing or damaged."""
    try:
        content = parsed_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
