"""One open slide behind a layer: opened when looked at, closed when the layer goes."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from napari_fish._napari.jobs.notify import warn_user
from napari_fish.errors import SlideError
from napari_fish.slides import MppSource, Slide, open_slide
from napari_fish.slides.protocol import RGB

log = logging.getLogger(__name__)

SMALLEST_PIECE = 256
"""Px; a damaged region is narrowed down to pieces of this size, the rest of it is shown."""
MOST_FAILURES = 40
"""Failed reads after which the rest of a region is given up: damaged slides must not stall the viewer."""


class LazySlide:
    """A slide that can be closed at any time and opens itself again when it is read.

    Safe to use from any thread; a file is never closed while a thread is reading from it.

    Parameters
    ----------
    slide : Slide
        The open slide; from now on this object closes it.
    """

    def __init__(self, slide: Slide) -> None:
        self.path = slide.path
        self.level_dimensions = slide.level_dimensions
        self.level_downsamples = slide.level_downsamples
        self._series = slide.series_index
        self._mpp = slide.mpp if slide.mpp_source is MppSource.USER else None
        # In a list of its own, so that the finaliser can close it without keeping this object alive.
        self._open = [slide]
        self._lock = threading.Lock()
        self._readers = 0
        self._unwanted = False
        self._reported = False
        weakref.finalize(self, _close_all, self._open)

    def __deepcopy__(self, memo: object) -> LazySlide:
        """Share the file: a duplicated layer shows the same slide."""
        return self

    @property
    def closed(self) -> bool:
        """Whether no file is open just now."""
        return not self._open

    def close(self) -> None:
        """Close the file, as soon as no thread is reading from it."""
        with self._lock:
            self._unwanted = True
            if not self._readers:
                _close_all(self._open)

    @contextmanager
    def borrowed(self) -> Iterator[Slide]:
        """Lend the open slide, opening it if need be; raises :class:`SlideError` when that fails."""
        with self._lock:
            self._unwanted = False
            if not self._open:
                self._open.append(self._reopened())
            slide = self._open[0]
            self._readers += 1
        try:
            yield slide
        finally:
            with self._lock:
                self._readers -= 1
                if self._unwanted and not self._readers:
                    _close_all(self._open)

    def _reopened(self) -> Slide:
        slide = open_slide(self.path, mpp=self._mpp, series=self._series)
        if slide.level_dimensions != self.level_dimensions:
            slide.close()
            raise SlideError(f"{self.path}: the file has changed since it was opened; open it again.")
        return slide

    def read_level(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        """Read a region for display: what cannot be read is hatched and reported once, never raised.

        Parameters
        ----------
        level : int
            Stored pyramid level.
        x, y, width, height : int
            Region in px of that level.

        Returns
        -------
        ndarray of uint8, shape (height, width, 3)
            RGB.
        """
        try:
            with self.borrowed() as slide:
                try:
                    return slide.read_level(level, x, y, width, height)
                except SlideError as error:
                    self._report(error)
                    return _pieces(slide, level, x, y, width, height)
        except SlideError as error:
            self._report(error)
            return hatched(x, y, width, height)

    def _report(self, error: SlideError) -> None:
        log.info("%s", error)
        if not self._reported:
            self._reported = True
            warn_user(f"{error} What cannot be read is shown hatched.")


def hatched(x: int, y: int, width: int, height: int) -> RGB:
    """Return the pattern that stands for unreadable pixels: grey with diagonal stripes."""
    stripes = (np.arange(x, x + width)[None, :] + np.arange(y, y + height)[:, None]) % 32 < 6
    grey = np.where(stripes, 190, 225).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)


def _pieces(slide: Slide, level: int, x: int, y: int, width: int, height: int) -> RGB:
    """Read a region that failed as a whole in ever smaller pieces, hatching those that fail."""
    result = hatched(x, y, width, height)
    todo = [(0, 0, width, height)]
    failures = 0
    while todo and failures < MOST_FAILURES:
        left, top, wide, high = todo.pop()
        try:
            if wide < width or high < height:
                piece = slide.read_level(level, x + left, y + top, wide, high)
                result[top : top + high, left : left + wide] = piece
                continue
        except SlideError:
            failures += 1
        columns, rows = _halves(wide), _halves(high)
        if len(columns) * len(rows) > 1:
            todo += [(left + c, top + r, w, h) for r, h in rows for c, w in columns]
    return result


def _halves(length: int) -> list[tuple[int, int]]:
    """Return start and length of the two halves of a stretch, or of the stretch when it is short."""
    if length <= SMALLEST_PIECE:
        return [(0, length)]
    half = -(-length // 2)
    return [(0, half), (half, length - half)]


def _close_all(slides: list[Slide]) -> None:
    while slides:
        slides.pop().close()
