"""A build beside the viewer: what is to be built, how it can be paused, and what it tells on its way."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.building.summary import SlideDone, Summary, Under, Watch
from napari_fish.database.again import encode_again
from napari_fish.encode import DEFAULT_ENCODER, Encoder, load_encoder
from napari_fish.encode.bundle.device import load_torch_libraries
from napari_fish.encode.rate import remember_rate
from napari_fish.work import ShouldStop

FEWEST_PATCHES = 8
"""A rate measured on fewer patches is not worth remembering."""


@dataclass(frozen=True)
class Choices:
    """What the user chose to build.

    Attributes
    ----------
    slides
        The folder.
    database
        ``NAME.fish``.
    labels
        The labels file; empty for none.
    columns
        Columns of the labels file that the user corrected.
    params
        How to build.
    """

    slides: str = ""
    database: str = ""
    labels: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    params: BuildParams = field(default_factory=BuildParams)


class Brake:
    """Holds a build while it is paused, and knows how long it really ran."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()
        self._lock = threading.Lock()
        self._since: float | None = time.monotonic()
        self._ran = 0.0

    @property
    def paused(self) -> bool:
        """Whether the build is held."""
        return not self._free.is_set()

    @property
    def seconds(self) -> float:
        """How long the build ran, pauses left out."""
        with self._lock:
            return self._ran + (time.monotonic() - self._since if self._since is not None else 0.0)

    def pause(self) -> None:
        """Hold the build at the next patch."""
        with self._lock:
            if self._since is not None:
                self._ran += time.monotonic() - self._since
                self._since = None
        self._free.clear()

    def go_on(self) -> None:
        """Let the build go on."""
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()
        self._free.set()

    def held(self, should_stop: ShouldStop) -> ShouldStop:
        """Return a question that is answered only while the build is not held."""

        def stop() -> bool:
            while not self._free.wait(0.1):
                if should_stop():
                    return True
            return should_stop()

        return stop


@dataclass(frozen=True, eq=False)
class News:
    """What happened since it was asked for last.

    Attributes
    ----------
    done
        Slides that are finished.
    under
        The slide that is being encoded.
    encoded
        Patches of it that are done.
    patches
        All patches done.
    """

    done: tuple[SlideDone, ...]
    under: Under | None
    encoded: int
    patches: int


class BuildNews:
    """Written by the thread that builds, read by the viewer when it has time: so neither waits for the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done: list[SlideDone] = []
        self._under: deque[Under] = deque()
        self._patches = self._before = 0

    @property
    def patches(self) -> int:
        """All patches done."""
        with self._lock:
            return self._patches

    @property
    def encoded(self) -> int:
        """Patches done of the slide in progress."""
        with self._lock:
            return self._patches - self._before

    def watch(self) -> Watch:
        """Return what the build is to call."""
        return Watch(self._started, self._finished, self._progressed)

    def take(self) -> News:
        """Return what is new."""
        with self._lock:
            done, self._done = tuple(self._done), []
            under = self._under[0] if self._under else None
            return News(done, under, self._patches - self._before, self._patches)

    def _started(self, under: Under) -> None:
        with self._lock:
            self._under.append(under)

    def _finished(self, done: SlideDone) -> None:
        with self._lock:
            self._done.append(done)
            # Slides are begun ahead of time and finished in the same order.
            if self._under and self._under[0].path == done.path:
                self._under.popleft()
                self._before = self._patches

    def _progressed(self, patches: int, known: int) -> None:
        with self._lock:
            self._patches = patches


def run_again(
    database: str,
    slides: Sequence[str],
    params: BuildParams,
    news: BuildNews,
    brake: Brake,
    *,
    progress: Any,
    should_stop: Any,
) -> tuple[Summary, None]:
    """Encode slides of a database again, telling ``news`` and obeying ``brake``."""
    load_torch_libraries()
    stop, watch = brake.held(should_stop), news.watch()
    summary = encode_again(database, slides, params, progress=progress, should_stop=stop, watch=watch)
    return summary, None


def run_build(
    choices: Choices,
    news: BuildNews,
    brake: Brake,
    only: Container[str] | None = None,
    *,
    progress: Any,
    should_stop: Any,
) -> tuple[Summary, Encoder]:
    """Build as chosen, telling ``news`` and obeying ``brake``; how fast it went is remembered."""
    load_torch_libraries()
    encoder = load_encoder(choices.params.encoder or DEFAULT_ENCODER, choices.params.device)
    start = brake.seconds
    try:
        summary = build(
            choices.slides,
            choices.database,
            choices.labels or None,
            choices.params,
            progress=progress,
            should_stop=brake.held(should_stop),
            watch=news.watch(),
            encoder=encoder,
            columns=choices.columns,
            only=only,
        )
        return summary, encoder
    finally:
        patches, seconds = news.patches, brake.seconds - start
        if patches >= FEWEST_PATCHES and seconds > 0:
            remember_rate(encoder.card.sha256, encoder.device, patches / seconds)
