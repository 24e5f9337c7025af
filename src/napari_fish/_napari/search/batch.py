"""A queue of slides to search for, one after the other, beside everything else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from qtpy.compat import isalive
from qtpy.QtCore import QObject, Signal
from qtpy.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari.controls.common import named
from napari_fish._napari.jobs.notify import in_words
from napari_fish._napari.jobs.worker import JobWorker
from napari_fish._napari.session.session import Answer, Session
from napari_fish._napari.session.session_jobs import Found, search_in
from napari_fish.search import SearchParams

WAITING, SEARCHING, DONE, FAILED, STOPPED = "waiting", "searching …", "done", "failed", "stopped"


@dataclass(eq=False)
class Task:
    """One slide of the queue.

    Attributes
    ----------
    name
        What it is called.
    question
        As for :meth:`~napari_fish._napari.session.session.Session.search`.
    layer
        Name of the layer that shows it, if one does.
    state, reason
        How far it is; why it failed.
    answer
        What was found.
    """

    name: str
    question: Any
    layer: str = ""
    state: str = WAITING
    reason: str = ""
    answer: Answer | None = None

    def __str__(self) -> str:
        if self.answer is not None:
            return f"{self.name}: {len(self.answer.results)} slides"
        # Most reasons name the file.
        return self.reason if self.name in self.reason else f"{self.name}: {self.reason or self.state}"


class BatchQueue(QObject):
    """Searches for slides one after the other; answers go to the history, what fails says why."""

    changed = Signal()

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._worker: JobWorker | None = None
        self._params = SearchParams()
        self._database: Any = None
        self.tasks: list[Task] = []
        session.database_changed.connect(self._other_database)

    @property
    def running(self) -> bool:
        """Whether a slide is being searched for."""
        return self._worker is not None

    def add(self, tasks: list[Task], params: SearchParams) -> None:
        """Append slides to the queue and see that it runs; ``params`` count for all that wait."""
        if not self.running:
            self.tasks = []
        self.tasks += tasks
        self._params = params
        self.changed.emit()
        if not self.running:
            self._next()

    def stop(self) -> None:
        """Stop after at most one more answer; returns at once."""
        for task in self.tasks:
            if task.state == WAITING:
                task.state = STOPPED
        if self._worker is not None:
            self._worker.cancel()
        self.changed.emit()

    def summary(self) -> str:
        """Say how far the queue is."""
        if not self.tasks:
            return "Nothing is queued."
        done = sum(task.state == DONE for task in self.tasks)
        failed = sum(task.state == FAILED for task in self.tasks)
        said = f"{done} of {len(self.tasks)} searched for"
        said += f", {failed} failed" if failed else ""
        return f"{said}; going on …" if self.running else f"{said}."

    def _other_database(self, database: Any) -> None:
        if database is not self._database:
            self.stop()

    def _next(self) -> None:
        if not isalive(self):  # gone with the window
            return
        task = next((task for task in self.tasks if task.state == WAITING), None)
        database = self._session.database
        if task is None or database is None:
            self._worker = None
            self.changed.emit()
            return
        task.state = SEARCHING
        self._database = database
        worker = JobWorker(search_in, database, task.question, None, None, self._params)
        worker.returned.connect(partial(self._found, task))
        worker.errored.connect(partial(self._failed, task))
        worker.cancelled.connect(partial(self._stopped, task))
        worker.finished.connect(self._next)
        self._worker = worker
        self.changed.emit()
        worker.start()

    def _found(self, task: Task, found: Found) -> None:
        asked, params, results, box = found
        task.state, task.answer = DONE, Answer(asked, params, results, layer=task.layer, box=box)
        self._session.remember(task.answer)

    def _failed(self, task: Task, error: Exception) -> None:
        if self._worker is not None and self._worker.cancelling:
            self._stopped(task)  # its database was closed
        else:
            task.state, task.reason = FAILED, in_words(error)

    def _stopped(self, task: Task) -> None:
        task.state = STOPPED


class BatchView(QWidget):
    """The queue as a list, with what it can be filled from."""

    files_wanted = Signal()
    layers_wanted = Signal()
    chosen = Signal(object)
    """An :class:`~napari_fish._napari.session.session.Answer`."""

    def __init__(self, queue: BatchQueue, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._queue = queue
        self.files = named(
            "search", QPushButton("Files…"), "batch_files", "Search for several slides, one after the other."
        )
        self.layers = named(
            "search", QPushButton("Open slides"), "batch_layers", "Search for every slide open in the viewer."
        )
        self.stop = named("search", QPushButton("Stop"), "batch_stop", "Stop the queue.")
        self.state = named("search", QLabel(), "batch_state", "How far the queue is.")
        self.state.setWordWrap(True)
        self.list = named(
            "search", QListWidget(), "batch_list", "The queue; click one that is done to see its answer."
        )
        self.list.setMaximumHeight(110)
        self.list.setWordWrap(True)
        buttons = QHBoxLayout()
        for button in (self.files, self.layers, self.stop):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(buttons)
        layout.addWidget(self.state)
        layout.addWidget(self.list)
        self.files.clicked.connect(self.files_wanted)
        self.layers.clicked.connect(self.layers_wanted)
        self.stop.clicked.connect(queue.stop)
        self.list.itemClicked.connect(self._clicked)
        queue.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show how far the queue is."""
        self.state.setText(self._queue.summary())
        self.stop.setEnabled(self._queue.running)
        self.list.setVisible(bool(self._queue.tasks))
        while self.list.count() > len(self._queue.tasks):
            self.list.takeItem(self.list.count() - 1)
        for row, task in enumerate(self._queue.tasks):
            if row == self.list.count():
                self.list.addItem(QListWidgetItem())
            item = self.list.item(row)
            if item.text() != str(task):
                item.setText(str(task))
                item.setToolTip(str(task))

    def _clicked(self, item: QListWidgetItem) -> None:
        answer = self._queue.tasks[self.list.row(item)].answer
        if answer is not None:
            self.chosen.emit(answer)
