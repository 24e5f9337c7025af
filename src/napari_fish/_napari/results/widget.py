"""The *Results* dock widget: what was found, why, and what to do with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QSize, Qt
from qtpy.QtWidgets import QApplication, QMenu, QSplitter, QVBoxLayout, QWidget

from napari_fish._napari.docks import DockedWidget
from napari_fish._napari.results.controls import ResultsControls
from napari_fish._napari.results.explain_panel import ExplainPanel
from napari_fish._napari.results.export import Exporter
from napari_fish._napari.results.gallery_model import GalleryModel
from napari_fish._napari.results.gallery_view import GalleryView
from napari_fish._napari.results.header import AnswerHeader, StateLines
from napari_fish._napari.results.hit_menu import hit_menu
from napari_fish._napari.results.hover import FieldPreview
from napari_fish._napari.results.in_viewer import ResultsInViewer
from napari_fish._napari.results.picture_loader import PictureLoader
from napari_fish._napari.session.session import Answer, session_of
from napari_fish._napari.shortcuts import bind_shortcuts
from napari_fish.search import Feedback, Results, SlideHit
from napari_fish.search.verdict import notes_of

if TYPE_CHECKING:
    import napari.viewer

NARROW = 640
"""Px of width below which things stand below each other instead of side by side."""
SHARES = (650, 340)
"""Parts of gallery and explanation: four cards beside it in a window of 1400 px with Search at the side."""
HEIGHT = 400
"""Px of height to begin with."""
NO_DATABASE = (
    "No database is open.\nOpen or build one with the Database widget, then search with the Search widget."
)
NO_ANSWER = (
    "Nothing was searched for yet.\nOpen a slide or draw a box on it, and press Search in the Search widget."
)


class ResultsWidget(DockedWidget):
    """Shows the current answer of the viewer's session.

    Parameters
    ----------
    viewer : napari.Viewer
        Where slides are opened and compared.
    """

    def __init__(self, viewer: napari.viewer.Viewer, parent: QWidget | None = None) -> None:
        super().__init__(parent, bottom=True)
        self._session = session_of(viewer)
        self._answer: Answer | None = None
        self._doing, self._error = "", ""
        self._in_viewer = ResultsInViewer(viewer, self)
        bind_shortcuts(viewer)
        self._build()
        self._connect()
        self._arrange(*self._controls.arrangement)
        if self._session.current is not None:
            self._show(self._session.current)
        self._mark(self._session.feedback)

    @property
    def answer(self) -> Answer | None:
        """The answer shown."""
        return self._answer

    @property
    def loading(self) -> bool:
        """Whether pictures are still to come."""
        return self._loader.busy

    def compare(self) -> None:
        """Show query and hits side by side in the viewer."""
        self._in_viewer.compare()

    def jump(self) -> None:
        """Open the chosen slide, and draw what matches on it and on the query."""
        hit = self.gallery.current_hit()
        if hit is not None:
            self._in_viewer.jump(hit)

    def refine(self) -> None:
        """Search with what the user said of hits, if that is anything new."""
        if self._pending():
            self._session.refine()

    def search_from(self, hit: SlideHit, whole: bool) -> None:
        """Search for a hit's best region, or for all of its slide."""
        if self._answer is not None:
            box = None if whole or not hit.matches else hit.matches[0].hit_box
            self._session.search(f"id:{hit.slide}", box, self._answer.params)

    def judge(self, hit: SlideHit, relevant: bool) -> None:
        """Note what the user says of a hit; saying it twice takes it back."""
        if self._model.verdict(hit) is relevant:
            self._session.withdraw(hit)
        else:
            self._session.judge(hit, relevant)

    def sizeHint(self) -> QSize:
        """Return room for a row of cards and what is above it, where there is room for that."""
        return QSize(super().sizeHint().width(), HEIGHT)

    def _let_go(self) -> None:
        self._field.hide()
        self._loader.close()
        self._in_viewer.forget()

    def resizeEvent(self, event: Any) -> None:
        """Put things below each other where there is little room beside."""
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        side = Qt.Orientation.Vertical if narrow else Qt.Orientation.Horizontal
        if self._splitter.orientation() != side:
            self._header.stack(narrow)
            self._splitter.setOrientation(side)
            self._splitter.setSizes(SHARES)

    def _heard(self) -> tuple[tuple[Any, Any], ...]:
        session = self._session
        return (
            (session.answered, self._show),
            (session.judged, self._mark),
            (session.started, self._started),
            (session.progressed, self._lines.show_progress),
            (session.failed, self._failed),
            (session.ended, self._ended),
            (session.database_changed, self._database_changed),
        )

    def _connect(self) -> None:
        session, gallery, controls, there = self._session, self.gallery, self._controls, self._in_viewer
        self._listen()
        gallery.chosen.connect(self._chosen)
        gallery.opened.connect(there.open)
        gallery.judged.connect(self.judge)
        gallery.rested.connect(self._field.show_hit)
        gallery.left.connect(self._field.hide)
        gallery.asked_menu.connect(self._show_menu)
        controls.arranged.connect(self._arrange)
        controls.refine.connect(self.refine)
        controls.undo.connect(session.undo)
        controls.compare.connect(self.compare)
        controls.clear.connect(there.clear)
        controls.zoom.connect(there.zoom_to)
        controls.jump.connect(self.jump)
        self._panel.jumped.connect(there.jump)
        self._panel.searched.connect(self.search_from)
        self._lines.cancelled.connect(session.cancel)
        there.said.connect(self._lines.say)
        there.changed.connect(self._update)

    def _show(self, answer: Answer | None) -> None:
        """Show an answer; the slide that the user chose stays chosen if it is in it, else it is the first one."""
        before = self._chosen_by_user()
        self._answer, self._error = answer, ""
        results = None if answer is None else answer.results
        self._model.show(results)
        self._header.show_answer(answer)
        self._panel.show_results(results)
        self._lines.show_answer(answer)
        self._lines.say("")
        if results is not None and results.hits:
            index = self._model.index_of(before)
            self.gallery.choose(index if index.isValid() else self._model.index_of(results.hits[0].slide))
        self._update()

    def _chosen_by_user(self) -> str:
        """Return the slide whose card is chosen, unless it is the first one, which nobody had to choose."""
        hit, shown = self.gallery.current_hit(), self._model.results
        first = shown.hits[0].slide if shown is not None and shown.hits else ""
        return hit.slide if hit is not None and hit.slide != first else ""

    def _mark(self, feedback: Feedback) -> None:
        self._model.mark(feedback)
        self._update()

    def _chosen(self, hit: SlideHit | None) -> None:
        self._panel.show_hit(hit)
        self._update()

    def _arrange(self, size: str, sort: str, group: str) -> None:
        chosen = self.gallery.current_hit()
        self.gallery.set_size(size)
        self._model.arrange(sort, group)
        if chosen is not None:
            self.gallery.choose(self._model.index_of(chosen.slide))

    def _started(self, what: str) -> None:
        self._doing, self._error = what, ""
        self._lines.show_doing(what)
        self._lines.say("")
        self._update()

    def _failed(self, message: str) -> None:
        """Say what went wrong: in the gallery where it is empty, else above what is still shown."""
        self._error = message
        self._lines.say(message if self._model.rowCount() else "", wrong=True)
        self._update()

    def _ended(self) -> None:
        self._doing = ""
        self._lines.show_doing("")
        self._update()

    def _database_changed(self, database: Any) -> None:
        """Show the answer that is left: none of another database; slides that were added leave it as it is."""
        if self._session.current is not self._answer:
            self._show(self._session.current)
        else:
            self._update()

    def _update(self) -> None:
        """Bring everything that depends on the state up to date."""
        answer, feedback = self._answer, self._session.feedback
        found = answer is not None and bool(answer.results.hits)
        self._controls.update_state(
            answered=found,
            chosen=self.gallery.current_hit() is not None,
            comparing=self._in_viewer.comparing,
            pending=self._pending(),
            judged=len(feedback.judgements),
        )
        self._panel.setVisible(found)
        self.gallery.say(self._message(), wrong=bool(self._error))

    def _pending(self) -> int:
        """Return how many thumbs have not been searched with."""
        answer = self._answer
        return 0 if answer is None else pending_judgements(self._session.feedback, answer.feedback)

    def _message(self) -> str:
        """Return what to write where there are no cards."""
        if self._doing or self._error:
            return self._doing or self._error
        if self._answer is not None:
            return "\n".join(map(str, notes_of(self._answer.results)))
        return NO_DATABASE if self._session.database is None else NO_ANSWER

    def _show_menu(self, hit: SlideHit, at: Any) -> None:
        self.menu_of(hit).popup(at)

    def menu_of(self, hit: SlideHit) -> QMenu:
        """Return what can be done with a hit, as a menu."""
        acts = {
            "open": partial(self._in_viewer.open, hit),
            "jump": partial(self._in_viewer.jump, hit),
            "up": partial(self.judge, hit, True),
            "down": partial(self.judge, hit, False),
            "search_region": partial(self.search_from, hit, False),
            "search_slide": partial(self.search_from, hit, True),
            "copy": partial(QApplication.clipboard().setText, hit.name or hit.slide),
        }
        return hit_menu(self, self._model.verdict(hit), acts)

    def _to_export(self) -> tuple[Results, str, SlideHit | None] | None:
        if self._answer is None:
            return None
        database = self._session.database
        name = database.path.name if database is not None else ""
        return self._answer.results, name, self.gallery.current_hit()

    def _build(self) -> None:
        """Lay out the parts."""
        self._loader = PictureLoader(self)
        self._model = GalleryModel(self._loader, self)
        self.gallery = GalleryView(self._model)
        self.gallery.setObjectName("results.gallery")
        self.gallery.setAccessibleName("Slides found")
        self._field = FieldPreview(self._loader, self)
        self._panel = ExplainPanel(self._loader)
        self._panel.setObjectName("results.explanation")
        self._header, self._lines = AnswerHeader(), StateLines()
        self._header.hide()
        self.exporter = Exporter(self, self._to_export, self._lines.say)
        self._controls = ResultsControls(self.exporter.menu)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setObjectName("results.splitter")
        self._splitter.addWidget(self.gallery)
        self._splitter.addWidget(self._panel)
        self._splitter.setSizes(SHARES)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.setSpacing(4)
        for part in (self._header, self._controls, self._lines):
            layout.addWidget(part)
        layout.addWidget(self._splitter, 1)


def pending_judgements(now: Feedback, searched: Feedback) -> int:
    """Return how many slides are judged otherwise now than when the answer was made."""
    one, other = ({j.hit.slide: j.relevant for j in each.in_force} for each in (now, searched))
    return sum(one.get(slide) != other.get(slide) for slide in one.keys() | other.keys())
