"""The *Evaluate* dock widget: how well search works on the open database."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QByteArray, Qt
from qtpy.QtSvgWidgets import QSvgWidget
from qtpy.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari.controls import named, offer
from napari_fish._napari.docks import Settler
from napari_fish._napari.jobs import JobWorker
from napari_fish._napari.session import session_of
from napari_fish.database import DiskStore
from napari_fish.errors import FishError
from napari_fish.evaluate import EvaluateParams, Evaluation, evaluate
from napari_fish.evaluate.figures import ON_DARK, ON_PAPER, Theme, bars
from napari_fish.evaluate.report import confusion_figure, hamming_figure
from napari_fish.names import MODES, field_help

if TYPE_CHECKING:
    import napari.viewer

ALL_MODES, EVERYWHERE, OWN_SLIDES = "all, side by side", "everywhere", "this database, own patient left out"
_HELP = field_help(EvaluateParams)
FIGURE_PX = 372
"""Figures are as wide as the dock lets them be."""
_COLUMNS = ("", "mMV@{k}\nmacro", "mAP@{k}", "top-1", "fewer\nthan {k}", "ms")
_named = partial(named, "evaluate")


class EvaluateWidget(QWidget):
    """Says how well search works on the open database.

    Parameters
    ----------
    viewer : napari.Viewer
        The viewer it is docked in.
    """

    def __init__(self, viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        Settler(self)
        self._viewer = viewer
        self._session = session_of(viewer)
        self._worker: JobWorker | None = None
        self._found: Evaluation | None = None
        self._cohort: Path | None = None
        self._build()
        self._session.database_changed.connect(self._database_changed)
        self._database_changed(self._session.database)

    @property
    def evaluation(self) -> Evaluation | None:
        """What was found last, if anything."""
        return self._found

    def params(self) -> EvaluateParams:
        """Return what is asked for, as shown."""
        mode, within = self._mode_box.currentText(), self._within_box.currentText()
        return replace(
            EvaluateParams(),
            k=self._k_box.value(),
            target=self._target_box.currentText() or "diagnosis",
            mode=None if mode == ALL_MODES else mode,
            within="" if within == EVERYWHERE else within,
            ablation=self._ablation_box.isChecked(),
        )

    def run(self) -> None:
        """Evaluate the open database in the background; an evaluation under way gives way."""
        self.cancel()
        database = self._session.database
        if database is None:
            self._say("Open a database first.", wrong=True)
            return
        worker = JobWorker(_evaluate, database.path, self._cohort, self.params())
        worker.progressed.connect(partial(self._progress, worker))
        worker.returned.connect(partial(self._show, worker))
        worker.errored.connect(partial(self._failed, worker))
        worker.cancelled.connect(partial(self._stopped, worker))
        self._worker = worker
        self._bar.setValue(0)
        self._run_button.setEnabled(False)
        self._cancel_button.setEnabled(True)
        self._say(f"Asking {database.path.name} for its own slides …")
        worker.start()

    def cancel(self) -> None:
        """Stop an evaluation under way; returns at once."""
        if self._worker is not None:
            self._worker.cancel()
            self._say("Stopping …")

    def save(self, path: str | Path | None = None) -> None:
        """Write the report; asks for a file where none is given."""
        if self._found is None:
            return
        if path is None:
            path, _ = QFileDialog.getSaveFileName(self, "Save report", "evaluation.html", "Page (*.html)")
        if path:
            try:
                self._found.save(path)
            except FishError as error:
                self._say(str(error), wrong=True)
                return
            self._say(f"Written: {path}")

    def closeEvent(self, event: Any) -> None:
        """Stop what is under way."""
        self.cancel()
        super().closeEvent(event)

    def _choose_database(self) -> None:
        path = QFileDialog.getExistingDirectory(self, "Open a database (NAME.fish)")
        if path:
            self._session.open(path)

    def _choose_cohort(self) -> None:
        path = QFileDialog.getExistingDirectory(
            self, "Another database whose slides are asked for (NAME.fish)"
        )
        self.set_cohort(Path(path) if path else None)

    def set_cohort(self, path: Path | None) -> None:
        """Ask for the slides of another database; None asks for those of the open one."""
        self._cohort = path
        self._cohort_button.setText(OWN_SLIDES if path is None else path.name)

    def _database_changed(self, database: Any) -> None:
        self.cancel()
        self._database_label.setText("none" if database is None else database.path.name)
        columns = [] if database is None else database.store.slides.columns
        useful = [name for name in columns if name not in ("slide", "name", "patient")]
        offer(self._target_box, sorted(useful, key=lambda name: name != "diagnosis"))
        offer(self._within_box, [EVERYWHERE, *useful])
        self._run_button.setEnabled(database is not None)
        self._forget()
        if database is None:
            self._say("Open a database to see how well search works on it.")
        else:
            self._say(f"{database.path.name}: {len(database)} slides. Press Run.")

    def _forget(self) -> None:
        self._found = None
        self._save_button.setEnabled(False)
        self._tabs.setVisible(False)

    def _progress(self, worker: JobWorker, done: int, total: int) -> None:
        if worker is self._worker and not worker.cancelling:
            self._bar.setMaximum(total)
            self._bar.setValue(done)

    def _show(self, worker: JobWorker, found: Evaluation) -> None:
        if worker is not self._worker:
            return
        self._ended()
        self._found = found
        self._save_button.setEnabled(True)
        self._fill_table()
        offer(self._way_box, [way.name for way in found.ways])
        self._draw()
        self._tabs.setVisible(True)
        best = found.main
        said = (
            f"{found.n_queries} slides asked; mode {best.name}: the majority of the first {found.k} is right for "
            f"{100 * best.mmv_macro.value:.0f} % (95 % interval {100 * best.mmv_macro.low:.0f} to "
            f"{100 * best.mmv_macro.high:.0f} %), averaged over {len(found.labels)} labels."
        )
        self._say(" ".join([said, *found.notes]))

    def _fill_table(self) -> None:
        found = self._found
        assert found is not None
        lines = [*found.ways, *found.ablation]
        self._table.setRowCount(len(lines))
        self._table.setHorizontalHeaderLabels([text.format(k=found.k) for text in _COLUMNS])
        for i, way in enumerate(lines):
            score, why = way.mmv_macro, "\n".join(f"{n}: {reason}" for reason, n in way.why_short.items())
            cells = (
                (way.name, f"mode {way.mode}, ranking {way.ranking}"),
                (f"{score.value:.2f}\n{score.low:.2f} to {score.high:.2f}", "Share, and its 95 % interval."),
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
        theme = self._theme()
        rows = [(label, one.mmv, f"n={one.n}") for label, one in way.per_label.items()]
        _load(self._labels_figure, bars(rows, theme, width=FIGURE_PX, title=f"mMV@{found.k} of each label"))
        _load(self._confusion_figure, confusion_figure(found, way, theme=theme, width=FIGURE_PX))
        _load(self._hamming_figure, hamming_figure(found, way, theme=theme, width=FIGURE_PX))

    def _theme(self) -> Theme:
        return ON_PAPER if "light" in str(getattr(self._viewer, "theme", "dark")) else ON_DARK

    def _failed(self, worker: JobWorker, error: Exception) -> None:
        if worker is self._worker:
            self._ended()
            known = isinstance(error, FishError)
            self._say(str(error) if known else f"{type(error).__name__}: {error}", wrong=True)

    def _stopped(self, worker: JobWorker) -> None:
        if worker is self._worker:
            self._ended()
            self._say("Stopped.")

    def _ended(self) -> None:
        self._worker = None
        self._bar.setValue(0)
        self._run_button.setEnabled(self._session.database is not None)
        self._cancel_button.setEnabled(False)

    def _say(self, text: str, wrong: bool = False) -> None:
        self._state.setText(text)
        self._state.setStyleSheet("color: #e05050;" if wrong else "")

    def _build(self) -> None:
        """Lay out the controls."""
        self._database_label = _named(QLabel(), "database", "The database that is open.")
        open_button = _named(QPushButton("Open …"), "open", "Open a database; all our widgets then use it.")
        self._cohort_button = _named(
            QPushButton(OWN_SLIDES),
            "cohort",
            "Which slides are asked for: press to choose another cohort's database.",
        )
        self._target_box = _named(QComboBox(), "target", _HELP["target"])
        self._within_box = _named(QComboBox(), "within", _HELP["within"])
        self._mode_box = _named(QComboBox(), "mode", _HELP["mode"])
        self._mode_box.addItems([ALL_MODES, *MODES])
        self._k_box = _named(QSpinBox(), "k", _HELP["k"])
        self._k_box.setRange(1, 20)
        self._k_box.setValue(5)
        self._ablation_box = _named(QCheckBox("parts of the ranking"), "ablation", _HELP["ablation"])
        self._run_button = _named(
            QPushButton("Run"),
            "run",
            "Ask every slide of the database. Takes a while; a second run with another k does not.",
        )
        self._cancel_button = _named(QPushButton("Cancel"), "cancel", "Stop the evaluation.")
        self._save_button = _named(
            QPushButton("Save report …"), "save", "Write one page with all tables and figures."
        )
        self._bar = _named(QProgressBar(), "progress", "How far the evaluation is.")
        self._state = _named(QLabel(), "state", "What is open, running or wrong.")  # fmt: skip
        self._state.setWordWrap(True)
        self._cancel_button.setEnabled(False)
        for box in (self._target_box, self._within_box, self._mode_box):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(10)
        self._cohort_button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        layout = QVBoxLayout(self)
        layout.addLayout(self._form(open_button))
        layout.addLayout(_in_line(self._run_button, self._cancel_button, self._save_button))
        layout.addWidget(self._bar)
        layout.addWidget(self._state)
        layout.addWidget(self._build_tabs(), 1)
        layout.addStretch()
        open_button.clicked.connect(self._choose_database)
        self._cohort_button.clicked.connect(self._choose_cohort)
        self._run_button.clicked.connect(self.run)
        self._cancel_button.clicked.connect(self.cancel)
        self._save_button.clicked.connect(lambda: self.save())
        self._way_box.currentTextChanged.connect(self._draw)

    def _form(self, open_button: QPushButton) -> QFormLayout:
        form = QFormLayout()
        form.addRow("database", _in_line(self._database_label, open_button))
        form.addRow("ask for", self._cohort_button)
        form.addRow("right means same", self._target_box)
        form.addRow("found within same", self._within_box)
        form.addRow("mode", self._mode_box)
        form.addRow("first k", _in_line(self._k_box, self._ablation_box))
        return form

    def _build_tabs(self) -> QTabWidget:
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
        self._tabs = _named(QTabWidget(), "results", "What was found.")
        self._tabs.addTab(self._table, "Modes")
        self._tabs.addTab(page, "By label")
        return self._tabs


def _in_line(*controls: QWidget) -> QHBoxLayout:
    line = QHBoxLayout()
    for control in controls:
        line.addWidget(control)
    return line


def _load(widget: QSvgWidget, svg: str) -> None:
    """Show a figure at its own size."""
    widget.load(QByteArray(svg.encode()))
    widget.setFixedSize(widget.renderer().defaultSize())


def _evaluate(
    database: Path, cohort: Path | None, params: EvaluateParams, progress: Any, should_stop: Any
) -> Evaluation:
    """Evaluate with databases of its own, so that searches go on meanwhile."""
    with ExitStack() as stack:
        store = stack.enter_context(DiskStore(database))
        queries = None if cohort is None else stack.enter_context(DiskStore(cohort))
        command = "the Evaluate widget"
        return evaluate(store, queries, params, command=command, progress=progress, should_stop=should_stop)
