"""What can be done with a hit, as a menu."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QMenu, QWidget

_GROUPS = (
    {"open": "Open the slide here\tEnter", "jump": "Jump: show what matches on both slides"},
    {"up": "Relevant\t+", "down": "Not relevant\t-"},
    {"search_region": "Search from this region", "search_slide": "Search from this whole slide"},
    {"copy": "Copy the slide's name"},
)


def hit_menu(parent: QWidget, verdict: bool | None, acts: Mapping[str, Callable[[], Any]]) -> QMenu:
    """Return the menu; ``verdict`` is what the user said of the hit, ``acts`` what each entry does."""
    menu = QMenu(parent)
    menu.setObjectName("results.menu")
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    said = {True: "up", False: "down", None: ""}[verdict]
    for number, group in enumerate(_GROUPS):
        if number:
            menu.addSeparator()
        for name, text in group.items():
            action = menu.addAction(("✓ " if name == said else "") + text)
            action.setObjectName(f"results.menu.{name}")
            # Qt would pass whether it is checked.
            action.triggered.connect(lambda *_, act=acts[name]: act())
    return menu
