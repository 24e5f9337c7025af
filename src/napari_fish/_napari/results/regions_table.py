"""What became of each region of the query, as a table whose pictures come when they are looked at."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from qtpy.QtCore import QAbstractTableModel, QSize, Qt
from qtpy.QtGui import QPixmap
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from napari_fish._napari.controls.tables import Index
from napari_fish._napari.results.picture_loader import Key, PictureLoader
from napari_fish.search import Results
from napari_fish.search.output.page_parts import FATES
from napari_fish.search.values import ListFate

ICON = 40
NARROW = 420
"""Px of width below which only the words are shown, and figures when the mouse rests on them."""
COLUMNS = ("region", "what became of it", "votes for", "near", "entropy")
TIPS = (
    "A region of the query, by the number it has on the slide.",
    "Whether it counted, or why it was dropped.",
    "The label most of its neighbours carry.",
    "Neighbours within the threshold.",
    "Bits: 0 where all neighbours carry one label, more the less they agree.",
)
_ROLES = Qt.ItemDataRole


def fate_in_words(fate: ListFate) -> str:
    """Say what became of a region of the query, with figures."""
    return f"dropped: {fate.reason}" if fate.reason and fate.fate != "kept" else FATES[fate.fate][0]


def told(fate: ListFate) -> str:
    """Say all that is known of a region of the query, in a few lines."""
    lines = [
        f"region {fate.query_index}: {fate_in_words(fate)}",
        f"{fate.length} neighbours within the threshold",
    ]
    if fate.vote:
        lines.append(f"votes for {fate.vote}")
    if fate.entropy is not None:
        lines.append(f"entropy {fate.entropy:.2f} bits")
    return "\n".join(lines)


class RegionsModel(QAbstractTableModel):
    """One row a region of the query: those that counted first, the most certain before the others.

    Parameters
    ----------
    loader
        Where pictures come from.
    """

    def __init__(self, loader: PictureLoader, parent: Any = None) -> None:
        super().__init__(parent)
        self._loader = loader
        self._fates: list[ListFate] = []
        self._row_of: dict[Hashable, int] = {}
        loader.ready.connect(self._picture_came)

    def show(self, results: Results | None) -> None:
        """Show the regions of a query, or nothing."""
        order = list(FATES)
        self.beginResetModel()
        self._fates = sorted(
            () if results is None else results.explanation.lists,
            key=lambda fate: (order.index(fate.fate), fate.entropy or 0.0, fate.query_index),
        )
        self._row_of = {fate.query_index: row for row, fate in enumerate(self._fates)}
        self.endResetModel()

    @property
    def labelled(self) -> bool:
        """Whether labels voted."""
        return any(fate.entropy is not None for fate in self._fates)

    def rowCount(self, parent: Index | None = None) -> int:
        """Return how many regions there are."""
        return 0 if parent is not None and parent.isValid() else len(self._fates)

    def columnCount(self, parent: Index | None = None) -> int:
        """Return how many columns there are."""
        return len(COLUMNS)

    def headerData(self, section: int, orientation: Any, role: int = _ROLES.DisplayRole) -> Any:
        """Return the name of a column."""
        texts: dict[int, tuple[str, ...]] = {_ROLES.DisplayRole: COLUMNS, _ROLES.ToolTipRole: TIPS}
        return texts[role][section] if role in texts and orientation == Qt.Orientation.Horizontal else None

    def data(self, index: Index, role: int = _ROLES.DisplayRole) -> Any:
        """Return the text, picture or alignment of an entry."""
        fate = self._fates[index.row()]
        if role == _ROLES.DisplayRole:
            entropy = "" if fate.entropy is None else f"{fate.entropy:.2f}"
            texts = (str(fate.query_index), FATES[fate.fate][0], fate.vote, str(fate.length), entropy)
            return texts[index.column()]
        if role == _ROLES.ToolTipRole:
            return told(fate)
        if role == _ROLES.DecorationRole and index.column() == 0:
            image = self._loader.query(fate.query_index)
            return None if image is None else QPixmap.fromImage(image.scaled(ICON, ICON))
        if role == _ROLES.TextAlignmentRole and index.column() >= 3:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def _picture_came(self, key: Key) -> None:
        row = self._row_of.get(key[1]) if key[0] == "query" else None
        if row is not None:
            self.dataChanged.emit(self.index(row, 0), self.index(row, 0))


class RegionsTable(QTableView):
    """Shows a :class:`RegionsModel`."""

    def __init__(self, model: RegionsModel, parent: Any = None) -> None:
        super().__init__(parent)
        self._shown = model
        self.setModel(model)
        self.setIconSize(QSize(ICON, ICON))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setShowGrid(False)
        self.setWordWrap(True)
        # Widths are set once: measuring all entries of a large query would hold up the viewer.
        rows, columns = self.verticalHeader(), self.horizontalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(ICON + 4)
        columns.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        wide = self.fontMetrics().horizontalAdvance
        for column, text in ((0, "000"), (2, "adenocarcinoma"), (3, "near"), (4, "entropy")):
            self.setColumnWidth(column, wide(text) + 14 + (ICON if column == 0 else 0))
        model.modelReset.connect(self._hide_some)

    def resizeEvent(self, event: Any) -> None:
        """Show figures where there is room."""
        super().resizeEvent(event)
        self._hide_some()

    def _hide_some(self) -> None:
        votes, figures = self._shown.labelled, self.width() >= NARROW
        for column, shown in ((2, votes), (3, figures), (4, votes and figures)):
            self.setColumnHidden(column, not shown)
