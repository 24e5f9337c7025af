"""Long work beside the viewer: one worker for all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from qtpy.QtCore import QEventLoop, Signal
from superqt.utils import WorkerBase
from superqt.utils._qthreading import WorkerBaseSignals

from napari_fish._napari.jobs.housekeeping import look_after
from napari_fish.errors import Cancelled

SECONDS_BETWEEN_REPORTS = 0.1


class JobSignals(WorkerBaseSignals):
    """What a job tells the main thread, besides ``started``, ``returned``, ``errored`` and ``finished``."""

    progressed = Signal(int, int)
    """Work done and all the work, at most ten times a second."""
    cancelled = Signal()
    """The work ended early because it was asked to."""


class JobWorker(WorkerBase[Any]):
    """Runs ``work(*args, progress=…, should_stop=…, **kwargs)`` in another thread.

    Exactly one of ``returned``, ``cancelled`` and ``errored`` is emitted, then ``finished``, whatever kind
    of exception the work raises.

    Parameters
    ----------
    work : callable
        A plain function that takes ``progress(done, total)`` and ``should_stop()``, and raises
        :class:`~napari_fish.errors.Cancelled` when it was stopped.
    *args, **kwargs
        Passed to it.
    """

    finished: Any
    """As superqt has it, but for its type, which says that None is passed: nothing is."""

    def __init__(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(SignalsClass=JobSignals)
        self._work = work
        self._args = args
        self._kwargs = kwargs
        self._stop = threading.Event()
        self._last_report = 0.0
        # Not one of Qt's threads: one a core, a build and an evaluation may take them all.
        self._thread = threading.Thread(target=self.run, name="fish-job", daemon=True)

    def start(self) -> None:
        """Begin in another thread; call in the main thread."""
        look_after(self)
        self._worker_set.add(self)
        self._finished.connect(_let_go)
        self._thread.start()

    def quit(self) -> None:
        """Ask the work to stop; returns at once. Qt's own name for it."""
        self._stop.set()
        super().quit()

    def cancel(self) -> None:
        """Ask the work to stop; returns at once."""
        self.quit()

    @property
    def cancelling(self) -> bool:
        """Whether the work was asked to stop."""
        return self._stop.is_set()

    def run(self) -> None:
        """Do the work; called in its thread."""
        self.started.emit()
        self._running = True
        try:
            result = self._work(
                *self._args, progress=self._report, should_stop=self._stop.is_set, **self._kwargs
            )
        except Cancelled:
            self.cancelled.emit()
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must hear of it
            self.errored.emit(error)
        else:
            if self._stop.is_set():
                self.cancelled.emit()
            else:
                self.returned.emit(result)
        finally:
            self._running = False
            self.finished.emit()
            self._finished.emit(self)

    def work(self) -> Any:
        """Do the work in this thread, without signals."""
        return self._work(*self._args, progress=self._report, should_stop=self._stop.is_set, **self._kwargs)

    def _report(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done >= total or now - self._last_report >= SECONDS_BETWEEN_REPORTS:
            self._last_report = now
            self.progressed.emit(int(done), int(total))


def _let_go(worker: JobWorker) -> None:
    """Forget a worker once its thread is over: its signals must not be deleted there while they are on their way here."""
    worker._thread.join()
    worker._worker_set.discard(worker)


def wait_for(work: Callable[..., Any], *args: Any) -> Any:
    """Return ``work(*args)``, done in another thread; meanwhile the viewer is drawn, but heeds neither mouse nor keys."""
    outcome: list[Any] = []
    worker = JobWorker(lambda progress, should_stop: work(*args))
    loop = QEventLoop()
    worker.returned.connect(lambda result: outcome.append(result))
    worker.errored.connect(lambda error: outcome.append(error))
    worker.finished.connect(loop.quit)
    worker.start()
    loop.exec(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)
    if not outcome:
        raise Cancelled("The program ends.")
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]
