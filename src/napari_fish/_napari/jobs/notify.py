"""Tell the user something without stopping them: napari's notifications, from any thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from napari_fish.errors import FishError
from napari_fish.names import LOOK_OR_KEEP, STATE_MPP

log = logging.getLogger(__name__)
_IN_WIDGETS = {
    STATE_MPP: "µm per px in the widget",
    LOOK_OR_KEEP: "look at it (Show what was left out) or keep them (Keep them)",
    "--patient": "Patient",
}


def in_words(error: Exception) -> str:
    """Return what an error says to people; options of the command line are named as the widgets name them."""
    text = str(error) if isinstance(error, FishError) else f"{type(error).__name__}: {error}"
    return as_in_widgets(text)


def as_in_widgets(text: str) -> str:
    """Return what the program says with options of the command line named as the widgets name them."""
    for option, control in _IN_WIDGETS.items():
        text = text.replace(option, control)
    return text


def as_sentence(text: str) -> str:
    """Return what the program says of something as a sentence of its own, as in the widgets."""
    text = as_in_widgets(text)
    return f"{text[:1].upper()}{text[1:]}."


def warn_user(message: str) -> None:
    """Show a warning in the viewer's corner."""
    from napari.utils.notifications import show_warning

    log.warning("%s", message)
    _in_main_thread(show_warning, message)


def tell_user(message: str) -> None:
    """Show a message in the viewer's corner."""
    from napari.utils.notifications import show_info

    log.info("%s", message)
    _in_main_thread(show_info, message)


def alert_user(message: str) -> None:
    """Show an error in the viewer's corner: the message alone, no traceback."""
    from napari.utils.notifications import show_error

    log.info("%s", message)
    _in_main_thread(show_error, message)


def _in_main_thread(show: Callable[[str], None], message: str) -> None:
    """Call a function with a message in the main thread, where notifications belong."""
    if threading.current_thread() is threading.main_thread():
        show(message)
        return
    from qtpy.QtCore import QCoreApplication
    from superqt.utils import ensure_main_thread

    # Without an application there is no event loop to pass the message to: the log has it.
    if QCoreApplication.instance() is not None:
        ensure_main_thread(show)(message)
