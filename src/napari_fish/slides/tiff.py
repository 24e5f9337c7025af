"""OME-TIFF, and TIFFs that OpenSlide refuses, read block by block with tifffile."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from napari_fish.errors import SlideError
from napari_fish.slides.base import PyramidSlide
from napari_fish.slides.identity import hash_files
from napari_fish.slides.mpp import Mpp
from napari_fish.slides.ome import read_ome
from napari_fish.slides.ome_check import check_ome
from napari_fish.slides.pixels import Alpha, guess_bits, to_rgb, why_not_rgb
from napari_fish.slides.protocol import RGB, SeriesInfo
from napari_fish.slides.series import choose_series, kind_of
from napari_fish.slides.tiff_check import block_shape, check_page, is_too_large, not_rgb
from napari_fish.slides.tiff_scale import tiff_mpp

CACHE_BYTES = 64 * 2**20
"""Decoded blocks kept, as OpenSlide does: neighbouring reads share tiles."""

ALPHA: dict[int, Alpha] = {1: "premultiplied", 2: "straight"}
"""What TIFF's ExtraSamples tag says of a fourth sample."""


@dataclass(frozen=True)
class Plane:
    """One stored level: one page with all samples, or one page a channel."""

    pages: tuple[Any, ...]
    width: int
    height: int

    @property
    def samples(self) -> int:
        """Samples a pixel."""
        return len(self.pages) if len(self.pages) > 1 else int(self.pages[0].samplesperpixel)


class TiffSlide(PyramidSlide):
    """A slide in a TIFF file."""

    backend = "tifffile"

    def __init__(
        self,
        tiff: tifffile.TiffFile,
        path: Path,
        planes: Sequence[Plane],
        mpp: Mpp,
        bits: int | None,
        **about: Any,
    ) -> None:
        super().__init__(path, tuple((p.width, p.height) for p in planes), mpp, **about)
        self._tiff = tiff
        self._planes = tuple(planes)
        self._reading = threading.Lock()
        self._cache: OrderedDict[tuple[str, int, int], NDArray[Any]] = OrderedDict()
        keyframe = planes[0].pages[0].keyframe
        self._alpha = ALPHA.get(next(iter(keyframe.extrasamples), 0), "none")
        self._inverted = keyframe.photometric == tifffile.PHOTOMETRIC.MINISWHITE
        self._bits = 8 if keyframe.dtype == np.uint8 else bits or self._guess_bits()

    def _guess_bits(self) -> int:
        plane = self._planes[-1]
        return guess_bits(partial(self._samples, plane), plane.width, plane.height)

    def _decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        pixels = to_rgb(self._samples(self._planes[level], x, y, width, height), self._bits, self._alpha)
        return 255 - pixels if self._inverted else pixels

    def _samples(self, plane: Plane, x: int, y: int, width: int, height: int) -> NDArray[Any]:
        """Return a region's stored samples, shape (height, width, samples)."""
        dtype = plane.pages[0].dtype
        blank = 0 if self._inverted else np.iinfo(dtype).max
        result = np.full((height, width, plane.samples), blank, dtype)
        for channel, page in enumerate(plane.pages):
            for sample, top, left, index in _blocks_under(page.keyframe, x, y, width, height):
                block = self._block(page, index)
                if block is None:
                    continue
                part = block[max(y - top, 0) : y + height - top, max(x - left, 0) : x + width - left]
                row, column = max(top - y, 0), max(left - x, 0)
                at = channel + sample
                part = part[: height - row, : width - column]
                result[
                    row : row + part.shape[0], column : column + part.shape[1], at : at + part.shape[2]
                ] = part
        return result

    def _block(self, page: Any, index: int) -> NDArray[Any] | None:
        """Return one decoded tile or strip, shape (rows, columns, samples), or None when it is not stored."""
        offset, count = page.dataoffsets[index], page.databytecounts[index]
        if count == 0:
            return None
        file = page.parent.filehandle
        key = (file.path, offset, count)
        with self._reading:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
            if file.closed:
                file.open()
            # tifffile fetches these from the file when they are first asked for, moving to another place in it.
            decode, tables = page.keyframe.decode, page.jpegtables
            file.seek(offset)
            data = file.read(count)
        if len(data) < count:
            raise SlideError(f"{self.path}: the file ends early; it is truncated. Copy it again.")
        if is_too_large(page.keyframe, data):
            raise SlideError(
                f"{self.path}: one of its tiles says that it is far larger than a tile; the file is damaged. Copy it again."
            )
        decoded = decode(data, index, jpegtables=tables)[0]
        if decoded is None:
            return None
        block: NDArray[Any] = decoded[0]
        with self._reading:
            self._cache[key] = block
            while len(self._cache) > 1 and sum(b.nbytes for b in self._cache.values()) > CACHE_BYTES:
                self._cache.popitem(last=False)
        return block

    def _release(self) -> None:
        with self._reading:
            self._tiff.close()
            self._cache.clear()

    def _hash(self) -> str:
        files = {page.parent.filehandle.path for plane in self._planes for page in plane.pages}
        return self._hash_of_series(hash_files(Path(file) for file in files))


def _blocks_under(page: Any, x: int, y: int, width: int, height: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield sample, top, left and index of every tile or strip under a region."""
    rows, columns = block_shape(page)
    across = -(-page.imagewidth // columns)
    down = -(-page.imagelength // rows)
    separate = page.samplesperpixel if page.planarconfig == tifffile.PLANARCONFIG.SEPARATE else 1
    for sample in range(separate):
        for i in range(y // rows, (y + height - 1) // rows + 1):
            for j in range(x // columns, (x + width - 1) // columns + 1):
                yield sample, i * rows, j * columns, (sample * down + i) * across + j


def open_tiff(path: Path, mpp: float | None = None, series: int | None = None) -> TiffSlide:
    """Open an OME-TIFF or ordinary TIFF with tifffile."""
    try:
        tiff = tifffile.TiffFile(path)
    except Exception as error:  # tifffile does not check everything it parses
        raise SlideError(f"{path}: this TIFF is damaged ({error}); copy it again.") from error
    try:
        return _open_series(tiff, path, mpp, series)
    except SlideError:
        tiff.close()
        raise
    except Exception as error:
        tiff.close()
        raise SlideError(f"{path}: this TIFF is damaged ({error}); copy it again.") from error


def _open_series(tiff: tifffile.TiffFile, path: Path, user: float | None, wanted: int | None) -> TiffSlide:
    if tiff.is_ome:
        check_ome(path, tiff)
    ome = read_ome(tiff.ome_metadata) if tiff.is_ome else ()
    infos = []
    for index, series in enumerate(tiff.series):
        keyframe: Any = series.keyframe
        name = ome[index].name if index < len(ome) else series.name
        infos.append(
            SeriesInfo(
                index, name or f"image {index}", kind_of(name), keyframe.imagewidth, keyframe.imagelength
            )
        )
    chosen = choose_series(path, infos, wanted)
    about = ome[chosen.index] if chosen.index < len(ome) else None
    # Labels and macro images are not taken through the objective.
    objective = about.objective_power if about and chosen.kind == "slide" else None
    planes = list(_planes(path, tiff.series[chosen.index]))
    return TiffSlide(
        tiff,
        path,
        planes,
        tiff_mpp(path, tiff, planes[0].pages[0].keyframe, about, objective, user),
        about.significant_bits if about else None,
        objective_power=objective,
        properties=_properties(tiff),
        series=tuple(infos),
        series_index=chosen.index,
        notes=_notes(tiff.series[chosen.index]),
    )


def _planes(path: Path, series: Any) -> Iterator[Plane]:
    """Yield the levels of a series, checked, largest first."""
    smallest: int | None = None
    for level in series.levels:
        keyframe = level.keyframe
        pages = tuple(level.pages[i] for i in _channel_pages(path, level))
        plane = Plane(pages, int(keyframe.imagewidth), int(keyframe.imagelength))
        if smallest is not None and plane.width * plane.height >= smallest:
            continue
        smallest = plane.width * plane.height
        for page in pages:
            check_page(path, page, plane.samples)
        yield plane


def _channel_pages(path: Path, level: Any) -> list[int]:
    """Return which pages hold the channels of the first plane; one page when it holds them all."""
    if "C" not in level.axes or level.keyframe.samplesperpixel > 1:
        return [0]
    stacked = [(a, n) for a, n in zip(level.axes, level.shape, strict=True) if a not in "YXS"]
    at = [a for a, _ in stacked].index("C")
    why = why_not_rgb(stacked[at][1], level.keyframe.dtype)
    if why:
        raise not_rgb(path, why)
    step = int(np.prod([n for _, n in stacked[at + 1 :]], dtype=int))
    return [step * channel for channel in range(stacked[at][1])]


def _properties(tiff: tifffile.TiffFile) -> dict[str, str]:
    """Return the first page's tags that a person can read."""
    tags: Any = tiff.pages.first.tags
    skipped = ("Offsets", "ByteCounts", "JPEGTables", "InterColorProfile")
    return {f"tiff.{tag.name}": str(tag.value)[:10_000] for tag in tags if not tag.name.endswith(skipped)}


def _notes(series: Any) -> tuple[str, ...]:
    """Say which further planes of a stack are not shown."""
    more = [f"{n} {a}" for a, n in zip(series.axes, series.shape, strict=True) if a in "TZ" and n > 1]
    return (f"holds {' and '.join(more)} planes; the first is shown",) if more else ()
