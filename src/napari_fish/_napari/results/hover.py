"""What lies around a hit, in a small window beside the mouse."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QRect, QRectF, Qt
from qtpy.QtGui import QColor, QGuiApplication, QPainter, QPen
from qtpy.QtWidgets import QWidget

from napari_fish._napari.controls.look import look_of
from napari_fish._napari.results.picture_loader import FIELD, Key, PictureLoader, field_key
from napari_fish.search import SlideHit

SIDE, CAPTION = 380, 40


class FieldPreview(QWidget):
    """A field four times wider than the matching region, which is framed.

    Parameters
    ----------
    loader
        Where pictures come from.
    """

    def __init__(self, loader: PictureLoader, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.ToolTip | Qt.WindowType.FramelessWindowHint)
        self.setObjectName("results.field")
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.resize(SIDE, SIDE + CAPTION)
        self._loader = loader
        self._hit: SlideHit | None = None
        loader.ready.connect(self._came)

    @property
    def caption(self) -> str:
        """What is written below the picture."""
        if self._hit is None or not self._hit.matches:
            return ""
        box = self._hit.matches[0].hit_box
        key = field_key(self._hit.slide, box)
        if not self._loader.known(key):
            return "Reading the slide …"
        if self._loader.field(self._hit.slide, box) is None:
            return "The slide is not at hand: only the picture that was kept."
        return f"{FIELD:.0f} times wider field; the frame is the matching region."

    def show_hit(self, hit: SlideHit, beside: QRect) -> None:
        """Show the field around a hit's best region, beside a place on the screen."""
        if not hit.matches:
            return
        self._hit = hit
        self._loader.field(hit.slide, hit.matches[0].hit_box)
        screen = QGuiApplication.screenAt(beside.center()) or QGuiApplication.primaryScreen()
        area = screen.availableGeometry()
        right = beside.right() + 8
        x = right if right + self.width() <= area.right() else beside.left() - 8 - self.width()
        y = min(max(area.top(), beside.center().y() - self.height() // 2), area.bottom() - self.height())
        self.move(max(area.left(), x), y)
        self.show()
        self.update()

    def paintEvent(self, event: Any) -> None:
        """Paint the field, or the region alone until it has come."""
        hit = self._hit
        if hit is None or not hit.matches:
            return
        look, box = look_of(self), hit.matches[0].hit_box
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.fillRect(self.rect(), look.base)
        area = QRectF(0, 0, SIDE, SIDE)
        inner = SIDE / FIELD
        frame = QRectF((SIDE - inner) / 2, (SIDE - inner) / 2, inner, inner)
        field = self._loader.field(hit.slide, box)
        if field is not None:
            painter.drawImage(area, field)
            painter.setPen(QPen(QColor("#ffffff"), 4))
            painter.drawRect(frame)
            painter.setPen(QPen(QColor("#10202c"), 2))
            painter.drawRect(frame)
        else:
            painter.fillRect(area, look.track)
            region = self._loader.region(hit.slide, box)
            away = self._loader.known(field_key(hit.slide, box))
            if region is not None:
                painter.drawImage(area if away else frame, region)
        painter.setPen(look.text)
        words = QRect(8, SIDE, SIDE - 16, CAPTION)
        text = f"{hit.rank}. {hit.name or hit.slide}\n{self.caption}"
        painter.drawText(words, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
        painter.setPen(look.line)
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _came(self, key: Key) -> None:
        if self.isVisible() and self._hit is not None and key[1] == self._hit.slide:
            self.update()
