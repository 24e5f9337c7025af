"""The gallery: cards that can be looked at, chosen, opened and judged, by mouse and by keyboard."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QEvent, QModelIndex, QRect, QSize, Qt, QTimer, Signal
from qtpy.QtGui import QPainter
from qtpy.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QToolTip

from napari_fish._napari.controls.look import look_of
from napari_fish._napari.controls.tables import Index
from napari_fish._napari.results.card import SIZES, Card, card_size, lay_out, paint_card, paint_heading
from napari_fish._napari.results.gallery_model import GalleryModel
from napari_fish._napari.results.gallery_order import Heading, described
from napari_fish.search import SlideHit

HOVER_MS = 350
"""How long the mouse rests on a picture before the wider field is shown."""
SPACING = 4


class CardDelegate(QStyledItemDelegate):
    """Paints cards and headings, and knows where their thumbs are."""

    judged = Signal(object, bool)
    """A hit, and which of its thumbs was pressed."""

    def __init__(self, view: GalleryView) -> None:
        super().__init__(view)
        self._view = view
        self.px = SIZES["medium"]

    def card(self, rect: QRect) -> Card:
        """Return where things lie on the card that fills a place."""
        return lay_out(rect, self.px, self._view.fontMetrics())

    def sizeHint(self, option: Any, index: Index) -> QSize:
        """Return the size of a card, or of a heading, which takes all of the width."""
        if isinstance(self._view.model().item(index.row()), Heading):
            wide = self._view.viewport().width() - 2 * SPACING - 2
            return QSize(wide, self._view.fontMetrics().height() + 12)
        return card_size(self.px, self._view.fontMetrics())

    def paint(self, painter: QPainter, option: Any, index: Index) -> None:
        """Paint a card or a heading."""
        model = self._view.model()
        item, look = model.item(index.row()), look_of(self._view)
        if item is None or model.results is None:
            return
        painter.save()
        painter.setFont(self._view.font())
        painter.setRenderHints(
            QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform, True
        )
        if isinstance(item, Heading):
            colour = model.colour(item.diagnosis, look.dark) if item.diagnosis else None
            paint_heading(painter, option.rect, item.text, item.count, look, colour)
        else:
            paint_card(
                painter,
                self.card(option.rect),
                item,
                model.results,
                look,
                model.colour(item.diagnosis, look.dark),
                model.picture(item),
                model.verdict(item),
                chosen=bool(option.state & QStyle.StateFlag.State_Selected),
                hovered=bool(option.state & QStyle.StateFlag.State_MouseOver),
            )
        painter.restore()

    def helpEvent(self, event: Any, view: Any, option: Any, index: Index) -> bool:
        """Say what a thumb does, and everything about a hit beside its picture, which has the wider field."""
        model = self._view.model()
        hit = model.hit(index)
        if event.type() != QEvent.Type.ToolTip or hit is None or model.results is None:
            return False
        card, text = self.card(option.rect), described(hit, model.results)
        if card.up.contains(event.pos()):
            text = "Relevant: search for more like it (key +). Press again to take it back."
        elif card.down.contains(event.pos()):
            text = "Not relevant: leave it out and search away from it (key -). Press again to take it back."
        elif card.picture.contains(event.pos()):
            text = ""
        QToolTip.showText(event.globalPos(), text, view)
        return True

    def editorEvent(self, event: Any, model: Any, option: Any, index: Index) -> bool:
        """Press a thumb."""
        kinds = (
            QEvent.Type.MouseButtonPress,
            QEvent.Type.MouseButtonRelease,
            QEvent.Type.MouseButtonDblClick,
        )
        hit = model.hit(index)
        if hit is None or event.type() not in kinds or event.button() != Qt.MouseButton.LeftButton:
            return False
        card, at = self.card(option.rect), event.position().toPoint()
        for rect, relevant in ((card.up, True), (card.down, False)):
            if rect.contains(at):
                if event.type() == QEvent.Type.MouseButtonRelease:
                    self.judged.emit(hit, relevant)
                return True
        return False


class GalleryView(QListView):
    """Shows a :class:`~napari_fish._napari.results.gallery_model.GalleryModel`."""

    chosen = Signal(object)
    """The hit that is chosen now, or None."""
    opened = Signal(object)
    """A hit that was double-clicked."""
    judged = Signal(object, bool)
    """A hit and whether it is relevant."""
    rested = Signal(object, QRect)
    """A hit that the mouse rests on, and where its picture is on the screen."""
    left = Signal()
    """The mouse rests on none any more."""
    asked_menu = Signal(object, object)
    """A hit whose menu is wanted, and where on the screen."""

    def __init__(self, model: GalleryModel, parent: Any = None) -> None:
        super().__init__(parent)
        self._model = model
        self._message, self._wrong = "", False
        self._under: str = ""
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(HOVER_MS)
        self._rest.timeout.connect(self._rested)
        self.cards = CardDelegate(self)
        self.cards.judged.connect(self.judged)
        self.setModel(model)
        self.setItemDelegate(self.cards)
        self.setFlow(QListView.Flow.LeftToRight)
        self.setWrapping(True)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setSpacing(SPACING)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.doubleClicked.connect(self._double_clicked)
        self.verticalScrollBar().valueChanged.connect(self._moved_away)

    def model(self) -> GalleryModel:
        """Return what is shown."""
        return self._model

    def current_hit(self) -> SlideHit | None:
        """Return the hit that is chosen."""
        chosen = self.selectionModel().selectedIndexes()
        return self.model().hit(chosen[0]) if chosen else None

    def choose(self, index: QModelIndex) -> None:
        """Choose a card and bring it into view, with the heading above it if it is the first."""
        self.setCurrentIndex(index)
        if all(isinstance(self.model().item(row), Heading) for row in range(index.row())):
            # Once it is laid out: the heading above is not part of what Qt scrolls to.
            QTimer.singleShot(0, self.scrollToTop)

    def set_size(self, name: str) -> None:
        """Show cards of a size of :data:`~napari_fish._napari.results.card.SIZES`."""
        self.cards.px = SIZES[name]
        self.verticalScrollBar().setSingleStep(30)
        self.scheduleDelayedItemsLayout()

    def say(self, message: str, wrong: bool = False) -> None:
        """Write a message where there are no cards; empty for none."""
        self._message, self._wrong = message, wrong
        self.viewport().update()

    @property
    def message(self) -> str:
        """What is written where there are no cards."""
        return self._message

    def selectionChanged(self, selected: Any, deselected: Any) -> None:
        """Tell which hit is chosen."""
        super().selectionChanged(selected, deselected)
        self.chosen.emit(self.current_hit())

    def resizeEvent(self, event: Any) -> None:
        """Headings are as wide as the gallery."""
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()

    def paintEvent(self, event: Any) -> None:
        """Paint the cards, or the message."""
        super().paintEvent(event)
        if self.model().rowCount() or not self._message:
            return
        look = look_of(self)
        painter = QPainter(self.viewport())
        painter.setPen(look.wrong if self._wrong else look.soft)
        font = self.font()
        font.setPointSizeF(1.25 * font.pointSizeF() if font.pointSizeF() > 0 else 12)
        painter.setFont(font)
        area = self.viewport().rect().adjusted(16, 8, -16, -8)
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._message)
        painter.end()

    def mouseMoveEvent(self, event: Any) -> None:
        """See whether the mouse comes to rest on a picture."""
        super().mouseMoveEvent(event)
        hit = self._picture_at(event.position().toPoint())
        slide = hit.slide if hit else ""
        if slide != self._under:
            self._moved_away()
            self._under = slide
            if slide:
                self._rest.start()

    def leaveEvent(self, event: Any) -> None:
        """Take the wider field away."""
        super().leaveEvent(event)
        self._moved_away()

    def mousePressEvent(self, event: Any) -> None:
        """Take the wider field away: it would be in the way."""
        self._rest.stop()
        self.left.emit()
        super().mousePressEvent(event)

    def keyPressEvent(self, event: Any) -> None:
        """Judge with + and -, open with Enter, take the wider field away with Escape."""
        hit = self.current_hit()
        if hit is not None and event.text() in ("+", "-"):
            self.judged.emit(hit, event.text() == "+")
        elif hit is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.opened.emit(hit)
        elif event.key() == Qt.Key.Key_Escape:
            self._moved_away()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: Any) -> None:
        """Ask for the menu of a hit."""
        index = self.indexAt(event.pos())
        hit = self.model().hit(index) or self.current_hit()
        if hit is not None:
            self._moved_away()
            self.asked_menu.emit(hit, event.globalPos())

    def _picture_at(self, at: Any) -> SlideHit | None:
        index = self.indexAt(at)
        hit = self.model().hit(index) if index.isValid() else None
        if hit is None:
            return None
        card = self.cards.card(self.visualRect(index))
        over_thumb = card.up.contains(at) or card.down.contains(at)
        return hit if card.picture.contains(at) and not over_thumb else None

    def _rested(self) -> None:
        index = self.model().index_of(self._under)
        hit = self.model().hit(index)
        if hit is not None:
            picture = self.cards.card(self.visualRect(index)).picture
            corner = self.viewport().mapToGlobal(picture.topLeft())
            self.rested.emit(hit, QRect(corner, picture.size()))

    def _moved_away(self, *_: Any) -> None:
        self._rest.stop()
        if self._under:
            self._under = ""
            self.left.emit()

    def _double_clicked(self, index: QModelIndex) -> None:
        hit = self.model().hit(index)
        if hit is not None:
            self.opened.emit(hit)
