"""Ordinary PNG and JPEG images as one-level slides."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from napari_fish.errors import SlideError
from napari_fish.slides.base import PyramidSlide
from napari_fish.slides.identity import combine, digest, hash_files
from napari_fish.slides.mpp import Mpp, decide_mpp
from napari_fish.slides.pixels import to_rgb
from napari_fish.slides.protocol import RGB
from napari_fish.slides.resample import over_white

INCH = 25_400.0
"""Micrometres."""


class ArraySlide(PyramidSlide):
    """An RGB image held in memory."""

    backend = "image"

    def __init__(
        self, path: Path, pixels: RGB, mpp: Mpp, *, files: Sequence[Path] = (), **about: Any
    ) -> None:
        height, width = pixels.shape[:2]
        super().__init__(path, ((width, height),), mpp, **about)
        self._pixels = pixels
        self._files = files

    def _decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        return self._pixels[y : y + height, x : x + width]

    def _release(self) -> None:
        self._pixels = np.empty((0, 0, 3), np.uint8)

    def _hash(self) -> str:
        if not self._files:
            return combine([digest(repr(self._pixels.shape).encode(), self._pixels.tobytes())])
        return self._hash_of_series(hash_files(self._files))


def array_slide(pixels: RGB, mpp: float | None, name: str = "pasted image") -> ArraySlide:
    """Make a slide of an RGB array of shape (rows, columns, 3), such as a pasted image."""
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.dtype != np.uint8 or 0 in pixels.shape:
        raise SlideError(
            f"{name}: an RGB image of uint8 with shape (rows, columns, 3) is needed, "
            f"not {pixels.dtype} with shape {pixels.shape}."
        )
    rgb = over_white(pixels) if pixels.shape[2] == 4 else np.array(pixels)
    return ArraySlide(Path(name), rgb, decide_mpp(name, user=mpp))


def open_image(path: Path, mpp: float | None = None, series: int | None = None) -> ArraySlide:
    """Open a PNG or JPEG image."""
    if series not in (None, 0):
        raise SlideError(f"{path}: there is no image number {series}: an ordinary image holds only one.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                dpi = image.info.get("dpi", ())
                transparent = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
                if image.mode.startswith("I"):
                    grey = np.clip(np.asarray(image), 0, 2**16 - 1).astype(np.uint16)
                    pixels, transparent = to_rgb(grey[..., None], 16), False
                else:
                    pixels = np.asarray(image.convert("RGBA" if transparent else "RGB"))
    except UnidentifiedImageError as error:
        raise SlideError(f"{path}: this is no PNG or JPEG image, or it is damaged.") from error
    except Image.DecompressionBombError as error:
        raise SlideError(
            f"{path}: {error} Convert it to a pyramidal TIFF (for example with vips tiffsave --tile --pyramid)."
        ) from error
    except (OSError, SyntaxError, ValueError, MemoryError) as error:
        raise SlideError(f"{path}: the image is damaged ({error}); copy it again.") from error
    resolution = [INCH / float(d) for d in dpi if d]
    return ArraySlide(
        path,
        over_white(pixels) if transparent else pixels,
        decide_mpp(path, user=mpp, resolution=resolution),
        files=[path],
    )
