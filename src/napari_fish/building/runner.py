"""Who does the work of a build: in this process, or in others that may end without taking the build with them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Protocol

from napari_fish.building.encoding import encode_tasks
from napari_fish.building.slide_task import Desk, Outcome, SlideTask
from napari_fish.encode import Encoder
from napari_fish.work import ShouldStop


class Runner(Protocol):
    """Turns tasks into outcomes.

    Attributes
    ----------
    notes
        What is to be said of the work.
    """

    notes: list[str]

    def start(self, should_stop: ShouldStop) -> None:
        """Get ready; an encoder that cannot be used is an error now."""
        ...

    def run(self, tasks: Iterable[SlideTask], desk: Desk) -> Generator[Outcome, None, None]:
        """Yield what becomes of each task, in any order; tasks are taken as they are needed, in the thread that calls."""
        ...

    def close(self) -> None:
        """Let go of whatever works."""
        ...


class RunnerHere:
    """Encodes in this process.

    Parameters
    ----------
    load
        Gives the encoder when it is needed.
    """

    def __init__(self, load: Callable[[], Encoder]) -> None:
        self._load, self.notes = load, list[str]()
        self._encoder: Encoder | None = None

    def start(self, should_stop: ShouldStop) -> None:
        """Load the encoder."""
        self._encoder = self._encoder or self._load()

    def run(self, tasks: Iterable[SlideTask], desk: Desk) -> Generator[Outcome, None, None]:
        """Yield what becomes of each task, in their order."""
        self.start(desk.should_stop)
        assert self._encoder is not None
        yield from encode_tasks(tasks, self._encoder, desk)

    def close(self) -> None:
        """Nothing to let go of."""
