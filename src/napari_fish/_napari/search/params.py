"""How to search: the part of the Search widget that makes :class:`~napari_fish.search.SearchParams`."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QCheckBox, QComboBox, QFormLayout, QLabel, QSizePolicy, QSpinBox, QWidget

from napari_fish._napari.controls.common import named
from napari_fish._napari.search.filters import FilterBar
from napari_fish.database import Database
from napari_fish.names import MODE_HELP, MODES, RANKING_HELP, RANKINGS, WHICH_SLIDE, Mode, Ranking, field_help
from napari_fish.search import SearchParams

MOST_SLIDES = 200
LABEL_PX = 84


class ParamsPanel(QWidget):
    """Slides wanted, mode, exclusion and filters; ``more`` holds ranking and target."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._base = SearchParams()
        self._build()
        self.show_params(self._base)

    def params(self) -> SearchParams:
        """Return the parameters as shown."""
        return replace(
            self._base,
            k=self.k.value(),
            mode=cast(Mode, self.mode.currentText()),
            ranking=cast(Ranking, self.ranking.currentText()),
            target=self.target.currentText() or self._base.target,
            exclude_query=self.exclude.isChecked(),
            where=self.filters.where,
        )

    def show_params(self, params: SearchParams) -> None:
        """Show other values, without telling anybody."""
        self._base = params
        controls = (self.k, self.mode, self.ranking, self.target, self.exclude)
        for control in controls:
            control.blockSignals(True)
        self.k.setValue(params.k)
        self.mode.setCurrentText(params.mode)
        self.ranking.setCurrentText(params.ranking)
        self.target.setCurrentText(params.target)
        self.exclude.setChecked(params.exclude_query)
        for control in controls:
            control.blockSignals(False)
        self.filters.set_where(params.where)
        self._explain()

    def show_database(self, database: Database | None) -> None:
        """Offer the columns of another database."""
        self.filters.show_database(database)
        before = self.target.currentText()
        self.target.blockSignals(True)
        self.target.clear()
        columns = database.store.slides.columns if database is not None else ["diagnosis"]
        self.target.addItems([name for name in columns if name not in WHICH_SLIDE])
        self.target.setCurrentText(before if self.target.findText(before) >= 0 else "diagnosis")
        self.target.blockSignals(False)

    def _explain(self) -> None:
        self.mode_help.setText(MODE_HELP[self.mode.currentText()])
        self.ranking_help.setText(RANKING_HELP[self.ranking.currentText()])

    def _changed(self) -> None:
        self._explain()
        self.changed.emit()

    def _build(self) -> None:
        tips = field_help(SearchParams)
        self.k = named("search", QSpinBox(), "k", tips["k"])
        self.k.setRange(1, MOST_SLIDES)
        self.k.setKeyboardTracking(False)
        self.mode = _choice("mode", tips["mode"], MODES, MODE_HELP)
        self.ranking = _choice("ranking", tips["ranking"], RANKINGS, RANKING_HELP)
        self.target = named("search", QComboBox(), "target", tips["target"])
        self.target.addItem("diagnosis")
        self.exclude = named(
            "search",
            QCheckBox("Leave out the same patient"),
            "exclude_query",
            "Leave out the query's own slide and all slides of its patient, so that no answer is trivially right.",
        )
        self.mode_help = _explanation("mode_help", "What the mode does.")
        self.ranking_help = _explanation("ranking_help", "What the ranking does.")
        self.filters = FilterBar()

        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(4)
        form.addRow(field_label("slides wanted"), self.k)
        form.addRow(field_label("mode"), self.mode)
        form.addRow(self.mode_help)
        form.addRow(self.exclude)
        form.addRow(field_label("only slides whose"))
        form.addRow(self.filters)

        self.more = QWidget()
        rest = QFormLayout(self.more)
        rest.setContentsMargins(0, 0, 0, 0)
        rest.setVerticalSpacing(4)
        rest.addRow(field_label("ranking"), self.ranking)
        rest.addRow(self.ranking_help)
        rest.addRow(field_label("votes on"), self.target)

        self.k.valueChanged.connect(self._changed)
        for box in (self.mode, self.ranking, self.target):
            box.currentTextChanged.connect(self._changed)
        self.exclude.toggled.connect(self._changed)
        self.filters.changed.connect(self._changed)


def _choice(name: str, tip: str, choices: tuple[str, ...], explained: dict[str, str]) -> QComboBox:
    """Return a box whose entries explain themselves when pointed at."""
    box = named("search", QComboBox(), name, tip)
    for index, choice in enumerate(choices):
        box.addItem(choice)
        box.setItemData(index, explained[choice], Qt.ItemDataRole.ToolTipRole)
    return box


def field_label(text: str) -> QLabel:
    """Return a label as wide as all others of the widget, so that the fields stand below each other."""
    label = QLabel(text)
    label.setMinimumWidth(LABEL_PX)
    return label


def _explanation(name: str, tip: str) -> QLabel:
    label = named("search", QLabel(), name, tip)
    label.setWordWrap(True)
    label.setStyleSheet("font-style: italic;")
    label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
    return label
