"""A slide or a box becomes encoded patches; build and query walk through here alike."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from napari_fish.encode.encoder import Encoded, Encoder
from napari_fish.encode.patches import RGB, EncodeJob, PatchBox
from napari_fish.errors import FishError, SlideError
from napari_fish.slides.protocol import Slide
from napari_fish.work import Progress, ShouldStop, stop_if_asked

T = TypeVar("T")


@dataclass(frozen=True)
class EncodeOutcome(Generic[T]):
    """What became of a job, known by its tag: ``encoded``, or the ``error`` that stopped it."""

    tag: T
    encoded: Encoded | None
    error: FishError | None = None


@dataclass
class _Batch(Generic[T]):
    """Patches read and put together, what they belong to, and what could not be read."""

    owners: list[_Pending[T]]
    pixels: RGB | None
    thumbnails: list[RGB | None]
    failed: list[tuple[_Pending[T], Exception]]


@dataclass
class _Pending(Generic[T]):
    """A job on its way through, and what is known of it so far."""

    job: EncodeJob[T] | EncodeOutcome[T]
    missing: int = 0
    parts: list[Encoded] = field(default_factory=list)
    thumbnails: list[RGB] = field(default_factory=list)
    error: FishError | None = None


def encode_slides(
    jobs: Iterable[EncodeJob[T] | EncodeOutcome[T]],
    encoder: Encoder,
    *,
    threads: int = 0,
    progress: Callable[[T, int], None] | None = None,
    should_stop: ShouldStop | None = None,
) -> Iterator[EncodeOutcome[T]]:
    """Encode slides, reading ahead across slides so that the device never waits.

    Parameters
    ----------
    jobs : iterable of EncodeJob
        Taken as they are needed, so a generator may open slides just in time. What is decided already may stand among
        them, and is handed on in its turn.
    encoder : Encoder
        What encodes.
    threads : int
        Threads that read and decode; 0 for what suits the encoder's device.
    progress : callable, optional
        Called with the tag of a job and how many of its patches are done.
    should_stop : callable, optional
        Asked before every batch; raises :class:`~napari_fish.errors.Cancelled` when it returns True.

    Yields
    ------
    EncodeOutcome
        In the order of the jobs. A slide that fails carries its error; the others go on.
    """
    threads = threads or _readers(encoder.device)
    ahead = max(2 * encoder.batch, 2 * threads)
    reading: deque[tuple[_Pending[T], Future[RGB]]] = deque()
    batches: deque[Future[_Batch[T]]] = deque()
    open_jobs: deque[_Pending[T]] = deque()
    with ThreadPoolExecutor(threads, "fish-read") as pool, ThreadPoolExecutor(1, "fish-stack") as stacker:
        supply = _patches(jobs, open_jobs)
        try:
            while True:
                decided = False
                while not decided and len(reading) < ahead and (item := next(supply, None)) is not None:
                    pending, job, box = item
                    if job is None or box is None:
                        decided = True  # nothing to be read, but perhaps to be handed on
                        continue
                    card = encoder.card
                    reading.append((pending, pool.submit(job.read, box, card.size, card.mpp)))
                # The next batch is put together while the device computes this one.
                while reading and len(batches) < 2:
                    some = [reading.popleft() for _ in range(min(len(reading), encoder.batch))]
                    batches.append(stacker.submit(_together, some, encoder))
                while open_jobs and open_jobs[0].missing == 0:
                    yield _outcome(open_jobs.popleft(), encoder)
                if not batches:
                    if open_jobs or decided:
                        continue
                    return
                stop_if_asked(should_stop, "encoding was stopped.")
                _encode_batch(batches.popleft().result(), encoder, progress)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _readers(device: str) -> int:
    """Return how many threads read: few where the networks need the cores, else as many as there are, up to 16."""
    return 2 if device == "cpu" else max(2, min(16, os.cpu_count() or 2))


def _patches(
    jobs: Iterable[EncodeJob[T] | EncodeOutcome[T]], open_jobs: deque[_Pending[T]]
) -> Iterator[tuple[_Pending[T], EncodeJob[T] | None, PatchBox | None]]:
    """Yield every patch of every job; what has none yields one None."""
    for job in jobs:
        if isinstance(job, EncodeOutcome) or not job.patches:
            open_jobs.append(_Pending(job))
            yield open_jobs[-1], None, None
            continue
        pending = _Pending(job, len(job.patches))
        open_jobs.append(pending)
        for box in job.patches:
            if pending.error is not None:
                # the rest of a slide that failed need not be read
                pending.missing -= 1
                continue
            yield pending, job, box


def _together(some: Sequence[tuple[_Pending[T], Future[RGB]]], encoder: Encoder) -> _Batch[T]:
    """Wait for patches, and put those that could be read together."""
    batch: _Batch[T] = _Batch([], None, [], [])
    pixels: list[RGB] = []
    for pending, future in some:
        try:
            pixels.append(future.result())
            batch.owners.append(pending)
        except Exception as error:  # noqa: BLE001 - one slide must not stop all others
            batch.failed.append((pending, error))
    if pixels:
        batch.pixels = encoder.stack(pixels)
    for pending, patch in zip(batch.owners, pixels, strict=True):
        px = _job_of(pending).thumbnail_px
        batch.thumbnails.append(_thumbnail(patch, px) if px else None)
    return batch


def _job_of(pending: _Pending[T]) -> EncodeJob[T]:
    assert isinstance(pending.job, EncodeJob), "only jobs have patches"
    return pending.job


def _encode_batch(batch: _Batch[T], encoder: Encoder, progress: Callable[[T, int], None] | None) -> None:
    """Encode a batch, and hand the results to their jobs."""
    touched: dict[int, _Pending[T]] = {}
    for pending, error in batch.failed:
        pending.error = pending.error or _as_ours(error, _job_of(pending).slide)
        pending.missing -= 1
        touched[id(pending)] = pending
    if batch.pixels is not None:
        encoded = encoder.encode(batch.pixels, any(_job_of(one).keep_codes for one in batch.owners))
        for i, (pending, thumbnail) in enumerate(zip(batch.owners, batch.thumbnails, strict=True)):
            kept = encoded.codes if _job_of(pending).keep_codes else None
            codes = None if kept is None else kept[i : i + 1]
            pending.parts.append(Encoded(encoded.keys[i : i + 1], encoded.barcodes[i : i + 1], codes))
            pending.thumbnails += [] if thumbnail is None else [thumbnail]
            pending.missing -= 1
            touched[id(pending)] = pending
    if progress:
        for pending in touched.values():
            job = _job_of(pending)
            progress(job.tag, len(job.patches) - pending.missing)


def _as_ours(error: Exception, slide: Slide) -> FishError:
    """Blame whatever goes wrong while a patch is read on its slide, so that the others go on."""
    if isinstance(error, FishError):
        return error
    return SlideError(f"{slide.path}: cannot be read ({type(error).__name__}: {error}). Check the file.")


def _thumbnail(pixels: RGB, side: int) -> RGB:
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BOX, reducing_gap=2.0))


def _outcome(pending: _Pending[T], encoder: Encoder) -> EncodeOutcome[T]:
    job = pending.job
    if isinstance(job, EncodeOutcome):
        return job
    if pending.error is not None:
        return EncodeOutcome(job.tag, None, pending.error)
    parts = pending.parts
    if not parts:
        empty = np.empty((0, encoder.card.size, encoder.card.size, 3), np.uint8)
        return EncodeOutcome(job.tag, encoder.encode(empty))
    codes = [part.codes for part in parts if part.codes is not None]
    encoded = Encoded(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.barcodes for part in parts]),
        np.concatenate(codes) if codes else None,
        np.stack(pending.thumbnails) if pending.thumbnails else None,
    )
    return EncodeOutcome(job.tag, encoded)


def encode_patches(
    slide: Slide,
    patches: Sequence[PatchBox],
    encoder: Encoder,
    *,
    keep_codes: bool = False,
    thumbnail_px: int = 0,
    threads: int = 0,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Encoded:
    """Encode patches of one slide; see :func:`encode_slides`.

    Returns
    -------
    Encoded
        One row a patch, in the order given.
    """
    tell = progress
    (outcome,) = encode_slides(
        [EncodeJob(slide, patches, None, keep_codes=keep_codes, thumbnail_px=thumbnail_px)],
        encoder,
        threads=threads,
        progress=None if tell is None else lambda _, done: tell(done, len(patches)),
        should_stop=should_stop,
    )
    if outcome.error is not None:
        raise outcome.error
    assert outcome.encoded is not None
    return outcome.encoded
