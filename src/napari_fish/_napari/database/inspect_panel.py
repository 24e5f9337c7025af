"""The *Inspect* page of the Database widget: what is in a database, and its care."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QGridLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari import preferences
from napari_fish._napari.controls.common import named, offer
from napari_fish._napari.controls.path_field import PathField
from napari_fish._napari.controls.tables import Table
from napari_fish._napari.database import care_jobs
from napari_fish._napari.database.import_panel import ImportPanel
from napari_fish._napari.database.left_out_controls import LeftOutControls
from napari_fish._napari.jobs.notify import as_sentence
from napari_fish._napari.jobs.one_job import OneJob
from napari_fish.database.inspection import Inspection, inspect_database
from napari_fish.mosaic.left_out import told
from napari_fish.store.records import SlideRecord
from napari_fish.texts import count, in_bytes

OWNER = "database"
SURE_MS = 4000
"""A removal must be confirmed within so long."""
NAME_PX = 260
"""A name of a slide has at most so much room in the table."""
NOTHING = "No database is open. Open one here, or build one."


class InspectPanel(QWidget):
    """Opens databases, shows what is in them and looks after them beside the viewer."""

    said = Signal(str, bool)
    progressed = Signal(int, int)
    running = Signal(bool)
    wanted = Signal(str)
    """A database to open in the viewer."""
    extend = Signal(str)
    """A database to add slides to."""
    altered = Signal(object)
    """The folder of a database that was changed."""
    look = Signal(str)
    """A slide to show with what was left out of it."""
    overrule = Signal(list, str)
    """Slides to encode again, and how strictly artefacts are left out of them."""

    def __init__(self) -> None:
        super().__init__()
        self.inspection: Inspection | None = None
        self._usable, self._stoppable = True, False
        self._make()
        self._look, self._care = OneJob(self), OneJob(self)
        self._sure = QTimer(self, singleShot=True, interval=SURE_MS)
        self._sure.timeout.connect(self._unsure)
        self.slides.selectionModel().selectionChanged.connect(self._unsure)
        self.slides.selectionModel().selectionChanged.connect(self._enable)
        self._look.failed.connect(self._cannot)
        self._care.failed.connect(lambda text: self.said.emit(text, True))
        self._care.cancelled.connect(lambda: self.said.emit("Stopped.", False))
        self._care.progressed.connect(self.progressed)
        self._care.ended.connect(self._ended)
        self.show_database(None)

    @property
    def busy(self) -> bool:
        """Whether the database is being looked after."""
        return self._care.busy

    @property
    def stoppable(self) -> bool:
        """Whether what is going on can be stopped."""
        return self.busy and self._stoppable

    def show_database(self, path: Path | None) -> None:
        """Show what is in a database; None where none is open."""
        self._look.cancel()
        if path is None:
            self.inspection = None
            self.summary.setText(NOTHING)
            self._show_tables()
            return
        self.path.put(path, tell=False)
        self._look.start(self._seen, inspect_database, path)

    def offer(self, path: str) -> None:
        """Show a database that may be opened."""
        self.path.put(path, tell=False)
        if path:
            self.summary.setText(f"{NOTHING} Return in the line above opens {Path(path).name}.")

    def remove(self) -> None:
        """Remove the selected slides, once the user has said so twice."""
        chosen = [row[0] for row in self.slides.selected()]
        if not chosen or self.inspection is None:
            return
        if not self._sure.isActive():
            self.drop.setText(f"Click again: remove {count(len(chosen), 'slide')}")
            self._sure.start()
            return
        self._unsure()
        self._run("Removing …", care_jobs.remove, chosen)

    def relocate(self, folder: str = "") -> None:
        """Find slides that were moved, in a folder."""
        folder = folder or QFileDialog.getExistingDirectory(self, "Choose where the slides are now")
        if folder:
            self._run("Looking for slides …", care_jobs.relocate, folder)

    def export(self, target: str = "") -> None:
        """Copy the database."""
        target = (
            target
            or QFileDialog.getSaveFileName(self, "Choose a name for the copy", "", "Database (*.fish)")[0]
        )
        if target:
            path = Path(target) if target.endswith(".fish") else Path(f"{target}.fish")
            self._run("Copying …", care_jobs.copy, path, self.deidentify.isChecked())

    def cancel(self) -> None:
        """Stop what is going on, where that can be stopped."""
        self._look.cancel()
        if self.stoppable:
            self._care.cancel()
        self.labels.cancel()

    def set_usable(self, usable: bool) -> None:
        """Let the database be changed, or not while a build is writing to it."""
        self._usable = usable
        self._enable()

    def _enable(self, *_: Any) -> None:
        usable = self._usable and self.inspection is not None and not self.busy
        for button in (*self._buttons, self.drop, self.labels):
            button.setEnabled(usable)
        known = {record.slide: record for record in self.inspection.slides} if self.inspection else {}
        chosen = [known[row[0]] for row in self.slides.selected() if row[0] in known]
        self.left_out.offer(chosen, usable)

    def _run(self, what: str, work: Any, *args: Any) -> None:
        if self.inspection is None or self.busy:
            return
        self._stoppable = work in care_jobs.STOPPABLE
        self.said.emit(what, False)
        self.progressed.emit(0, 0)
        self._care.start(lambda text: self.said.emit(text, False), work, self.inspection.path, *args)
        self._enable()
        self.running.emit(True)

    def _ended(self) -> None:
        self.running.emit(False)
        self._enable()
        if self.inspection is not None:
            # Whatever came of it: what was stopped or failed may have changed something before.
            self.altered.emit(self.inspection.path)
            self.show_database(self.inspection.path)

    def _unsure(self, *_: Any) -> None:
        """Ask anew before anything is removed: time has passed, or other slides are selected."""
        self._sure.stop()
        self.drop.setText("Remove …")

    def _cannot(self, text: str) -> None:
        self.show_database(None)
        self.said.emit(text, True)

    def _seen(self, seen: Inspection) -> None:
        self.inspection = seen
        preferences.remember_recent("databases", str(seen.path))
        self.summary.setText(described(seen))
        made = f"made by napari-fish {seen.facts.version}"
        self.summary.setToolTip(f"{seen.path}\n{made}\nencoder {seen.facts.weights_hash[:16]}")
        self.labels.show_slides(seen.path, tuple(record.slide for record in seen.slides))
        self._show_tables()

    def _show_tables(self) -> None:
        seen = self.inspection
        offer(self.column, list(seen.columns) if seen else ["diagnosis"])
        self._count()
        rows = []
        slides, counts, away = (seen.slides, seen.patches, seen.away) if seen else ((), (), ())
        for record, patches in zip(slides, counts, strict=True):
            where = "not where it was" if record.slide in away else record.path
            labels = [f"{name}: {value}" for name, value in record.labels.items()]
            left_out, said = _left_out(record)
            tip = "\n".join([record.slide, where, said, *labels])
            about = record.diagnosis, patches, left_out, record.site, record.patient
            rows.append((record.slide, *about, tip))
        chosen = [row[0] for row in self.slides.selected()]
        self.slides.shown.show(rows)
        self.slides.fit_first(100, NAME_PX)
        # What was done to slides can be undone at once.
        self.slides.select(chosen)
        self._enable()

    def _count(self, *_: Any) -> None:
        found = self.inspection.count_by(self.column.currentText()) if self.inspection else []
        self.counts.shown.show(
            (one.value or "(not known)", one.slides, one.patches, one.value) for one in found
        )

    def _make(self) -> None:
        self.path = PathField(
            OWNER, "open", "A database to open: NAME.fish; drop it here.", "folder", "Open a database"
        )
        self.path.line.setPlaceholderText("open a database: NAME.fish")
        self.path.offer(preferences.recent("databases"))
        for signal in (self.path.changed, self.path.confirmed):
            signal.connect(lambda path: self.wanted.emit(path))
        self.summary = named(OWNER, QLabel(), "summary", "What is in this database.")
        self.summary.setWordWrap(True)
        self.column = named(OWNER, QComboBox(), "count_by", "Count slides and patches by this column.")
        self.counts = named(
            OWNER,
            Table(("value", "slides", "patches"), (0, 55, 65)),
            "count_table",
            "Slides and patches by value.",
        )
        self.counts.setFixedHeight(130)
        self.filter = named(OWNER, QLineEdit(), "filter", "Show only slides with this text in any column.")
        self.filter.setPlaceholderText("filter slides")
        self.filter.setClearButtonEnabled(True)
        self.slides = named(
            OWNER,
            Table(
                ("slide", "diagnosis", "patches", "left out", "site", "patient"), (100, 78, 66, 64, 60, 60)
            ),
            "slide_table",
            "All slides; select some to see what was left out of them, to keep it, or to remove them.",
        )
        self.slides.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.slides.setMinimumHeight(160)
        self.drop = named(
            OWNER,
            QPushButton("Remove …"),
            "remove",
            "Forget the selected slides; their files stay where they are.",
        )
        self.deidentify = named(
            OWNER,
            QCheckBox("de-identified"),
            "deidentify",
            "The copy names no patient, file or folder and has no pictures of whole slides.",
        )
        self.deidentify.setChecked(True)
        self.left_out = LeftOutControls(OWNER)
        self.left_out.look.connect(self.look)
        self.left_out.overrule.connect(self.overrule)
        self.labels = ImportPanel(OWNER)
        self.labels.wanted.connect(self._import)
        self._lay_out()

    def _import(self, labels: str, columns: dict[str, str], patient: str) -> None:
        self._run("Importing labels …", care_jobs.import_labels, labels, columns, patient or None)

    def _lay_out(self) -> None:
        actions = (
            ("Add slides …", "add", "Add slides on the Build page.", self._add),
            (
                "Relocate …",
                "relocate",
                "Find slides again after they were moved or renamed.",
                lambda: self.relocate(),
            ),
            (
                "Verify",
                "verify",
                "Read everything and check it.",
                lambda: self._run("Verifying …", care_jobs.verify),
            ),
            (
                "Compact",
                "compact",
                "Write the parts that are searched anew, without what was removed.",
                lambda: self._run("Compacting …", care_jobs.compact),
            ),
            ("Export copy …", "export", "Copy the database, to give it away.", lambda: self.export()),
        )
        self._buttons = []
        care = QGroupBox("Care")
        grid = QGridLayout(care)
        for number, (text, name, tip, react) in enumerate(actions):
            button = named(OWNER, QPushButton(text), name, tip)
            button.clicked.connect(react)
            self._buttons.append(button)
            grid.addWidget(button, number // 2, number % 2)
        grid.addWidget(self.deidentify, 2, 1)
        by = QHBoxLayout()
        by.addWidget(QLabel("Count by"))
        by.addWidget(self.column, 1)
        find = QHBoxLayout()
        find.addWidget(self.filter, 1)
        find.addWidget(self.drop)
        layout = QVBoxLayout(self)
        layout.addWidget(self.path)
        layout.addWidget(self.summary)
        layout.addLayout(by)
        layout.addWidget(self.counts)
        layout.addLayout(find)
        layout.addWidget(self.left_out)
        layout.addWidget(self.slides, 1)
        layout.addWidget(self.labels)
        layout.addWidget(care)
        self.column.currentIndexChanged.connect(self._count)
        self.filter.textChanged.connect(self.slides.narrow_to)
        self.drop.clicked.connect(self.remove)

    def _add(self) -> None:
        if self.inspection is not None:
            self.extend.emit(str(self.inspection.path))


def _left_out(record: SlideRecord) -> tuple[int | None, str]:
    """Return how many patches were left out of a slide, None where that is not known, and the same in words."""
    choice = record.choice
    if not choice.artefacts:
        return None, "What was left out is not known: it was built by an earlier version, or is one patch."
    setting = "" if choice.artefacts == "normal" else f" (artefacts {choice.artefacts})"
    return sum(choice.left_out.values()), told(choice.candidates, choice.left_out) + setting


def described(seen: Inspection) -> str:
    """Return what is in a database in a few lines."""
    patients = len([one for one in seen.count_by("patient") if one.value])
    near = (
        "not calibrated" if seen.threshold is None else f"≤ {seen.threshold} of {64 * seen.facts.words} bits"
    )
    numbers = (len(seen.slides), "slide"), (patients, "patient"), (sum(seen.patches), "patch")
    lines = [
        ", ".join(count(*number) for number in numbers),
        f"Encoder {seen.facts.encoder}, preset {seen.facts.preset}",
        f"Near is {near}; {in_bytes(seen.size)} on disk",
    ]
    if any(seen.judged):
        lines.insert(1, f"On tissue: {told(*seen.judged)}")
    lines += [as_sentence(text) for text in seen.warnings]
    if seen.away:
        lines.append(f"{count(len(seen.away), 'slide')} not where they were: use Relocate.")
    if seen.quarantined:
        bad = count(len(seen.quarantined), "slide")
        lines.append(f"{bad} could not be read: choose the folder on the Build page.")
    return "\n".join(lines)
