"""How widgets are laid out: parts below each other, those seldom needed folded away."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFrame, QScrollArea, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from napari_fish._napari.controls.common import named


class Fold(QWidget):
    """Something seldom needed, folded away under its heading.

    Parameters
    ----------
    widget, name
        The two parts of the heading's object name.
    title
        The heading.
    tip
        Its tooltip.
    content
        What is shown or hidden.
    """

    def __init__(self, widget: str, name: str, title: str, tip: str, content: QWidget) -> None:
        super().__init__()
        self.heading = named(widget, QToolButton(), name, tip)
        self.heading.setText(title)
        self.heading.setCheckable(True)
        self.heading.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.heading.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.heading.setStyleSheet("QToolButton { border: none; text-align: left; background: transparent; }")
        self.content = content
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.heading)
        layout.addWidget(content)
        self.heading.toggled.connect(self._show)
        self._show(False)

    def open(self, shown: bool = True) -> None:
        """Show or hide the content."""
        self.heading.setChecked(shown)

    def _show(self, shown: bool) -> None:
        self.heading.setArrowType(Qt.ArrowType.DownArrow if shown else Qt.ArrowType.RightArrow)
        self.content.setVisible(shown)


def scrolled(*parts: QWidget) -> QScrollArea:
    """Return parts below each other, to be scrolled up and down where they do not fit."""
    inside = QWidget()
    column = QVBoxLayout(inside)
    column.setContentsMargins(4, 4, 4, 4)
    for part in parts:
        column.addWidget(part)
    column.addStretch()
    scroll = QScrollArea()
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setWidgetResizable(True)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(inside)
    return scroll


def line() -> QFrame:
    """Return a line between parts."""
    made = QFrame()
    made.setFrameShape(QFrame.Shape.HLine)
    return made
