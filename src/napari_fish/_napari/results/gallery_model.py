"""The hits of an answer for a gallery, in any order, with or without headings."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QAbstractListModel, QModelIndex, Qt
from qtpy.QtGui import QColor, QImage

from napari_fish._napari.controls.tables import Index
from napari_fish._napari.results.gallery_order import GROUPS, SORTS, Heading, arranged, described
from napari_fish._napari.results.picture_loader import Key, PictureLoader
from napari_fish.search import Feedback, Results, SlideHit
from napari_fish.search.output.colours import Colours


class GalleryModel(QAbstractListModel):
    """One row a hit or a heading.

    Parameters
    ----------
    loader
        Where pictures come from; only those of rows that are looked at are loaded.
    """

    def __init__(self, loader: PictureLoader, parent: Any = None) -> None:
        super().__init__(parent)
        self.results: Results | None = None
        self.colours = Colours(())
        self._loader = loader
        self._rows: list[Heading | SlideHit] = []
        self._verdicts: dict[str, bool] = {}
        self._sort, self._group = SORTS[0], GROUPS[0]
        loader.ready.connect(self._picture_came)

    def show(self, results: Results | None) -> None:
        """Show an answer, or nothing."""
        self.results = results
        self.colours = Colours.of_answers([] if results is None else [results])
        self._loader.use(None if results is None else results.pictures)
        self._arrange()

    def arrange(self, sort: str, group: str) -> None:
        """Sort and group anew; see :func:`~napari_fish._napari.results.gallery_order.arranged`."""
        self._sort, self._group = sort, group
        self._arrange()

    def mark(self, feedback: Feedback) -> None:
        """Show what the user said of hits."""
        self._verdicts = {judgement.hit.slide: judgement.relevant for judgement in feedback.in_force}
        if self._rows:
            self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1))

    def item(self, row: int) -> Heading | SlideHit | None:
        """Return what a row shows."""
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def hit(self, index: Index) -> SlideHit | None:
        """Return the hit of a row; None for a heading."""
        item = self.item(index.row()) if index.isValid() else None
        return item if isinstance(item, SlideHit) else None

    def index_of(self, slide: str) -> QModelIndex:
        """Return the row of a slide, an invalid one where it is not shown."""
        for row, item in enumerate(self._rows):
            if isinstance(item, SlideHit) and item.slide == slide:
                return self.index(row)
        return QModelIndex()

    def verdict(self, hit: SlideHit) -> bool | None:
        """Return what the user said of a hit."""
        return self._verdicts.get(hit.slide)

    def picture(self, hit: SlideHit) -> QImage | None:
        """Return the best-matching region of a hit, as far as it has been loaded."""
        return self._loader.region(hit.slide, hit.matches[0].hit_box) if hit.matches else None

    def colour(self, label: str, dark: bool) -> QColor:
        """Return the colour of a diagnosis."""
        return QColor(self.colours.of(label, dark))

    def rowCount(self, parent: Index | None = None) -> int:
        """Return how many rows there are."""
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a row as text; the delegate takes the rest from :meth:`item`."""
        item = self.item(index.row())
        if item is None or self.results is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return item.text if isinstance(item, Heading) else f"{item.rank}. {item.name or item.slide}"
        if role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.AccessibleDescriptionRole):
            return item.text if isinstance(item, Heading) else described(item, self.results)
        return None

    def flags(self, index: Index) -> Any:
        """Hits can be chosen, headings cannot."""
        if self.hit(index) is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemNeverHasChildren

    def _arrange(self) -> None:
        self.beginResetModel()
        hits = () if self.results is None else self.results.hits
        self._rows = arranged(hits, self._sort, self._group)
        self.endResetModel()

    def _picture_came(self, key: Key) -> None:
        if key[0] not in ("thumbnail", "hit"):
            return
        index = self.index_of(str(key[1]))
        if index.isValid():
            self.dataChanged.emit(index, index)
