"""The *Evaluate* dock widget: how well search works on the open database."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtpy.QtWidgets import QFileDialog, QLabel, QProgressBar, QPushButton, QSizePolicy, QVBoxLayout

from napari_fish._napari.controls.common import STOPPING, named, state_line
from napari_fish._napari.docks import DockedWidget
from napari_fish._napari.evaluate.form import EvaluateForm, in_line
from napari_fish._napari.evaluate.tabs import EvaluationTabs
from napari_fish._napari.jobs.one_job import OneJob
from napari_fish._napari.preferences import preferred_device
from napari_fish._napari.session.session import session_of
from napari_fish.database import open_database
from napari_fish.database.timing import encoding_times
from napari_fish.evaluate import EvaluateParams, Evaluation, evaluate
from napari_fish.evaluate.metrics import Score
from napari_fish.evaluate.report.figures import ON_DARK, ON_PAPER, Theme
from napari_fish.store.opening import open_store

if TYPE_CHECKING:
    import napari.viewer

OWN_SLIDES = "this database, own patient left out"
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
        return self._form.params()

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
        whose = "its own slides" if self._cohort is None else f"the slides of {self._cohort.name}"
        self._say(f"Asking {database.path.name} for {whose} …")

    def cancel(self) -> None:
        """Stop an evaluation under way; returns at once."""
        if self._job.busy:
            self._job.cancel()
            self._say(STOPPING)

    def reset(self) -> None:
        """Ask as at first."""
        self.set_cohort(None)
        self._form.reset()

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
        self._form.offer_columns(columns)
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
        best = found.main.macro["mmv"]
        said = (
            f"{found.n_queries} {'patches' if found.level == 'patch' else 'slides'} asked; mode {found.main.name}: the majority of the first {found.k} is right for "
            f"{100 * best.value:.0f} %{_interval(best)}, averaged over {len(found.labels)} labels."
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
        self._bar.reset()  # without a percentage, which would say that nothing was done
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
        self._form = EvaluateForm()
        self._form.put_first(
            ("database", in_line(self._database_label, open_button)), ("ask for", self._cohort_button)
        )
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
        self._cohort_button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        layout = QVBoxLayout(self)
        layout.addWidget(self._form)
        layout.addLayout(in_line(self._run_button, self._cancel_button, self._save_button, reset))
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


def _interval(score: Score) -> str:
    if score.interval is None:
        return ""
    return " (95 % interval {:.0f} to {:.0f} %)".format(*(100 * share for share in score.interval))


def _save(found: Evaluation, path: Path, progress: Any, should_stop: Any) -> Path:
    found.save(path)
    return path


def _evaluate(
    database: Path, cohort: Path | None, params: EvaluateParams, progress: Any, should_stop: Any
) -> Evaluation:
    """Evaluate with databases of its own, so that searches go on meanwhile."""
    with ExitStack() as stack:
        opened = stack.enter_context(open_database(database, preferred_device()))
        queries = None if cohort is None else stack.enter_context(open_store(cohort))
        times = encoding_times(opened, should_stop) if params.speed else []
        asked = [] if cohort is None else ["--queries", str(cohort)]
        command = shlex.join(["napari-fish", "evaluate", str(database), *asked, *params.arguments()])
        return evaluate(
            opened.store,
            queries,
            params,
            command=command,
            encode_ms=times,
            progress=progress,
            should_stop=should_stop,
        )
