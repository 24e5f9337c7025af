"""The *Search* dock widget: what the user is looking at becomes a query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QMimeData, QTimer
from qtpy.QtWidgets import (
    QApplication,
    QFileDialog,
    QVBoxLayout,
    QWidget,
)
from superqt.utils import qimage_to_array

from napari_fish._napari.controls.fold import Fold, line, scrolled
from napari_fish._napari.docks import DockedWidget, show_widget
from napari_fish._napari.layers.queries import FileQuestion
from napari_fish._napari.search.batch import BatchQueue, BatchView, Task
from napari_fish._napari.search.database import DatabasePicker
from napari_fish._napari.search.history import HistoryView
from napari_fish._napari.search.memory import keep, recall
from napari_fish._napari.search.params import ParamsPanel
from napari_fish._napari.search.query import QueryPanel
from napari_fish._napari.search.query_view import QueryView
from napari_fish._napari.search.status import StatusPanel
from napari_fish._napari.session.session import Answer, session_of
from napari_fish._napari.shortcuts import bind_shortcuts
from napari_fish.database import Database
from napari_fish.search import SearchParams
from napari_fish.store.opening import may_be_database

if TYPE_CHECKING:
    # Spelt out in the signature, too: napari looks for this very text to pass the viewer.
    import napari.viewer

WIDTH_PX = 370
"""Least width: nothing is cut off then."""
PAUSE_MS = 200
"""A search starts when box or parameters have not been changed for so long."""


class SearchWidget(DockedWidget):
    """Searches the database for the slide or box that the user is looking at.

    Parameters
    ----------
    viewer : napari.Viewer
        Where the slides are open.
    """

    def __init__(self, viewer: napari.viewer.Viewer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self._session = session_of(viewer)
        self._drawn = QueryView(viewer)
        self._changed = False
        self._waiting: Any = None
        self._build(viewer)
        self._follows_box = self._showed_results = False
        self._box_pause = self._timer(self._box_rested)
        self._params_pause = self._timer(self._ask_again)
        recall(self.params, self.query)
        self._connect()
        self.setAcceptDrops(True)
        bind_shortcuts(viewer)
        if self._session.database is not None:
            self._database_changed(self._session.database)
        if self._session.current is not None:
            self._answered(self._session.current)
        self.picker.open_last()

    def search_slide(self) -> None:
        """Search for the slide that is chosen."""
        question = self.query.question()
        if question is None:
            self.say("Open a slide first: File > Open, or drop one on the viewer.", wrong=True)
        else:
            self._search(question, layer=question.layer.name)

    def search_box(self) -> None:
        """Search for the box, on the slide that it lies on."""
        question = self.query.box_question()
        if question is None:
            self.say("There is no box on a slide. Press Draw box and click on the slide.", wrong=True)
        else:
            self._search(question, layer=question.layer.name)

    def search_file(self, path: str | Path) -> None:
        """Search for a slide or image on disk."""
        self._search(self._file(Path(path)))

    def search_again(self) -> None:
        """Answer the current question with the parameters as shown."""
        self._changed = True
        self._ask_again()

    def paste(self) -> None:
        """Search for the image or file on the clipboard."""
        if not self._take(QApplication.clipboard().mimeData()):
            self.say("There is no image on the clipboard. Copy one, then paste it here.", wrong=True)

    def choose_file(self) -> None:
        """Ask for a slide or image and search for it."""
        path, _ = QFileDialog.getOpenFileName(self, "Search for a slide or image")
        if path:
            self.search_file(path)

    def queue_files(self) -> None:
        """Ask for slides and search for one after the other."""
        paths, _ = QFileDialog.getOpenFileNames(self, "Search for several slides")
        if paths:
            self._queue_files([Path(path) for path in paths])

    def queue_layers(self) -> None:
        """Search for every slide that is open, one after the other."""
        questions = self.query.all_questions()
        self.queue([Task(one.layer.name, one, one.layer.name) for one in questions])

    def queue(self, tasks: list[Task]) -> None:
        """Search for slides one after the other, in the background."""
        if not tasks:
            self.say("Open a slide first: File > Open, or drop one on the viewer.", wrong=True)
        elif self._session.database is None:
            self.say("Open a database first.", wrong=True)
        else:
            self.queue_fold.open()
            self.batch.add(tasks, self.params.params())

    def cancel(self) -> None:
        """Stop what is going on; returns at once."""
        self._waiting = None
        if self._session.busy:
            self.say("Stopping …")
            self._session.cancel()

    def reset(self) -> None:
        """Back to the first values of all parameters; the current question is answered with them."""
        self.query.reset()
        self.params.show_params(SearchParams())
        self._params_changed()

    def _let_go(self) -> None:
        keep(self.params, self.query)
        self._waiting = None
        self._box_pause.stop()
        self._params_pause.stop()
        self.batch.stop()
        self.query.forget()

    def dragEnterEvent(self, event: Any) -> None:
        """Welcome databases, slides and images."""
        if event.mimeData().hasUrls() or event.mimeData().hasImage():
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Open a database, or search for what was dropped."""
        if self._take(event.mimeData()):
            event.acceptProposedAction()

    def _take(self, data: QMimeData | None) -> bool:
        """Open or search for what was pasted or dropped; return whether there was anything."""
        if data is None:
            return False
        paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
        if paths:
            self._take_files(paths)
        elif data.hasImage():
            image = data.imageData()
            image = image.toImage() if hasattr(image, "toImage") else image
            self._search(qimage_to_array(image), mpp=self.query.image_mpp)
        else:
            return False
        return True

    def _take_files(self, paths: Sequence[Path]) -> None:
        databases = [path for path in paths if may_be_database(path)]
        if databases:
            self.picker.open(databases[0])
        elif len(paths) == 1:
            self.search_file(paths[0])
        else:
            self._queue_files(paths)

    def _queue_files(self, paths: Sequence[Path]) -> None:
        self.queue([Task(path.name, self._file(path)) for path in paths])

    def _file(self, path: Path) -> Path | FileQuestion:
        """Return a file as a question; where the user states no scale, the database may know it."""
        mpp = self.query.image_mpp
        return path if mpp is None else FileQuestion(path, mpp)

    def _search(self, question: Any, layer: str = "", mpp: float | None = None) -> None:
        """Ask the database, once it is open."""
        self._box_pause.stop()
        if self._session.opening:
            self._waiting = partial(self._search, question, layer, mpp)
            return
        self._waiting, self._changed, self._follows_box = None, False, False
        self._session.search(question, params=self.params.params(), layer=layer, mpp=mpp)

    def _box_changed(self) -> None:
        if self.query.box.box() is None:
            self._box_pause.stop()
        elif self.query.live.isChecked():
            self._box_pause.start()
        else:
            self.say("The box is placed; press Search this box.")

    def _box_rested(self) -> None:
        if self._session.database is None and not self._session.busy:
            self.say("The box is placed. Open a database to search for it.")
        else:
            self.search_box()
            self._follows_box = True

    def _params_changed(self) -> None:
        self._changed = True
        self._params_pause.start()

    def _ask_again(self) -> None:
        """Answer the current question with other parameters; while a search is going on, after it."""
        if not self._changed or self._session.busy:
            return
        self._changed = False
        keep(self.params, self.query)
        self._session.search_again(self.params.params())

    def _database_changed(self, database: Database | None) -> None:
        self.params.show_database(database)
        if self._session.current is None:
            self._drawn.clear()
        if database is None:
            return
        card = database.encoder.card
        self.query.set_patch(card.size * card.mpp)

    def _rested(self) -> None:
        """Ask what had to wait for the database, or with parameters that were changed meanwhile."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            self._ask_again()
        else:
            # Not now: others have yet to hear that the session has come to rest.
            QTimer.singleShot(0, waiting)

    def _failed(self, _: str) -> None:
        """Search nothing in a database that could not be opened, nor in the next one."""
        self._waiting = None

    def _answered(self, answer: Answer) -> None:
        if not self._changed:
            self.params.show_params(answer.params)
        self.history.mark(answer)
        self._drawn.show(answer)
        # While a box is dragged, results that the user has closed stay closed.
        if not (self._follows_box and self._showed_results):
            show_widget(self._viewer, "Results")
            self._showed_results = True

    def _timer(self, react: Any) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(PAUSE_MS)
        timer.timeout.connect(react)
        return timer

    def _heard(self) -> tuple[tuple[Any, Any], ...]:
        session = self._session
        return (
            (session.database_changed, self._database_changed),
            (session.answered, self._answered),
            (session.failed, self._failed),
            (session.ended, self._rested),
        )

    def _connect(self) -> None:
        self._listen()
        self.query.slide_wanted.connect(self.search_slide)
        self.query.box_wanted.connect(self.search_box)
        self.query.box_changed.connect(self._box_changed)
        self.query.paste_wanted.connect(self.paste)
        self.query.file_wanted.connect(self.choose_file)
        self.query.said.connect(self.say)
        self.params.changed.connect(self._params_changed)
        self.history.chosen.connect(self._session.show)
        self.queue_view.chosen.connect(self._session.show)
        self.queue_view.files_wanted.connect(self.queue_files)
        self.queue_view.layers_wanted.connect(self.queue_layers)
        self.status.cancel_wanted.connect(self.cancel)
        self.status.reset_wanted.connect(self.reset)

    def _build(self, viewer: Any) -> None:
        self.picker = DatabasePicker(self._session)
        self.query = QueryPanel(viewer)
        self.params = ParamsPanel()
        self.batch = BatchQueue(self._session, self)
        self.queue_view = BatchView(self.batch)
        self.history = HistoryView(self._session)
        self.status = StatusPanel(self._session)
        self.say = self.status.say
        more = Fold("search", "more", "Ranking and votes", "What is seldom changed.", self.params.more)
        self.queue_fold = Fold(
            "search", "queue", "Several slides", "Search for slides one after the other.", self.queue_view
        )
        self.history_fold = Fold("search", "recent", "Recent queries", "Go back to an answer.", self.history)
        folds = (more, self.queue_fold, self.history_fold)
        scroll = scrolled(self.picker, line(), self.query, line(), self.params, *folds)
        self.setMinimumWidth(WIDTH_PX)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(scroll, 1)
        layout.addWidget(self.status)
