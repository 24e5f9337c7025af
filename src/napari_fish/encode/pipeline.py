"""A slide or a box becomes encoded patches; build and query walk through here alike."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.encoder import Encoded, Encoder, patch_from_image
from napari_fish.errors import Cancelled, FishError, SlideError
from napari_fish.names import STATE_MPP
from napari_fish.slides.protocol import Slide

RGB = NDArray[np.uint8]
PatchBox = tuple[float, float, float]
"""Left, top and side of a square patch in level-0 px."""
Progress = Callable[[int, int], None]
ShouldStop = Callable[[], bool]
LARGEST_IMAGE = 10**8
"""Most px of an image that is taken as one patch."""
T = TypeVar("T")


@dataclass(frozen=True)
class EncodeJob(Generic[T]):
    """One slide to be encoded.

    Attributes
    ----------
    slide : Slide
        Open slide.
    patches : sequence of (x, y, side)
        Squares in level-0 px.
    tag : object
        Whatever the caller needs to know the job again.
    """

    slide: Slide
    patches: Sequence[PatchBox]
    tag: T

    def read(self, box: PatchBox, size: int, mpp: float) -> RGB:
        """Read one patch; see :func:`read_patch`."""
        return read_patch(self.slide, box, size, mpp)


@dataclass(frozen=True)
class ImageJob(EncodeJob[T]):
    """An image that is one patch, whatever its size and shape, as in the paper's patch experiment."""

    def read(self, box: PatchBox, size: int, mpp: float) -> RGB:
        """Read the whole image, resized to one patch."""
        width, height = self.slide.dimensions
        if width * height > LARGEST_IMAGE:
            raise SlideError(
                f"{self.slide.path}: {width} x {height} px are too many for one patch; is it a whole slide? "
                "Build it without --patches."
            )
        return patch_from_image(self.slide.read_level(0, 0, 0, width, height), size)


@dataclass(frozen=True)
class EncodeOutcome(Generic[T]):
    """What became of a job: ``encoded``, or the ``error`` that stopped it."""

    job: EncodeJob[T]
    encoded: Encoded | None
    error: FishError | None = None


def read_patch(slide: Slide, box: PatchBox, size: int, mpp: float) -> RGB:
    """Read one patch.

    Parameters
    ----------
    slide : Slide
        Where from.
    box : (x, y, side)
        Square in level-0 px.
    size : int
        Side of the result in px.
    mpp : float
        The encoder's µm per px, for the error message only: the scale follows from ``box``.

    Returns
    -------
    ndarray of uint8, shape (size, size, 3)
        RGB.
    """
    x, y, side = box
    if not side > 0:
        raise SlideError(f"{slide.path}: a patch cannot be {side:g} px wide.")
    if slide.mpp is None:
        raise SlideError(
            f"{slide.path}: the size of a pixel is unknown, so patches at {mpp:g} µm/px cannot be cut. "
            f"State it: {STATE_MPP}."
        )
    return slide.read(x, y, size, size, slide.mpp * side / size)


@dataclass
class _Pending(Generic[T]):
    """A job on its way through, and what is known of it so far."""

    job: EncodeJob[T]
    parts: list[Encoded] = field(default_factory=list)
    thumbnails: list[RGB] = field(default_factory=list)
    missing: int = 0
    error: FishError | None = None


def encode_slides(
    jobs: Iterable[EncodeJob[T]],
    encoder: Encoder,
    *,
    keep_codes: bool = False,
    thumbnail_px: int = 0,
    threads: int = 2,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Iterator[EncodeOutcome[T]]:
    """Encode slides, reading ahead across slides so that the device never waits.

    Parameters
    ----------
    jobs : iterable of EncodeJob
        Taken as they are needed, so a generator may open slides just in time.
    encoder : Encoder
        What encodes.
    keep_codes : bool
        Keep latent codes.
    thumbnail_px : int
        Side of the thumbnails to keep; 0 keeps none.
    threads : int
        Threads that read and decode.
    progress : callable, optional
        Called with patches encoded so far, and patches known so far.
    should_stop : callable, optional
        Asked before every batch; raises :class:`~napari_fish.errors.Cancelled` when it returns True.

    Yields
    ------
    EncodeOutcome
        In the order of the jobs. A slide that fails carries its error; the others go on.
    """
    ahead = max(2 * encoder.batch, 2 * threads)
    reading: deque[tuple[_Pending[T], Future[RGB]]] = deque()
    open_jobs: deque[_Pending[T]] = deque()
    known = done = 0
    with ThreadPoolExecutor(threads, "fish-read") as pool:
        supply = _patches(jobs, open_jobs)
        try:
            while True:
                while len(reading) < ahead and (item := next(supply, None)) is not None:
                    pending, box = item
                    if box is not None:
                        known += 1
                        card = encoder.card
                        read = pool.submit(pending.job.read, box, card.size, card.mpp)
                        reading.append((pending, read))
                while open_jobs and open_jobs[0].missing == 0:
                    yield _outcome(open_jobs.popleft(), encoder)
                if not reading:
                    if open_jobs:
                        continue
                    return
                if should_stop and should_stop():
                    raise Cancelled("encoding was stopped.")
                done += _encode_batch(reading, encoder, keep_codes, thumbnail_px)
                if progress:
                    progress(done, known)
        finally:
            for _, future in reading:
                future.cancel()


def _patches(
    jobs: Iterable[EncodeJob[T]], open_jobs: deque[_Pending[T]]
) -> Iterator[tuple[_Pending[T], PatchBox | None]]:
    """Yield every patch of every job; a job without patches yields one None."""
    for job in jobs:
        pending = _Pending(job, missing=len(job.patches))
        open_jobs.append(pending)
        if not job.patches:
            yield pending, None
        for box in job.patches:
            if pending.error is not None:
                # the rest of a slide that failed need not be read
                pending.missing -= 1
                continue
            yield pending, box


def _encode_batch(
    reading: deque[tuple[_Pending[T], Future[RGB]]], encoder: Encoder, keep_codes: bool, thumbnail_px: int
) -> int:
    """Encode the next patches, and hand the results to their jobs."""
    owners: list[_Pending[T]] = []
    pixels: list[RGB] = []
    taken = 0
    while reading and len(pixels) < encoder.batch:
        pending, future = reading.popleft()
        taken += 1
        try:
            pixels.append(future.result())
            owners.append(pending)
        except Exception as error:  # noqa: BLE001 - one slide must not stop all others
            pending.error = pending.error or _as_ours(error, pending.job.slide)
            pending.missing -= 1
    if pixels:
        encoded = encoder.encode(np.stack(pixels), keep_codes)
        for i, pending in enumerate(owners):
            codes = encoded.codes[i : i + 1] if keep_codes and encoded.codes is not None else None
            pending.parts.append(Encoded(encoded.keys[i : i + 1], encoded.barcodes[i : i + 1], codes))
            if thumbnail_px:
                pending.thumbnails.append(_thumbnail(pixels[i], thumbnail_px))
            pending.missing -= 1
    return taken


def _as_ours(error: Exception, slide: Slide) -> FishError:
    """Blame whatever goes wrong while a patch is read on its slide, so that the others go on."""
    if isinstance(error, FishError):
        return error
    return SlideError(f"{slide.path}: cannot be read ({type(error).__name__}: {error}). Check the file.")


def _thumbnail(pixels: RGB, side: int) -> RGB:
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BOX, reducing_gap=2.0))


def _outcome(pending: _Pending[T], encoder: Encoder) -> EncodeOutcome[T]:
    if pending.error is not None:
        return EncodeOutcome(pending.job, None, pending.error)
    parts = pending.parts
    if not parts:
        empty = np.empty((0, encoder.card.size, encoder.card.size, 3), np.uint8)
        return EncodeOutcome(pending.job, encoder.encode(empty))
    codes = [part.codes for part in parts if part.codes is not None]
    encoded = Encoded(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.barcodes for part in parts]),
        np.concatenate(codes) if codes else None,
        np.stack(pending.thumbnails) if pending.thumbnails else None,
    )
    return EncodeOutcome(pending.job, encoded)


def encode_patches(
    slide: Slide,
    patches: Sequence[PatchBox],
    encoder: Encoder,
    *,
    keep_codes: bool = False,
    thumbnail_px: int = 0,
    threads: int = 2,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Encoded:
    """Encode patches of one slide; see :func:`encode_slides`.

    Returns
    -------
    Encoded
        One row a patch, in the order given.
    """
    (outcome,) = encode_slides(
        [EncodeJob(slide, patches, None)],
        encoder,
        keep_codes=keep_codes,
        thumbnail_px=thumbnail_px,
        threads=threads,
        progress=progress,
        should_stop=should_stop,
    )
    if outcome.error is not None:
        raise outcome.error
    assert outcome.encoded is not None
    return outcome.encoded
