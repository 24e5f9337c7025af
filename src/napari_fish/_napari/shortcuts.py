"""Keys for what is done most; napari does not wire those of a manifest, so they are bound to each viewer.

May go when it does: ``tests/test_workarounds.py`` fails on that day.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

SHORTCUTS = {
    "search_this_slide": "Control-Shift-F",
    "search_this_box": "Control-Shift-X",
    "draw_a_box": "Control-Shift-B",
    "search_clipboard": "Control-Shift-V",
    "compare_hits": "Control-Shift-M",
    "clear_comparison": "Control-Shift-L",
    "jump_to_hit": "Control-Shift-J",
    "refine_answer": "Control-Shift-R",
}
"""Function of :mod:`~napari_fish._napari.commands` -> key; none of them is one of napari's."""


def with_shortcut(tip: str, command: str) -> str:
    """Return a tooltip with the key of a command, where it has one."""
    key = SHORTCUTS.get(command)
    return tip if key is None else f"{tip} ({shown(key)})"


def shown(key: str) -> str:
    """Return a key as it is printed on this system."""
    names = {"Control": "⌘" if sys.platform == "darwin" else "Ctrl", "Shift": "Shift"}
    return "+".join(names.get(part, part) for part in key.split("-"))


def bind_shortcuts(viewer: Any) -> None:
    """Bind the keys to a viewer; one that is taken, by the user or another plugin, is left alone."""
    from napari_fish._napari import commands

    for name, key in SHORTCUTS.items():
        with contextlib.suppress(ValueError):
            viewer.bind_key(key, _described(getattr(commands, name)))


def _described(command: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a function of one positional argument, as napari calls it, with the command's description."""

    def run(viewer: Any) -> None:
        command(viewer)

    run.__doc__ = command.__doc__
    return run
