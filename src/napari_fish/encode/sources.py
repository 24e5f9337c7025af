"""Where training crops come from: slides, and folders of ordinary images."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import EncoderError, FishError

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp"})
SLIDE_SUFFIXES = frozenset(
    {".svs", ".tif", ".tiff", ".ndpi", ".mrxs", ".scn", ".bif", ".vms", ".svslide", ".dcm", ".zarr", ".czi"}
)
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


class _Picture(Protocol):
    """Anything a crop can be cut from."""

    def crop(self, rng: np.random.Generator, size: int, mpp: float) -> NDArray[np.uint8]: ...
    def fields(
        self, rng: np.random.Generator, count: int, size: int, mpp: float
    ) -> Iterable[NDArray[np.uint8]]: ...


class _Cache:
    """Decoded images, the least recently used forgotten first."""

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0
        self._images: OrderedDict[Path, NDArray[np.uint8]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: Path) -> NDArray[np.uint8]:
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
    cache: _Cache

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
        from napari_fish.slides import open_slide

        self._slide = open_slide(path, mpp=mpp)

    def crop(self, rng: np.random.Generator, size: int, mpp: float) -> NDArray[np.uint8]:
        slide = self._slide
        if slide.mpp is None:
            raise EncoderError(f"{slide.path}: the size of a pixel is unknown. State it with --mpp.")
        side = size * mpp / slide.mpp
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


def tissue_fields(
    sources: Sequence[TissueSource], *, per_slide: int, size: int = 1024, mpp: float = 0.5, seed: int = 0
) -> Iterable[tuple[int, NDArray[np.uint8]]]:
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

    Yields
    ------
    source : int
        Number of the source.
    pixels : ndarray of uint8, shape (h, w, 3)
        RGB.
    """
    cache = _Cache(0)
    for number, source in enumerate(sources):
        for index, path in enumerate(_files(source)):
            rng = np.random.default_rng([seed, number, index])
            image = path.suffix.lower() in IMAGE_SUFFIXES
            picture: _Picture = (
                _ImageFile(path, source.mpp or 0.5, cache) if image else _SlideFile(path, source.mpp)
            )
            for pixels in picture.fields(rng, per_slide, size, mpp):
                yield number, pixels


def _files(source: TissueSource) -> Iterable[Path]:
    if source.path.is_file() or source.path.suffix == ".zarr":
        return [source.path]
    if not source.path.is_dir():
        raise EncoderError(f"{source.path}: no such file or folder to train on.")
    wanted = IMAGE_SUFFIXES | SLIDE_SUFFIXES
    return sorted(p for p in source.path.rglob(source.pattern) if p.suffix.lower() in wanted)


class Crops:
    """Endless crops of tissue, the same for the same seed.

    Parameters
    ----------
    sources : sequence of TissueSource
        Where to take crops from.
    size : int
        Side of a crop in px.
    mpp : float
        µm per px of a crop.
    scale : tuple of float
        Each crop's mpp is multiplied by a factor from this range (log-uniform).
    seed : int
        Fixes every crop; crop ``i`` does not depend on which crops were drawn before.
    held_out : float
        Share of the files kept for validation.
    cache_bytes : int
        Memory for decoded images.

    Notes
    -----
    A file that cannot be opened is left out and named in ``skipped``.
    """

    def __init__(
        self,
        sources: Sequence[TissueSource],
        size: int,
        *,
        mpp: float = 0.5,
        scale: tuple[float, float] = (1.0, 1.0),
        seed: int = 0,
        held_out: float = 0.0,
        cache_bytes: int = 2 * 2**30,
    ) -> None:
        self.size, self.mpp, self.scale, self.seed = size, mpp, scale, seed
        self.skipped: list[tuple[Path, str]] = []
        cache = _Cache(cache_bytes)
        self._train: list[list[_Picture]] = []
        self._held: list[_Picture] = []
        self._weights: list[float] = []
        rng = np.random.default_rng([seed, 2**31])
        for source in sources:
            pictures = list(self._open(source, cache))
            held = [rng.random() < held_out and len(pictures) > 1 for _ in pictures]
            kept = [p for p, h in zip(pictures, held, strict=True) if not h]
            self._held += [p for p, h in zip(pictures, held, strict=True) if h]
            if kept:
                self._train.append(kept)
                self._weights.append(source.weight)
        if not self._train:
            named = ", ".join(str(s.path) for s in sources) or "no folder given"
            raise EncoderError(f"nothing to train on: no readable slide or image in {named}.")

    def _open(self, source: TissueSource, cache: _Cache) -> Iterable[_Picture]:
        for path in _files(source):
            try:
                if path.suffix.lower() in IMAGE_SUFFIXES:
                    yield _ImageFile(path, source.mpp or 0.5, cache)
                else:
                    yield _SlideFile(path, source.mpp)
            except FishError as error:
                self.skipped.append((path, str(error)))

    @property
    def n_files(self) -> int:
        """Files that training crops come from."""
        return sum(len(group) for group in self._train)

    def train(self, start: int, count: int) -> NDArray[np.uint8]:
        """Return training crops ``start`` to ``start + count - 1``, uint8 (count, size, size, 3)."""
        weights = np.array(self._weights) / sum(self._weights)
        crops = []
        for index in range(start, start + count):
            rng = np.random.default_rng([self.seed, index])
            group = self._train[rng.choice(len(weights), p=weights)]
            crops.append(self._crop(group[rng.integers(len(group))], rng))
        return np.stack(crops)

    def validation(self, count: int) -> NDArray[np.uint8]:
        """Return ``count`` crops of files never trained on, uint8 (count, size, size, 3)."""
        pictures = self._held or [p for group in self._train for p in group]
        crops = []
        for index in range(count):
            rng = np.random.default_rng([self.seed, 2**30 + index])
            crops.append(self._crop(pictures[index % len(pictures)], rng))
        return np.stack(crops)

    def _crop(self, picture: _Picture, rng: np.random.Generator) -> NDArray[np.uint8]:
        low, high = np.log(self.scale)
        return picture.crop(rng, self.size, self.mpp * float(np.exp(rng.uniform(low, high))))

    def batches(self, first: int, last: int, batch: int, ahead: int = 4) -> Iterable[NDArray[np.uint8]]:
        """Yield batch ``first`` to ``last - 1``, read ahead in threads."""
        with ThreadPoolExecutor(2, "fish-crops") as pool:
            waiting = [
                pool.submit(self.train, i * batch, batch) for i in range(first, min(last, first + ahead))
            ]
            try:
                for i in range(first, last):
                    ready = waiting.pop(0).result()
                    if i + ahead < last:
                        waiting.append(pool.submit(self.train, (i + ahead) * batch, batch))
                    yield ready
            finally:
                for future in waiting:
                    future.cancel()
