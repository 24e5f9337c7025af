"""One piece of long work at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from qtpy.QtCore import QCoreApplication, QObject, Signal

from napari_fish._napari.jobs.notify import in_words
from napari_fish._napari.jobs.worker import JobWorker


class OneJob(QObject):
    """Runs work beside the viewer; new work takes the place of that under way.

    Parameters
    ----------
    owner
        When it is destroyed, or the program ends, the work is stopped.
    """

    progressed = Signal(int, int)
    """Work done and all the work."""
    failed = Signal(str)
    """What went wrong, in words."""
    cancelled = Signal()
    """The work was stopped."""
    ended = Signal()
    """Nothing is going on any more, whatever the verdict."""

    def __init__(self, owner: QObject) -> None:
        super().__init__(owner)
        self._now: list[JobWorker] = []
        # The list, not this object, which is gone by then.
        abandon = partial(_abandon, self._now)
        owner.destroyed.connect(abandon)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(abandon)

    @property
    def busy(self) -> bool:
        """Whether something is going on."""
        return bool(self._now)

    @property
    def stopping(self) -> bool:
        """Whether what is going on was asked to stop."""
        return any(worker.cancelling for worker in self._now)

    def start(self, done: Callable[[Any], None], work: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Run ``work(*args, progress=…, should_stop=…, **kwargs)`` and call ``done`` with its result."""
        self.cancel()
        worker = JobWorker(work, *args, **kwargs)
        worker.progressed.connect(partial(self._if_current, worker, self.progressed.emit))
        worker.returned.connect(partial(self._if_current, worker, self._returned, done))
        worker.errored.connect(partial(self._if_current, worker, self._failed))
        worker.cancelled.connect(partial(self._if_current, worker, self.cancelled.emit))
        worker.finished.connect(partial(self._if_current, worker, self._ended))
        self._now[:] = [worker]
        worker.start()

    def cancel(self) -> None:
        """Stop what is going on; returns at once."""
        for worker in self._now:
            worker.cancel()

    def _if_current(self, worker: JobWorker, react: Callable[..., None], *args: Any) -> None:
        if self._now == [worker]:
            react(*args)

    def _returned(self, done: Callable[[Any], None], result: Any) -> None:
        """Hand over the result, unless it was given up when it was on its way already."""
        if self.stopping:
            self.cancelled.emit()
        else:
            done(result)

    def _failed(self, error: Exception) -> None:
        self.failed.emit(in_words(error))

    def _ended(self) -> None:
        self._now.clear()
        self.ended.emit()


def _abandon(workers: list[JobWorker], *_: Any) -> None:
    """Stop workers whose owner is gone; nobody is left to hear of them."""
    for worker in workers:
        worker.cancel()
    workers.clear()
