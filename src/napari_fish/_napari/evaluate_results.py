"""What an evaluation found: the table of modes, and the figures of one of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from qtpy.QtCore import QByteArray, Qt
from qtpy.QtSvgWidgets import QSvgWidget
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QScrollArea,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari.controls import named, offer
from napari_fish.evaluate import Evaluation
from napari_fish.evaluate.figures import ON_DARK, Theme, bars
from napari_fish.evaluate.report import confusion_figure, hamming_figure

FIGURE_PX = 344
"""Figures are as wide as the dock lets them be."""
_COLUMNS = ("", "mMV@{k}\nmacro", "mAP@{k}", "top-1", "fewer\nthan {k}", "ms")
_named = partial(named, "evaluate")


class EvaluationTabs(QTabWidget):
    """The results of the Evaluate widget."""

    def __init__(self) -> None:
        super().__init__()
        self._found: Evaluation | None = None
        self._theme = ON_DARK
        self._table = _named(QTableWidget(0, len(_COLUMNS)), "modes", "Every mode side by side.")
        self._table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self._table.verticalHeader().setVisible(False)
        head = self._table.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self._way_box = _named(QComboBox(), "way", "Whose figures are shown.")
        self._labels_figure = _named(
            QSvgWidget(), "labels_figure", "Majority right, label by label, with 95 % intervals."
        )
        self._confusion_figure = _named(QSvgWidget(), "confusion_figure", "Queries by their own label (across) and by the majority of their answer (down).")  # fmt: skip
        self._hamming_figure = _named(QSvgWidget(), "hamming_figure", "Hamming distance of queries (across) from the labels of their hits (down), as the paper defines it; the strongest of a column is the nearest.")  # fmt: skip
        figures = QWidget()
        stack = QVBoxLayout(figures)
        for control in (self._labels_figure, self._confusion_figure, self._hamming_figure):
            stack.addWidget(control)
        stack.addStretch()
        scroll = QScrollArea()
        scroll.setWidget(figures)
        scroll.setWidgetResizable(True)
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 6, 0, 0)
        layout.addWidget(self._way_box)
        layout.addWidget(scroll)
        self.addTab(self._table, "Modes")
        self.addTab(page, "By label")
        self._way_box.currentTextChanged.connect(self._draw)

    def show_evaluation(self, found: Evaluation, theme: Theme) -> None:
        """Show what was found in the colours of a theme; the mode whose figures are shown stays."""
        self._found, self._theme = found, theme
        self._fill_table()
        offer(self._way_box, [way.name for way in found.ways])
        self._draw()

    def _fill_table(self) -> None:
        found = self._found
        assert found is not None
        lines = [*found.ways, *found.ablation]
        self._table.setRowCount(len(lines))
        self._table.setHorizontalHeaderLabels([text.format(k=found.k) for text in _COLUMNS])
        for i, way in enumerate(lines):
            score, why = way.mmv_macro, "\n".join(f"{n}: {reason}" for reason, n in way.why_short.items())
            between = "" if score.interval is None else "\n{:.2f} to {:.2f}".format(*score.interval)
            cells = (
                (way.name, f"mode {way.mode}, ranking {way.ranking}"),
                (f"{score.value:.2f}{between}", "Share, and its 95 % interval."),
                (f"{way.map.value:.2f}", f"mAP: {way.map}; divided by 5 as in the published program: {way.map_released}"),
                (f"{way.top1.value:.2f}", f"First right: {way.top1}"),
                (f"{100 * way.short:.0f} %", why or "Every answer is complete."),
                ("" if way.latency is None else f"{way.latency.median:.1f}", "Median time of a search in ms."),
            )  # fmt: skip
            for j, (text, tip) in enumerate(cells):
                item = QTableWidgetItem(text)
                item.setToolTip(tip)
                if j:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self._table.setItem(i, j, item)
        self._table.resizeRowsToContents()

    def _draw(self, *_: Any) -> None:
        """Draw the figures of the mode that is chosen."""
        found = self._found
        if found is None:
            return
        way = next((w for w in found.ways if w.name == self._way_box.currentText()), found.main)
        theme = self._theme
        rows = [(label, one.mmv, f"n={one.n}") for label, one in way.per_label.items()]
        _load(self._labels_figure, bars(rows, theme, width=FIGURE_PX, title=f"mMV@{found.k} of each label"))
        _load(self._confusion_figure, confusion_figure(found, way.matrices[0], theme=theme, width=FIGURE_PX))
        _load(self._hamming_figure, hamming_figure(found, way.matrices[0], theme=theme, width=FIGURE_PX))


def _load(widget: QSvgWidget, svg: str) -> None:
    """Show a figure at its own size."""
    widget.load(QByteArray(svg.encode()))
    widget.setFixedSize(widget.renderer().defaultSize())
