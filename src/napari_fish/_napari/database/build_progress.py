"""A build on its way: the slide in progress, how fast it goes, what became of each slide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_fish._napari.controls.common import named
from napari_fish._napari.controls.tables import Table
from napari_fish._napari.database.build_job import News
from napari_fish._napari.database.left_out_controls import LOOK, LOOK_TIP
from napari_fish._napari.database.slide_picture import SlidePicture
from napari_fish._napari.jobs.notify import as_in_widgets, as_sentence
from napari_fish.building.summary import SlideDone, Under
from napari_fish.mosaic.left_out import WARNING, is_much, told
from napari_fish.store.records import Quarantined
from napari_fish.texts import count, duration

OWNER = "database"
QUARANTINED = "quarantined"
_SHOWN = {"all slides": "", "quarantined only": QUARANTINED, "added only": "added"}


class BuildProgress(QWidget):
    """Shows the news of a build, and lets the user try slides again."""

    retry = Signal(list)
    """Ids of slides to try again."""
    look = Signal(str)
    """Id of a slide to show with what was left out of it."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self._under: Under | None = None
        self._usable = True
        self._make()

    def clear(self) -> None:
        """Forget the build before."""
        self.counts.clear()
        self.table.shown.show([])
        self._show_slide(None, 0)
        self.speed.clear()
        self.speed.hide()
        self._explain()
        self._enable()

    def begin(self, only: Iterable[str] | None = None) -> None:
        """Make room for a build: of all slides, or of some that are tried again."""
        again = set(only) if only is not None else None
        kept = [] if again is None else [row for row in self.table.shown.rows if row[0] not in again]
        self.clear()
        self.counts.update(row[1] for row in kept)
        self.table.shown.show(kept)

    def show_quarantined(self, bad: Iterable[Quarantined]) -> None:
        """Show slides that an earlier build could not read."""
        self.clear()
        rows = [(one.slide, QUARANTINED, _short(one.reason), as_in_widgets(one.reason)) for one in bad]
        self.counts[QUARANTINED] = len(rows)
        self.table.shown.show(rows)
        self._enable()

    def show_news(self, news: News) -> None:
        """Show what happened."""
        self._show_slide(news.under, news.encoded)
        if news.done:
            rows = [_row(one) for one in news.done]
            self.counts.update(row[1] for row in rows)
            self.table.shown.add(rows)
            self._enable()

    def show_speed(self, seconds: float, finished: int, left: int, expected: float | None) -> None:
        """Show slides an hour and when it will be done.

        Parameters
        ----------
        seconds
            Since the build began, pauses left out.
        finished, left
            Slides encoded or refused by this build, and slides that remain.
        expected
            Seconds the build was expected to take.
        """
        self.speed.show()
        if finished and seconds > 0:
            rest = seconds / finished * left
            self.speed.setText(f"{3600 * finished / seconds:.0f} slides/h, {duration(rest)} left")
        elif expected is not None:
            self.speed.setText(f"about {duration(max(1.0, expected - seconds))} left")

    def end(self) -> None:
        """Show no slide in progress any more."""
        self._show_slide(None, 0)
        self.speed.hide()
        self._enable()

    def _show_slide(self, under: Under | None, encoded: int) -> None:
        if under is self._under:
            self.picture.show_encoded(encoded)
        else:
            self._under = under
            self.picture.show_slide(under, encoded)
            for part in (self.picture, self.name):
                part.setVisible(under is not None)
        if under is not None:
            patches = len(under.boxes)
            self.name.setText(f"{under.slide}: {min(encoded, patches)} of {count(patches, 'patch')}")

    def set_usable(self, usable: bool) -> None:
        """Let slides be tried again and looked at, or not while a build is under way."""
        self._usable = usable
        self._enable()

    def _enable(self) -> None:
        bad = self.counts[QUARANTINED]
        self.again.setEnabled(self._usable and bad > 0)
        self.left_out.setEnabled(self._usable and bool(self._to_look_at))
        self.again.setText(f"Retry {bad}" if bad else "Retry")
        said = [f"{number} {fate}" for fate, number in self.counts.items() if number]
        self.said.setText(", ".join(said))
        for part in (self.table, self.again, self.said, self.which, self.left_out):
            part.setVisible(bool(self.table.shown.rows))

    def _ask_again(self) -> None:
        chosen = [row[0] for row in self.table.selected() if row[1] == QUARANTINED]
        everything = [row[0] for row in self.table.shown.rows if row[1] == QUARANTINED]
        self.retry.emit(chosen or everything)

    @property
    def _to_look_at(self) -> str:
        """The one slide that is selected, if it is in the database; empty for none."""
        chosen = [row for row in self.table.selected() if row[1] not in (QUARANTINED, "twice")]
        return str(chosen[0][0]) if len(chosen) == 1 else ""

    def _explain(self, *_: Any) -> None:
        chosen = self.table.selected()
        self.left_out.setEnabled(self._usable and bool(self._to_look_at))
        self.why.setText(str(chosen[0][-1]) if len(chosen) == 1 else "")
        self.why.setVisible(bool(self.why.text()))

    def _narrow(self, *_: Any) -> None:
        self.table.proxy.setFilterKeyColumn(1)
        self.table.narrow_to(self.which.currentData())

    def _make(self) -> None:
        self.picture = named(
            OWNER, SlidePicture(), "picture", "The slide in progress; patches turn blue as they are encoded."
        )
        self.name = named(OWNER, QLabel(), "under", "The slide in progress.")
        self.name.setWordWrap(True)
        self.speed = named(OWNER, QLabel(), "speed", "How fast it goes, and how long it will take.")
        self.said = named(OWNER, QLabel(), "counts", "What became of the slides.")
        self.said.setWordWrap(True)
        self.table = named(
            OWNER,
            Table(("slide", "state", "why"), (120, 80, 0)),
            "slides_done",
            "What became of each slide, and why.",
        )
        self.table.setMinimumHeight(150)
        self.why = named(OWNER, QLabel(), "why", "All of what is known of the selected slide.")
        self.why.setWordWrap(True)
        self.why.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.which = named(OWNER, QComboBox(), "which", "Which slides the list shows.")
        for text, fate in _SHOWN.items():
            self.which.addItem(text, fate)
        self.again = named(
            OWNER,
            QPushButton("Retry"),
            "retry",
            "Try the quarantined slides again, those selected or all, once what is wrong is mended.",
        )
        self.left_out = named(OWNER, QPushButton(LOOK), "build_left_out", LOOK_TIP)
        row = QHBoxLayout()
        row.addWidget(self.which, 1)
        row.addWidget(self.again)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for above in (self.name, self.picture, self.speed, self.said):
            layout.addWidget(above)
        layout.addLayout(row)
        for below in (self.table, self.why, self.left_out):
            layout.addWidget(below)
        self.which.currentIndexChanged.connect(self._narrow)
        self.again.clicked.connect(self._ask_again)
        self.left_out.clicked.connect(lambda: self.look.emit(self._to_look_at))
        self.table.selectionModel().selectionChanged.connect(self._explain)
        for part in (self.picture, self.name):
            part.hide()
        self.clear()


def _row(done: SlideDone) -> tuple[str, str, str, str]:
    stand = f"{count(done.patches, 'patch')} in the database" if done.patches else ""
    found = told(done.candidates, done.left_out) if done.candidates else ""
    why = _short(done.reason) or found or stand
    lines = [as_in_widgets(done.reason), found, stand]
    if is_much(done.candidates, done.left_out):
        lines.insert(2, as_sentence(WARNING))
    text = "\n".join(line for line in lines if line)
    return done.slide, done.fate, why, text if str(done.path) in text else f"{done.path}\n{text}".strip()


def _short(reason: str) -> str:
    """Leave out the path that a reason begins with: the slide is named beside it."""
    path, sign, rest = reason.partition(": ")
    return as_in_widgets(rest if sign and Path(path).is_absolute() else reason)
