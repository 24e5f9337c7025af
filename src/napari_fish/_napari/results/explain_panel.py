"""Why a slide is in the answer: the regions that match side by side, and what became of all others."""

from __future__ import annotations

from functools import partial
from typing import Any

from qtpy.QtCore import QRect, Qt, Signal
from qtpy.QtGui import QColor, QPainter
from qtpy.QtWidgets import (
    QFrame,
    QLabel,
    QPushButton,
    QScrollArea,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)
from superqt import QFlowLayout

from napari_fish._napari.controls.common import emptied, named
from napari_fish._napari.controls.look import look_of
from napari_fish._napari.layers.query_layers import DROPPED, HIGH, LOW
from napari_fish._napari.results.picture_loader import Key, PictureLoader
from napari_fish._napari.results.regions_table import RegionsModel, RegionsTable
from napari_fish.search import Hit, Results, SlideHit
from napari_fish.search.output.colours import Colours
from napari_fish.search.verdict import bits, closeness, matched_regions, regions_in_words

PICTURE = 96
MOST_SENTENCES = 2
"""How many stand above the table; all of them where the mouse rests."""
NOTHING_CHOSEN = "Click a slide to see why it was found."


class Pair(QWidget):
    """A region of the query beside the region of the slide that matches it; a click jumps there.

    Parameters
    ----------
    hit, match
        The slide, and which of its pairs.
    loader
        Where pictures come from.
    colour
        Of the slide's diagnosis.
    """

    clicked = Signal(object, object)
    """The slide and the pair."""

    def __init__(self, hit: SlideHit, match: Hit, loader: PictureLoader, colour: QColor) -> None:
        super().__init__()
        self._hit, self._match, self._loader, self._colour = hit, match, loader, colour
        self.setObjectName(f"results.pair.{match.query_index}")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(
            f"Left: {'a region of a slide you liked' if match.liked else f'region {match.query_index} of the query'}. Right: the region of {hit.name or hit.slide} at "
            f"x {match.hit_box.x}, y {match.hit_box.y}.\n{bits(match.distance)}: {closeness(match.percentile)}.\n"
            "Click to see it on the slide."
        )
        self.setFixedSize(2 * PICTURE + 3, PICTURE + self.fontMetrics().height() + 4)
        loader.ready.connect(self._came)

    def paintEvent(self, event: Any) -> None:
        """Paint both regions and how far apart they are."""
        look, match = look_of(self), self._match
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        ours, theirs = QRect(0, 0, PICTURE, PICTURE), QRect(PICTURE + 3, 0, PICTURE, PICTURE)
        pictures = (
            self._loader.query(match.query_index),
            self._loader.region(self._hit.slide, match.hit_box),
        )
        for rect, image in zip((ours, theirs), pictures, strict=True):
            painter.fillRect(rect, look.track)
            if image is not None:
                painter.drawImage(rect, image)
        pen = painter.pen()
        pen.setColor(self._colour)
        pen.setWidth(2)
        painter.setPen(pen)
        painter.drawRect(theirs.adjusted(1, 1, -1, -1))
        painter.setPen(look.text)
        words = QRect(0, PICTURE + 2, self.width(), self.fontMetrics().height())
        whose = "a slide you liked" if match.liked else f"region {match.query_index}"
        painter.drawText(words, Qt.AlignmentFlag.AlignLeft, f"{whose}: {bits(match.distance)}")
        painter.end()

    def mouseReleaseEvent(self, event: Any) -> None:
        """Jump to the pair."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.clicked.emit(self._hit, self._match)

    def _came(self, key: Key) -> None:
        if key in (("query", self._match.query_index),) or key[1:] == (self._hit.slide, self._match.hit_box):
            self.update()


class ExplainPanel(QTabWidget):
    """Two pages: why this slide, and what became of each region of the query.

    Parameters
    ----------
    loader
        Where pictures come from.
    """

    jumped = Signal(object, object)
    """A slide and a pair to be shown on it."""
    searched = Signal(object, bool)
    """A slide to search from, and whether all of it or only its best region."""

    def __init__(self, loader: PictureLoader, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._loader = loader
        self._results: Results | None = None
        self._hit: SlideHit | None = None
        self._words = named("results", QLabel(NOTHING_CHOSEN), "why", "Why the chosen slide was found.")
        self._more = named("results", QLabel(), "why_more", "What else is to be known of the chosen slide.")
        for label in (self._words, self._more):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._pairs = QWidget()
        self._flow = QFlowLayout(self._pairs)
        self._flow.setContentsMargins(0, 0, 0, 0)
        self.addTab(self._make_why(), "Why this slide")
        self.addTab(self._make_regions(), "Query regions")
        self.setTabToolTip(0, "The regions that match, and how certain they are.")
        self.setTabToolTip(
            1, "What became of each region of the query: what counted, what was dropped and why."
        )

    def show_results(self, results: Results | None) -> None:
        """Show the regions of a query, and no slide yet."""
        self._results = results
        self.show_hit(None)
        text = () if results is None else regions_summary(results)
        self._summary.setText(" ".join(text[:MOST_SENTENCES]))
        self._summary.setToolTip("\n".join(text))
        self._regions.show(results)

    def show_hit(self, hit: SlideHit | None) -> None:
        """Say why a slide was found."""
        emptied(self._flow)
        self._hit = hit if self._results is not None else None
        self._buttons.setVisible(self._hit is not None)
        if hit is None or self._results is None:
            self._words.setText(NOTHING_CHOSEN if self._results is not None else "")
            self._more.clear()
            return
        self._words.setText(why_in_words(hit, self._results))
        self._more.setText(more_in_words(hit, self._results))
        colour = QColor(Colours.of_answers([self._results]).of(hit.diagnosis, look_of(self).dark))
        for match in hit.matches:
            pair = Pair(hit, match, self._loader, colour)
            pair.clicked.connect(self.jumped)
            self._flow.addWidget(pair)

    def _make_why(self) -> QWidget:
        """Return the page about one slide: the pictures come early and the buttons stay in sight."""
        inside = QWidget()
        stack = QVBoxLayout(inside)
        stack.setContentsMargins(0, 0, 0, 0)
        stack.setSpacing(4)
        for part in (self._words, self._pairs, self._more):
            stack.addWidget(part)
        stack.addStretch()
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(inside)
        page = QWidget()
        below = QVBoxLayout(page)
        below.setContentsMargins(6, 4, 2, 2)
        below.setSpacing(2)
        below.addWidget(scroll, 1)
        below.addWidget(self._make_buttons())
        return page

    def _make_buttons(self) -> QWidget:
        """Return the buttons that search from the slide that is shown."""
        self._buttons = QWidget()
        row = QFlowLayout(self._buttons)
        row.setContentsMargins(0, 0, 0, 0)
        for name, text, whole in (
            ("region", "Search from this region", False),
            ("slide", "Search from this slide", True),
        ):
            tip = (
                "Search for all of this slide." if whole else "Search for the region above that matches best."
            )
            button = named("results", QPushButton(text), f"search_{name}", tip)
            button.clicked.connect(partial(self._search, whole))
            row.addWidget(button)
        self._buttons.hide()
        return self._buttons

    def _search(self, whole: bool, *_: Any) -> None:
        if self._hit is not None:
            self.searched.emit(self._hit, whole)

    def _make_regions(self) -> QWidget:
        self._summary = named("results", QLabel(), "summary", "How the slides were ranked.")
        self._summary.setWordWrap(True)
        self._regions = RegionsModel(self._loader, self)
        self._table = named("results", RegionsTable(self._regions), "regions", "")
        legend = named("results", QLabel(legend_in_words()), "legend", "What the boxes on the slide say.")
        legend.setWordWrap(True)
        page = QWidget()
        stack = QVBoxLayout(page)
        stack.setContentsMargins(4, 4, 4, 4)
        stack.setSpacing(2)
        stack.addWidget(self._summary)
        stack.addWidget(legend)
        stack.addWidget(self._table)
        return page


def why_in_words(hit: SlideHit, results: Results) -> str:
    """Say which slide it is, how near, and by how many regions: what is read before the pictures."""
    # Not the site: the card says it, and the pictures shall be in sight.
    about = (f"{hit.rank}. {hit.name or hit.slide}", hit.diagnosis or "diagnosis not known", hit.patient)
    median = (results.ranking == "label-free" or hit.filled) and len(results.explanation.lists) > 1
    near = matched_regions(hit, results)[0]
    matched = f"Matches {regions_in_words(hit, results)} within the threshold."
    return "\n".join(
        (
            " · ".join(word for word in about if word),
            f"{'Median of ' if median else ''}{bits(hit.distance)}: {closeness(hit.percentile)}.",
            matched if near else "No pair is within the threshold.",
        )
    )


def more_in_words(hit: SlideHit, results: Results) -> str:
    """Say what else is to be known of a slide: what is read after the pictures."""
    lines = ["Left the query, right this slide."] if hit.matches else []
    if hit.filled:
        lines.append(
            f"Filled in: nothing more was within the threshold of {results.threshold} bits, "
            "and this is the nearest of the rest."
        )
    if hit.entropy is not None:
        agree = "all agree" if hit.entropy < 0.005 else "they disagree" if hit.entropy > 1 else "most agree"
        lines.append(f"The region that brought it has neighbours of entropy {hit.entropy:.2f} bits: {agree}.")
    return "\n".join(lines)


def legend_in_words() -> str:
    """Explain the colours of the query's regions as they are drawn on the slide, as rich text."""
    kinds = ((HIGH, "led to slides"), (LOW, "to none"), (DROPPED, "dropped"))
    return "Boxes: " + " ".join(
        f'<span style="color: {QColor.fromRgbF(*map(float, colour[:3])).name()}">■</span> {words}'
        for colour, words in kinds
    )


def regions_summary(results: Results) -> tuple[str, ...]:
    """Say how the slides were ranked, in a few sentences, the most important first."""
    told = results.explanation
    counted = sum(fate.fate == "kept" for fate in told.lists)
    text = [f"{counted} of {len(told.lists)} regions counted."]
    if told.prediction:
        text.append(f"The most certain agree on {told.prediction}.")
    added = sum(bool(fate.liked) for fate in told.lists)
    if added:
        text.append(f"Your thumbs up brought {added} of them.")
    text += [f"Left out: {step}." for step in told.skipped_steps]
    if told.hit_threshold is not None:
        text.append(f"Neighbours of uncertain regions counted up to {bits(told.hit_threshold)}.")
    return tuple(text)
