"""Whether the pixels of a TIFF can be read, judged before anything is allocated for them."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from napari_fish.errors import SlideError
from napari_fish.slides.coded_size import coded_pixels
from napari_fish.slides.pixels import MAX_BLOCK_BYTES, why_not_rgb

PROBED_PAGES = 64
"""More pages than any pyramid has levels."""
CONVERTED = (tifffile.COMPRESSION.OJPEG, tifffile.COMPRESSION.JPEG, tifffile.COMPRESSION.WEBP, 34892)
"""Compressions whose decoders turn YCbCr into RGB; the last is lossy JPEG."""
BYTES_ONLY = (1, 5, 8, 32773, 32946, 34925, 34926, 50000, 50013)
"""Compressions of bytes, whatever they mean: none, LZW, deflate, PackBits, LZMA, Zstandard."""
SPARE_PX = 2**20
"""Px by which a tile may be larger than it should be: scanners are not exact, and so little does no harm."""


def why_damaged(path: Path) -> str:
    """Say what is wrong with the tiles of a TIFF; empty when nothing is. No pixels are read.

    OpenSlide allocates whole tiles of whatever size a file declares, and its library ends the process when
    that fails, so absurd ones must never reach it.
    """
    size = path.stat().st_size
    try:
        with tifffile.TiffFile(path) as tiff:
            pages: list[Any] = list(islice(tiff.pages, PROBED_PAGES))
            problems = (why_unreadable(page, size) for page in pages if page.is_tiled)
            return next(filter(None, problems), "")
    except Exception:  # noqa: BLE001 - tifffile does not check all it parses; opening will say what is wrong
        return ""


def check_page(path: Path, page: Any, samples: int) -> None:
    """Refuse what cannot be right, before anything is allocated for it."""
    keyframe = page.keyframe
    why = why_not_rgb(samples, keyframe.dtype)
    if why is None and not _is_rgb_or_grey(keyframe):
        why = f"its colours are stored as {tifffile.PHOTOMETRIC(keyframe.photometric).name}"
    if why is None and keyframe.compression == tifffile.COMPRESSION.LERC:
        why = "it is compressed with LERC, whose decoder cannot be kept from taking all memory"
    if why:
        raise not_rgb(path, why)
    problem = why_unreadable(page, page.parent.filehandle.size)
    if problem:
        raise SlideError(f"{path}: {problem}")


def not_rgb(path: Path, why: str) -> SlideError:
    """Return the error that says why a TIFF is no brightfield slide, and what to do."""
    return SlideError(f"{path}: cannot be read as a slide: {why}. Convert it to an 8-bit RGB TIFF.")


def is_too_large(keyframe: Any, data: bytes) -> bool:
    """Whether a stored block says of itself that it has many more px than a block of its page."""
    # Of other compressions a decoder gives no more bytes than it was asked for.
    if keyframe.compression in BYTES_ONLY:
        return False
    return coded_pixels(data) > 4 * math.prod(block_shape(keyframe)) + SPARE_PX


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
