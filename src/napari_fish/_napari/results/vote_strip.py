"""A strip that shows who votes for which diagnosis, and how certainly."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QRect, QRectF, QSize, Qt
from qtpy.QtGui import QColor, QPainter
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_fish._napari.controls.look import look_of
from napari_fish.search import Results
from napari_fish.search.output.colours import Colours
from napari_fish.search.verdict import Tally, Vote, certainty_in_words, tally

BAR = 12


def vote_in_words(vote: Vote, votes: Tally, *, short: bool = False) -> str:
    """Say what speaks for a label."""
    if short:
        return f"{vote.label or 'not known'} {vote.count}"
    sure = certainty_in_words(vote.certainty)
    voters = votes.voters if votes.total != 1 else votes.voters.removesuffix("s")
    text = f"{vote.label or 'not known'} {vote.count} of {votes.total} {voters}"
    return f"{text}, {sure}" if sure else text


class VoteStrip(QWidget):
    """A bar divided among diagnoses, with their names below; paler where the votes are less certain."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._votes: Tally | None = None
        self._colours = Colours(())
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def votes(self) -> Tally | None:
        """What is shown."""
        return self._votes

    def show_results(self, results: Results | None) -> None:
        """Show the votes of an answer, or nothing."""
        self._votes = tally(results) if results is not None and results.hits else None
        self._colours = Colours.of_answers([] if results is None else [results])
        self.setToolTip(self._tip())
        self.setAccessibleName(self._tip())
        self.update()

    def sizeHint(self) -> QSize:
        """Return room for the bar and a line of text."""
        return QSize(200, BAR + self.fontMetrics().height() + 6)

    def minimumSizeHint(self) -> QSize:
        """Return the same height, and hardly any width."""
        return QSize(80, self.sizeHint().height())

    def _tip(self) -> str:
        if self._votes is None:
            return ""
        if self._votes.voters == "regions":
            head = "What the query's regions that counted vote for, by the labels of their neighbours:"
            foot = "Certain: the neighbours of these regions carry one label; paler: they carry several."
        else:
            head, foot = (
                "Slides found, by diagnosis (this ranking goes by distance alone, no region votes):",
                "",
            )
        lines = [
            f"  {vote_in_words(vote, self._votes)}: {100 * vote.share:.0f} %" for vote in self._votes.votes
        ]
        return "\n".join([head, *lines, *([foot] if foot else [])])

    def paintEvent(self, event: Any) -> None:
        """Paint bar and names."""
        if self._votes is None:
            return
        look = look_of(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x, width = 0.0, float(self.width())
        names = QRect(0, BAR + 3, self.width(), self.fontMetrics().height())
        texts = self._texts()
        for vote in self._votes.votes:
            colour = QColor(self._colours.of(vote.label, look.dark))
            wide = width * vote.share
            painter.setOpacity(1.0 if vote.certainty is None else 0.35 + 0.65 * vote.certainty)
            painter.fillRect(QRectF(x, 0, max(2.0, wide - 1), BAR), colour)
            painter.setOpacity(1.0)
            x += wide
            names = self._paint_name(painter, names, texts[vote.label], colour, look.text)
        painter.end()

    def _texts(self) -> dict[str, str]:
        """Return what to write for each label, in short where there is little room."""
        assert self._votes is not None
        for short in (False, True):
            texts = {vote.label: vote_in_words(vote, self._votes, short=short) for vote in self._votes.votes}
            if sum(self._wide(text) for text in texts.values()) <= self.width():
                break
        return texts

    def _wide(self, text: str) -> int:
        return 14 + self.fontMetrics().horizontalAdvance(text) + 18

    def _paint_name(self, painter: QPainter, room: QRect, text: str, colour: QColor, ink: QColor) -> QRect:
        """Write a label into the room that is left, and return what is left then."""
        if room.width() < 40:
            return room
        text = self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room.width() - 16)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawEllipse(QRectF(room.left(), room.center().y() - 4, 9, 9))
        painter.setPen(ink)
        painter.drawText(room.adjusted(14, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, text)
        return room.adjusted(self._wide(text), 0, 0, 0)
