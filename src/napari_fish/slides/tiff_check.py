"""Whether the pixels of a TIFF can be read, judged before anything is allocated for them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from napari_fish.errors import SlideError
from napari_fish.slides.pixels import MAX_BLOCK_BYTES, why_not_rgb

PROBED_PAGES = 64
"""More pages than any pyramid has levels."""
CONVERTED = (tifffile.COMPRESSION.OJPEG, tifffile.COMPRESSION.JPEG, tifffile.COMPRESSION.WEBP, 34892)
"""Compressions whose decoders turn YCbCr into RGB; the last is lossy JPEG."""


@dataclass(frozen=True)
class Probe:
    """What must be known of a TIFF before OpenSlide may open it.

    Attributes
    ----------
    problem : str
        Why its pixels cannot be read; empty when nothing is wrong.
    levels : int
        Pyramid levels of its first image.
    beyond_openslide : bool
        Whether it holds images or bits that OpenSlide would not see.
    """

    problem: str = ""
    levels: int = 1
    beyond_openslide: bool = False


def probe(path: Path) -> Probe:
    """Look at the first pages of a TIFF without reading pixels.

    OpenSlide allocates whole tiles of whatever size a file declares, and its library ends the process when
    that fails, so absurd ones must never reach it.
    """
    size = path.stat().st_size
    try:
        with tifffile.TiffFile(path) as tiff:
            pages: list[Any] = list(islice(tiff.pages, PROBED_PAGES))
            problems = (why_unreadable(page, size) for page in pages if page.is_tiled)
            first = pages[0]
            return Probe(
                next(filter(None, problems), ""),
                len(tiff.series[0].levels) if len(pages) < PROBED_PAGES else 1,
                bool(tiff.is_ome or first.subifds or first.bitspersample != 8),
            )
    except Exception:  # noqa: BLE001 - tifffile does not check all it parses; opening will say what is wrong
        return Probe()


def check_page(path: Path, page: Any, samples: int) -> None:
    """Refuse what cannot be right, before anything is allocated for it."""
    keyframe = page.keyframe
    why = why_not_rgb(samples, keyframe.dtype)
    if why is None and not _is_rgb_or_grey(keyframe):
        why = f"its colours are stored as {tifffile.PHOTOMETRIC(keyframe.photometric).name}"
    if why:
        raise SlideError(f"{path}: cannot be read as a slide: {why}. Convert it to an 8-bit RGB TIFF.")
    problem = why_unreadable(page, page.parent.filehandle.size)
    if problem:
        raise SlideError(f"{path}: {problem}")


def why_unreadable(page: Any, size: int) -> str:
    """Say what is wrong with a page's tiles or strips in a file of ``size`` bytes; empty when nothing is."""
    keyframe = page.keyframe
    width, height = keyframe.imagewidth, keyframe.imagelength
    rows, columns = block_shape(keyframe)
    if min(rows, columns, width, height) < 1:
        return "declares an image or blocks of no size; the file is damaged. Copy it again."
    if rows * columns * keyframe.samplesperpixel * max(1, keyframe.bitspersample // 8) > MAX_BLOCK_BYTES:
        return (
            f"{width} x {height} px are stored in blocks of {columns} x {rows} px, too large to read. "
            "Convert it to a tiled TIFF (for example with vips tiffsave --tile --pyramid)."
        )
    separate = keyframe.samplesperpixel if keyframe.planarconfig == tifffile.PLANARCONFIG.SEPARATE else 1
    expected = separate * -(-height // rows) * -(-width // columns)
    if len(page.dataoffsets) != expected or len(page.databytecounts) != expected:
        return (
            f"declares {width} x {height} px in {expected} blocks but stores {len(page.dataoffsets)}; "
            "the file is damaged. Copy it again."
        )
    if _data_end(page) > size:
        return "the file ends early; it is truncated. Copy it again."
    return ""


def _is_rgb_or_grey(keyframe: Any) -> bool:
    """Whether decoded samples are RGB or grey; of YCbCr that is so only where the decoder converts."""
    photometric = tifffile.PHOTOMETRIC
    if keyframe.photometric == photometric.YCBCR:
        return keyframe.compression in CONVERTED
    return keyframe.photometric in (photometric.RGB, photometric.MINISBLACK, photometric.MINISWHITE)


def block_shape(page: Any) -> tuple[int, int]:
    """Return rows and columns of a page's tiles or strips."""
    if page.is_tiled:
        return int(page.tilelength), int(page.tilewidth)
    return min(int(page.rowsperstrip), int(page.imagelength)), int(page.imagewidth)


def _data_end(page: Any) -> int:
    """Return the offset behind the last byte of a page's pixels."""
    ends = np.asarray(page.dataoffsets, np.int64) + np.asarray(page.databytecounts, np.int64)
    return int(ends.max(initial=0))
