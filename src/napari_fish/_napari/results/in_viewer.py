"""What the Results widget does in the viewer: compare, open, jump, magnify."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QObject, Signal

from napari_fish._napari.compare.compare import comparison_of
from napari_fish._napari.compare.navigate import draw_matches, open_hit
from napari_fish._napari.session.session import session_of
from napari_fish.search import Hit, SlideHit


class ResultsInViewer(QObject):
    """Acts on the current answer of a viewer's session.

    Parameters
    ----------
    viewer
        The viewer, or napari's proxy of it.
    """

    said = Signal(str, bool)
    """What to tell the user, and whether it went wrong."""
    changed = Signal()
    """A comparison was begun, shown, given up or cleared."""

    def __init__(self, viewer: Any, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._viewer, self._session = viewer, session_of(viewer)
        self._comparison = comparison_of(viewer)
        self._forgotten = False
        for signal, react in self._heard():
            signal.connect(react)

    def forget(self) -> None:
        """Hear of comparisons and of slides that are opened no more."""
        self._forgotten = True
        for signal, react in self._heard():
            signal.disconnect(react)

    def _heard(self) -> tuple[tuple[Any, Any], ...]:
        there = self._comparison
        return (
            (there.started, self._opening),
            (there.progressed, self._progressed),
            (there.changed, self._changed),
            (there.failed, self._failed),
            (there.ended, self.changed),
        )

    @property
    def comparing(self) -> bool:
        """Whether a comparison is shown or being opened."""
        return self._comparison.shown or self._comparison.busy

    def compare(self) -> None:
        """Show query and hits side by side."""
        answer, database = self._session.current, self._session.database
        if answer is not None and database is not None:
            self._comparison.show(answer, database)

    def clear(self) -> None:
        """Leave the viewer as it was before comparing."""
        self._comparison.clear()

    def zoom_to(self, objective: float) -> None:
        """Show the canvas as through an objective."""
        self._comparison.zoom_to(objective)

    def open(self, hit: SlideHit) -> None:
        """Open the slide of a hit and fly to the region."""
        if self._session.database is not None:
            open_hit(self._viewer, self._session.database, hit, done=self._arrived)
            self._leave_for(hit)

    def jump(self, hit: SlideHit, match: Hit | None = None) -> None:
        """Open the slide of a hit, and draw what matches on it and on the query."""
        answer, database = self._session.current, self._session.database
        if answer is not None and database is not None:
            draw_matches(self._viewer, answer, hit, match, database, self._arrived)
            self._leave_for(hit)

    def _leave_for(self, hit: SlideHit) -> None:
        self.said.emit(f"Opening {hit.name or hit.slide} …", False)

    def _arrived(self, layer: Any) -> None:
        if not self._forgotten:
            self.said.emit("", False)

    def _opening(self) -> None:
        self.said.emit("Opening slides to compare …", False)
        self.changed.emit()

    def _progressed(self, done: int, total: int) -> None:
        if self._comparison.busy:
            self.said.emit(f"Opening slides to compare: {done} of {total} …", False)

    def _changed(self, shown: bool) -> None:
        self.said.emit("", False)
        self.changed.emit()

    def _failed(self, message: str) -> None:
        self.said.emit(message, True)
