"""Tables of plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from qtpy.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QTableView

Row = Sequence[Any]
ROLE = Qt.ItemDataRole
Index = QModelIndex | QPersistentModelIndex
"""What Qt may ask a model with."""


class Rows(QAbstractTableModel):
    """Rows of texts and numbers, None for a number not known; the last value of each is its tooltip and is not shown.

    Parameters
    ----------
    header
        Names of the columns.
    """

    def __init__(self, header: Sequence[str], parent: Any = None) -> None:
        super().__init__(parent)
        self._header = tuple(header)
        self.rows: list[Row] = []

    def show(self, rows: Iterable[Row]) -> None:
        """Show other rows."""
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def add(self, rows: Sequence[Row]) -> None:
        """Show further rows."""
        if rows:
            first = len(self.rows)
            self.beginInsertRows(QModelIndex(), first, first + len(rows) - 1)
            self.rows.extend(rows)
            self.endInsertRows()

    def rowCount(self, parent: Index | None = None) -> int:
        """Return how many rows there are."""
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index | None = None) -> int:
        """Return how many columns are shown."""
        return 0 if parent is not None and parent.isValid() else len(self._header)

    def headerData(self, section: int, orientation: Any, role: int = ROLE.DisplayRole) -> Any:
        """Return the name of a column."""
        if orientation == Qt.Orientation.Horizontal and role == ROLE.DisplayRole:
            return self._header[section]
        return None

    def data(self, index: Index, role: int = ROLE.DisplayRole) -> Any:
        """Return what a cell shows."""
        row = self.rows[index.row()]
        value = row[index.column()]
        if value is None:
            unknown: dict[int, Any] = {
                ROLE.DisplayRole: "?",
                ROLE.UserRole: -1,
                ROLE.ToolTipRole: str(row[-1]),
            }
            return unknown.get(role)
        if role == ROLE.DisplayRole:
            return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else str(value)
        if role == ROLE.UserRole:
            return value if isinstance(value, int) else str(value).casefold()
        if role == ROLE.ToolTipRole:
            return str(row[-1])
        if role == ROLE.TextAlignmentRole and isinstance(value, int):
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None


class Table(QTableView):
    """Shows rows, sorted by a click on a header and filtered by a text.

    Parameters
    ----------
    header
        Names of the columns.
    widths
        Their widths in px, 0 for the one that takes what is left; without one the last does, and a table that is too
        narrow is scrolled.
    """

    def __init__(self, header: Sequence[str], widths: Sequence[int], parent: Any = None) -> None:
        super().__init__(parent)
        self.shown = Rows(header, self)
        self.proxy = QSortFilterProxyModel(self)
        self.proxy.setSourceModel(self.shown)
        self.proxy.setSortRole(ROLE.UserRole)
        self.proxy.setFilterKeyColumn(-1)
        self.proxy.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.setModel(self.proxy)
        self.setSortingEnabled(True)
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setWordWrap(False)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        self.horizontalHeader().setMinimumSectionSize(40)
        self.horizontalHeader().setStretchLastSection(0 not in widths)
        for number, width in enumerate(widths):
            if width:
                self.setColumnWidth(number, width)
            else:
                self.horizontalHeader().setSectionResizeMode(number, QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setDefaultAlignment(
            Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        )

    def fit_first(self, least: int, most: int) -> None:
        """Make the first column as wide as what it shows, within limits in px; longer texts lose their middle."""
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        metrics = self.fontMetrics()
        longest = sorted((str(row[0]) for row in self.shown.rows), key=len)[-50:]
        # Room for the margins of a cell.
        width = (
            max((metrics.horizontalAdvance(text) for text in longest), default=0)
            + 2 * metrics.averageCharWidth()
        )
        self.setColumnWidth(0, min(most, max(least, width)))

    def narrow_to(self, text: str) -> None:
        """Show only rows that hold a text in any column."""
        self.proxy.setFilterFixedString(text)

    def select(self, names: Iterable[Any]) -> None:
        """Select the rows that begin with these, and no others."""
        wanted, chosen = set(names), QItemSelection()
        for number, row in enumerate(self.shown.rows):
            index = self.proxy.mapFromSource(self.shown.index(number, 0))
            if row[0] in wanted and index.isValid():
                chosen.select(index, index)
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(chosen, flags.ClearAndSelect | flags.Rows)

    def selected(self) -> list[Row]:
        """Return the selected rows, as they were given, in the order of the table."""
        indexes = sorted(self.selectionModel().selectedRows(), key=lambda index: index.row())
        return [self.shown.rows[self.proxy.mapToSource(index).row()] for index in indexes]
