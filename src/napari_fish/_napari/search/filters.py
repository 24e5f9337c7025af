"""Filters of a search, made from the columns of the database, with how many slides have each value."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QGridLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget
from superqt import QFlowLayout

from napari_fish._napari.controls.common import emptied, named
from napari_fish._napari.jobs.one_job import OneJob
from napari_fish.database import Database
from napari_fish.errors import FishError
from napari_fish.search.filters import slide_mask
from napari_fish.store.slide_table import SlideTable

Counts = Mapping[str, list[tuple[str, int]]]
"""Column -> values with their number of slides, most first; an empty value means "not known"."""
FIRST = ("diagnosis", "site", "patient")
LAST = ("name", "slide")
NOT_KNOWN = "not known"
CHIP = "QToolButton { border: 1px solid gray; border-radius: 7px; padding: 1px 5px; }"
SIGNS = {"is": "=", "is not": "!="}


def column_counts(slides: SlideTable) -> Counts:
    """Count the slides with each value of each column; columns without any value are left out."""
    # A filter is written column=value, so a name with these signs cannot be filtered by.
    extra = [name for name in slides.columns if name not in (*FIRST, *LAST) and not set(name) & set("=!")]
    counts = {}
    for column in (*FIRST, *extra, *LAST):
        codes, values = slides.numbered(column)
        if not values:
            continue
        numbers = np.bincount(codes[slides.alive] + 1, minlength=len(values) + 1).tolist()
        found = [(value, n) for value, n in zip(values, numbers[1:], strict=True) if n]
        found.sort(key=lambda one: (-one[1], one[0].casefold()))
        counts[column] = found + ([("", numbers[0])] if numbers[0] else [])
    return counts


def slides_left(slides: SlideTable, where: tuple[str, ...]) -> int:
    """Return how many slides satisfy all filters."""
    return int(slide_mask(slides, where).sum())


def readable(condition: str) -> str:
    """Return a filter as people read it."""
    column, _, value = condition.partition("=")
    sign = "≠" if column.endswith("!") else "="
    return f"{column.rstrip('!')} {sign} {value or NOT_KNOWN}"


class FilterBar(QWidget):
    """Three boxes to make a filter, and the filters that are in force, each with a button to remove it."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts: Counts = {}
        self._where: tuple[str, ...] = ()
        self._database: Database | None = None
        self._job = OneJob(self)
        self._build()
        self._show()

    @property
    def where(self) -> tuple[str, ...]:
        """The filters in force, as :class:`~napari_fish.search.SearchParams` takes them."""
        return self._where

    def set_where(self, where: tuple[str, ...]) -> None:
        """Put other filters in force without telling anybody."""
        self._where = tuple(where)
        self._show()

    def show_database(self, database: Database | None) -> None:
        """Offer the columns of another database; its slides are counted in the background."""
        if database is not self._database:
            self._where = ()
        self._job.cancel()
        self._database, self._counts = database, {}
        self._show()
        self.columns.clear()
        if database is not None:
            self._job.start(self._counted, _count, database)

    def add(self) -> None:
        """Put the filter that is chosen in force."""
        column, value = self.columns.currentData(), self.values.currentData()
        if column is None or value is None:
            return
        condition = f"{column}{SIGNS[self.sign.currentText()]}{value}"
        if condition not in self._where:
            self._where = (*self._where, condition)
            self._show()
            self.changed.emit()

    def remove(self, condition: str, *_: object) -> None:
        """Put a filter out of force."""
        self._where = tuple(other for other in self._where if other != condition)
        self._show()
        self.changed.emit()

    def _counted(self, counts: Counts) -> None:
        self._counts = counts
        self.columns.clear()
        for column, values in counts.items():
            known = sum(1 for value, _ in values if value)
            self.columns.addItem(f"{column} ({known})", column)
        self._show()

    def _list_values(self) -> None:
        self.values.clear()
        for value, number in self._counts.get(self.columns.currentData(), ()):
            self.values.addItem(f"{value or NOT_KNOWN} ({number})", value)

    def _show(self) -> None:
        """Show the filters in force, and how many slides they leave."""
        emptied(self._chips)
        for condition in self._where:
            chip = named("search", QToolButton(), f"filter.{condition}", "Click to remove this filter.")
            chip.setText(f"{readable(condition)}  ✕")
            chip.setStyleSheet(CHIP)
            chip.clicked.connect(partial(self.remove, condition))
            self._chips.addWidget(chip)
        self._chip_area.setVisible(bool(self._where))
        self.left.setText(self._left_text())
        self.left.setVisible(bool(self._where))
        for control in (self.columns, self.sign, self.values, self.plus):
            control.setEnabled(bool(self._counts))

    def _left_text(self) -> str:
        if self._database is None or not self._where or not self._counts:
            return ""
        slides = self._database.store.slides
        try:
            return f"{slides_left(slides, self._where)} of {len(self._database)} slides can be found."
        except FishError as error:
            return str(error)

    def _build(self) -> None:
        self.columns = named(
            "search",
            QComboBox(),
            "filter_column",
            "A column of the database, with the number of its values.",
        )
        self.sign = named("search", QComboBox(), "filter_sign", "Search only these slides, or all but these.")
        self.sign.addItems(list(SIGNS))
        self.values = named("search", QComboBox(), "filter_value", "A value, with its number of slides.")
        self.plus = named("search", QPushButton("Add"), "filter_add", "Put this filter in force.")
        self.left = named("search", QLabel(), "filter_left", "How many slides the filters leave.")
        self.left.setWordWrap(True)
        for box, shortest in ((self.columns, 8), (self.values, 8), (self.sign, 4)):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(shortest)
        grid = QGridLayout()
        grid.setSpacing(4)
        for row, pair in enumerate(((self.columns, self.sign), (self.values, self.plus))):
            for column, control in enumerate(pair):
                grid.addWidget(control, row, column)
        grid.setColumnStretch(0, 1)
        self._chip_area = QWidget()
        self._chips = QFlowLayout(self._chip_area)
        self._chips.setContentsMargins(0, 0, 0, 0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(grid)
        layout.addWidget(self._chip_area)
        layout.addWidget(self.left)
        self.columns.currentIndexChanged.connect(self._list_values)
        self.plus.clicked.connect(self.add)


def _count(database: Database, progress: Any, should_stop: Any) -> Counts:
    return column_counts(database.store.slides)
