"""A process that encodes slides: what it does, and how it is spoken with."""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from napari_fish.building.encoding import encode_tasks
from napari_fish.building.settings import ChosenEncoder
from napari_fish.building.slide_task import Desk, SlideTask
from napari_fish.errors import EncoderError, FishError

log = logging.getLogger(__name__)


SECONDS_TO_END = 5.0


@dataclass(frozen=True)
class Ready:
    """The encoder is loaded, and computes so many patches at once."""

    device: str
    batch: int


@dataclass(frozen=True)
class Opening:
    """A slide is about to be opened."""

    number: int


@dataclass(frozen=True)
class Asked:
    """Whether a slide of this content need not be encoded."""

    number: int
    content_hash: str


@dataclass(frozen=True)
class Answer:
    """The answer to it."""

    number: int
    known: bool


@dataclass(frozen=True)
class Encoded:
    """So many patches of a slide are encoded."""

    number: int
    patches: int


@dataclass(frozen=True)
class Failed:
    """Nothing can be encoded here, whichever slide it is."""

    error: FishError


class Worker:
    """A process that encodes, seen from the one that gives it tasks.

    Parameters
    ----------
    chosen
        The encoder it is to load.
    environment
        What else its environment is to say, such as which GPU it sees.

    Attributes
    ----------
    pipe
        Gives what it tells; at its end the process is over.
    """

    def __init__(self, chosen: ChosenEncoder, environment: Mapping[str, str]) -> None:
        # Not those of the standard library: these need no guard around the script that started them.
        from loky.backend import get_context

        context = get_context("loky")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_work, args=(theirs, chosen), env=dict(environment), daemon=True
        )
        with _without_interrupts():
            self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Of the process."""
        return int(self._process.pid)

    def send(self, message: object) -> None:
        """Give it a task or an answer; one that is over does not hear it."""
        with suppress(OSError):  # what it leaves undone is seen at the end of its pipe
            self.pipe.send(message)

    def how_it_ended(self) -> str:
        """Return in words how a process ended whose pipe is at its end."""
        self._process.join(SECONDS_TO_END)
        code = self._process.exitcode
        if code is None:
            return "it fell silent"
        if code in (0xC0000005, 0xC0000005 - 2**32):
            return "access violation"
        return (signal.strsignal(-code) or f"signal {-code}").lower() if code < 0 else f"exit code {code}"

    def kill(self) -> None:
        """End it at once."""
        if self._process.exitcode is None:
            # Asked to end by any other signal, one that is stuck in a library would not.
            if hasattr(signal, "SIGKILL"):
                os.kill(self.pid, signal.SIGKILL)
            else:
                self._process.terminate()
        self._process.join()
        self.pipe.close()


class _without_interrupts:
    """Ctrl-C is for the process that gives the tasks; others inherit what is blocked here."""

    def __enter__(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def __exit__(self, *_: object) -> None:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


def _work(pipe: Connection, chosen: ChosenEncoder) -> None:
    """Encode what comes through a pipe until that is closed."""
    # What libraries print must not stand among what the program says.
    os.dup2(2, 1)
    talk = _Talk(pipe)
    try:
        encoder = chosen.load()
        talk.tell(Ready(encoder.device, encoder.batch))
        desk = Desk(
            claim=talk.ask,
            opening=lambda number: talk.tell(Opening(number)),
            begun=talk.tell,
            encoded=lambda number, patches: talk.tell(Encoded(number, patches)),
            paused=lambda: talk.paused,
        )
        while True:
            talk.wait()
            for outcome in encode_tasks(talk, encoder, desk):
                talk.tell(outcome)
    except FishError as error:
        talk.tell(Failed(error))
    except Exception as error:
        # Whatever a single slide does was caught where it was read.
        log.exception("a worker failed")
        name, device = chosen.card.id, chosen.device
        talk.tell(
            Failed(EncoderError(f"encoder {name!r} on {device}: failed ({type(error).__name__}: {error})."))
        )


class _Talk(Iterator[SlideTask]):
    """The other end of the pipe; gives the tasks that are there."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._turn = pipe, threading.Lock()
        self._tasks: queue.SimpleQueue[SlideTask] = queue.SimpleQueue()
        self._first: list[SlideTask] = []
        self._answers: dict[int, Future[bool]] = {}
        self.paused = False
        threading.Thread(target=self._listen, daemon=True).start()

    def tell(self, message: object) -> None:
        """Say something; any thread may."""
        with self._turn:
            self._pipe.send(message)

    def ask(self, number: int, content_hash: str) -> bool:
        """Ask whether a slide need not be encoded, and wait for the answer."""
        answer = self._answers[number] = Future[bool]()
        self.tell(Asked(number, content_hash))
        return answer.result()

    def wait(self) -> None:
        """Wait for the next task."""
        self._first.append(self._tasks.get())

    def __next__(self) -> SlideTask:
        # Without a task the ones under way must be finished, not held up.
        try:
            return self._first.pop() if self._first else self._tasks.get_nowait()
        except queue.Empty:
            raise StopIteration from None

    def _listen(self) -> None:
        while True:
            try:
                message: Any = self._pipe.recv()
            except (EOFError, OSError):
                os._exit(0)  # whoever gave the tasks is gone
            if isinstance(message, Answer):
                self._answers.pop(message.number).set_result(message.known)
            elif isinstance(message, bool):
                self.paused = message
            else:
                self._tasks.put(message)
