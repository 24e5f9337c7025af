"""One slide in, one encoded slide out: plain values, which another process or another computer may be given."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import FishError
from napari_fish.index.arrays import Barcodes, Keys
from napari_fish.mosaic import MosaicParams
from napari_fish.mosaic.masks import MaskLike
from napari_fish.slides import Slide
from napari_fish.store.records import Choice
from napari_fish.work import ShouldStop

Region = tuple[float, float, float, float]
"""x, y, width, height in level-0 px."""
PAUSE_SECONDS = 0.1
"""How often paused work looks whether it may go on."""


@dataclass(frozen=True, eq=False)
class SlideTask:
    """A slide to be encoded.

    Attributes
    ----------
    number
        By which whoever gave the task knows it again.
    source
        A file, or a slide that is open, which stays so and can be worked on in this process alone.
    mosaic
        How its patches are chosen; None for an image that is one patch.
    mpp
        Micrometres per level-0 px, instead of what the file says.
    size
        Bytes of its files, by which it is told how long reading them may take.
    mask
        Where the tissue is; by default it is found.
    box
        Of a query: the part that is asked for; None for the whole slide.
    is_query
        It is to be searched for: an image whose scale nobody knows is taken as one patch, and of a box glass is left out.
    picture_px, overview_px
        Sides of the pictures to be made of patches, 0 for none, and of the slide.
    keep_codes
        Whether latent codes are wanted.
    """

    number: int
    source: Path | Slide
    mosaic: MosaicParams | None
    mpp: float | None = None
    size: int = 0
    mask: MaskLike | None = None
    box: Region | None = None
    is_query: bool = False
    picture_px: int = 0
    overview_px: int = 512
    keep_codes: bool = False

    @property
    def path(self) -> Path:
        """The file."""
        return self.source if isinstance(self.source, Path) else self.source.path


@dataclass(frozen=True, eq=False)
class Begun:
    """A slide whose patches are chosen and about to be encoded.

    Attributes
    ----------
    number
        Of its task.
    overview
        JPEG of it.
    dimensions
        Width and height in level-0 px.
    boxes : ndarray of int32, shape (n, 4)
        x, y, width, height of its patches in level-0 px.
    """

    number: int
    overview: bytes
    dimensions: tuple[int, int]
    boxes: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SlideEncoded:
    """An encoded slide.

    Attributes
    ----------
    number
        Of its task.
    content_hash, dimensions
        Names its content; width and height in level-0 px.
    mpp
        Micrometres per level-0 px that its patches were cut by; 0 for an image that is one patch.
    keys, barcodes, boxes
        Of its patches: int64 (n,), uint64 (n, words), and int32 (n, 4) in level-0 px.
    choice
        How they were chosen; the mask is known to whoever gave it.
    overview, pictures
        JPEG of the slide, and of each patch if asked for.
    codes : ndarray of uint8, shape (n, 64, 64), or None
        Latent codes, if asked for.
    all_marked
        Whether a mask marks the whole slide, which is seldom meant.
    notes
        What the reader must know.
    elapsed_ms
        Milliseconds to ``read`` (find tissue and patches) and to ``encode``.
    """

    number: int
    content_hash: str
    dimensions: tuple[int, int]
    mpp: float
    keys: Keys
    barcodes: Barcodes
    boxes: NDArray[np.int32]
    choice: Choice
    overview: bytes
    pictures: tuple[bytes, ...]
    codes: NDArray[np.uint8] | None
    all_marked: bool
    notes: tuple[str, ...]
    elapsed_ms: Mapping[str, float]


@dataclass(frozen=True)
class Refused:
    """A slide that cannot be encoded, and why."""

    number: int
    error: FishError


@dataclass(frozen=True)
class Known:
    """A slide whose content need not be encoded, as whoever gave the task said of its hash."""

    number: int
    content_hash: str


Outcome = SlideEncoded | Refused | Known


@dataclass(frozen=True)
class Desk:
    """What to ask and to tell whoever gave the tasks.

    Attributes
    ----------
    claim
        Asked with the number of a task and the hash of its content, from any thread: whether that need not be encoded.
    opening
        Called with the number of each task before its slide is opened, from any thread.
    begun
        Called with each slide whose encoding begins.
    encoded
        Called with the number of a task and how many of its patches are encoded.
    should_stop
        Asked often; a yes ends the work with :class:`~napari_fish.errors.Cancelled`.
    paused
        Asked often; while it says yes the work is held.
    """

    claim: Callable[[int, str], bool] = lambda number, content_hash: False
    opening: Callable[[int], None] = lambda number: None
    begun: Callable[[Begun], None] = lambda begun: None
    encoded: Callable[[int, int], None] = lambda number, patches: None
    should_stop: ShouldStop = lambda: False
    paused: Callable[[], bool] = lambda: False

    def held(self) -> bool:
        """Say whether to stop, but not as long as the work is paused."""
        while self.paused() and not self.should_stop():
            time.sleep(PAUSE_SECONDS)
        return self.should_stop()
