"""A small picture of a slide with its mosaic drawn over it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QRectF, QSize, Qt
from qtpy.QtGui import QColor, QImage, QPainter, QPen
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_fish.building.summary import Under

ENCODED, OUTLINE = QColor(0, 160, 255, 90), QColor(0, 90, 190, 230)
HEIGHT = 150


class SlidePicture(QWidget):
    """Shows the slide that is being encoded; patches fill as they are done."""

    def __init__(self) -> None:
        super().__init__()
        self._image: QImage | None = None
        self._boxes = np.empty((0, 4))
        self._encoded = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """Return the size it likes."""
        return QSize(200, HEIGHT)

    def minimumSizeHint(self) -> QSize:
        """Return the size it needs."""
        return QSize(80, HEIGHT)

    def show_slide(self, under: Under | None, encoded: int = 0) -> None:
        """Show a slide, or none."""
        if under is None:
            self._image, self._boxes = None, np.empty((0, 4))
        else:
            self._image = QImage.fromData(under.overview)
            self._boxes = relative_boxes(under)
        self._encoded = encoded
        self.update()

    def show_encoded(self, encoded: int) -> None:
        """Show how many patches of the slide are done."""
        if encoded != self._encoded:
            self._encoded = encoded
            self.update()

    def paintEvent(self, event: Any) -> None:
        """Draw."""
        if self._image is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        size = self._image.size().scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatio)
        left, top = (self.width() - size.width()) / 2, (self.height() - size.height()) / 2
        whole = QRectF(left, top, size.width(), size.height())
        painter.drawImage(whole, self._image)
        painter.setClipRect(whole)
        painter.setPen(QPen(OUTLINE, 1))
        for number, (x, y, width, height) in enumerate(self._boxes):
            box = QRectF(
                left + x * size.width(),
                top + y * size.height(),
                width * size.width(),
                height * size.height(),
            )
            if number < self._encoded:
                painter.fillRect(box, ENCODED)
            painter.drawRect(box)
        painter.end()


def relative_boxes(under: Under) -> NDArray[np.float64]:
    """Return the mosaic of a slide as shares of its width and height: left, top, width, height, shape (n, 4)."""
    return np.asarray(under.boxes / np.tile(under.dimensions, 2))
