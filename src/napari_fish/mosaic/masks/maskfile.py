"""A file that says where the tissue is: a picture of the slide, or polygons."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import threading
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import FishError, NoTissue
from napari_fish.mosaic.masks.annotations import polygons_from_geojson
from napari_fish.mosaic.masks.rings import Polygon

MOST_DECODED = 300_000_000
"""A picture that takes more bytes while it is decoded is refused before that."""
MOST_PX = 16_000_000
"""Of a picture with more px only every second, third, ... is used."""
MOST_BYTES = 300_000_000
"""A larger GeoJSON file is refused before it is read: it takes ten times as much memory."""
FEW_VALUES = 16
"""A picture with no more values than this is a mask: tissue, or classes of it."""
NEAR_ENDS = 0.7
"""Share of px near black and near white, of the darker and of the brighter px, in a mask whose values were blurred
(masks saved as JPEG or made smaller: 0.76 to 1; pictures of slides: up to 0.6)."""
FLAT = 0.8
"""Share of neighbouring px off the background that are equal, in a picture of numbered objects (of slides: up to 0.6)."""
_ENOUGH_PX = 4_000_000
_LOSSY = ("JPEG", "MPO", "WEBP")
_WHILE_DECODING = {"JPEG": 3, "MPO": 3, "AVIF": 3, "WEBP": 4, "JPEG2000": 6}
"""How often a decoder holds the picture, as measured; others write it once."""
_turn = threading.Lock()


@dataclass(frozen=True)
class MaskFile:
    """A mask to be read.

    Attributes
    ----------
    path
        An image of the whole slide, or GeoJSON with polygons in level-0 px.
    classes
        Of GeoJSON: the classes of annotations that count; empty for all.
    """

    path: Path
    classes: tuple[str, ...] = ()

    def identity(self) -> str:
        """Return its name and the start of its content's hash, by which a changed mask is known."""
        try:
            with self._checked().open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise self._unreadable(error) from error
        # A name that is not valid Unicode could not be kept.
        return f"{self.path.name.encode('utf-8', 'backslashreplace').decode()}#{digest[:16]}"

    def read(self) -> NDArray[np.bool_] | list[Polygon]:
        """Return the picture, True where there is tissue, or the polygons."""
        try:
            path = self._checked()
            with path.open("rb") as file:
                start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
            if start[:1] in (b"{", b"["):
                return self._polygons(path)
            pixels, lossy = _pixels(path)
        except (OSError, ValueError, KeyError, TypeError, IndexError, ArithmeticError, AttributeError,
                RecursionError, MemoryError, EOFError, SyntaxError, struct.error, zlib.error) as error:  # fmt: skip
            raise self._unreadable(error) from error
        if self.classes:
            raise FishError(
                f"{path}: is a picture, and only annotations (GeoJSON) have classes. Leave out the class "
                f"({', '.join(self.classes)}), or give the annotations."
            )
        return marked(pixels, str(path), lossy)

    def _checked(self) -> Path:
        """Return the path, if it is one of a file: to open a pipe could take for ever."""
        if not self.path.exists():
            raise FishError(f"{self.path}: there is no such mask file. Check its name.")
        if not self.path.is_file():
            kind = "a folder" if self.path.is_dir() else "no ordinary file"
            raise FishError(f"{self.path}: is {kind}; a mask is an image or a GeoJSON file. Name that file.")
        return self.path

    def _polygons(self, path: Path) -> list[Polygon]:
        if path.stat().st_size > MOST_BYTES:
            raise FishError(
                f"{path}: is larger than {MOST_BYTES / 1e6:.0f} MB. Export only annotations, without detections."
            )
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        polygons = polygons_from_geojson(document, self.classes, str(path))
        if not polygons:
            raise NoTissue(f"{path}: this GeoJSON holds no polygon. Export annotations from QuPath.")
        return polygons

    def _unreadable(self, error: BaseException) -> FishError:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        return FishError(
            f"{self.path}: cannot be read as a mask ({reason}). Give a binary image of the whole slide, or "
            "GeoJSON with polygons in level-0 px, as QuPath exports it."
        )


def _pixels(path: Path) -> tuple[NDArray[Any], bool]:
    """Decode an image; return it, and whether its values may be blurred."""
    with _opened(path) as image:
        lossy = image.format in _LOSSY
        every = math.ceil(math.sqrt(image.width * image.height / MOST_PX))
        if every > 1:
            smaller = (max(1, image.width // every), max(1, image.height // every))
            image = image.resize(smaller, resample=0)  # the nearest px, for values must not be mixed
        if image.mode in ("P", "PA") or "transparency" in image.info:
            image = image.convert("RGBA")
        elif image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
            image = image.convert("RGB")
        return np.asarray(image), lossy


def _opened(path: Path) -> Any:
    """Open an image that is not too large; Pillow's own limit is the same for all of a program."""
    from PIL import Image, ImageMode

    with _turn, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong with the file is said in one message
        before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            image = Image.open(path)
        finally:
            Image.MAX_IMAGE_PIXELS = before
    mode = ImageMode.getmode(image.mode)
    # Pillow keeps px of several channels as four bytes.
    each = 4 if len(mode.bands) > 1 else np.dtype(mode.typestr).itemsize
    most = MOST_DECODED // (each * _WHILE_DECODING.get(image.format or "", 1))
    if image.width * image.height > most:
        image.close()
        raise FishError(
            f"{path}: its {image.width} x {image.height} px are too large for a mask ({most / 1e6:.0f} million px at most in such "
            "a file). Save it smaller: a sixteenth of the slide's resolution is enough."
        )
    return image


def marked(pixels: NDArray[Any], name: str, lossy: bool = False) -> NDArray[np.bool_]:
    """Return where a mask marks tissue.

    Parameters
    ----------
    pixels : ndarray, shape (rows, columns) or (rows, columns, channels)
        Zero is no tissue; a second or fourth channel says what is transparent.
    name
        What it is called in errors.
    lossy
        Whether values may differ a little from what was drawn.
    """
    if pixels.ndim == 3 and pixels.shape[2] in (2, 4):
        pixels = np.where(pixels[..., -1:] == 0, 0, pixels[..., :-1]).astype(pixels.dtype)
    if pixels.ndim == 3 and pixels.shape[2] in (1, 3):
        pixels = pixels.max(axis=2)
    if pixels.ndim != 2 or pixels.size == 0:
        raise FishError(f"{name}: a mask has rows and columns, but this has the shape {pixels.shape}.")
    if pixels.dtype == np.bool_:
        return pixels
    if pixels.dtype.kind == "f":
        pixels = np.nan_to_num(pixels)
    sample = pixels[:: 1 + pixels.size // _ENOUGH_PX].astype(np.float64)
    values, counts = np.unique(sample, return_counts=True)
    middle = (values[0] + values[-1]) / 2
    if len(values) > FEW_VALUES or (lossy and len(values) > 1) or _is_blurred(values):
        if _is_near_ends(sample, values, middle):
            return np.asarray(pixels > middle)
        if lossy or not _is_flat(sample, values[counts.argmax()]):
            raise FishError(
                f"{name}: this is a picture with {len(values)} shades, not a mask. A mask is 0 where there is no tissue, "
                "and has one other value, or a few, where there is."
            )
    return np.asarray(pixels != 0)


def _is_blurred(values: NDArray[np.float64]) -> bool:
    """Whether few values are what a JPEG made of black and white: several near each, and none between."""
    near = (values[-1] - values[0]) / 16
    dark, bright = (values <= values[0] + near).sum(), (values >= values[-1] - near).sum()
    return bool(min(dark, bright) > 2 and dark + bright == len(values))


def _is_near_ends(sample: NDArray[np.float64], values: NDArray[np.float64], middle: float) -> bool:
    quarter = (values[-1] - values[0]) / 4
    dark, bright = sample[sample <= middle], sample[sample > middle]
    if not len(bright):
        return True
    shares = (dark < values[0] + quarter).mean(), (bright > values[-1] - quarter).mean()
    return bool(min(shares) >= NEAR_ENDS)


def _is_flat(sample: NDArray[np.float64], background: float) -> bool:
    objects = sample != background
    pairs = objects[:, 1:] & objects[:, :-1]
    return bool(((sample[:, 1:] == sample[:, :-1]) & pairs).sum() >= FLAT * max(1, pairs.sum()))
