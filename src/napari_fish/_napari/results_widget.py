"""The *Results* dock widget: what was found, why, and what to do with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QEvent, Qt
from qtpy.QtWidgets import (
    QApplication,
    QBoxLayout,
    QLabel,
    QMenu,
    QProgressBar,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari.controls import named
from napari_fish._napari.explain_panel import ExplainPanel
from napari_fish._napari.gallery_model import GalleryModel
from napari_fish._napari.gallery_view import GalleryView
from napari_fish._napari.hover import FieldPreview
from napari_fish._napari.look import look_of
from napari_fish._napari.results_controls import ResultsControls
from napari_fish._napari.results_export import Exporter
from napari_fish._napari.session import Answer, session_of
from napari_fish._napari.thumbnail_loader import PictureLoader
from napari_fish._napari.vote_strip import VoteStrip
from napari_fish.errors import FishError
from napari_fish.search import Feedback, Hit, Results, SlideHit
from napari_fish.search.verdict import notes_of

NARROW = 640
"""Px of width below which things stand below each other instead of side by side."""
MOST_NOTES = 3
NO_DATABASE = (
    "No database is open.\nOpen or build one with the Database widget, then search with the Search widget."
)
NO_ANSWER = (
    "Nothing was searched for yet.\nOpen a slide or draw a box on it, and press Search in the Search widget."
)

if TYPE_CHECKING:
    import napari.viewer


class ResultsWidget(QWidget):
    """Shows the current answer of the viewer's session.

    Parameters
    ----------
    viewer : napari.Viewer
        Where slides are opened and compared.
    """

    def __init__(self, viewer: napari.viewer.Viewer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self._session = session_of(viewer)
        self._answer: Answer | None = None
        self._doing = ""
        self._error = ""
        self._said, self._said_wrong = "", False
        self._build()
        self._listen()
        self._arrange(*self._controls.arrangement)
        if self._session.current is not None:
            self._show(self._session.current)
        self._mark(self._session.feedback)

    @property
    def answer(self) -> Answer | None:
        """The answer shown."""
        return self._answer

    @property
    def gallery(self) -> GalleryView:
        """The cards."""
        return self._gallery

    def compare(self) -> None:
        """Show query and hits side by side in the viewer."""
        if self._answer is not None and self._session.database is not None:
            dark = True  # names are written on the canvas, which is dark in every theme's comparison
            self._comparison().show(
                self._answer,
                self._session.database,
                partial(self._model.colours.of, dark=dark),
            )

    def open_hit(self, hit: SlideHit, match: Hit | None = None) -> None:
        """Open the slide of a hit and fly to the region; with a pair, draw it on slide and query."""
        if self._session.database is None:
            return
        from napari_fish._napari.navigate import open_hit

        try:
            open_hit(self._viewer, self._session.database, hit, match)
        except FishError as error:
            self._say(str(error), True)

    def jump(self) -> None:
        """Open the chosen slide and draw what matches."""
        hit = self._gallery.current_hit()
        if hit is not None:
            self.open_hit(hit, hit.matches[0] if hit.matches else None)

    def search_from(self, hit: SlideHit, whole: bool) -> None:
        """Search for a hit's region, or for all of its slide."""
        if self._answer is None:
            return
        box = None if whole or not hit.matches else tuple(map(float, hit.matches[0].hit_box))
        self._session.search(f"id:{hit.slide}", box, self._answer.params)

    def judge(self, hit: SlideHit, relevant: bool) -> None:
        """Note what the user says of a hit; saying it twice takes it back."""
        if self._model.verdict(hit) is relevant:
            self._session.withdraw(hit)
        else:
            self._session.judge(hit, relevant)

    def closeEvent(self, event: Any) -> None:
        """Take the wider field away."""
        self._field.hide()
        super().closeEvent(event)

    def resizeEvent(self, event: Any) -> None:
        """Put things below each other where there is little room beside."""
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        direction = QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight
        if self._head.direction() != direction:
            self._head.setDirection(direction)
            self._splitter.setOrientation(Qt.Orientation.Vertical if narrow else Qt.Orientation.Horizontal)
            self._splitter.setSizes([600, 400] if narrow else [640, 360])

    def changeEvent(self, event: Any) -> None:
        """Follow the theme."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange) and hasattr(self, "_notes"):
            self._paint_texts()

    def _listen(self) -> None:
        session = self._session
        session.answered.connect(self._show)
        session.judged.connect(self._mark)
        session.started.connect(self._started)
        session.progressed.connect(self._progressed)
        session.failed.connect(self._failed)
        session.ended.connect(self._ended)
        session.database_changed.connect(self._database_changed)
        gallery, controls = self._gallery, self._controls
        gallery.chosen.connect(self._chosen)
        gallery.opened.connect(self.open_hit)
        gallery.judged.connect(self.judge)
        gallery.rested.connect(self._field.show_hit)
        gallery.left.connect(self._field.hide)
        gallery.asked_menu.connect(self._show_menu)
        self._panel.jumped.connect(self.open_hit)
        controls.arranged.connect(self._arrange)
        controls.refine.connect(session.refine)
        controls.undo.connect(session.undo)
        controls.compare.connect(self.compare)
        controls.clear.connect(self._clear_comparison)
        controls.jump.connect(self.jump)
        controls.zoom.connect(self._zoom)
        self._cancel.clicked.connect(session.cancel)

    def _comparison(self) -> Any:
        from napari_fish._napari.compare import comparison_of

        return comparison_of(self._viewer)

    def _clear_comparison(self) -> None:
        self._comparison().clear()

    def _zoom(self, objective: float) -> None:
        self._comparison().zoom_to(objective)

    def _show(self, answer: Answer) -> None:
        """Show an answer; the slide that was chosen stays so if it is in it."""
        before = self._gallery.current_hit()
        self._answer, self._error = answer, ""
        self._say("")
        results = answer.results
        self._model.show(results)
        self._strip.show_results(results)
        self._panel.show_results(results)
        index = self._model.index_of(before.slide) if before else self._model.index(-1)
        if not index.isValid() and results.hits:
            index = self._model.index_of(results.hits[0].slide)
        if index.isValid():
            self._gallery.setCurrentIndex(index)
        self._gallery.scrollToTop()
        self._update()

    def _clear(self) -> None:
        self._answer = None
        self._model.show(None)
        self._strip.show_results(None)
        self._panel.show_results(None)

    def _mark(self, feedback: Feedback) -> None:
        self._model.mark(feedback)
        self._update()

    def _chosen(self, hit: SlideHit | None) -> None:
        self._panel.show_hit(hit)
        self._update()

    def _arrange(self, size: str, sort: str, group: str) -> None:
        chosen = self._gallery.current_hit()
        self._gallery.set_size(size)
        self._model.arrange(sort, group)
        if chosen is not None:
            self._gallery.setCurrentIndex(self._model.index_of(chosen.slide))

    def _started(self, what: str) -> None:
        self._doing, self._error = what, ""
        self._bar.setRange(0, 0)
        self._say("")
        self._update()

    def _progressed(self, done: int, total: int) -> None:
        self._bar.setRange(0, total)
        self._bar.setValue(done)

    def _failed(self, message: str) -> None:
        self._error = message
        self._update()

    def _ended(self) -> None:
        self._doing = ""
        self._update()

    def _database_changed(self, database: Any) -> None:
        self._error = ""
        self._clear()
        self._update()

    def _say(self, text: str, wrong: bool = False) -> None:
        self._said, self._said_wrong = text, wrong
        self._paint_texts()

    def _update(self) -> None:
        """Bring everything that depends on the state up to date."""
        answer, feedback = self._answer, self._session.feedback
        pending = 0 if answer is None else pending_judgements(feedback, answer.feedback)
        self._controls.update_state(
            answered=answer is not None and bool(answer.results.hits),
            chosen=self._gallery.current_hit() is not None,
            comparing=answer is not None,
            pending=pending,
            judged=len(feedback.judgements),
        )
        self._progress.setVisible(bool(self._doing))
        self._doing_label.setText(self._doing)
        self._title.setText("" if answer is None else f"Similar to {answer.results.query}")
        self._title.setVisible(answer is not None)
        self._how.setText("" if answer is None else how_in_words(answer))
        self._how.setVisible(answer is not None)
        self._strip.setVisible(answer is not None)
        self._gallery.say(self._message(), wrong=bool(self._error))
        self._paint_texts()

    def _message(self) -> str:
        """Return what to write where there are no cards."""
        if self._doing:
            return self._doing
        if self._error:
            return self._error
        if self._answer is not None:
            return "\n".join(notes_of(self._answer.results))
        return NO_DATABASE if self._session.database is None else NO_ANSWER

    def _paint_texts(self) -> None:
        """Write the notes, what went wrong and what was done, each in its colour."""
        look = look_of(self)
        results = None if self._answer is None else self._answer.results
        notes = notes_of(results) if results is not None and results.hits else []
        more = f" (and {len(notes) - MOST_NOTES} more)" if len(notes) > MOST_NOTES else ""
        self._how.setStyleSheet(f"color: {look.soft.name()};")
        _write(self._notes, "\n".join(notes[:MOST_NOTES]) + more, look.warn.name())
        self._notes.setToolTip("\n".join(notes))
        wrong = self._error if self._model.rowCount() else ""
        text = wrong or self._said
        _write(self._state, text, (look.wrong if wrong or self._said_wrong else look.soft).name())

    def _show_menu(self, hit: SlideHit, at: Any) -> None:
        self.menu_of(hit).popup(at)

    def menu_of(self, hit: SlideHit) -> QMenu:
        """Return what can be done with a hit, as a menu."""
        menu = QMenu(self)
        menu.setObjectName("results.menu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        best = hit.matches[0] if hit.matches else None
        said = self._model.verdict(hit)
        entries: tuple[tuple[str, str, Any] | None, ...] = (
            ("open", "Open the slide here\tEnter", partial(self.open_hit, hit)),
            ("jump", "Jump: show what matches on both slides", partial(self.open_hit, hit, best)),
            None,
            ("up", ("✓ " if said else "") + "Relevant\t+", partial(self.judge, hit, True)),
            ("down", ("✓ " if said is False else "") + "Not relevant\t-", partial(self.judge, hit, False)),
            None,
            ("search_region", "Search from this region", partial(self.search_from, hit, False)),
            ("search_slide", "Search from this whole slide", partial(self.search_from, hit, True)),
            None,
            (
                "copy",
                "Copy the slide's name",
                partial(QApplication.clipboard().setText, hit.name or hit.slide),
            ),
        )
        for entry in entries:
            if entry is None:
                menu.addSeparator()
                continue
            name, text, act = entry
            action = menu.addAction(text)
            action.setObjectName(f"results.menu.{name}")
            action.triggered.connect(partial(_call, act))
        return menu

    def _export_current(self) -> tuple[Results, str, SlideHit | None] | None:
        if self._answer is None:
            return None
        database = self._session.database
        name = database.path.name if database is not None else ""
        return self._answer.results, name, self._gallery.current_hit()

    def _build(self) -> None:
        """Lay out the parts."""
        self._loader = PictureLoader(self)
        self._model = GalleryModel(self._loader, self)
        self._gallery = GalleryView(self._model)
        self._gallery.setObjectName("results.gallery")
        self._gallery.setAccessibleName("Slides found")
        self._field = FieldPreview(self._loader, self)
        self._panel = ExplainPanel(self._loader)
        self._panel.setObjectName("results.explanation")
        self._strip = VoteStrip()
        self._strip.setObjectName("results.votes")
        self._title = named("results", QLabel(), "title", "What was searched for, and how.")
        self._how = named("results", QLabel(), "how", "How it was searched.")
        bold = self._title.font()
        bold.setBold(True)
        self._title.setFont(bold)
        for label in (self._title, self._how):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        self._notes = named("results", QLabel(), "notes", "")
        self._state = named("results", QLabel(), "state", "What was done or went wrong.")
        for label in (self._notes, self._state):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._exporter = Exporter(self, self._export_current, self._say)
        self._controls = ResultsControls(self._exporter.menu)
        self._doing_label = named("results", QLabel(), "doing", "What is going on.")
        self._bar = named("results", QProgressBar(), "progress", "How far it is.")
        self._bar.setMaximumHeight(14)
        self._cancel = named("results", QPushButton("Cancel"), "cancel", "Stop what is going on.")
        self._progress = QWidget()
        running = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._progress)
        running.setContentsMargins(0, 0, 0, 0)
        for part in (self._doing_label, self._bar, self._cancel):
            running.addWidget(part, 1 if part is self._bar else 0)
        self._head = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        titles = QVBoxLayout()
        titles.setSpacing(0)
        titles.addWidget(self._title)
        titles.addWidget(self._how)
        self._head.addLayout(titles, 2)
        self._head.addWidget(self._strip, 3)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setObjectName("results.splitter")
        self._splitter.setChildrenCollapsible(True)
        self._splitter.addWidget(self._gallery)
        self._splitter.addWidget(self._panel)
        self._splitter.setSizes([640, 360])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.setSpacing(4)
        layout.addLayout(self._head)
        layout.addWidget(self._controls)
        layout.addWidget(self._notes)
        layout.addWidget(self._progress)
        layout.addWidget(self._state)
        layout.addWidget(self._splitter, 1)


def how_in_words(answer: Answer) -> str:
    """Say how an answer was found."""
    results = answer.results
    slides = len(results.hits)
    judged = len(answer.feedback.in_force)
    return ", ".join(
        part
        for part in (
            f"{slides} slide{'' if slides == 1 else 's'}",
            f"{results.mode} search",
            f"ranking {results.ranking}",
            f"{sum(results.elapsed_ms.values()):.0f} ms",
            f"refined by {judged} thumb{'' if judged == 1 else 's'}" if judged else "",
        )
        if part
    )


def pending_judgements(now: Feedback, searched: Feedback) -> int:
    """Return how many slides are judged otherwise now than when the answer was made."""
    one, other = ({j.hit.slide: j.relevant for j in each.in_force} for each in (now, searched))
    return sum(one.get(slide) != other.get(slide) for slide in one.keys() | other.keys())


def _write(label: QLabel, text: str, colour: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))
    label.setStyleSheet(f"color: {colour};")


def _call(act: Any, *_: Any) -> None:
    act()
