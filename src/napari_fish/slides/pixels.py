"""From what a file stores to 8-bit RGB."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.slides.protocol import RGB
from napari_fish.slides.resample import over_white

MAX_BLOCK_BYTES = 2**30
"""Largest decoded block (tile, strip or chunk) worth having in memory."""


def significant_bits(sample: NDArray[Any]) -> int:
    """Guess how many bits of a 16-bit image are used, from a sample of it: cameras give 10 to 16."""
    largest = int(sample.max(initial=0))
    return next(bits for bits in (8, 10, 12, 14, 16) if largest < 2**bits)


def to_rgb(pixels: NDArray[Any], bits: int) -> RGB:
    """Convert samples to 8-bit RGB.

    Parameters
    ----------
    pixels : ndarray of uint8 or uint16, shape (rows, columns, samples)
        One sample is grey, three are RGB, four are RGBA.
    bits : int
        How many bits of a 16-bit sample are used.

    Returns
    -------
    ndarray of uint8, shape (rows, columns, 3)
        RGB, transparency laid over white.
    """
    if pixels.dtype != np.uint8:
        shift = max(bits - 8, 0)
        pixels = np.minimum(pixels >> shift, 255).astype(np.uint8)
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] == 4:
        return over_white(pixels)
    return np.ascontiguousarray(pixels)


def why_not_rgb(samples: int, dtype: np.dtype[Any]) -> str | None:
    """Say why an image with these samples per pixel cannot be shown as RGB, or None when it can."""
    if dtype not in (np.uint8, np.uint16):
        return f"its pixels are {dtype}, and only 8 and 16 bit integers are understood"
    if samples not in (1, 3, 4):
        return f"it has {samples} channels, so it is no brightfield (RGB) image"
    return None
