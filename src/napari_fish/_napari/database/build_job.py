"""A build beside the viewer: what is to be built, how it can be paused, and what it tells on its way."""

from __future__ import annotations

import threading
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.building.summary import SlideDone, Summary, Under, Watch
from napari_fish.database.again import encode_again
from napari_fish.encode.bundle.device import pick_device
from napari_fish.encode.rate import remember_rate
from napari_fish.slides.opening import expanded
from napari_fish.store.opening import is_database, open_catalogue

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

    @property
    def params_there(self) -> BuildParams:
        """How to build, where there may be a database: which encoder that has is known there alone."""
        there = is_database(expanded(self.database))
        return replace(self.params, encoder=None) if there else self.params


class Brake:
    """Holds a build while it is paused, and knows how long it really ran."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = time.monotonic()
        self._ran = 0.0

    @property
    def paused(self) -> bool:
        """Whether the build is held."""
        with self._lock:
            return self._since is None

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

    def go_on(self) -> None:
        """Let the build go on."""
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()


@dataclass(frozen=True, eq=False)
class News:
    """What happened since it was asked for last.

    Attributes
    ----------
    done
        Slides that are finished.
    under
        The slide that is being encoded; of several the one begun first.
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
        self._under: dict[Path, Under] = {}
        self._encoded: dict[Path, int] = {}
        self._patches, self._since = 0, 0.0

    def watch(self, brake: Brake) -> Watch:
        """Return what the build is to call."""
        self._brake = brake
        return Watch(self._started, self._finished, self._progressed, lambda: brake.paused, live=True)

    @property
    def patches(self) -> int:
        """All patches done."""
        with self._lock:
            return self._patches

    @property
    def rate(self) -> float | None:
        """Patches a second since the first slide was begun; None where they were too few to tell."""
        with self._lock:
            seconds = self._brake.seconds - self._since
            return self._patches / seconds if self._patches >= FEWEST_PATCHES and seconds > 0 else None

    def take(self) -> News:
        """Return what is new."""
        with self._lock:
            done, self._done = tuple(self._done), []
            under = next(iter(self._under.values()), None)
            encoded = 0 if under is None else self._encoded.get(under.path, 0)
            return News(done, under, encoded, self._patches)

    def _started(self, under: Under) -> None:
        with self._lock:
            if not self._encoded and not self._patches:
                self._since = self._brake.seconds
            self._under[under.path], self._encoded[under.path] = under, 0

    def _finished(self, done: SlideDone) -> None:
        with self._lock:
            self._done.append(done)
            self._under.pop(done.path, None)
            self._encoded.pop(done.path, None)

    def _progressed(self, path: Path, patches: int) -> None:
        with self._lock:
            self._patches += patches - self._encoded.get(path, 0)
            self._encoded[path] = patches


def run_again(
    database: str,
    slides: Sequence[str],
    params: BuildParams,
    news: BuildNews,
    brake: Brake,
    *,
    progress: Any,
    should_stop: Any,
) -> Summary:
    """Encode slides of a database again, telling ``news`` and obeying ``brake``."""
    watch = news.watch(brake)
    return encode_again(database, slides, params, progress=progress, should_stop=should_stop, watch=watch)


def run_build(
    choices: Choices,
    news: BuildNews,
    brake: Brake,
    only: Container[str] | None = None,
    *,
    progress: Any,
    should_stop: Any,
) -> Summary:
    """Build as chosen, telling ``news`` and obeying ``brake``; how fast it went is remembered."""
    params = choices.params_there
    try:
        return build(
            choices.slides,
            choices.database,
            choices.labels or None,
            params,
            progress=progress,
            should_stop=should_stop,
            watch=news.watch(brake),
            columns=choices.columns,
            only=only,
        )
    finally:
        if news.rate is not None:
            catalogue = open_catalogue(expanded(choices.database))
            remember_rate(catalogue.facts.weights_hash, str(pick_device(params.device)), news.rate)
            catalogue.close()
