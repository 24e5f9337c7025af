"""The *Evaluate* dock widget: how well search works on the open database."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari.controls import STOPPING, named, offer, state_line
from napari_fish._napari.docks import DockedWidget
from napari_fish._napari.evaluate_results import EvaluationTabs
from napari_fish._napari.one_job import OneJob
from napari_fish._napari.preferences import preferred_device
from napari_fish._napari.session import session_of
from napari_fish.database import DiskStore
from napari_fish.evaluate import EvaluateParams, Evaluation, evaluate
from napari_fish.evaluate.figures import ON_DARK, ON_PAPER, Theme
from napari_fish.evaluate.metrics import Score
from napari_fish.names import MODES, field_help

if TYPE_CHECKING:
    import napari.viewer

ALL_MODES, EVERYWHERE, OWN_SLIDES = "all, side by side", "everywhere", "this database, own patient left out"
_HELP = field_help(EvaluateParams)
_named = partial(named, "evaluate")


class EvaluateWidget(DockedWidget):
    """Says how well search works on the open database.

    Parameters
    ----------
    viewer : napari.Viewer
        The viewer it is docked in.
    """

    def __init__(self, viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self._viewer = viewer
        self._session = session_of(viewer)
        self._job, self._writing = OneJob(self), OneJob(self)
        self._found: Evaluation | None = None
        self._cohort: Path | None = None
        self._opening = False
        self._build()
        self._listen()
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
        self._job.start(self._show, _evaluate, database.path, self._cohort, self.params())
        self._bar.setValue(0)
        self._run_button.setEnabled(False)
        self._cancel_button.setEnabled(True)
        self._say(f"Asking {database.path.name} for its own slides …")

    def cancel(self) -> None:
        """Stop an evaluation under way; returns at once."""
        if self._job.busy:
            self._job.cancel()
            self._say(STOPPING)

    def reset(self) -> None:
        """Ask as at first."""
        self.set_cohort(None)
        for box in (self._target_box, self._within_box, self._mode_box):
            box.setCurrentIndex(0)
        self._k_box.setValue(EvaluateParams().k)
        self._ablation_box.setChecked(EvaluateParams().ablation)

    def save(self, path: str | Path | None = None) -> None:
        """Write the report in the background; asks for a file where none is given."""
        if self._found is None:
            return
        if path is None:
            path, _ = QFileDialog.getSaveFileName(self, "Save report", "evaluation.html", "Page (*.html)")
        if path:
            self._say(f"Writing {Path(path).name} …")
            self._writing.start(self._written, _save, self._found, Path(path))

    def _written(self, path: Path) -> None:
        self._say(f"Written: {path}")

    def _let_go(self) -> None:
        self.cancel()

    def _heard(self) -> tuple[tuple[Any, Any], ...]:
        return (
            (self._session.database_changed, self._database_changed),
            (self._session.failed, self._not_opened),
            (self._viewer.events.theme, self._theme_changed),
        )

    def _choose_database(self) -> None:
        path = QFileDialog.getExistingDirectory(self, "Open a database (NAME.fish)")
        if path:
            self.open(path)

    def open(self, path: str | Path) -> None:
        """Open a database, for all our widgets."""
        self._opening = True
        self._say(f"Opening {Path(path).name} …")
        self._session.open(path, preferred_device())

    def _not_opened(self, message: str) -> None:
        """Tell what went wrong, if it was our request: searches of other widgets fail there."""
        if self._opening:
            self._opening = False
            self._say(message, wrong=True)

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
        self._opening = False
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

    def _progress(self, done: int, total: int) -> None:
        if not self._job.stopping:
            self._bar.setMaximum(total)
            self._bar.setValue(done)

    def _show(self, found: Evaluation) -> None:
        self._found = found
        self._save_button.setEnabled(True)
        self._tabs.show_evaluation(found, self._theme())
        self._tabs.setVisible(True)
        best = found.main
        said = (
            f"{found.n_queries} {'mosaics' if found.level == 'patch' else 'slides'} asked; mode {best.name}: the majority of the first {found.k} is right for "
            f"{100 * best.mmv_macro.value:.0f} %{_interval(best.mmv_macro)}, averaged over {len(found.labels)} labels."
        )
        self._say(" ".join([said, *found.notes]))

    def _theme_changed(self, *_: Any) -> None:
        if self._found is not None:
            self._tabs.show_evaluation(self._found, self._theme())

    def _theme(self) -> Theme:
        return ON_PAPER if "light" in str(getattr(self._viewer, "theme", "dark")) else ON_DARK

    def _stopped(self) -> None:
        if self._state.text() == STOPPING:
            self._say("Stopped.")

    def _ended(self) -> None:
        self._bar.setValue(0)
        self._run_button.setEnabled(self._session.database is not None)
        self._cancel_button.setEnabled(False)

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
        self._k_box.setValue(EvaluateParams().k)
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
        reset = _named(QPushButton("Reset"), "reset", "What is asked for as at first; what was found stays.")
        self._bar = _named(QProgressBar(), "progress", "How far the evaluation is.")
        self._state = state_line("evaluate")
        self._say = self._state.say
        self._cancel_button.setEnabled(False)
        self._tabs = _named(EvaluationTabs(), "results", "What was found.")
        for box in (self._target_box, self._within_box, self._mode_box):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(10)
        self._cohort_button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        layout = QVBoxLayout(self)
        layout.addLayout(self._form(open_button))
        layout.addLayout(_in_line(self._run_button, self._cancel_button, self._save_button, reset))
        layout.addWidget(self._bar)
        layout.addWidget(self._state)
        layout.addWidget(self._tabs, 1)
        layout.addStretch()
        open_button.clicked.connect(self._choose_database)
        self._cohort_button.clicked.connect(self._choose_cohort)
        self._run_button.clicked.connect(self.run)
        self._cancel_button.clicked.connect(self.cancel)
        self._save_button.clicked.connect(lambda: self.save())
        reset.clicked.connect(self.reset)
        self._job.progressed.connect(self._progress)
        self._job.cancelled.connect(self._stopped)
        self._job.ended.connect(self._ended)
        for job in (self._job, self._writing):
            job.failed.connect(lambda text: self._say(text, wrong=True))

    def _form(self, open_button: QPushButton) -> QFormLayout:
        form = QFormLayout()
        form.addRow("database", _in_line(self._database_label, open_button))
        form.addRow("ask for", self._cohort_button)
        form.addRow("right means same", self._target_box)
        form.addRow("found within same", self._within_box)
        form.addRow("mode", self._mode_box)
        form.addRow("first k", _in_line(self._k_box, self._ablation_box))
        return form


def _interval(score: Score) -> str:
    if score.interval is None:
        return ""
    return " (95 % interval {:.0f} to {:.0f} %)".format(*(100 * share for share in score.interval))


def _in_line(*controls: QWidget) -> QHBoxLayout:
    line = QHBoxLayout()
    for control in controls:
        line.addWidget(control)
    return line


def _save(found: Evaluation, path: Path, progress: Any, should_stop: Any) -> Path:
    found.save(path)
    return path


def _evaluate(
    database: Path, cohort: Path | None, params: EvaluateParams, progress: Any, should_stop: Any
) -> Evaluation:
    """Evaluate with databases of its own, so that searches go on meanwhile."""
    with ExitStack() as stack:
        store = stack.enter_context(DiskStore(database))
        queries = None if cohort is None else stack.enter_context(DiskStore(cohort))
        command = "the Evaluate widget"
        return evaluate(store, queries, params, command=command, progress=progress, should_stop=should_stop)
