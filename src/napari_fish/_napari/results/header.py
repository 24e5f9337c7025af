"""What stands above the gallery: what was searched, the vote, and everything the user must be told."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QEvent, Qt, Signal
from qtpy.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from napari_fish._napari.controls.common import named
from napari_fish._napari.controls.look import Look, look_of
from napari_fish._napari.results.vote_strip import VoteStrip
from napari_fish._napari.session.session import Answer
from napari_fish.search.verdict import notes_of

MOST_NOTES = 3


class AnswerHeader(QWidget):
    """Names the query and shows the vote beside it, or below it where there is little room."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = named("results", QLabel(), "title", "What was searched for.")
        self._how = named("results", QLabel(), "how", "How it was searched.")
        self._strip = VoteStrip()
        self._strip.setObjectName("results.votes")
        bold = self._title.font()
        bold.setBold(True)
        self._title.setFont(bold)
        titles = QVBoxLayout()
        titles.setSpacing(0)
        for label in (self._title, self._how):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
            titles.addWidget(label)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.addLayout(titles, 2)
        self._row.addWidget(self._strip, 3)

    def show_answer(self, answer: Answer | None) -> None:
        """Show an answer, or nothing."""
        self.setVisible(answer is not None)
        self._strip.show_results(None if answer is None else answer.results)
        if answer is not None:
            self._title.setText(f"Similar to {answer.results.query}")
            self._how.setText(how_in_words(answer))

    def stack(self, narrow: bool) -> None:
        """Put the vote below the name, or beside it."""
        directions = QBoxLayout.Direction
        self._row.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)


class StateLines(QWidget):
    """Lines that are there only when there is something to say: notes on the answer, what goes on, what went wrong."""

    cancelled = Signal()
    """What goes on should be stopped."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._wrong = False
        self._notes = named("results", QLabel(), "notes", "")
        self._said = named("results", QLabel(), "state", "What was done or went wrong.")
        self._doing = named("results", QLabel(), "doing", "What is going on.")
        self._bar = named("results", QProgressBar(), "progress", "How far it is.")
        self._bar.setMaximumHeight(14)
        cancel = named("results", QPushButton("Cancel"), "cancel", "Stop what is going on.")
        cancel.clicked.connect(lambda: self.cancelled.emit())
        self._running = QWidget()
        running = QHBoxLayout(self._running)
        running.setContentsMargins(0, 0, 0, 0)
        for part in (self._doing, self._bar, cancel):
            running.addWidget(part, 1 if part is self._bar else 0)
        stack = QVBoxLayout(self)
        stack.setContentsMargins(0, 0, 0, 0)
        stack.setSpacing(3)
        for label in (self._notes, self._said):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        for line in (self._notes, self._running, self._said):
            line.hide()
            stack.addWidget(line)
        self.setVisible(False)

    def show_answer(self, answer: Answer | None) -> None:
        """Show what the reader of an answer must know; without any hit the gallery says it."""
        found = notes_of(answer.results) if answer is not None and answer.results.hits else []
        notes = list(map(str, found))
        more = f" (and {len(notes) - MOST_NOTES} more)" if len(notes) > MOST_NOTES else ""
        self._notes.setText("\n".join(notes[:MOST_NOTES]) + more)
        self._notes.setToolTip("\n".join(notes))
        self._update()

    def show_doing(self, what: str) -> None:
        """Show what is going on; empty for nothing."""
        self._doing.setText(what)
        self._bar.setRange(0, 0)
        self._update()

    def show_progress(self, done: int, total: int) -> None:
        """Show how far it is."""
        self._bar.setRange(0, total)
        self._bar.setValue(done)

    def say(self, text: str, wrong: bool = False) -> None:
        """Say what was done or went wrong; empty for nothing."""
        self._wrong = wrong
        self._said.setText(text)
        self._update()

    def changeEvent(self, event: Any) -> None:
        """Follow the theme."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange) and hasattr(self, "_running"):
            self._colour(look_of(self))

    def _update(self) -> None:
        shown = {
            self._notes: bool(self._notes.text()),
            self._running: bool(self._doing.text()),
            self._said: bool(self._said.text()),
        }
        for part, wanted in shown.items():
            part.setVisible(wanted)
        self.setVisible(any(shown.values()))
        self._colour(look_of(self))

    def _colour(self, look: Look) -> None:
        said = look.wrong if self._wrong else look.soft
        for label, colour in ((self._notes, look.warn), (self._said, said)):
            style = f"color: {colour.name()};"
            # A style sheet takes tens of ms under napari's own, also one that changes nothing.
            if label.styleSheet() != style:
                label.setStyleSheet(style)


def how_in_words(answer: Answer) -> str:
    """Say how an answer was found."""
    results = answer.results
    slides = len(results.hits)
    judged = len(answer.feedback.in_force)
    ms = sum(results.elapsed_ms.values())
    parts = (
        f"{slides} slide{'' if slides == 1 else 's'}",
        f"{results.mode} search",
        f"ranking {results.ranking}",
        f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s",
        f"refined by {judged} thumb{'' if judged == 1 else 's'}" if judged else "",
    )
    return ", ".join(part for part in parts if part)
