"""Patches as the published program reads them."""

from __future__ import annotations

import numpy as np

from napari_fish.slides.protocol import RGB, Slide


def read_bicubic(slide: Slide, x: float, y: float, side: float, size: int) -> RGB:
    """Read a square of level-0 pixels, black outside the slide, and bring it to size with Pillow's bicubic filter.

    Parameters
    ----------
    slide : Slide
        Where from.
    x, y : float
        Top left corner in level-0 px; a fraction is cut off.
    side : float
        Side in level-0 px; a fraction is cut off.
    size : int
        Side of the result in px.

    Returns
    -------
    ndarray of uint8, shape (size, size, 3)
        RGB.
    """
    left, top, whole = int(x), int(y), int(side)
    width, height = slide.dimensions
    first_x, first_y = max(left, 0), max(top, 0)
    across, down = min(left + whole, width) - first_x, min(top + whole, height) - first_y
    pixels = np.zeros((whole, whole, 3), np.uint8)
    if across > 0 and down > 0:
        inside = slide.read_level(0, first_x, first_y, across, down)
        pixels[first_y - top :, first_x - left :][:down, :across] = inside
    return resized_bicubic(pixels, size)


def resized_bicubic(pixels: RGB, size: int) -> RGB:
    """Bring an image to ``size`` by ``size`` px with Pillow's bicubic filter."""
    from PIL import Image

    if pixels.shape[:2] == (size, size):
        return pixels
    return np.array(Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC))
