"""What must not happen beside the viewer: garbage collected in a worker's thread, a program that ends too soon.

A full collection takes a large heap tenths of a second during which nothing else runs; and one that happens to run in
a worker's thread after a viewer was closed deletes the viewer's canvas there, which ends the program. So while work is
under way, garbage is collected in the main thread, little by little. Threads also take turns more often then, as the
viewer waits for its turn behind all of them.

May go: the keeping of garbage as soon as a closed viewer survives being collected in a thread, the shorter turns as soon
as nothing heavy runs in the viewer's process. ``tests/test_workarounds.py`` fails on these days.
"""

from __future__ import annotations

import atexit
import gc
import sys
import time
from typing import Any
from weakref import WeakSet

from qtpy.QtCore import QCoreApplication, QObject, QTimer

EVERY_MS = 200
OLDER_EVERY, FULL_EVERY = 10, 3000
"""One collection in so many looks at older objects, too, or at all."""
TURN = 0.001
"""Seconds a thread may run before another one is let in."""
SECONDS_TO_END = 30.0
"""How long the end of the program waits for work that was asked to stop."""

_at_work: WeakSet[Any] = WeakSet()
_collectors: list[Collector] = []


class Collector(QObject):
    """Collects garbage in the main thread while workers are at work."""

    def __init__(self) -> None:
        super().__init__(QCoreApplication.instance())
        self._working = self._rounds = 0
        self._turn = sys.getswitchinterval()
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self._collect)

    def begin(self) -> None:
        """Take note of a worker that begins."""
        self._working += 1
        gc.disable()
        sys.setswitchinterval(TURN)
        self._timer.start()

    def end(self) -> None:
        """Take note of a worker that ended; called in the main thread, or never if that is gone."""
        self._working -= 1
        if not self._working:
            self._timer.stop()
            gc.enable()
            sys.setswitchinterval(self._turn)

    def _collect(self) -> None:
        self._rounds += 1
        gc.collect(sum(self._rounds % every == 0 for every in (OLDER_EVERY, FULL_EVERY)))


def look_after(worker: Any) -> None:
    """Keep a worker that is about to start from harm; call in the main thread."""
    _at_work.add(worker)
    application = QCoreApplication.instance()
    if application is None:
        return
    if not _collectors:
        _collectors.append(Collector())
        application.destroyed.connect(_collectors.clear)
    worker.finished.connect(_collectors[0].end)
    _collectors[0].begin()


def stop_all() -> None:
    """Stop all work and wait for it, so that every database is closed when the program ends."""
    for worker in list(_at_work):
        worker.cancel()
    end = time.monotonic() + SECONDS_TO_END
    while any(worker.is_running for worker in list(_at_work)) and time.monotonic() < end:
        time.sleep(0.02)


atexit.register(stop_all)
