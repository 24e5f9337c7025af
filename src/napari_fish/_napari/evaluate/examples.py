"""Right and wrong answers of an evaluation with their pictures."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtGui import QPixmap
from qtpy.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from napari_fish.evaluate.report.figures import Theme
from napari_fish.evaluate.values import Example

PICTURE_PX = 48
"""Query and five hits fit side by side into the dock."""
_ACROSS, _FRAME = 5, 3


class ExamplesPage(QWidget):
    """Queries, each with what was found for it."""

    def __init__(self) -> None:
        super().__init__()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(4, 4, 4, 4)
        self._inside = QWidget()
        self._column.addWidget(self._inside)
        self._column.addStretch()

    def show_examples(self, examples: tuple[Example, ...], theme: Theme) -> None:
        """Show examples, right ones first, in the colours of a theme."""
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for right, heading in ((True, "Right"), (False, "Wrong")):
            mine = [one for one in examples if one.right == right]
            column.addWidget(QLabel(f"<b>{heading}</b>" + ("" if mine else ": none")))
            for one in mine:
                column.addWidget(_example(one, theme))
        self._column.replaceWidget(self._inside, inside)
        self._inside.hide()
        self._inside.deleteLater()
        self._inside = inside


def _example(one: Example, theme: Theme) -> QWidget:
    row = QWidget()
    row.setObjectName("evaluate.example")
    grid = QGridLayout(row)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setSpacing(4)
    grid.addWidget(_text(f"{one.label or 'no label'} ({one.name})"), 0, 0, 1, _ACROSS + 2)
    asked = f"{_FRAME}px solid transparent"
    grid.addWidget(_picture(one.picture, f"Asked: {one.name}\n{one.label}", asked), 1, 0)
    others = []
    for i, (name, label, distance, picture) in enumerate(one.hits):
        same, told = label.casefold() == one.label.casefold(), label or "no label"
        frame = f"{_FRAME}px solid {theme.right}" if same else f"{_FRAME}px dashed {theme.wrong}"
        tip = f"{name}\n{told}, {'right' if same else 'wrong'}\n{distance:.0f} bits away"
        grid.addWidget(_picture(picture, tip, frame), 1 + i // _ACROSS, 1 + i % _ACROSS)
        if not same:
            others.append(f"{i + 1}: {told}")
    if others:
        grid.addWidget(_text(", ".join(others)), 2 + len(one.hits) // _ACROSS, 1, 1, _ACROSS + 1)
    grid.setColumnStretch(_ACROSS + 1, 1)
    return row


def _text(text: str) -> QLabel:
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    return label


def _picture(picture: bytes | None, tip: str, frame: str) -> QLabel:
    shown, pixels = QLabel(), QPixmap()
    if picture is not None and pixels.loadFromData(picture):
        pixels = pixels.scaled(
            PICTURE_PX,
            PICTURE_PX,
            Qt.AspectRatioMode.KeepAspectRatioByExpanding,
            Qt.TransformationMode.SmoothTransformation,
        )
        shown.setPixmap(pixels.copy(0, 0, PICTURE_PX, PICTURE_PX))
    else:
        shown.setText("none")
        shown.setAlignment(Qt.AlignmentFlag.AlignCenter)
    shown.setFixedSize(PICTURE_PX + 2 * _FRAME, PICTURE_PX + 2 * _FRAME)
    shown.setStyleSheet(f"QLabel {{ border: {frame}; }}")
    shown.setToolTip(tip)
    return shown
