"""What is done with a slide, wherever it is done: opened, looked at, its patches chosen and encoded."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.building.choosing import Chosen, choose
from napari_fish.building.slide_task import Begun, Desk, Known, Outcome, Refused, SlideEncoded, SlideTask
from napari_fish.encode import Card, Encoded, EncodeJob, EncodeOutcome, Encoder, encode_slides
from napari_fish.errors import Cancelled, FishError, NoTissue, SlideError
from napari_fish.mosaic import MosaicParams
from napari_fish.mosaic.masks import marks_everything
from napari_fish.mosaic.reading import overlapped
from napari_fish.slides import Slide, open_slide
from napari_fish.slides.pixels import to_jpeg

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class _Ready:
    """A slide, open and ready to be encoded."""

    task: SlideTask
    slide: Slide
    content_hash: str
    chosen: Chosen
    begun: Begun
    started: float
    chosen_at: float

    def job(self) -> EncodeJob[_Step]:
        mosaic = self.chosen.mosaic
        return self.chosen.kind(
            self.slide,
            self.chosen.patches,
            self,
            "area" if mosaic is None else mosaic.params.reading,
            self.task.keep_codes,
            self.task.picture_px,
        )


_Step = _Ready | Refused | Known


def encode_tasks(tasks: Iterable[SlideTask], encoder: Encoder, desk: Desk) -> Iterator[Outcome]:
    """Encode slides; builds and questions walk through here alike.

    Parameters
    ----------
    tasks
        Taken as they are needed; the next slides are opened and looked at while the last ones are encoded.
    encoder
        What encodes.
    desk
        What to ask and to tell on the way.

    Yields
    ------
    SlideEncoded, Refused or Known
        In the order of the tasks. What is wrong with one slide does not stop the others.
    """
    ready: set[_Ready] = set()
    jobs = _jobs(tasks, encoder.card, desk, ready)
    try:
        for outcome in encode_slides(jobs, encoder, progress=partial(_tell, desk), should_stop=desk.held):
            step = outcome.tag
            if isinstance(step, _Ready):
                yield _finished(step, outcome)
                _close(step.slide, step.task)
                ready.discard(step)
            else:
                yield step
    finally:
        # Work that was stopped has slides open that were read ahead.
        jobs.close()
        for left in ready:
            _close(left.slide, left.task)


def _tell(desk: Desk, step: _Step, patches: int) -> None:
    desk.encoded(step.task.number if isinstance(step, _Ready) else step.number, patches)


def _jobs(
    tasks: Iterable[SlideTask], card: Card, desk: Desk, ready: set[_Ready]
) -> Generator[EncodeJob[_Step] | EncodeOutcome[_Step], None, None]:
    """Open slides and choose patches one slide ahead of the encoder."""

    def prepared(task: SlideTask) -> _Step:
        step = _prepared(task, card, desk)
        if isinstance(step, _Ready):
            ready.add(step)
        return step

    for step in overlapped(prepared, tasks, threads=1, should_stop=desk.held):
        if isinstance(step, _Ready):
            desk.begun(step.begun)
            yield step.job()
        else:
            yield EncodeOutcome(step, None)


def _prepared(task: SlideTask, card: Card, desk: Desk) -> _Step:
    """Open a slide and choose its patches."""
    slide, number, start = None, task.number, time.perf_counter()
    try:
        desk.opening(number)
        slide = _opened(task)
        content_hash = slide.content_hash
        if desk.claim(number, content_hash):
            _close(slide, task)
            return Known(number, content_hash)
        chosen = choose(task, slide, card, desk.held)
        overview = to_jpeg(slide.thumbnail(task.overview_px))
        begun = Begun(number, overview, slide.dimensions, chosen.boxes(slide))
        return _Ready(
            task=task,
            slide=slide,
            content_hash=content_hash,
            chosen=chosen,
            begun=begun,
            started=start,
            chosen_at=time.perf_counter(),
        )
    except BaseException as error:
        _close(slide, task)
        if isinstance(error, Cancelled) or not isinstance(error, Exception):
            raise
        return Refused(number, _in_words(task.path, error))


def _opened(task: SlideTask) -> Slide:
    if not isinstance(task.source, Path):
        return task.source
    try:
        str(task.source).encode()
    except UnicodeEncodeError as error:
        name = str(task.source).encode("utf-8", "backslashreplace").decode()
        raise SlideError(f"{name}: its name is not valid Unicode. Rename it.") from error
    return open_slide(task.source, mpp=task.mpp)


def _close(slide: Slide | None, task: SlideTask) -> None:
    """Close what was opened for a task, and only that."""
    if slide is not None and slide is not task.source:
        slide.close()


def _in_words(path: Path, error: Exception) -> FishError:
    """Return what is wrong with a slide that does what no slide was known to do: the others must not suffer from it."""
    if isinstance(error, FishError):
        return error
    if isinstance(error, OSError):
        return SlideError(f"{path}: cannot be read ({error}). Check the disk or the network.")
    log.info("%s", path, exc_info=error)
    return SlideError(
        f"{path}: cannot be used ({type(error).__name__}: {error}). Check the file; if other programs open it, "
        "please report this."
    )


def _finished(ready: _Ready, outcome: EncodeOutcome[_Step]) -> SlideEncoded | Refused:
    """Return what a slide became, as plain values."""
    task, chosen, encoded = ready.task, ready.chosen, outcome.encoded
    if encoded is None:
        assert outcome.error is not None
        return Refused(task.number, outcome.error)
    seen = np.ones(len(encoded), np.bool_)
    if task.box is not None:
        seen = _with_tissue(encoded, task.mosaic or MosaicParams())
        if not seen.any():
            return Refused(
                task.number,
                NoTissue(f"{task.path}: there is no tissue in the box, only glass. Draw it on tissue."),
            )
    pictures = () if encoded.thumbnails is None else encoded.thumbnails[seen]
    return SlideEncoded(
        number=task.number,
        content_hash=ready.content_hash,
        dimensions=ready.slide.dimensions,
        mpp=0.0 if chosen.kind is not EncodeJob else ready.slide.mpp or 0.0,
        keys=encoded.keys.astype(np.int64)[seen],
        barcodes=encoded.barcodes[seen],
        boxes=ready.begun.boxes[seen],
        choice=chosen.choice,
        overview=ready.begun.overview,
        pictures=tuple(to_jpeg(pixels) for pixels in pictures),
        codes=None if encoded.codes is None else encoded.codes[seen],
        all_marked=chosen.mosaic is not None and marks_everything(chosen.mosaic),
        notes=chosen.notes,
        elapsed_ms={
            "read": 1e3 * (ready.chosen_at - ready.started),
            "encode": 1e3 * (time.perf_counter() - ready.chosen_at),
        },
    )


def _with_tissue(encoded: Encoded, params: MosaicParams) -> NDArray[np.bool_]:
    """Say which patches are more than glass, by the rule for mosaics."""
    assert encoded.thumbnails is not None
    grey = encoded.thumbnails.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    white = (grey > params.white_level).mean(axis=(1, 2))
    return np.asarray(white <= params.white_share)
