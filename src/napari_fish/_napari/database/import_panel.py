"""Labels for a database that is there: a file, its columns, a button."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFormLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from napari_fish._napari.controls.common import named
from napari_fish._napari.controls.fold import Fold
from napari_fish._napari.controls.path_field import PathField
from napari_fish._napari.database.build_form import TABLES
from napari_fish._napari.database.build_survey import Understood, understand
from napari_fish._napari.database.labels_panel import LabelsPanel
from napari_fish._napari.jobs.one_job import OneJob


class ImportPanel(QWidget):
    """Asks for a labels file, shows how it is understood, and lets the user correct that before it counts."""

    wanted = Signal(str, dict, str)
    """A file, its corrected columns, and the patient rule."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self._slides: tuple[str, ...] = ()
        self._database: Path | None = None
        self.file = PathField(
            owner,
            "import",
            "A table with what is known of the slides: CSV, TSV or Excel, one row a slide.",
            "file",
            "Choose a labels file",
            TABLES,
        )
        self.columns = LabelsPanel(owner, "import")
        self.patient = named(
            owner,
            QLineEdit(),
            "import_rule",
            "A column, or a regular expression to be found in the file name whose first group is the patient.",
        )
        self.patient.setPlaceholderText("as the file says")
        self.button = named(
            owner, QPushButton("Import labels"), "import_labels", "Give the slides these labels."
        )
        self.button.setEnabled(False)
        form = QFormLayout()
        form.addRow("Labels", self.file)
        form.addRow(self.columns)
        form.addRow("Patient", self.patient)
        form.addRow(self.button)
        inside = QWidget()
        inside.setLayout(form)
        folded = Fold(owner, "import_section", "Import labels", "Labels that come later.", inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(folded)
        self._job = OneJob(self)
        self._job.failed.connect(self.columns.complain)
        self.file.changed.connect(self._chosen)
        self.columns.changed.connect(self._look)
        self.patient.editingFinished.connect(self._look)
        self.button.clicked.connect(self._ask)

    def show_slides(self, database: Path, slides: tuple[str, ...]) -> None:
        """Take note of what is in the database."""
        self._slides = slides
        if database != self._database:
            self._database = database
            self.file.put("", tell=False)
            self._chosen("")

    def cancel(self) -> None:
        """Stop reading a file."""
        self._job.cancel()

    def _chosen(self, path: str) -> None:
        self.columns.forget()
        self.button.setEnabled(False)
        if path:
            self._look()

    def _look(self) -> None:
        if self.file.path:
            self._job.start(
                self._seen,
                _understand,
                self.file.path,
                self.columns.columns,
                self._slides,
                self.patient.text().strip() or None,
            )

    def _seen(self, understood: Understood) -> None:
        self.columns.show_understood(understood)
        self.button.setEnabled(not understood.problem)

    def _ask(self) -> None:
        self.wanted.emit(self.file.path, self.columns.columns, self.patient.text().strip())


def _understand(*args: Any, progress: Any, should_stop: Any) -> Understood:
    return understand(*args)
