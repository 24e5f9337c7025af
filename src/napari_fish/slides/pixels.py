"""From what a file stores to 8-bit RGB."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_fish.slides.protocol import RGB
from napari_fish.slides.resample import over_white

Alpha = Literal["straight", "premultiplied", "none"]
MAX_BLOCK_BYTES = 2**30
"""Largest decoded block (tile, strip or chunk) worth having in memory."""


SAMPLE_PX = 256
"""Side of the windows from which the bits in use are guessed."""


def guess_bits(read: Callable[[int, int, int, int], NDArray[Any]], width: int, height: int) -> int:
    """Guess how many bits of a 16-bit image are used, from a few windows: cameras give 10 to 16.

    Parameters
    ----------
    read : callable
        Returns the samples of a region given as x, y, width and height in px.
    width, height : int
        Size of the image in px.
    """
    wide, high = min(width, SAMPLE_PX), min(height, SAMPLE_PX)
    corners = {((width - wide) * i // 3, (height - high) * j // 3) for i in range(4) for j in range(4)}
    largest = max(int(read(x, y, wide, high).max(initial=0)) for x, y in corners)
    return next(bits for bits in (8, 10, 12, 14, 16) if largest < 2**bits)


def to_rgb(pixels: NDArray[Any], bits: int, alpha: Alpha = "straight") -> RGB:
    """Convert samples to 8-bit RGB.

    Parameters
    ----------
    pixels : ndarray of uint8 or uint16, shape (rows, columns, samples)
        One sample is grey, three are RGB; a fourth is alpha.
    bits : int
        How many bits of a 16-bit sample are used.
    alpha : {"straight", "premultiplied", "none"}
        What a fourth sample means.

    Returns
    -------
    ndarray of uint8, shape (rows, columns, 3)
        RGB, transparency laid over white.
    """
    if pixels.dtype != np.uint8:
        pixels = np.minimum(pixels >> max(bits - 8, 0), 255).astype(np.uint8)
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] == 4 and alpha == "straight":
        return over_white(pixels)
    if pixels.shape[2] == 4 and alpha == "premultiplied":
        white = 255 - pixels[..., 3:].astype(np.uint16)
        return np.minimum(pixels[..., :3] + white, 255).astype(np.uint8)
    return np.ascontiguousarray(pixels[..., :3])


def why_not_rgb(samples: int, dtype: np.dtype[Any]) -> str | None:
    """Say why an image with these samples per pixel cannot be shown as RGB, or None when it can."""
    if dtype not in (np.uint8, np.uint16):
        return f"its pixels are {dtype}, and only 8 and 16 bit integers are understood"
    if samples not in (1, 3, 4):
        return f"it has {samples} channels, so it is no brightfield (RGB) image"
    return None


def to_jpeg(pixels: RGB, quality: int = 85) -> bytes:
    """Return pixels, uint8 (rows, columns, 3), as a JPEG file without any metadata."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()
