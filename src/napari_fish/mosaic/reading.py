"""Reading ahead: the next pixels are decoded while the last ones are computed on."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from napari_fish.errors import SlideError
from napari_fish.names import STATE_MPP
from napari_fish.slides import Slide
from napari_fish.work import ShouldStop, stop_if_asked

Job = TypeVar("Job")
Result = TypeVar("Result")


def overlapped(
    work: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    threads: int | None = None,
    should_stop: ShouldStop | None = None,
) -> Iterator[Result]:
    """Yield ``work(job)`` in the order of the jobs, with a few jobs under way at any time.

    Parameters
    ----------
    work : callable
        Runs in several threads at once.
    jobs : iterable
        What to work on; taken lazily, so memory does not grow with their number.
    threads : int, optional
        How many threads; one more than there are cores by default, as some wait for the disk.
    should_stop : callable, optional
        Asked before each result.
    """
    threads = threads or (os.cpu_count() or 1) + 1
    waiting = iter(jobs)
    with ThreadPoolExecutor(threads, thread_name_prefix="napari-fish-read") as pool:
        running: deque[Future[Result]] = deque(pool.submit(work, j) for j in islice(waiting, 2 * threads))
        try:
            while running:
                stop_if_asked(should_stop)
                result = running.popleft().result()
                running.extend(pool.submit(work, job) for job in islice(waiting, 1))
                yield result
        finally:
            for future in running:
                future.cancel()


def known_mpp(slide: Slide) -> float:
    """Return the µm per level-0 px of a slide that may enter a mosaic, or say why it may not."""
    if slide.kind != "slide":
        raise SlideError(
            f"{slide.path}: image {slide.series_index} of this file is its {slide.kind}, not the slide; it may "
            "show names and is never used. Open the slide itself: leave out series."
        )
    if slide.mpp is None:
        raise SlideError(
            f"{slide.path}: the size of a pixel is unknown, so no patch of a known size can be cut. "
            f"State it: {STATE_MPP} (0.25 for a 40x slide, 0.5 for 20x)."
        )
    return slide.mpp
