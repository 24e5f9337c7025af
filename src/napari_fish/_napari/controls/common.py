"""Small things that all widgets do with their controls."""

from __future__ import annotations

from typing import Any, TypeVar

from qtpy.QtCore import QEvent, Qt
from qtpy.QtWidgets import QComboBox, QDoubleSpinBox, QLabel, QLayout, QWidget

from napari_fish._napari.controls.look import look_of

STATE_TIP = "What is open, running or wrong."
STOPPING = "Stopping …"
Control = TypeVar("Control", bound=QWidget)


def offer(box: QComboBox, names: list[str]) -> bool:
    """Put names into a box without telling anybody; return whether another one is chosen now."""
    before = box.currentText()
    box.blockSignals(True)
    box.clear()
    box.addItems(names)
    if before in names:
        box.setCurrentText(before)
    box.blockSignals(False)
    return box.currentText() != before


def named(widget: str, control: Control, name: str, tip: str) -> Control:
    """Give a control of a widget its object name and its tooltip."""
    control.setObjectName(f"{widget}.{name}")
    control.setToolTip(tip)
    return control


def emptied(layout: QLayout) -> None:
    """Take all controls out of a layout, for good."""
    while (item := layout.takeAt(0)) is not None:
        if (gone := item.widget()) is not None:
            gone.hide()
            gone.deleteLater()


def mpp_field(widget: str, name: str, tip: str, unstated: str) -> QDoubleSpinBox:
    """Return a field for µm per px; ``unstated`` is what it says where the user states nothing."""
    field = named(widget, QDoubleSpinBox(), name, tip)
    field.setRange(0, 10)
    field.setDecimals(4)
    field.setSingleStep(0.05)
    field.setSpecialValueText(unstated)
    field.setKeyboardTracking(False)
    return field


class OwnMpp:
    """Keeps µm per px with the folder or slide they were stated for, so that they do not count for the next."""

    def __init__(self, field: QDoubleSpinBox) -> None:
        self._field = field
        self._subject = ""
        self._stated: dict[str, float] = {}

    def turn_to(self, subject: str) -> None:
        """Show what was stated for another subject, without telling anybody; empty for none."""
        if subject == self._subject:
            return
        value = self._field.value()
        if self._subject:
            self._stated[self._subject], value = value, 0.0
        # What was stated before anything was chosen is meant for the first choice.
        self._subject = subject
        self._field.blockSignals(True)
        self._field.setValue(self._stated.get(subject, value))
        self._field.blockSignals(False)

    def forget(self) -> None:
        """Forget everything that was stated."""
        self._stated.clear()
        self._subject = ""
        self._field.setValue(0)


class StateLine(QLabel):
    """Says what is open, running or wrong; what is wrong in the theme's colour for that."""

    def __init__(self) -> None:
        super().__init__()
        self._wrong = False
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    @property
    def wrong(self) -> bool:
        """Whether it says what went wrong."""
        return self._wrong

    def say(self, text: str, wrong: bool = False) -> None:
        """Say something; empty for nothing."""
        self._wrong = wrong
        if text != self.text():
            self.setText(text)
        self._colour()

    def changeEvent(self, event: Any) -> None:
        """Follow the theme."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange):
            self._colour()

    def _colour(self) -> None:
        wrong = getattr(self, "_wrong", False)  # Qt tells of changes before there is any
        style = f"color: {look_of(self.parentWidget() or self).wrong.name()};" if wrong else ""
        if style != self.styleSheet():
            self.setStyleSheet(style)


def state_line(widget: str) -> StateLine:
    """Return the line of a widget that says how things are."""
    return named(widget, StateLine(), "state", STATE_TIP)
