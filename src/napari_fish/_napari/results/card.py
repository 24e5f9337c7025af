"""One card of the gallery: where its parts lie and how they are painted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qtpy.QtCore import QPointF, QRect, QRectF, QSize, Qt
from qtpy.QtGui import QColor, QFont, QFontMetrics, QImage, QPainter, QPainterPath, QPen, QPolygonF

from napari_fish._napari.controls.look import Look, ink_on
from napari_fish.search import Results, SlideHit
from napari_fish.search.verdict import bar_of, closeness_in_short, regions_in_words

SIZES = {"small": 84, "medium": 128, "large": 176, "huge": 248}
"""Side of the picture in px."""
PAD, THUMB, LEAST_WIDTH = 7, 22, 132
# A fist with its thumb up, in a square of 16.
_HAND = [(5, 7), (8, 2), (10, 2), (10, 6.2), (14, 6.2), (14.6, 7.4), (13.2, 14), (5, 14)]
_CUFF = QRectF(1.6, 7, 2.4, 7)


@dataclass(frozen=True)
class Card:
    """Where things lie on a card.

    Attributes
    ----------
    rect, picture
        The card and its picture.
    up, down
        The thumbs.
    lines
        Lines of text below the picture.
    """

    rect: QRect
    picture: QRect
    up: QRect
    down: QRect
    lines: tuple[QRect, ...]


def card_size(px: int, metrics: QFontMetrics) -> QSize:
    """Return the size of a card with a picture of so many px."""
    return QSize(max(px, LEAST_WIDTH) + 2 * PAD, px + _rows(px) * metrics.height() + 2 * PAD + 6)


def _rows(px: int) -> int:
    """Return how many lines of text there is room for."""
    return 3 if px <= SIZES["small"] else 5


def lay_out(rect: QRect, px: int, metrics: QFontMetrics) -> Card:
    """Place the parts of a card."""
    picture = QRect(rect.left() + (rect.width() - px) // 2, rect.top() + PAD, px, px)
    down = QRect(picture.right() - THUMB - 2, picture.bottom() - THUMB - 2, THUMB, THUMB)
    width, step = rect.width() - 2 * PAD, metrics.height()
    top = picture.bottom() + 6
    lines = tuple(QRect(rect.left() + PAD, top + i * step, width, step) for i in range(_rows(px)))
    return Card(rect, picture, down.translated(-THUMB - 3, 0), down, lines)


def paint_card(
    painter: QPainter,
    card: Card,
    hit: SlideHit,
    results: Results,
    look: Look,
    colour: QColor,
    image: QImage | None,
    verdict: bool | None,
    *,
    chosen: bool,
    hovered: bool,
) -> None:
    """Paint the card of a hit.

    Parameters
    ----------
    painter, card, look
        Where and in which colours.
    hit, results
        What is shown.
    colour
        Of its diagnosis.
    image
        The best-matching region, None while it is loaded.
    verdict
        What the user said of it.
    chosen, hovered
        Whether it is the current one, and whether the mouse is over it.
    """
    if chosen or hovered:
        painter.setPen(QPen(look.accent, 2) if chosen else QPen(look.line, 1))
        painter.setBrush(look.chosen if chosen else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(QRectF(card.rect).adjusted(2, 2, -2, -2), 5, 5)
    _paint_picture(painter, card, image, look, colour, hit)
    for rect, up in ((card.up, True), (card.down, False)):
        _paint_thumb(painter, rect, up, look, said=verdict is up, faint=not hovered)
    _paint_words(painter, card, hit, results, look, colour)


def _paint_picture(
    painter: QPainter, card: Card, image: QImage | None, look: Look, colour: QColor, hit: SlideHit
) -> None:
    rect = card.picture
    if image is None:
        painter.fillRect(rect, look.track)
        painter.setPen(look.soft)
        words = "…" if hit.matches else "no picture"
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, words)
    else:
        side = min(image.width(), image.height())
        source = QRect((image.width() - side) // 2, (image.height() - side) // 2, side, side)
        painter.drawImage(rect, image, source)
    pen = QPen(colour, 3)
    if hit.filled:
        pen.setStyle(Qt.PenStyle.DashLine)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(rect.adjusted(1, 1, -2, -2))
    bold = QFont(painter.font())
    bold.setBold(True)
    wide = QFontMetrics(bold).horizontalAdvance(str(hit.rank)) + 12
    badge = QRect(rect.left(), rect.top(), max(22, wide), 20)
    painter.fillRect(badge, colour)
    _text(painter, badge, str(hit.rank), ink_on(colour), Qt.AlignmentFlag.AlignCenter, bold=True)


def _paint_thumb(painter: QPainter, rect: QRect, up: bool, look: Look, said: bool, faint: bool) -> None:
    # A verdict is green or red and filled; thumbs that wait to be pressed stay in the background.
    painter.save()
    painter.setOpacity(1.0 if said else 0.55 if faint else 0.95)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush((QColor("#1a7f4b") if up else QColor("#b3263a")) if said else QColor("#ffffff"))
    painter.drawRoundedRect(QRectF(rect), 4, 4)
    painter.translate(rect.center().x() + 0.5, rect.center().y() + 0.5)
    if not up:
        painter.scale(1, -1)
    painter.translate(-8, -8.2)
    hand = QPainterPath()
    hand.addPolygon(QPolygonF([QPointF(x, y) for x, y in _HAND]))
    hand.closeSubpath()
    hand.addRect(_CUFF)
    painter.fillPath(hand, QColor("#ffffff") if said else QColor("#30363d"))
    painter.restore()


def _paint_words(
    painter: QPainter, card: Card, hit: SlideHit, results: Results, look: Look, colour: QColor
) -> None:
    left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    diagnosis, *others = card.lines
    dot = QRectF(diagnosis.left(), diagnosis.center().y() - 4, 9, 9)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawEllipse(dot)
    _text(painter, diagnosis.adjusted(14, 0, 0, 0), hit.diagnosis or "not known", look.text, left, bold=True)
    if len(others) == 4:
        _paint_origin(painter, others.pop(0), hit, look)
    _paint_bar(painter, others[0], hit, results, look)
    _text(painter, others[1], closeness_in_short(hit.percentile), look.text, left)
    if len(others) == 3:
        said = "filled in" if hit.filled else regions_in_words(hit, results)
        _text(painter, others[2], said, look.soft, left)


def _paint_origin(painter: QPainter, rect: QRect, hit: SlideHit, look: Look) -> None:
    """Write site and patient; where there is no room for both, the site is cut."""
    metrics = painter.fontMetrics()
    patient = f" · {hit.patient}" if hit.patient and hit.site else hit.patient
    room = max(rect.width() - metrics.horizontalAdvance(patient), rect.width() // 3)
    text = metrics.elidedText(hit.site, Qt.TextElideMode.ElideRight, room) + patient
    _text(painter, rect, text, look.soft, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)


def _paint_bar(painter: QPainter, rect: QRect, hit: SlideHit, results: Results, look: Look) -> None:
    """Paint the distance as a bar, with a mark at the threshold and the number beside it."""
    number = f"{hit.distance:.0f}"
    wide = painter.fontMetrics().horizontalAdvance("0000")
    bar = QRectF(rect.left(), rect.center().y() - 3, rect.width() - wide - 4, 7)
    share, mark = bar_of(hit.distance, results)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.track if look.dark else look.line)
    painter.drawRoundedRect(bar, 3, 3)
    painter.setBrush(look.soft)
    painter.drawRoundedRect(QRectF(bar.left(), bar.top(), bar.width() * share, bar.height()), 3, 3)
    painter.fillRect(
        QRectF(bar.left() + bar.width() * mark - 1, bar.top() - 3, 2, bar.height() + 6), look.text
    )
    right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
    _text(painter, QRect(rect.right() - wide, rect.top(), wide, rect.height()), number, look.text, right)


def _text(
    painter: QPainter, rect: QRect, text: str, colour: QColor, align: Any, *, bold: bool = False
) -> None:
    """Write a line, cut where it does not fit."""
    font = QFont(painter.font())
    painter.save()
    font.setBold(bold)
    painter.setFont(font)
    painter.setPen(colour)
    cut = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
    painter.drawText(rect, align, cut)
    painter.restore()


def paint_heading(
    painter: QPainter, rect: QRect, text: str, count: int, look: Look, colour: QColor | None
) -> None:
    """Paint the line above hits that belong together."""
    left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    x = rect.left() + PAD
    if colour is not None:
        painter.fillRect(QRect(x, rect.top() + 6, 6, rect.height() - 10), colour)
        x += 14
    words = f"{text}  ({count} slide{'' if count == 1 else 's'})"
    _text(
        painter,
        QRect(x, rect.top() + 2, rect.right() - x - PAD, rect.height() - 4),
        words,
        look.text,
        left,
        bold=True,
    )
    painter.setPen(look.line)
    painter.drawLine(rect.left() + PAD, rect.bottom() - 1, rect.right() - PAD, rect.bottom() - 1)
