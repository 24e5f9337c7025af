"""Every job ends with exactly one verdict."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any

import pytest
from qtpy.QtCore import QObject
from qtpy.QtWidgets import QWidget

from napari_fish._napari.controls.common import StateLine
from napari_fish._napari.jobs.one_job import OneJob
from napari_fish._napari.jobs.worker import JobWorker
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


def test_a_result_that_is_given_up_while_it_is_on_its_way_is_not_handed_over(qtbot: Any) -> None:
    owner, told = QObject(), []
    job = OneJob(owner)
    job.cancelled.connect(lambda: told.append("cancelled"))
    job.start(lambda result: told.append(result), lambda progress, should_stop: "result")
    # The work is done, and its result waits for the event loop.
    job._now[0]._thread.join(20)
    job.cancel()
    qtbot.waitUntil(lambda: not job.busy, timeout=20_000)
    assert told == ["cancelled"]


def test_a_search_does_not_wait_for_builds_and_evaluations_under_way(qtbot: Any) -> None:
    def long(progress: Any, should_stop: Any) -> None:
        while not should_stop():
            time.sleep(0.01)

    owner, told = QObject(), []
    others = [OneJob(owner) for _ in range(12)]
    for other in others:
        other.start(told.append, long)
    job = OneJob(owner)
    job.start(told.append, lambda progress, should_stop: "found")
    qtbot.waitUntil(lambda: told == ["found"], timeout=20_000)
    for other in others:
        other.cancel()
    qtbot.waitUntil(lambda: not any(other.busy for other in others), timeout=20_000)


def test_a_worker_is_let_go_in_the_main_thread_when_its_own_is_over(qtbot: Any) -> None:
    alive: list[bool] = []
    worker = JobWorker(lambda progress, should_stop: None)
    weakref.finalize(worker, lambda: alive.append(threading.current_thread() is threading.main_thread()))
    thread = worker._thread
    worker.start()
    del worker
    qtbot.waitUntil(lambda: bool(alive), timeout=20_000)
    assert alive == [True] and not thread.is_alive()


def test_nobody_is_told_of_work_whose_owner_is_gone(qtbot: Any) -> None:
    owner, told = QObject(), []
    job = OneJob(owner)

    def work(progress: Any, should_stop: Any) -> None:
        while not should_stop():
            time.sleep(0.01)

    job.start(told.append, work)
    (worker,) = job._now
    owner.deleteLater()
    qtbot.waitUntil(lambda: worker.cancelling, timeout=20_000)
    worker._thread.join(20)
    qtbot.wait(20)
    assert told == []


def test_what_went_wrong_is_red_in_every_theme_and_what_follows_is_not(qtbot: Any) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    line = StateLine()
    line.setParent(parent)
    colours = []
    for theme in ("background: #262930; color: #f0f1f2;", "background: #ffffff; color: #3b3a39;"):
        parent.setStyleSheet(f"QWidget {{ {theme} }}")
        line.say("It is broken.", wrong=True)
        colours.append(line.palette().windowText().color().name())
    assert colours == ["#ff8080", "#b3263a"]
    line.say("It is well.")
    assert line.palette().windowText().color().name() == "#3b3a39"
