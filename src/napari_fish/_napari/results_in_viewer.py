"""What the Results widget does in the viewer: compare, open, jump, magnify."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QObject, Signal

from napari_fish._napari.compare import comparison_of
from napari_fish._napari.navigate import draw_matches, open_hit
from napari_fish._napari.session import session_of
from napari_fish.search import Hit, SlideHit
from napari_fish.search.colours import Colours


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
    """A comparison was shown or cleared."""

    def __init__(self, viewer: Any, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._viewer, self._session = viewer, session_of(viewer)
        self._comparison = comparison_of(viewer)
        for signal, react in self._heard():
            signal.connect(react)

    def forget(self) -> None:
        """Hear of comparisons no more."""
        for signal, react in self._heard():
            signal.disconnect(react)

    def _heard(self) -> tuple[tuple[Any, Any], ...]:
        there = self._comparison
        return (
            (there.started, self._opening),
            (there.changed, self._changed),
            (there.failed, self._failed),
        )

    @property
    def comparing(self) -> bool:
        """Whether a comparison is shown."""
        return self._comparison.shown

    def compare(self) -> None:
        """Show query and hits side by side."""
        answer, database = self._session.current, self._session.database
        if answer is not None and database is not None:
            colours = Colours.of_answers([answer.results])
            self._comparison.show(answer, database, lambda label: colours.of(label, dark=True))

    def clear(self) -> None:
        """Leave the viewer as it was before comparing."""
        self._comparison.clear()

    def zoom_to(self, objective: float) -> None:
        """Show the canvas as through an objective."""
        self._comparison.zoom_to(objective)

    def open(self, hit: SlideHit) -> None:
        """Open the slide of a hit and fly to the region."""
        if self._session.database is not None:
            open_hit(self._viewer, self._session.database, hit)

    def jump(self, hit: SlideHit, match: Hit | None = None) -> None:
        """Open the slide of a hit, and draw what matches on it and on the query."""
        if self._session.current is not None:
            draw_matches(self._viewer, self._session.current, hit, match, self._session.database)

    def _opening(self) -> None:
        self.said.emit("Opening slides to compare …", False)

    def _changed(self, shown: bool) -> None:
        self.said.emit("", False)
        self.changed.emit()

    def _failed(self, message: str) -> None:
        self.said.emit(message, True)
