"""The recent queries of a viewer, to go back to."""

from __future__ import annotations

import time
from typing import Any

from qtpy.QtCore import QAbstractListModel, QBuffer, QByteArray, QIODevice, QModelIndex, QSize, Qt, Signal
from qtpy.QtGui import QImageReader, QPixmap
from qtpy.QtWidgets import QListView, QVBoxLayout, QWidget

from napari_fish._napari.controls.common import named
from napari_fish._napari.controls.tables import Index
from napari_fish._napari.session.session import Answer, Session

ICON_PX = 40
ROLES = Qt.ItemDataRole


def title_of(answer: Answer) -> str:
    """Return what was asked, in a line."""
    name = answer.layer or answer.results.query
    return f"{name}, a box" if answer.box is not None else name


def summary_of(answer: Answer) -> str:
    """Return when it was asked and what came of it, in a line."""
    when = time.strftime("%H:%M", time.localtime(answer.when))
    number = len(answer.results)
    said = f"{when} · {number} slide{'' if number == 1 else 's'}"
    if answer.results.explanation.prediction:
        said += f" · {answer.results.explanation.prediction}"
    judged = len(answer.feedback.in_force)
    return f"{said} · refined by {judged}" if judged else said


def details_of(answer: Answer) -> str:
    """Return all there is to say of a query, for its tooltip."""
    filters = ", ".join(answer.params.where) or "none"
    results = answer.results
    return (
        f"{results.query}\n{summary_of(answer)}\nmode {results.mode}, ranking {results.ranking}, "
        f"{results.k} wanted, filters: {filters}"
    )


def thumbnail_of(answer: Answer, side: int = ICON_PX) -> QPixmap:
    """Return a small picture of what was asked: the slide, or the first region of a box; grey for none."""
    asked = answer.asked
    jpeg = asked.pictures[0] if asked.pictures and (answer.box is not None or not asked.overview) else b""
    jpeg = jpeg or asked.overview
    pictures = answer.results.pictures
    if not jpeg and pictures is not None:
        # What the database kept: opening a slide would hold up the viewer.
        jpeg = pictures.query_overview() or b""
        if not jpeg and asked.query.slide and answer.results.query_boxes:
            jpeg = pictures.thumbnail(asked.query.slide, answer.results.query_boxes[0]) or b""
    return _decoded(jpeg, side)


def _decoded(jpeg: bytes, side: int) -> QPixmap:
    """Decode a picture at the size it is shown in, which takes a JPEG a tenth of the time."""
    buffer = QBuffer()
    buffer.setData(QByteArray(jpeg))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer)
    reader.setScaledSize(reader.size().scaled(QSize(side, side), Qt.AspectRatioMode.KeepAspectRatio))
    image = reader.read()
    if image.isNull():
        grey = QPixmap(side, side)
        grey.fill(Qt.GlobalColor.gray)
        return grey
    return QPixmap.fromImage(image)


class HistoryModel(QAbstractListModel):
    """The history of a session; pictures are made when first shown."""

    def __init__(self, session: Session, parent: Any = None) -> None:
        super().__init__(parent)
        self._session = session
        self._answers: list[Answer] = list(session.history)
        self._pictures: dict[int, QPixmap] = {}
        session.history_changed.connect(self._update)

    def rowCount(self, parent: Index | None = None) -> int:
        """Return how many queries there are."""
        return len(self._answers)

    def data(self, index: Index, role: int = ROLES.DisplayRole) -> Any:
        """Return text, picture or tooltip of a query."""
        if not index.isValid() or index.row() >= len(self._answers):
            return None
        answer = self._answers[index.row()]
        if role == ROLES.DisplayRole:
            return f"{title_of(answer)}\n{summary_of(answer)}"
        if role == ROLES.ToolTipRole:
            return details_of(answer)
        if role == ROLES.DecorationRole:
            key = id(answer.asked)
            if key not in self._pictures:
                self._pictures[key] = thumbnail_of(answer)
            return self._pictures[key]
        return None

    def answer(self, row: int) -> Answer:
        """Return the answer in a row."""
        return self._answers[row]

    def row_of(self, answer: Answer | None) -> int:
        """Return the row of an answer, -1 where it is not there."""
        return next((row for row, one in enumerate(self._answers) if one is answer), -1)

    def _update(self) -> None:
        self.beginResetModel()
        self._answers = list(self._session.history)
        kept = {id(answer.asked) for answer in self._answers}
        self._pictures = {key: value for key, value in self._pictures.items() if key in kept}
        self.endResetModel()


class HistoryView(QWidget):
    """A list of recent queries; a click shows the answer again."""

    chosen = Signal(object)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = HistoryModel(session, self)
        self.list = named("search", QListView(), "history", "Recent queries; click to see the answer again.")
        self.list.setModel(self.model)
        self.list.setIconSize(QSize(ICON_PX, ICON_PX))
        self.list.setUniformItemSizes(True)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setMinimumHeight(3 * (ICON_PX + 8))
        self.list.clicked.connect(self._clicked)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.list)

    def mark(self, answer: Answer | None) -> None:
        """Mark the answer that is shown."""
        row = self.model.row_of(answer)
        if row >= 0:
            self.list.setCurrentIndex(self.model.index(row))

    def _clicked(self, index: QModelIndex) -> None:
        self.chosen.emit(self.model.answer(index.row()))
