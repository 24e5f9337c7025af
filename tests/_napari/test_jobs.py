"""Every job ends with exactly one verdict."""

from __future__ import annotations

import time
from typing import Any

import pytest

from napari_fish._napari.jobs import JobWorker
from napari_fish.errors import Cancelled


def run(qtbot: Any, worker: JobWorker, cancel: bool = False) -> list[tuple[str, Any]]:
    """Run a job to its end; return what it told, in order."""
    told: list[tuple[str, Any]] = []
    for name in ("returned", "errored", "progressed"):
        getattr(worker, name).connect(lambda *a, name=name: told.append((name, a)))
    worker.cancelled.connect(lambda: told.append(("cancelled", ())))
    with qtbot.waitSignal(worker.finished, timeout=20_000):
        worker.start()
        if cancel:
            worker.cancel()
    qtbot.wait(20)
    return told


def test_a_result_is_returned_after_its_progress(qtbot: Any) -> None:
    def work(a: int, b: int, progress: Any, should_stop: Any) -> int:
        progress(1, 1)
        return a + b

    assert run(qtbot, JobWorker(work, 2, b=3)) == [("progressed", (1, 1)), ("returned", (5,))]


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), ValueError("no"), KeyError("x")])
def test_any_error_is_told_a_runtime_error_too(qtbot: Any, error: Exception) -> None:
    def work(progress: Any, should_stop: Any) -> None:
        raise error

    assert run(qtbot, JobWorker(work)) == [("errored", (error,))]


def test_a_stopped_job_is_cancelled_and_nothing_else(qtbot: Any) -> None:
    def work(progress: Any, should_stop: Any) -> None:
        while not should_stop():
            time.sleep(0.01)
        raise Cancelled

    assert run(qtbot, JobWorker(work), cancel=True) == [("cancelled", ())]


def test_a_job_that_ends_in_spite_of_being_stopped_returns_nothing(qtbot: Any) -> None:
    def work(progress: Any, should_stop: Any) -> int:
        while not should_stop():
            time.sleep(0.01)
        return 1

    assert run(qtbot, JobWorker(work), cancel=True) == [("cancelled", ())]


def test_progress_is_told_about_ten_times_a_second_and_at_the_end(qtbot: Any) -> None:
    def work(progress: Any, should_stop: Any) -> None:
        for done in range(1, 1001):
            progress(done, 1000)
            time.sleep(0.0003)

    told = [args for name, args in run(qtbot, JobWorker(work)) if name == "progressed"]
    assert told[-1] == (1000, 1000)
    assert 2 <= len(told) <= 60
