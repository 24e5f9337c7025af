"""Where training crops come from: slides, and folders of ordinary images."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import EncoderError, FishError, SlideError
from napari_fish.slides import find_slides, open_slide

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png"})
LeftOut = Callable[[str], None]
"""Called with a message that names a file which cannot be trained on, and why."""
_WHITE = 220
_TRIES = 12


@dataclass(frozen=True)
class TissueSource:
    """Images or slides of one scale.

    Attributes
    ----------
    path : Path
        A file, or a folder that is searched with everything below it.
    mpp : float or None
        µm per px. None: slides know it themselves; ordinary images are taken to be at 0.5.
    pattern : str
        Only files whose name matches, as in a shell.
    weight : float
        How often crops come from here, relative to the other sources.
    """

    path: Path
    mpp: float | None = None
    pattern: str = "*"
    weight: float = 1.0


class Picture(Protocol):
    """Anything a crop can be cut from."""

    def close(self) -> None:
        """Let go of the file."""

    def crop(self, rng: np.random.Generator, size: int, mpp: float) -> NDArray[np.uint8]:
        """Return a crop, uint8 (size, size, 3), at a random place."""
        ...

    def fields(
        self, rng: np.random.Generator, count: int, size: int, mpp: float
    ) -> Iterable[NDArray[np.uint8]]:
        """Yield the image as it is, or ``count`` crops of a slide."""
        ...


class Cache:
    """Decoded images, the least recently used forgotten first."""

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0
        self._images: OrderedDict[Path, NDArray[np.uint8]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: Path) -> NDArray[np.uint8]:
        """Return an image, uint8 (h, w, 3)."""
        from PIL import Image

        with self._lock:
            if path in self._images:
                self._images.move_to_end(path)
                return self._images[path]
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB"))
        with self._lock:
            if path not in self._images:
                self._images[path] = pixels
                self._held += pixels.nbytes
            while self._held > self._limit and len(self._images) > 1:
                self._held -= self._images.popitem(last=False)[1].nbytes
        return pixels


@dataclass(frozen=True)
class _ImageFile:
    path: Path
    mpp: float
    cache: Cache

    def __post_init__(self) -> None:
        """Read the file to its end, at an eighth of its size where JPEG allows, to know that it can be trained on."""
        from PIL import Image

        try:
            with Image.open(self.path) as image:
                image.draft("RGB", (image.width // 8, image.height // 8))
                image.load()
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise SlideError(f"{self.path}: the image is damaged ({error}); copy it again.") from error

    def close(self) -> None:
        """Nothing is held open."""

    def crop(self, rng: np.random.Generator, size: int, mpp: float) -> NDArray[np.uint8]:
        from PIL import Image

        pixels = self.cache.get(self.path)
        height, width = pixels.shape[:2]
        side = min(size * mpp / self.mpp, height, width)
        x, y = rng.uniform(0, width - side), rng.uniform(0, height - side)
        box = (x, y, x + side, y + side)
        small = Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC, box)
        return np.asarray(small)

    def fields(
        self, rng: np.random.Generator, count: int, size: int, mpp: float
    ) -> Iterable[NDArray[np.uint8]]:
        yield self.cache.get(self.path)


class _SlideFile:
    """A slide; crops are drawn again while they show nothing but glass."""

    def __init__(self, path: Path, mpp: float | None) -> None:
        self._slide = slide = open_slide(path, mpp=mpp)
        problem = ""
        if slide.kind != "slide":
            problem = f"holds only a {slide.kind} image, which is never read."
        elif slide.mpp is None:
            problem = "the size of a pixel is unknown. State it with --mpp."
        if problem:
            slide.close()
            raise SlideError(f"{path}: {problem}")
        self._mpp = slide.mpp or 0.0

    def close(self) -> None:
        self._slide.close()

    def crop(self, rng: np.random.Generator, size: int, mpp: float) -> NDArray[np.uint8]:
        slide = self._slide
        side = size * mpp / self._mpp
        width, height = slide.dimensions
        look = max(size // 8, 16)
        for _ in range(_TRIES):
            x, y = rng.uniform(0, max(0.0, width - side)), rng.uniform(0, max(0.0, height - side))
            glance = slide.read(x, y, look, look, mpp * size / look)
            if np.mean(glance.min(axis=2) > _WHITE) < 0.8:
                break
        return slide.read(x, y, size, size, mpp)

    def fields(
        self, rng: np.random.Generator, count: int, size: int, mpp: float
    ) -> Iterable[NDArray[np.uint8]]:
        for _ in range(count):
            yield self.crop(rng, size, mpp)


def open_picture(path: Path, mpp: float | None, cache: Cache) -> Picture:
    """Open an image or a slide, and make sure that it can be trained on."""
    if path.suffix.lower() in IMAGE_SUFFIXES:
        return _ImageFile(path, mpp or 0.5, cache)
    return _SlideFile(path, mpp)


def tissue_fields(
    sources: Sequence[TissueSource],
    *,
    per_slide: int,
    size: int = 1024,
    mpp: float = 0.5,
    seed: int = 0,
    left_out: LeftOut | None = None,
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield pictures of connected tissue: every image as it is, and patches of every slide.

    Parameters
    ----------
    sources : sequence of TissueSource
        Where to take them from.
    per_slide : int
        Patches of each slide.
    size, mpp : int, float
        Side in px and µm per px of a slide's patches.
    seed : int
        Fixes where they lie.
    left_out : callable, optional
        Hears of files that cannot be read; the others go on.

    Yields
    ------
    source : int
        Number of the source.
    pixels : ndarray of uint8, shape (h, w, 3)
        RGB.
    """
    cache = Cache(0)
    for number, source in enumerate(sources):
        for index, path in enumerate(files_of(source)):
            rng = np.random.default_rng([seed, number, index])
            try:
                picture = open_picture(path, source.mpp, cache)
                try:
                    for pixels in picture.fields(rng, per_slide, size, mpp):
                        yield number, pixels
                finally:
                    picture.close()
            except FishError as error:
                if left_out:
                    left_out(str(error))


def files_of(source: TissueSource) -> list[Path]:
    """Return the slides and images of a source, always in the same order."""
    if source.path.is_file():
        return [source.path]
    if not source.path.is_dir():
        raise EncoderError(f"{source.path}: no such file or folder to train on.")
    found = sorted(find_slides(source.path))
    return found if found == [source.path] else [path for path in found if path.match(source.pattern)]


def sources_digest(sources: Sequence[TissueSource]) -> str:
    """Return a hash of what is trained on: names and sizes of the files, wherever their folder is, and their scale."""
    facts = []
    for source in sources:
        files = [
            (path.relative_to(source.path).as_posix() if path != source.path else path.name, _size(path))
            for path in files_of(source)
        ]
        facts.append((source.mpp, source.weight, files))
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
