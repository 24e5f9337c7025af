"""Asking all questions in all ways: in this process while that is quick, else in several."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from napari_fish.errors import FishError
from napari_fish.evaluate.asking.answers import Answers, Questions
from napari_fish.evaluate.asking.questions import Asker
from napari_fish.names import Level
from napari_fish.search.params import SearchParams
from napari_fish.store.opening import open_store
from napari_fish.store.places import Location, absolute
from napari_fish.store.protocol import Catalogue, CataloguedStore, Store
from napari_fish.work import Progress, ShouldStop, stop_if_asked

# Patches asked for at a time: a batch shares its pass over the database, and is not long in coming.
BATCH_PATCHES = 512
# Other processes take seconds to start: they must save more than that.
WORTH_SECONDS = 10.0
# Tasks a process has at a time: the one it works on, and the next.
GIVEN = 2
# A process has a core, not all of them.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, eq=False)
class Task:
    """Some questions, to be asked in one way.

    Attributes
    ----------
    way
        Which of the ways.
    first
        Where its answers begin among those of the way.
    questions, params, level
        As :meth:`~napari_fish.evaluate.asking.questions.Asker.ask` takes them.
    """

    way: int
    first: int
    questions: Questions
    params: SearchParams
    level: Level


def ask_all(
    store: Store,
    source: Store,
    questions: Questions,
    ways: Sequence[SearchParams],
    level: Level,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
    worth_seconds: float = WORTH_SECONDS,
) -> list[Answers]:
    """Ask all questions in all ways.

    Parameters
    ----------
    store, source
        The database that is searched, and the one the queries come from.
    questions
        What is asked.
    ways
        How to search.
    level
        Slides or single patches.
    jobs
        Processes to use where the databases are on disk and the work takes long enough.
    progress, should_stop
        Called with queries answered and all queries; asked before each batch.
    worth_seconds
        Work that takes less time than this stays in this process.

    Returns
    -------
    list of Answers
        One a way.
    """
    tasks = _tasks(source, questions, ways, level)
    total, done = len(questions) * len(ways), 0
    parts: list[dict[int, Answers]] = [{} for _ in ways]
    for task, answers in _run(store, source, tasks, jobs, should_stop, worth_seconds):
        parts[task.way][task.first] = answers
        done += len(task.questions)
        if progress is not None:
            progress(done, total)
    return [Answers.joined([mine[first] for first in sorted(mine)]) for mine in parts]


def _tasks(source: Store, questions: Questions, ways: Sequence[SearchParams], level: Level) -> list[Task]:
    sizes = np.ones(len(questions), np.int64)
    if level == "slide":
        sizes = source.patches_per_slide[questions.slides]
    of_batch = (np.cumsum(sizes) - sizes) // BATCH_PATCHES
    batches = [np.flatnonzero(of_batch == number).tolist() for number in np.unique(of_batch)]
    return [
        Task(way, at[0], questions.take(at), params, level)
        for at in batches
        for way, params in enumerate(ways)
    ]


def _run(
    store: Store,
    source: Store,
    tasks: Sequence[Task],
    jobs: int,
    should_stop: ShouldStop | None,
    worth_seconds: float,
) -> Iterator[tuple[Task, Answers]]:
    asker = Asker(store, source)
    start, left = time.perf_counter(), list(tasks)
    while left:
        stop_if_asked(should_stop, "the evaluation was stopped.")
        done = len(tasks) - len(left)
        # The first task of a way compiles what it needs; later ones tell how long it takes.
        rest = (time.perf_counter() - start) * len(left) / done if done else 0.0
        if jobs > 1 and rest > worth_seconds and store.catalogue is not None and source.catalogue is not None:
            yield from _in_processes(store.catalogue, source.catalogue, asker, left, jobs, should_stop)
            return
        task = left.pop(0)
        yield task, asker.ask(task.questions, task.params, task.level)


def _in_processes(
    store: Catalogue,
    source: Catalogue,
    asker: Asker,
    tasks: Sequence[Task],
    jobs: int,
    should_stop: ShouldStop | None,
) -> Iterator[tuple[Task, Answers]]:
    """Ask in other processes, too; ranking is Python, of which only one thread runs at a time.

    The main thread goes on asking itself while they start and work. In any other thread it is left alone: a window waits for it.
    """
    from loky import get_reusable_executor

    helps = threading.current_thread() is threading.main_thread()
    others = jobs - 1 if helps else jobs
    where = (absolute(store.location), store.generation)
    asked = (absolute(source.location), source.generation)
    executor = get_reusable_executor(max_workers=others, env=dict.fromkeys(THREADS, "1"))
    left, given = deque(enumerate(tasks)), set[Future[tuple[int, Answers]]]()
    try:
        while left or given:
            stop_if_asked(should_stop, "the evaluation was stopped.")
            while left and len(given) < GIVEN * others:
                given.add(executor.submit(_ask_elsewhere, where, asked, *left.popleft()))
            if helps and left:
                _, task = left.popleft()
                yield task, asker.ask(task.questions, task.params, task.level)
            done = wait(given, 0.0 if helps and left else None, FIRST_COMPLETED).done
            given -= done
            for one in done:
                number, answers = one.result()
                yield tasks[number], answers
    finally:
        # What is being asked is not waited for; what is not yet asked never is.
        for one in given:
            one.cancel()


def _ask_elsewhere(
    where: tuple[Location, int], asked: tuple[Location, int], number: int, task: Task
) -> tuple[int, Answers]:
    asker = _opened(where, asked)
    return number, asker.ask(task.questions, task.params, task.level)


@lru_cache(maxsize=1)
def _opened(where: tuple[Location, int], asked: tuple[Location, int]) -> Asker:
    store = _open(*where)
    return Asker(store, store if asked == where else _open(*asked))


def _open(location: Location, generation: int) -> CataloguedStore:
    store = open_store(location)
    if store.catalogue.generation != generation:
        store.close()
        raise FishError(f"{location}: was changed while it was evaluated; run the evaluation again.")
    return store
