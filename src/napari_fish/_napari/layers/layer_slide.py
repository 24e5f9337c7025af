"""The pixels of a layer as a slide, for layers without a file that could be opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish._napari.layers.coordinates import image_shape
from napari_fish.errors import SlideError
from napari_fish.slides.base import PyramidSlide
from napari_fish.slides.identity import combine, digest
from napari_fish.slides.mpp import Mpp
from napari_fish.slides.protocol import RGB
from napari_fish.slides.resample import over_white

HASHED_PX = 4096 * 4096
"""A coarsest level up to this size is hashed as a whole, otherwise a grid of samples of it."""


class LayerSlide(PyramidSlide):
    """A slide over the arrays of one RGB layer, or of three layers with a colour each; read lazily.

    Parameters
    ----------
    layers : sequence of napari.layers.Image
        One layer, RGB or grey, or the red, the green and the blue one.
    mpp : Mpp
        Size of a pixel.
    """

    backend = "layer"

    def __init__(self, layers: Sequence[Any], mpp: Mpp, notes: tuple[str, ...] = ()) -> None:
        self._channels = [_Channel(layer) for layer in layers]
        sizes = self._channels[0].sizes
        if not sizes or 0 in sizes[0]:
            raise SlideError(f"The layer {layers[0].name!r} has no pixels.")
        super().__init__(Path(layers[0].name), sizes, mpp, notes=notes)

    def _decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        parts = [channel.read(level, x, y, width, height) for channel in self._channels]
        if len(parts) == 3:
            return np.stack([p[..., 0] for p in parts], axis=2)
        pixels = parts[0]
        if pixels.shape[2] == 4:
            return over_white(pixels)
        return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else np.ascontiguousarray(pixels)

    def _release(self) -> None:
        self._channels = []

    def _hash(self) -> str:
        level = len(self.level_dimensions) - 1
        width, height = self.level_dimensions[level]
        size = repr(self.level_dimensions).encode()
        if width * height <= HASHED_PX:
            return combine([digest(size, self.read_level(level, 0, 0, width, height).tobytes())])
        corners = [(width * i // 8, height * j // 8) for i in range(8) for j in range(8)]
        return combine([digest(size, *(self.read_level(level, *c, 64, 64).tobytes() for c in corners))])


class _Channel:
    """The arrays of one layer as 8-bit samples of shape (rows, columns, 1, 3 or 4)."""

    def __init__(self, layer: Any) -> None:
        self._levels = list(layer.data) if layer.multiscale else [layer.data]
        self._rgb = bool(layer.rgb)
        first = self._levels[0]
        # What a reader that knows no colours makes of a planar RGB image: channels first.
        self._planar = not self._rgb and first.ndim == 3 and first.shape[0] in (3, 4)
        self._limits = tuple(float(v) for v in layer.contrast_limits)
        axes = (-2, -3) if self._rgb else (-1, -2)
        sizes = [(int(a.shape[axes[0]]), int(a.shape[axes[1]])) for a in self._levels]
        assert sizes[0] == image_shape(layer)[::-1]
        self.sizes = tuple(sizes)

    def read(self, level: int, x: int, y: int, width: int, height: int) -> np.ndarray:
        array = self._levels[level]
        window = (slice(y, y + height), slice(x, x + width))
        if self._rgb:
            return self._to_8_bit(np.asarray(array[(0,) * (array.ndim - 3) + window]))
        leading = (slice(None),) if self._planar else (0,) * (array.ndim - 2)
        pixels = self._to_8_bit(np.asarray(array[leading + window]))
        return np.moveaxis(pixels, 0, 2) if self._planar else pixels[..., None]

    def _to_8_bit(self, pixels: np.ndarray) -> np.ndarray:
        """Convert as napari displays: RGB by its type's range, grey between the contrast limits."""
        if pixels.dtype == np.uint8:
            return pixels
        if self._rgb and pixels.dtype.kind in "ui":
            low, high = 0.0, float(np.iinfo(pixels.dtype).max)
        else:
            low, high = (0.0, 1.0) if self._rgb else self._limits
        scaled = (np.asarray(pixels, np.float32) - low) * (255.0 / ((high - low) or 1.0))
        samples: NDArray[np.uint8] = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
        return samples
