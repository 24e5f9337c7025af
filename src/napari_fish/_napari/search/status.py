"""What is going on: the bar, the line and the buttons at the foot of the Search widget."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from napari_fish._napari.controls.common import STATE_TIP as TIP
from napari_fish._napari.controls.common import named, state_line
from napari_fish._napari.session.session import Answer, Session


class StatusPanel(QWidget):
    """Shows what a session is doing.

    Parameters
    ----------
    session
        Whose doing is shown.
    """

    cancel_wanted = Signal()
    reset_wanted = Signal()

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._said_what_came = True
        self._build()
        session.started.connect(self._started)
        session.progressed.connect(self._progressed)
        session.answered.connect(self._answered)
        session.failed.connect(self._failed)
        session.database_changed.connect(self._database_changed)
        session.ended.connect(self._ended)
        self._database_changed(session.database)

    def say(self, text: str, wrong: bool = False) -> None:
        """Show what is going on or went wrong."""
        self.state.say(f"⚠ {text}" if wrong else text, wrong)
        self.state.setToolTip(TIP)

    def _started(self, what: str) -> None:
        self._said_what_came = False
        self.say(what)
        self.bar.setRange(0, 0)
        self.bar.setVisible(True)
        self.cancel.setEnabled(True)

    def _progressed(self, done: int, total: int) -> None:
        self.bar.setRange(0, total)
        self.bar.setValue(done)

    def _answered(self, answer: Answer) -> None:
        self._said_what_came = True
        self.say(result_in_words(answer))
        self.state.setToolTip("\n".join(map(str, answer.results.notes)) or TIP)

    def _failed(self, message: str) -> None:
        self._said_what_came = True
        self.say(message, wrong=True)

    def _database_changed(self, database: Any) -> None:
        self._said_what_came = True
        if database is None:
            self.say("Open a database to search in.")
        else:
            self.say(f"{database.path.name} is open. Search for this slide, or draw a box.")

    def _ended(self) -> None:
        if not self._said_what_came:
            self.say("Stopped.")
        self.bar.setVisible(False)
        self.cancel.setEnabled(False)

    def _build(self) -> None:
        self.bar = named("search", QProgressBar(), "progress", "How far the search is.")
        self.bar.setTextVisible(False)
        self.bar.setMaximumHeight(8)
        self.bar.setVisible(False)
        self.state = state_line("search")
        self.cancel = named("search", QPushButton("Cancel"), "cancel", "Stop what is going on.")
        self.cancel.setEnabled(False)
        reset = named(
            "search", QPushButton("Reset"), "reset", "All parameters back to their first values, no filters."
        )
        buttons = QHBoxLayout()
        buttons.addWidget(self.cancel)
        buttons.addWidget(reset)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 0, 4, 0)
        for part in (self.bar, self.state):
            layout.addWidget(part)
        layout.addLayout(buttons)
        self.cancel.clicked.connect(self.cancel_wanted)
        reset.clicked.connect(self.reset_wanted)


def result_in_words(answer: Answer) -> str:
    """Return what was found and how long each step took, in a line."""
    results = answer.results
    steps = {name: ms for name, ms in results.elapsed_ms.items() if ms >= 0.5}
    took = ", ".join(f"{name} {_duration(ms)}" for name, ms in steps.items())
    took = f" ({took})" if took else ""
    found = f"{len(results)} of {results.k} slides" if len(results) < results.k else f"{len(results)} slides"
    return (
        f"{found} for {results.query} in {_duration(sum(results.elapsed_ms.values()))}{took}; "
        f"mode {results.mode}, ranking {results.ranking}."
    )


def _duration(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"
