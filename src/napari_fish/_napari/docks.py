"""Where the widgets are docked: napari puts every one to the right, below the others and narrow."""

from __future__ import annotations

from functools import partial
from typing import Any

from qtpy.QtCore import QEvent, QObject, Qt, QTimer
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget

PLUGIN = "napari-fish"
SIDE_PX, BOTTOM_PX = 380, 392
"""Width of a dock at the side and height of one at the bottom, when it is opened."""
_SETTLED = "napari-fish.settled"
GROWN_MS = 500
"""After which a dock at the bottom has made the window as large as it will."""
LAST_EVENTS_MS = 1000
"""How long a widget taken out of its dock is kept for what Qt still has to tell it."""
_leaving: set[QWidget] = set()


class Settler(QObject):
    """Brings the dock of a widget to its place when it is first shown; the user may move it afterwards.

    Parameters
    ----------
    widget
        What is docked.
    bottom
        Whether its place is below the canvas; otherwise at the side, in one tab bar with our others.
    """

    def __init__(self, widget: QWidget, bottom: bool = False) -> None:
        super().__init__(widget)
        self._widget, self._bottom = widget, bottom
        self._grown = QTimer(self, interval=GROWN_MS, singleShot=True)
        self._grown.timeout.connect(self._keep_on_screen)
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Look out for the first time that the widget is shown."""
        # The type first: a widget that goes unseen tells of it when nothing else of this object is left.
        if event.type() == QEvent.Type.Show and watched is self._widget:
            self._widget.removeEventFilter(self)
            QTimer.singleShot(0, self._settle)  # not while Qt is still laying it out
        return False

    def _settle(self) -> None:
        dock = _dock_of(self._widget)
        window = dock.parent() if dock is not None else None
        right = Qt.DockWidgetArea.RightDockWidgetArea
        if dock is None or not isinstance(window, QMainWindow) or dock.isFloating():
            return
        if window.dockWidgetArea(dock) != right:
            return
        # What is at the side keeps its full height: it is a form, and half of one is of no use.
        window.setCorner(Qt.Corner.BottomRightCorner, right)
        if self._bottom:
            window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, dock)
            window.resizeDocks([dock], [BOTTOM_PX], Qt.Orientation.Vertical)
            self._keep_on_screen()
            self._grown.start()
            return
        others = (other for other in window.findChildren(QDockWidget) if other.property(_SETTLED))
        neighbour = next((other for other in others if window.dockWidgetArea(other) == right), None)
        if neighbour is not None:
            window.tabifyDockWidget(neighbour, dock)
            dock.raise_()
        window.resizeDocks([dock], [SIDE_PX], Qt.Orientation.Horizontal)
        dock.setProperty(_SETTLED, True)

    def _keep_on_screen(self) -> None:
        """Bring a window that grew beyond the lower edge of its screen back: up, and lower where it can be."""
        window = self._widget.window()
        screen, frame = window.screen().availableGeometry(), window.frameGeometry()
        if window.isMaximized() or window.isFullScreen() or frame.bottom() <= screen.bottom():
            return
        bars = frame.height() - window.height()
        window.resize(window.width(), min(window.height(), screen.height() - bars))
        window.move(frame.x(), max(screen.top(), screen.bottom() + 1 - window.height() - bars))


class DockedWidget(QWidget):
    """A widget in a dock, which lets go of the viewer when it is closed.

    napari's close button closes no widget: it only takes it out of its dock, where it would go on listening.

    Parameters
    ----------
    parent
        As for every widget.
    bottom
        As for :class:`Settler`.
    """

    def __init__(self, parent: QWidget | None = None, bottom: bool = False) -> None:
        self._docked = self._forgotten = False
        super().__init__(parent)
        Settler(self, bottom)

    def closeEvent(self, event: Any) -> None:
        """Let go of the viewer."""
        self.forget()
        super().closeEvent(event)

    def event(self, event: Any) -> bool:
        """Let go of the viewer when taken out of the dock."""
        if event.type() == QEvent.Type.ParentChange:
            if self.parent() is None and self._docked:
                self.forget()
                # As garbage it might be collected while an event is on its way to it, which ends the program.
                _leaving.add(self)
                QTimer.singleShot(LAST_EVENTS_MS, partial(_leaving.discard, self))
            self._docked = self.parent() is not None
        return super().event(event)

    def forget(self) -> None:
        """Let go of the viewer, for good; what is drawn stays."""
        if not self._forgotten:
            self._forgotten = True
            self._let_go()
            for signal, react in self._heard():
                signal.disconnect(react)

    def _let_go(self) -> None:
        """Stop what is going on."""

    def _heard(self) -> tuple[tuple[Any, Any], ...]:
        """Return which signals of the viewer or its session are acted upon, and how."""
        return ()

    def _listen(self) -> None:
        """Act upon signals from now on, until closed."""
        for signal, react in self._heard():
            signal.connect(react)


def show_widget(viewer: Any, name: str) -> Any:
    """Return one of our widgets in a viewer, opening it if need be; None where there is no window."""
    window = getattr(viewer, "window", None)
    if window is None:
        return None
    dock, widget = window.add_plugin_dock_widget(PLUGIN, name)
    dock.show()
    dock.raise_()
    return widget


def _dock_of(widget: QWidget) -> QDockWidget | None:
    parent = widget.parentWidget()
    while parent is not None and not isinstance(parent, QDockWidget):
        parent = parent.parentWidget()
    return parent
