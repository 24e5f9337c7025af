"""Which database is searched: the part of the Search widget that picks it."""

from __future__ import annotations

from pathlib import Path

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QComboBox, QFileDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_fish._napari.controls.common import named
from napari_fish._napari.preferences import (
    default_database,
    preferred_device,
    recent,
    remember,
    remember_recent,
)
from napari_fish._napari.session.session import Session
from napari_fish.database import Database

RECENT = "databases"
"""Under which recent databases are remembered."""
NOTHING = (
    "No database is open. Choose one above, drop a .fish folder here, or build one with the Database widget."
)


def describe(database: Database) -> str:
    """Return what is in a database, in a line."""
    patches = int(database.store.patches_per_slide.sum())
    return (
        f"{len(database):,} slides · {patches:,} patches · encoder {database.store.catalogue.facts.encoder}"
    )


class DatabasePicker(QWidget):
    """Recent databases, a button to browse, and what is open.

    Parameters
    ----------
    session
        Opens the database.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._build()
        self._list()
        session.database_changed.connect(self._opened)
        session.started.connect(self._started)
        session.failed.connect(self._failed)
        self._show()

    def open_last(self) -> None:
        """Open the database that was preferred or used last, where it is still there."""
        last = default_database() or next(iter(recent(RECENT)), "")
        if self._session.database is None and not self._session.busy and last and Path(last).is_dir():
            self.open(last)

    def open(self, path: str | Path) -> None:
        """Open a database in the background."""
        self._session.open(path, preferred_device())

    def browse(self) -> None:
        """Ask for a database."""
        start = str(Path(recent(RECENT)[0]).parent) if recent(RECENT) else ""
        path = QFileDialog.getExistingDirectory(self, "Open a database (NAME.fish)", start)
        if path:
            self.open(path)

    def _chosen(self, index: int) -> None:
        path = self.recent.itemData(index)
        open_now = self._session.database
        if path and (open_now is None or str(open_now.path) != path):
            self.open(path)

    def _started(self, what: str) -> None:
        if self._session.opening:
            self.about.setText(what)

    def _failed(self, _: str) -> None:
        self._list()
        self._show()

    def _opened(self, database: Database | None) -> None:
        if database is not None:
            remember_recent(RECENT, str(database.path.absolute()))
            remember("database", str(database.path.absolute()))
        self._list()
        self._show()

    def _show(self) -> None:
        database = self._session.database
        self.about.setText(NOTHING if database is None else describe(database))
        self.about.setToolTip("" if database is None else str(database.path))

    def _list(self) -> None:
        """Offer the recent databases, with the open one chosen."""
        database = self._session.database
        current = "" if database is None else str(database.path.absolute())
        paths = [path for path in recent(RECENT) if path != current and Path(path).is_dir()]
        self.recent.blockSignals(True)
        self.recent.clear()
        if current:
            paths.insert(0, current)
        else:
            self.recent.addItem("choose a database …", "")
        for path in paths:
            self.recent.addItem(Path(path).name, path)
            self.recent.setItemData(self.recent.count() - 1, path, Qt.ItemDataRole.ToolTipRole)
        self.recent.setCurrentIndex(0)
        self.recent.blockSignals(False)

    def _build(self) -> None:
        self.recent = named(
            "search", QComboBox(), "database", "The database that is searched; recent ones below."
        )
        self.recent.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.recent.setMinimumContentsLength(12)
        self.browse_button = named(
            "search", QPushButton("Browse…"), "browse", "Choose a database on disk: a folder NAME.fish."
        )
        self.about = named("search", QLabel(), "about", "What is in the database.")
        self.about.setWordWrap(True)
        row = QHBoxLayout()
        row.addWidget(self.recent, 1)
        row.addWidget(self.browse_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(row)
        layout.addWidget(self.about)
        self.recent.activated.connect(self._chosen)
        self.browse_button.clicked.connect(self.browse)
