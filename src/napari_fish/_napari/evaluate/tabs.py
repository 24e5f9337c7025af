"""What an evaluation found: modes, labels, examples, speed and storage, a tab each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from qtpy.QtCore import QByteArray, Qt
from qtpy.QtSvgWidgets import QSvgWidget
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari.controls.common import named, offer
from napari_fish._napari.controls.fold import scrolled
from napari_fish._napari.evaluate.examples import ExamplesPage
from napari_fish.evaluate import Evaluation
from napari_fish.evaluate.report.figures import ON_DARK, Theme, bars, speed_lines
from napari_fish.evaluate.report.page import confusion_figure, hamming_figure
from napari_fish.evaluate.report.tables import storage_lines
from napari_fish.evaluate.values import SpeedRow, WayScores
from napari_fish.search.recall import Recall

FIGURE_PX = 344
"""Figures are as wide as the dock lets them be."""
_named = partial(named, "evaluate")
Cell = tuple[str, str]
"""What a cell says, and its tooltip."""


class EvaluationTabs(QTabWidget):
    """The results of the Evaluate widget."""

    def __init__(self) -> None:
        super().__init__()
        self._found: Evaluation | None = None
        self._theme = ON_DARK
        self._modes_figure = _figure(
            "modes_figure", "Majority right, averaged over labels, by mode, with 95 % intervals."
        )
        self._modes = _table("modes", "Every mode side by side.")
        self._ablation_head = QLabel("<b>Parts of the ranking, one by one</b>")
        self._ablation_figure = _figure(
            "ablation_figure", "The same with parts of the ranking switched on one by one."
        )
        self._definitions = _table(
            "definitions", "By the paper's definitions and by those of the published program."
        )
        self._way_box = _named(QComboBox(), "way", "Whose figures are shown.")
        self._site_box = _named(QComboBox(), "matrices_of", "Whose matrices are shown.")
        self._labels_figure = _figure("labels_figure", "Majority right, label by label, with 95 % intervals.")
        self._confusion_figure = _figure(
            "confusion_figure",
            "Queries by their own label (across) and by the majority of their answer (down).",
        )
        self._hamming_figure = _figure(
            "hamming_figure",
            "Hamming distance of queries (across) from the labels of their hits (down), as the paper defines it; the strongest of a column is the nearest.",
        )
        self._examples = _named(
            ExamplesPage(),
            "examples",
            "Answers chosen at random: the query, and the best-matching region of each slide found. Dashed: another label.",
        )
        self._storage = _named(
            QLabel(), "storage", "What the database takes on disk, and how long encoding takes."
        )
        self._storage.setWordWrap(True)
        self._patch_figure = _figure(
            "patch_speed", "Time of a search for one patch over growing parts of the database."
        )
        self._slide_figure = _figure(
            "slide_speed", "Time of a search for a whole slide over growing parts of the database."
        )
        self._speed = _table("speed_table", "Median times of searches, and recall against exact search.")
        self._lay_out()
        self._way_box.currentTextChanged.connect(self._draw)
        self._site_box.currentTextChanged.connect(self._draw)

    def _lay_out(self) -> None:
        told = QLabel("<b>Definitions of the paper and of the published program</b>")
        modes = scrolled(
            self._modes_figure, self._modes, self._ablation_head, self._ablation_figure, told, self._definitions
        )  # fmt: skip
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 6, 0, 0)
        layout.addWidget(self._way_box)
        layout.addWidget(
            scrolled(self._labels_figure, self._site_box, self._confusion_figure, self._hamming_figure)
        )
        self._patch_head, self._slide_head = QLabel("<b>One patch</b>"), QLabel("<b>A whole slide</b>")
        self._no_speed = QLabel("Tick <i>speed</i> and run again to time searches over growing parts.")
        self._no_speed.setWordWrap(True)
        speed = scrolled(
            self._storage, self._no_speed, self._patch_head, self._patch_figure, self._slide_head,
            self._slide_figure, self._speed,
        )  # fmt: skip
        self.addTab(modes, "Modes")
        self.addTab(page, "By label")
        self.addTab(scrolled(self._examples), "Examples")
        self.addTab(speed, "Speed, size")

    def show_evaluation(self, found: Evaluation, theme: Theme) -> None:
        """Show what was found in the colours of a theme; the mode whose figures are shown stays."""
        self._found, self._theme = found, theme
        offer(self._way_box, [way.name for way in found.ways])
        offer(self._site_box, [f"{found.within} {one.within}" for one in found.main.matrices])
        self._site_box.setVisible(bool(found.within))
        rows = [(way.name, way.macro["mmv"], _short(way)) for way in found.ways]
        title = f"mMV@{found.k}, macro-averaged, by mode"
        _load(self._modes_figure, bars(rows, theme, width=FIGURE_PX, title=title))
        _fill(self._modes, _modes_head(found.k), [_mode(way) for way in (*found.ways, *found.ablation)])
        parts = [(way.name, way.macro["mmv"], _short(way)) for way in found.ablation]
        self._ablation_head.setVisible(bool(parts))
        drawn = bars(parts, theme, width=FIGURE_PX, title="Ablation of the ranking") if parts else ""
        _load(self._ablation_figure, drawn)
        _fill(self._definitions, _definitions_head(found), [_defined(way) for way in found.ways])
        self._examples.show_examples(found.examples, theme)
        self._show_speed(found, theme)
        self._draw()

    def _show_speed(self, found: Evaluation, theme: Theme) -> None:
        self._storage.setText("<br>".join(f"<b>{name}</b> {text}" for name, text in storage_lines(found)))
        self._no_speed.setVisible(not found.speed)
        for head, figure, whole in (
            (self._patch_head, self._patch_figure, False),
            (self._slide_head, self._slide_figure, True),
        ):
            drawn = speed_lines(found.speed, whole, theme, width=FIGURE_PX)
            head.setVisible(bool(drawn))
            _load(figure, drawn)
        self._speed.setVisible(bool(found.speed))
        _fill(
            self._speed,
            ("patches", "mode", "patch\nms", "slide\nms", "recall"),
            [_timed(r) for r in found.speed],
        )

    def _draw(self, *_: Any) -> None:
        """Draw the figures of the mode that is chosen."""
        found = self._found
        if found is None:
            return
        way = next((w for w in found.ways if w.name == self._way_box.currentText()), found.main)
        theme, made = self._theme, way.matrices[max(0, self._site_box.currentIndex())]
        rows = [(label, one.scores["mmv"], f"n={one.n}") for label, one in way.per_label.items()]
        _load(self._labels_figure, bars(rows, theme, width=FIGURE_PX, title=f"mMV@{found.k} of each label"))
        _load(self._confusion_figure, confusion_figure(found, made, theme=theme, width=FIGURE_PX))
        _load(self._hamming_figure, hamming_figure(found, made, theme=theme, width=FIGURE_PX))


def _modes_head(k: int) -> tuple[str, ...]:
    return ("", f"mMV@{k}\nmacro", f"mAP@{k}", "top-1", f"fewer\nthan {k}", "recall", "ms")


def _mode(way: WayScores) -> list[Cell]:
    scores, best = way.scores, way.macro["mmv"]
    between = "" if best.interval is None else "\n{:.2f} to {:.2f}".format(*best.interval)
    why = "\n".join(f"{n}: {reason}" for reason, n in way.why_short.items())
    return [
        (way.name, f"mode {way.mode}, ranking {way.ranking}"),
        (f"{best.value:.2f}{between}", "Share, and its 95 % interval."),
        (f"{scores['map'].value:.2f}", f"mAP: {scores['map']}; macro: {way.macro['map']}"),
        (f"{scores['top1'].value:.2f}", f"First right: {scores['top1']}"),
        (f"{100 * way.short:.0f} %", why or "Every answer is complete."),
        _recall(way.recall),
        ("" if way.latency is None else f"{way.latency.median:.1f}", "Median time of a search in ms."),
    ]


def _recall(recall: Recall | None) -> Cell:
    if recall is None:
        return "", "Not measured."
    share = "-" if recall.recall is None else f"{recall.recall:.2f}"
    return f"{share}\nn={recall.queries}", "Share of true neighbours found, on n patches that have any."


def _short(way: WayScores) -> str:
    return f"{100 * way.short:.0f} % short" if way.short else ""


def _definitions_head(found: Evaluation) -> tuple[str, ...]:
    definition = found.definition
    majority = "paper" if definition.short == ">" else "released"
    precision = "paper" if definition.divisor == "relevant" else "released"
    return ("", f"mMV@{found.k}\n{majority}", "\nreleased", f"mAP@{found.k}\n{precision}", "\nreleased")


def _defined(way: WayScores) -> list[Cell]:
    def both(name: str) -> Cell:
        macro, overall = way.macro[name], way.scores[name]
        return f"{macro.value:.2f}\nall {overall.value:.2f}", f"Macro {macro}\nover all queries {overall}"

    return [
        (way.name, f"mode {way.mode}, ranking {way.ranking}"),
        *map(both, ("mmv", "mmv_released", "map", "map_released")),
    ]


def _timed(row: SpeedRow) -> list[Cell]:
    times = [
        ("", "") if one is None else (f"{one.median:.2f}", f"5 to 95 %: {one.p5:.2f} to {one.p95:.2f} ms")
        for one in (row.patch, row.slide)
    ]
    return [
        (str(row.mosaics), f"{row.what}, {row.slides} slides"),
        (row.mode, ""),
        *times,
        _recall(row.recall),
    ]


def _figure(name: str, tip: str) -> Any:
    return _named(QSvgWidget(), name, tip)


def _table(name: str, tip: str) -> Any:
    """Return a table that is as high as what it holds; the page scrolls, not the table."""
    table = _named(QTableWidget(), name, tip)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.verticalHeader().setVisible(False)
    table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return table


def _fill(table: QTableWidget, head: Sequence[str], lines: Sequence[Sequence[Cell]]) -> None:
    table.setColumnCount(len(head))
    table.setRowCount(len(lines))
    table.setHorizontalHeaderLabels(list(head))
    top = table.horizontalHeader()
    top.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    top.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    for i, line in enumerate(lines):
        for j, (text, tip) in enumerate(line):
            item = QTableWidgetItem(text)
            item.setToolTip(tip)
            if j:
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            table.setItem(i, j, item)
    table.resizeRowsToContents()
    for i in range(len(lines)):  # the theme pads cells, which Qt does not count
        table.setRowHeight(i, table.rowHeight(i) + 6)
    rows = sum(table.rowHeight(i) for i in range(len(lines)))
    table.setFixedHeight(rows + top.sizeHint().height() + 2 * table.frameWidth() + 2)


def _load(widget: QSvgWidget, svg: str) -> None:
    """Show a figure at its own size; nothing where there is none."""
    widget.setVisible(bool(svg))
    if svg:
        widget.load(QByteArray(svg.encode()))
        widget.setFixedSize(widget.renderer().defaultSize())
