"""What a slide is to the rest of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from napari_fish.slides.mpp import MppSource

RGB = NDArray[np.uint8]
"""An image of shape (rows, columns, 3)."""


@dataclass(frozen=True)
class SeriesInfo:
    """One image inside a slide file.

    Attributes
    ----------
    index : int
        What to pass as ``series`` to open this image.
    name : str
        Name given by the file, or a made-up one.
    kind : str
        ``"slide"``, or ``"label"``, ``"macro"`` or ``"thumbnail"`` for images that must never
        enter a database.
    width, height : int
        Size in px.
    """

    index: int
    name: str
    kind: str
    width: int
    height: int


@runtime_checkable
class Slide(Protocol):
    """A pyramidal RGB image with a physical scale; every method may be called from any thread."""

    @property
    def path(self) -> Path:
        """The file or folder that was opened."""
        ...

    @property
    def backend(self) -> str:
        """Name of the library that reads it."""
        ...

    @property
    def dimensions(self) -> tuple[int, int]:
        """Width and height of level 0 in px."""
        ...

    @property
    def level_dimensions(self) -> tuple[tuple[int, int], ...]:
        """Width and height of every level in px."""
        ...

    @property
    def level_downsamples(self) -> tuple[float, ...]:
        """Level-0 px per px of each level, mean of both axes, never rounded."""
        ...

    @property
    def mpp(self) -> float | None:
        """Micrometres per level-0 px; None when nobody knows."""
        ...

    @property
    def mpp_source(self) -> MppSource:
        """Where :attr:`mpp` came from."""
        ...

    @property
    def objective_power(self) -> float | None:
        """Magnification of the objective, as the file states it."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """Everything else the file says about itself."""
        ...

    @property
    def content_hash(self) -> str:
        """Version-tagged name of the content: the same after the slide was moved or renamed."""
        ...

    @property
    def series(self) -> tuple[SeriesInfo, ...]:
        """The images inside the file."""
        ...

    @property
    def series_index(self) -> int:
        """Which of them is open."""
        ...

    @property
    def kind(self) -> str:
        """What the open image is, as in :class:`SeriesInfo`."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of this file, such as an absurd mpp that was not believed."""
        ...

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        ...

    def read(self, x: float, y: float, width: int, height: int, mpp: float) -> RGB:
        """Read a region at a given scale.

        Parameters
        ----------
        x, y : float
            Top left corner in level-0 px; may lie outside the slide.
        width, height : int
            Size of the result in px of the result.
        mpp : float
            Micrometres per px of the result.

        Returns
        -------
        ndarray of uint8, shape (height, width, 3)
            RGB; white outside the slide and under transparency.
        """
        ...

    def read_level(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        """Read stored pixels of one pyramid level, for display.

        Parameters
        ----------
        level : int
            Pyramid level.
        x, y, width, height : int
            Region in px of that level; may lie outside the slide.

        Returns
        -------
        ndarray of uint8, shape (height, width, 3)
            RGB; white outside the slide and under transparency.
        """
        ...

    def thumbnail(self, max_px: int) -> RGB:
        """Return the whole slide as an RGB image whose longer side has at most ``max_px`` px."""
        ...

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
