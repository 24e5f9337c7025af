"""The geometry that all backends share."""

from __future__ import annotations

import operator
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from napari_fish.errors import SlideError
from napari_fish.names import STATE_MPP
from napari_fish.slides.mpp import Mpp, MppSource
from napari_fish.slides.protocol import RGB, SeriesInfo
from napari_fish.slides.series import default_series

# A level this little too coarse still counts as fine enough: rounded mpp values (0.2457 against
# 0.25) must not force a read of the next finer level, which costs four times the pixels.
LEVEL_TOLERANCE = 1.02
# Source pixels resampled at a time, so that the memory of a read does not grow with what it covers.
BLOCK_PIXELS = 16 * 2**20


class PyramidSlide(ABC):
    """A :class:`Slide` over stored levels: backends only say how to decode a region inside one."""

    backend = ""

    def __init__(
        self,
        path: Path,
        level_dimensions: tuple[tuple[int, int], ...],
        mpp: Mpp,
        *,
        objective_power: float | None = None,
        properties: Mapping[str, str] | None = None,
        series: tuple[SeriesInfo, ...] = (),
        series_index: int = 0,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.level_dimensions = level_dimensions
        self.objective_power = objective_power
        self.properties = dict(properties or {})
        width, height = level_dimensions[0]
        self.series = series or (SeriesInfo(0, path.name, "slide", width, height),)
        self.series_index = series_index
        self.notes = (*mpp.notes, *notes)
        self._mpp = mpp
        self._lock = threading.Lock()
        self._readers = 0
        self._closed = False

    @abstractmethod
    def _decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        """Return stored pixels of a non-empty region that lies inside the level, as a view if need be."""

    @abstractmethod
    def _release(self) -> None:
        """Let go of the file."""

    @abstractmethod
    def _hash(self) -> str:
        """Compute the content hash."""

    @property
    def dimensions(self) -> tuple[int, int]:
        """Width and height of level 0 in px."""
        return self.level_dimensions[0]

    @cached_property
    def _level_scales(self) -> tuple[tuple[float, float], ...]:
        """Level-0 px per level px, for x and y."""
        width, height = self.dimensions
        return tuple((_downsample(width, w), _downsample(height, h)) for w, h in self.level_dimensions)

    @property
    def level_downsamples(self) -> tuple[float, ...]:
        """Level-0 px per px of each level, mean of both axes."""
        return tuple((sx + sy) / 2 for sx, sy in self._level_scales)

    @property
    def mpp(self) -> float | None:
        """Micrometres per level-0 px, or None."""
        return self._mpp.value

    @property
    def mpp_source(self) -> MppSource:
        """Where :attr:`mpp` came from."""
        return self._mpp.source

    @cached_property
    def content_hash(self) -> str:
        """Version-tagged name of the content; costs milliseconds."""
        try:
            return self._hash()
        except OSError as error:
            raise SlideError(
                f"{self.path}: cannot be read any more ({error}). Is its disk still there?"
            ) from error
        except SlideError:
            raise
        except Exception as error:  # zip files and their compressions have errors of their own
            raise SlideError(
                f"{self.path}: is damaged, so that its content cannot be told ({error}). Copy it again from its source."
            ) from error

    @property
    def kind(self) -> str:
        """What the open image is: ``"slide"``, ``"label"``, ``"macro"`` or ``"thumbnail"``."""
        return next(s.kind for s in self.series if s.index == self.series_index)

    def _hash_of_series(self, of_file: str) -> str:
        """Tell the images inside one file apart; the slide itself has the file's own hash."""
        default = default_series(self.series)
        return (
            of_file
            if default is None or default.index == self.series_index
            else f"{of_file}-{self.series_index}"
        )

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    def read(self, x: float, y: float, width: int, height: int, mpp: float) -> RGB:
        """Read a region at a given scale; see :meth:`Slide.read`."""
        if self.mpp is None:
            raise SlideError(
                f"{self.path}: the size of a pixel is unknown, so it cannot be read at "
                f"{mpp:g} µm/px. State it: {STATE_MPP}."
            )
        if not (np.isfinite(mpp) and mpp > 0):
            raise ValueError(f"mpp must be a positive number of µm per px, not {mpp!r}")
        scale = mpp / self.mpp
        return self._resampled(x, y, width, height, scale, scale)

    def read_level(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        """Read stored pixels of one pyramid level; see :meth:`Slide.read_level`."""
        level, x, y, width, height = map(operator.index, (level, x, y, width, height))
        if not 0 <= level < len(self.level_dimensions):
            raise ValueError(f"{self.path} has levels 0 to {len(self.level_dimensions) - 1}, not {level}")
        if width < 0 or height < 0:
            raise ValueError(f"a region cannot be {width} x {height} px")
        full_width, full_height = self.level_dimensions[level]
        columns, rows = _inside(range(x, x + width), full_width), _inside(range(y, y + height), full_height)
        if not columns or not rows:
            return np.full((height, width, 3), 255, np.uint8)
        pixels = self._checked_decode(level, columns.start, rows.start, len(columns), len(rows))
        if pixels.shape[:2] == (height, width):
            return pixels if pixels.flags.owndata else pixels.copy()
        padded = np.full((height, width, 3), 255, np.uint8)
        padded[rows.start - y : rows.stop - y, columns.start - x : columns.stop - x] = pixels
        return padded

    def thumbnail(self, max_px: int) -> RGB:
        """Return the whole slide, its longer side at most ``max_px`` px."""
        if max_px < 1:
            raise ValueError(f"a thumbnail needs at least 1 px, not {max_px}")
        width, height = self.dimensions
        shrink = max(1.0, max(width, height) / max_px)
        small_width, small_height = max(1, round(width / shrink)), max(1, round(height / shrink))
        return self._resampled(0, 0, small_width, small_height, width / small_width, height / small_height)

    def close(self) -> None:
        """Close the file, at once or when the last read under way has ended; closing twice is harmless."""
        with self._lock:
            release = not self._closed and not self._readers
            self._closed = True
        if release:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        width, height = self.dimensions
        return f"<{type(self).__name__} {self.path.name}: {width} x {height} px, mpp {self.mpp}>"

    def _checked_decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        """Decode a region inside a level, turning whatever goes wrong into a :class:`SlideError`."""
        with self._lock:
            if self._closed:
                raise SlideError(f"{self.path}: this slide was closed; open it again with open_slide().")
            self._readers += 1
        try:
            return self._decode(level, x, y, width, height)
        except SlideError:
            raise
        except Exception as error:
            raise SlideError(
                f"{self.path}: cannot read level {level} at ({x}, {y}): {error}. "
                "The file is probably damaged; copy it again from its source."
            ) from error
        finally:
            with self._lock:
                self._readers -= 1
                release = self._closed and not self._readers
            if release:
                self._release()

    def _best_level(self, scale: float) -> int:
        """Return the coarsest level that is not coarser than ``scale`` level-0 px per px."""
        fine = [i for i, d in enumerate(self.level_downsamples) if d <= scale * LEVEL_TOLERANCE]
        return max(fine, key=self.level_downsamples.__getitem__, default=0)

    def _resampled(self, x: float, y: float, width: int, height: int, scale_x: float, scale_y: float) -> RGB:
        """Read a region with ``scale_x`` by ``scale_y`` level-0 px under each px of the result."""
        from napari_fish.slides.resample import footprint, resample

        if width < 0 or height < 0:
            raise ValueError(f"a region cannot be {width} x {height} px")
        level = self._best_level(min(scale_x, scale_y))
        level_x, level_y = self._level_scales[level]
        step_x, step_y = scale_x / level_x, scale_y / level_y
        start_x, start_y = x / level_x, y / level_y
        area = max(1.0, step_x * step_y)
        across = max(1, min(width, int(BLOCK_PIXELS / area)))
        down = max(1, min(height, int(BLOCK_PIXELS / (area * across))))
        result = np.full((height, width, 3), 255, np.uint8)
        for row in range(0, height, down):
            for column in range(0, width, across):
                shape = (min(down, height - row), min(across, width - column))
                at_y, at_x = start_y + row * step_y, start_x + column * step_x
                rows = _inside(footprint(at_y, step_y, shape[0]), self.level_dimensions[level][1])
                columns = _inside(footprint(at_x, step_x, shape[1]), self.level_dimensions[level][0])
                if rows and columns:
                    source = self._checked_decode(level, columns.start, rows.start, len(columns), len(rows))
                    start = (at_y - rows.start, at_x - columns.start)
                    block = resample(source, shape, start, (step_y, step_x))
                    result[row : row + shape[0], column : column + shape[1]] = block
        return result


def _inside(span: range, length: int) -> range:
    """Cut a range of pixels to those that exist."""
    return range(max(span.start, 0), min(span.stop, length))


def _downsample(full: int, level: int) -> float:
    """Return level-0 px per level px along one axis.

    Scanners shrink by whole factors and cut off what is left at the edge: 13835 px become 3458, and
    the factor is 4, not 4.0009, which would be 3 px off at the far end. Only where no whole factor
    explains the two sizes is it their ratio.
    """
    ratio = full / level
    whole = max(1, round(ratio))
    return float(whole) if level in (full // whole, -(-full // whole)) else ratio
