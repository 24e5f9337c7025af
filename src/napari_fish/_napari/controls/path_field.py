"""A path that can be typed, chosen or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QCompleter, QFileDialog, QHBoxLayout, QLineEdit, QToolButton, QWidget

from napari_fish._napari.controls.common import named

Kind = Literal["folder", "file", "new"]


class PathField(QWidget):
    """A line with a path, and a button that asks for one.

    Parameters
    ----------
    owner, name, tip
        Object name and tooltip, as for :func:`~napari_fish._napari.controls.common.named`.
    kind
        An existing folder, an existing file, or a folder that will be made.
    title
        Of the dialog.
    filters
        Of the dialog, for files.
    """

    changed = Signal(str)
    confirmed = Signal(str)
    """Return was pressed on the path that was there before, or it was chosen again."""

    def __init__(self, owner: str, name: str, tip: str, kind: Kind, title: str, filters: str = "") -> None:
        super().__init__()
        self._kind, self._title, self._filters = kind, title, filters
        self._last = ""
        self.line = named(owner, QLineEdit(), name, tip)
        # A drop belongs to the widget around it; the line would take it as text.
        self.line.setAcceptDrops(False)
        self.line.setClearButtonEnabled(True)
        button = named(owner, QToolButton(), f"{name}_choose", f"{title}.")
        button.setText("…")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.line)
        layout.addWidget(button)
        self.line.editingFinished.connect(self._edited)
        self.line.returnPressed.connect(self._confirm)
        self.line.textChanged.connect(self._cleared)
        button.clicked.connect(self.ask)

    @property
    def path(self) -> str:
        """The path, empty where there is none."""
        return self.line.text().strip()

    def put(self, path: str | Path, tell: bool = True) -> None:
        """Show a path, and tell that it changed unless told not to."""
        self.line.setText(str(path))
        if tell:
            self._edited()
        else:
            self._last = self.path

    def offer(self, paths: Sequence[str]) -> None:
        """Complete what is typed from paths that were used before."""
        completer = QCompleter(list(paths), self.line)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self.line.setCompleter(completer)

    def ask(self) -> None:
        """Ask for a path."""
        start = self.path or str(Path.home())
        if self._kind == "folder":
            found = QFileDialog.getExistingDirectory(self, self._title, start)
        elif self._kind == "file":
            found = QFileDialog.getOpenFileName(self, self._title, start, self._filters)[0]
        else:
            found = QFileDialog.getSaveFileName(self, self._title, start, "Database (*.fish)")[0]
        if found:
            self.line.setText(found)
            self._confirm()
            self._edited()

    def _edited(self) -> None:
        if self.path != self._last:
            self._last = self.path
            self.changed.emit(self.path)

    def _confirm(self) -> None:
        if self.path and self.path == self._last:
            self.confirmed.emit(self.path)

    def _cleared(self, text: str) -> None:
        """Take a click on the clear button as done at once."""
        if not text:
            self._edited()


def dropped_paths(event: Any) -> list[Path]:
    """Return the local files and folders of a drop."""
    data = event.mimeData()
    urls = data.urls() if data.hasUrls() else []
    return [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]
