"""OME-TIFF, and TIFFs that OpenSlide refuses, read block by block with tifffile."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from napari_fish.slides.pixels import MAX_BLOCK_BYTES, significant_bits, to_rgb, why_not_rgb
from napari_fish.slides.protocol import RGB, SeriesInfo
from napari_fish.slides.series import choose_series, kind_of
from napari_fish.slides.tiff_scale import tiff_mpp

CACHE_BYTES = 64 * 2**20
"""Decoded blocks kept, as OpenSlide does: neighbouring reads share tiles."""

DAMAGE = (tifffile.TiffFileError, ValueError, OSError, LookupError, OverflowError, TypeError, AttributeError)
"""What tifffile raises over a damaged file; its parser does not check everything it reads."""


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
        self._cache: OrderedDict[tuple[int, int], NDArray[Any]] = OrderedDict()
        self._bits = bits or self._guess_bits()

    def _guess_bits(self) -> int:
        """Return how many bits of a sample are used, judged by the coarsest level."""
        plane = self._planes[-1]
        if plane.pages[0].dtype == np.uint8:
            return 8
        if plane.width * plane.height > 4096**2:
            return 16
        return significant_bits(self._samples(plane, 0, 0, plane.width, plane.height))

    def _decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        return to_rgb(self._samples(self._planes[level], x, y, width, height), self._bits)

    def _samples(self, plane: Plane, x: int, y: int, width: int, height: int) -> NDArray[Any]:
        """Return a region's stored samples, shape (height, width, samples)."""
        first = plane.pages[0]
        result = np.full((height, width, plane.samples), np.iinfo(first.dtype).max, first.dtype)
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
        if first.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
            result = np.iinfo(first.dtype).max - result
        return result

    def _block(self, page: Any, index: int) -> NDArray[Any] | None:
        """Return one decoded tile or strip, shape (rows, columns, samples), or None when it is not stored."""
        offset, count = page.dataoffsets[index], page.databytecounts[index]
        if count == 0:
            return None
        key = (offset, count)
        with self._reading:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
            file = self._tiff.filehandle
            file.seek(offset)
            data = file.read(count)
        if len(data) < count:
            raise SlideError(f"{self.path}: the file ends early; it is truncated. Copy it again.")
        keyframe = page.keyframe
        decoded = keyframe.decode(data, index, jpegtables=page.jpegtables)[0]
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
        of_file = hash_files([self.path])
        default = choose_series(self.path, self.series, None).index
        return of_file if self.series_index == default else f"{of_file}-{self.series_index}"


def _blocks_under(page: Any, x: int, y: int, width: int, height: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield sample, top, left and index of every tile or strip under a region."""
    rows, columns = _block_shape(page)
    across = -(-page.imagewidth // columns)
    down = -(-page.imagelength // rows)
    separate = page.samplesperpixel if page.planarconfig == tifffile.PLANARCONFIG.SEPARATE else 1
    for sample in range(separate):
        for i in range(y // rows, (y + height - 1) // rows + 1):
            for j in range(x // columns, (x + width - 1) // columns + 1):
                yield sample, i * rows, j * columns, (sample * down + i) * across + j


def _block_shape(page: Any) -> tuple[int, int]:
    """Return rows and columns of a page's tiles or strips."""
    if page.is_tiled:
        return int(page.tilelength), int(page.tilewidth)
    return min(int(page.rowsperstrip), int(page.imagelength)), int(page.imagewidth)


def open_tiff(path: Path, mpp: float | None = None, series: int | None = None) -> TiffSlide:
    """Open an OME-TIFF or ordinary TIFF with tifffile."""
    try:
        tiff = tifffile.TiffFile(path)
    except DAMAGE as error:
        raise SlideError(f"{path}: this TIFF is damaged ({error}); copy it again.") from error
    try:
        return _open_series(tiff, path, mpp, series)
    except SlideError:
        tiff.close()
        raise
    except Exception as error:
        tiff.close()
        raise SlideError(f"{path}: this TIFF is damaged ({error}); copy it again.") from error


def is_beyond_openslide(path: Path, vendor: str) -> bool:
    """Whether a TIFF that OpenSlide would open holds images or bits that it would not see."""
    if vendor != "generic-tiff":
        return False
    try:
        with tifffile.TiffFile(path) as tiff:
            first: Any = tiff.pages.first
            return bool(tiff.is_ome or first.subifds or first.bitspersample != 8)
    except DAMAGE:
        return False


def is_truncated(path: Path) -> bool:
    """Whether the first image of a TIFF says it has data beyond the end of the file."""
    try:
        with tifffile.TiffFile(path) as tiff:
            return _data_end(tiff.pages.first) > path.stat().st_size
    except DAMAGE:
        return False


def _data_end(page: Any) -> int:
    """Return the offset behind the last byte of a page's pixels."""
    ends = np.asarray(page.dataoffsets, np.int64) + np.asarray(page.databytecounts, np.int64)
    return int(ends.max(initial=0))


def _open_series(tiff: tifffile.TiffFile, path: Path, user: float | None, wanted: int | None) -> TiffSlide:
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
    planes = list(_planes(path, tiff.series[chosen.index]))
    return TiffSlide(
        tiff,
        path,
        planes,
        tiff_mpp(path, tiff, planes[0].pages[0].keyframe, about, user),
        about.significant_bits if about else None,
        objective_power=about.objective_power if about else None,
        properties=_properties(tiff),
        series=tuple(infos),
        series_index=chosen.index,
        notes=_notes(tiff.series[chosen.index]),
    )


def _planes(path: Path, series: Any) -> Iterator[Plane]:
    """Yield the levels of a series, checked, largest first."""
    size = path.stat().st_size
    smallest: int | None = None
    for level in series.levels:
        keyframe = level.keyframe
        channels = level.shape[level.axes.index("C")] if "C" in level.axes else 1
        pages = (
            tuple(level.pages[i] for i in range(channels))
            if keyframe.samplesperpixel == 1
            else (level.pages[0],)
        )
        plane = Plane(pages, int(keyframe.imagewidth), int(keyframe.imagelength))
        if smallest is not None and plane.width * plane.height >= smallest:
            continue
        smallest = plane.width * plane.height
        for page in pages:
            _check_page(path, page, plane, size)
        yield plane


def _check_page(path: Path, page: Any, plane: Plane, size: int) -> None:
    """Refuse what cannot be right, before anything is allocated for it."""
    keyframe = page.keyframe
    why = why_not_rgb(plane.samples, keyframe.dtype)
    if why is None and keyframe.photometric == tifffile.PHOTOMETRIC.PALETTE:
        why = "its colours are a palette"
    if why:
        raise SlideError(f"{path}: cannot be read as a slide: {why}. Convert it to an 8-bit RGB TIFF.")
    rows, columns = _block_shape(keyframe)
    if rows * columns * keyframe.samplesperpixel * keyframe.dtype.itemsize > MAX_BLOCK_BYTES:
        raise SlideError(
            f"{path}: {plane.width} x {plane.height} px are stored as one block, too large to read. "
            "Convert it to a tiled TIFF (for example with vips tiffsave --tile --pyramid)."
        )
    separate = keyframe.samplesperpixel if keyframe.planarconfig == tifffile.PLANARCONFIG.SEPARATE else 1
    expected = separate * -(-plane.height // rows) * -(-plane.width // columns)
    offsets, counts = page.dataoffsets, page.databytecounts
    if len(offsets) != expected or len(counts) != expected:
        raise SlideError(
            f"{path}: declares {plane.width} x {plane.height} px in {expected} blocks but stores {len(offsets)}; "
            "the file is damaged. Copy it again."
        )
    if _data_end(page) > size:
        raise SlideError(f"{path}: the file ends early; it is truncated. Copy it again.")


def _properties(tiff: tifffile.TiffFile) -> dict[str, str]:
    """Return the first page's tags that a person can read."""
    tags: Any = tiff.pages.first.tags
    skipped = ("Offsets", "ByteCounts", "JPEGTables", "InterColorProfile")
    return {f"tiff.{tag.name}": str(tag.value)[:10_000] for tag in tags if not tag.name.endswith(skipped)}


def _notes(series: Any) -> tuple[str, ...]:
    """Say which further planes of a stack are not shown."""
    more = [f"{n} {a}" for a, n in zip(series.axes, series.shape, strict=True) if a in "TZ" and n > 1]
    return (f"holds {' and '.join(more)} planes; the first is shown",) if more else ()
