"""Small things that all widgets do with their controls."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QComboBox


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


def named(widget: str, control: Any, name: str, tip: str) -> Any:
    """Give a control of a widget its object name and its tooltip."""
    control.setObjectName(f"{widget}.{name}")
    control.setToolTip(tip)
    return control
