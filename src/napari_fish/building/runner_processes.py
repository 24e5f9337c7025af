"""Slides are encoded in other processes: one that crashes, hangs or eats memory costs its slide, nothing else."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import wait
from typing import Any

import psutil

from napari_fish.building.limits import Limits, environments, workers_for
from napari_fish.building.settings import ChosenEncoder
from napari_fish.building.slide_task import Begun, Desk, Known, Outcome, Refused, SlideEncoded, SlideTask
from napari_fish.building.worker import Answer, Asked, Encoded, Failed, Opening, Ready, Worker
from napari_fish.errors import Cancelled, EncoderError, SlideError
from napari_fish.texts import duration, in_bytes

LOOK_SECONDS = 0.2
"""How often workers are looked after."""
STARTING_SECONDS = 600.0
"""A worker that has not loaded its encoder by then never will."""
ENOUGH_SLIDES = 256
"""For more slides there are not more workers."""
LEAST_GIVEN = 3
"""Slides a worker has at a time, so that it can read ahead."""
MOST_ENDS, MOST_KILLS = 2, 5
"""A slide that ended so many workers is refused; where somebody else may have killed them, only after some more."""
KILLED = ("killed", "terminated")


class _Busy:
    """A worker, and what it was given."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.tasks: dict[int, SlideTask] = {}
        self.opened: set[int] = set()
        self.ready: Ready | None = None
        self.alone = False
        self.heard = time.monotonic()

    def give(self, task: SlideTask, alone: bool = False) -> None:
        """Give it a slide: beside others, or alone."""
        if not self.tasks:
            self.heard = time.monotonic()
        self.tasks[task.number], self.alone = task, alone
        self.worker.send(task)

    def take(self, number: int) -> None:
        """Note that it is done with a slide."""
        self.tasks.pop(number, None)
        self.opened.discard(number)


class _Round:
    """The slides of one run that are yet to be given to a worker."""

    def __init__(self, tasks: Iterable[SlideTask]) -> None:
        self._coming = iter(tasks)
        self.waiting: deque[SlideTask] = deque()
        self.alone: deque[SlideTask] = deque()
        self.ends: dict[int, list[str]] = {}

    def look_ahead(self, count: int) -> None:
        """Have so many slides waiting, if there are so many."""
        self.waiting.extend(islice(self._coming, max(0, count - len(self.waiting))))

    def mourn(self, worker: _Busy, why: str) -> Iterator[Refused]:
        """Take back the slides of a worker that ended; refuse those that end one after the other."""
        for number, task in reversed(worker.tasks.items()):
            if number not in worker.opened:
                self.waiting.appendleft(task)
                continue
            ends = self.ends.setdefault(number, [])
            ends.append(why)
            if not _too_often(ends):
                self.alone.append(task)
                continue
            times = "twice" if len(ends) == 2 else f"{len(ends)} times"
            yield Refused(
                number,
                SlideError(
                    f"{task.path}: the program that reads it ended {times} ({why}). Copy the file again from its "
                    "source; if other programs open it, please report this."
                ),
            )


def _too_often(ends: Sequence[str]) -> bool:
    """Whether what ended workers like this need not be tried again."""
    return sum(end not in KILLED for end in ends) >= MOST_ENDS or len(ends) >= MOST_KILLS


class RunnerProcesses:
    """Encodes in other processes of this computer.

    Parameters
    ----------
    chosen
        The encoder that each of them loads.
    workers
        How many; 0 for as many as this computer is good for.
    slides
        How many there may be to encode: for few, few are started.
    limits
        What each of them may take.

    Notes
    -----
    Which slide ended a worker is certain only where it was alone: every slide that was open there is tried once more by
    itself, in a worker that has no other.
    """

    def __init__(
        self, chosen: ChosenEncoder, workers: int, slides: int, limits: Limits | None = None
    ) -> None:
        self._chosen, self._asked, self._limits = chosen, workers, limits or Limits()
        self._plan(slides)
        self.notes = list[str]()
        self._workers: list[_Busy] = []
        self._failed_starts: list[str] = []
        self._paused = False
        self._looked = 0.0
        # Patches of a slide, on average.
        self._patches, self._slides = 0, 0

    def _plan(self, slides: int) -> None:
        """Let as many workers share this computer as are worth starting for so many slides."""
        self._most = workers_for(self._asked, self._chosen.device, slides)
        self._memory = self._limits.memory_of(self._most)
        self._environments = environments(self._most, self._chosen.device)

    @property
    def pids(self) -> list[int]:
        """Of the processes that there are now."""
        return [one.worker.pid for one in self._workers]

    def start(self, should_stop: Callable[[], bool]) -> None:
        """Start one worker and wait until it has loaded the encoder."""
        nothing, desk = _Round(()), Desk(should_stop=should_stop)
        while not any(one.ready for one in self._workers):
            if not self._workers:
                self._add()
            for _ in self._step(nothing, desk):
                pass

    def run(self, tasks: Iterable[SlideTask], desk: Desk) -> Generator[Outcome, None, None]:
        """Yield what becomes of each task, in any order."""
        todo = _Round(tasks)
        if not self._workers:
            todo.look_ahead(ENOUGH_SLIDES)
            self._plan(len(todo.waiting))
        try:
            while True:
                self._give(todo)
                if not any(one.tasks for one in self._workers):
                    return
                yield from self._step(todo, desk)
        finally:
            # What is under way now, nobody waits for any more.
            for one in [one for one in self._workers if one.tasks]:
                self._workers.remove(one)
                one.worker.kill()

    def close(self) -> None:
        """End all workers."""
        while self._workers:
            self._workers.pop().worker.kill()

    def _add(self) -> None:
        self._workers.append(_Busy(Worker(self._chosen, next(self._environments))))
        self._workers[-1].worker.send(self._paused)

    def _give(self, todo: _Round) -> None:
        """Let every worker have enough to do, and let there be as many as are worth starting."""
        todo.look_ahead(self._most)
        while len(self._workers) < self._most and (todo.waiting or todo.alone):
            self._add()
        for one in self._workers:
            if todo.alone and not one.tasks:
                one.give(todo.alone.popleft(), alone=True)
            while not (one.alone and one.tasks) and self._wants_more(one):
                todo.look_ahead(1)
                if not todo.waiting:
                    break
                one.give(todo.waiting.popleft())

    def _wants_more(self, one: _Busy) -> bool:
        """Whether a worker has too little to read ahead, or to fill the batches of its device."""
        if len(one.tasks) < LEAST_GIVEN:
            return True
        batch = one.ready.batch if one.ready is not None else 0
        return len(one.tasks) * self._patches < 2 * batch * self._slides

    def _step(self, todo: _Round, desk: Desk) -> Iterator[Outcome]:
        """Hear what workers say, and look after them."""
        if desk.should_stop():
            raise Cancelled("the work was stopped.")
        self._hold(desk.paused())
        by_pipe: dict[Any, _Busy] = {one.worker.pipe: one for one in self._workers}
        for pipe in wait(list(by_pipe), LOOK_SECONDS):
            one = by_pipe[pipe]
            try:
                message = one.worker.pipe.recv()
            except (EOFError, OSError):
                yield from self._ended(one, todo, one.worker.how_it_ended())
                continue
            one.heard = time.monotonic()
            outcome = self._take(one, message, desk)
            if outcome is not None:
                yield outcome
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked = time.monotonic()
            for one in list(self._workers):
                why = self._too_much(one)
                # Whatever it has said already counts first.
                if why and not one.worker.pipe.poll():
                    yield from self._ended(one, todo, why)

    def _take(self, one: _Busy, message: object, desk: Desk) -> Outcome | None:
        """Deal with what a worker says; return it if it is an outcome."""
        match message:
            case Ready():
                one.ready, self._failed_starts = message, []
            case Failed():
                raise message.error
            case Opening():
                one.opened.add(message.number)
            case Asked():
                known = desk.claim(message.number, message.content_hash)
                one.worker.send(Answer(message.number, known))
            case Begun():
                desk.begun(message)
            case Encoded():
                desk.encoded(message.number, message.patches)
            case SlideEncoded() | Refused() | Known():
                one.take(message.number)
                if isinstance(message, SlideEncoded):
                    self._patches, self._slides = self._patches + len(message.keys), self._slides + 1
                return message
        return None

    def _too_much(self, one: _Busy) -> str:
        """Return what a worker takes too much of; empty for nothing."""
        silent = time.monotonic() - one.heard
        if self._paused:
            one.heard = time.monotonic()
        elif one.ready is None:
            if silent > STARTING_SECONDS:
                return f"the encoder was not loaded within {duration(STARTING_SECONDS)}"
        elif one.tasks:
            size = max((one.tasks[number].size for number in one.opened), default=0)
            if silent > self._limits.silence(size):
                return self._limits.told(size)
        with suppress(psutil.Error):
            if psutil.Process(one.worker.pid).memory_info().rss > self._memory:
                return f"more than {in_bytes(self._memory)} of memory"
        return ""

    def _ended(self, one: _Busy, todo: _Round, why: str) -> Iterator[Refused]:
        """Go on without a worker that ended."""
        self._workers.remove(one)
        one.worker.kill()
        if one.ready is None:
            self._failed_starts.append(why)
            if _too_often(self._failed_starts):
                raise EncoderError(
                    f"encoder {self._chosen.card.id!r} on {self._chosen.device}: the program that loads it ended again "
                    f"and again ({why}). Is there memory for it? Try --workers 1, or another device."
                )
        yield from todo.mourn(one, why)

    def _hold(self, paused: bool) -> None:
        """Let all workers pause, or go on."""
        if paused != self._paused:
            self._paused = paused
            for one in self._workers:
                one.worker.send(paused)
                one.heard = time.monotonic()
