"""What to build, from what, where and how: the controls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QComboBox, QFormLayout, QLineEdit, QSpinBox, QVBoxLayout, QWidget

from napari_fish._napari import preferences
from napari_fish._napari.controls.common import OwnMpp, mpp_field, named
from napari_fish._napari.controls.device_choice import DeviceChoice
from napari_fish._napari.controls.fold import Fold
from napari_fish._napari.controls.path_field import PathField
from napari_fish._napari.database.build_job import Choices
from napari_fish._napari.database.build_survey import Prospect, suggested_labels, suggested_place
from napari_fish._napari.database.labels_panel import LabelsPanel
from napari_fish.building.params import BuildParams
from napari_fish.encode import DEFAULT_ENCODER, list_encoders
from napari_fish.mosaic import PRESETS
from napari_fish.mosaic.params import ARTEFACTS
from napari_fish.names import field_help
from napari_fish.slides.opening import expanded

OWNER = "database"
KEY = "build"
"""Under which the way to build is remembered."""
MOST_WORKERS = 64
TABLES = "Tables (*.csv *.tsv *.txt *.xlsx *.xlsm)"


class BuildForm(QWidget):
    """The controls of a build; :attr:`choices` says what they say."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._make()
        self._lay_out()
        self._connect()
        self.reset()
        self._recall()

    @property
    def choices(self) -> Choices:
        """What is chosen."""
        params = BuildParams(
            encoder=self.encoder.currentData(),
            preset=self.preset.currentData(),
            artefacts=self.artefacts.currentData(),
            patches=self.patches.isChecked() or None,
            mpp=self.mpp.value() or None,
            patient=self.patient.text().strip() or None,
            device=self.device.device,
            store_codes=self.store_codes.isChecked(),
            thumbnail_px=preferences.kept_picture_px(),
            batch=preferences.batch_size(),
            workers=self.workers.value(),
        )
        return Choices(self.slides.path, self.database.path, self.labels.path, self.columns.columns, params)

    def reset(self) -> None:
        """Go back to what the user prefers, without slides."""
        self.blockSignals(True)
        for field in (self.slides, self.labels, self.database):
            field.put("", tell=False)
        self.columns.forget()
        self.patient.clear()
        self.list_encoders()
        self.device.choose(preferences.preferred_device())
        self._own_mpp.forget()
        self.preset.setCurrentIndex(0)
        self.artefacts.setCurrentIndex(0)
        self.patches.setChecked(False)
        self.store_codes.setChecked(False)
        self.workers.setValue(0)
        self._place_is_ours = self._labels_are_ours = True
        for field, key in ((self.slides, "slides folders"), (self.database, "databases")):
            field.offer(preferences.recent(key))
        self.blockSignals(False)
        self.changed.emit()

    def keep(self) -> None:
        """Remember how the user likes to build; what belongs to the slides alone is not remembered."""
        known = {"preset": self.preset.currentData(), "store_codes": self.store_codes.isChecked()}
        if self.encoder.isEnabled():  # the user's choice, not that of the database
            known["encoder"] = self.encoder.currentData()
        preferences.remember(KEY, _known() | known)

    def _recall(self) -> None:
        known = _known()
        for box, name in ((self.encoder, "encoder"), (self.preset, "preset")):
            at = box.findData(known.get(name)) if known.get(name) else -1
            box.setCurrentIndex(at if at >= 0 else box.currentIndex())
        self.store_codes.setChecked(known.get("store_codes") is True)
        # Nothing that counts is hidden.
        self._more.open(self.preset.currentIndex() > 0 or self.store_codes.isChecked())

    def list_encoders(self) -> None:
        """Offer the encoders there are: built in, installed and cached."""
        self.encoder.clear()
        for info in list_encoders():
            if info.problem:
                continue
            self.encoder.addItem(f"{info.id} ({info.origin})", info.id)
            tip = "\n".join(text for text in (info.title, info.training, info.licence) if text)
            self.encoder.setItemData(self.encoder.count() - 1, tip, 3)  # Qt.ToolTipRole
        self.encoder.setCurrentIndex(max(0, self.encoder.findData(DEFAULT_ENCODER)))
        self.encoder.setEnabled(True)

    def take(self, path: Path) -> None:
        """Take a dropped file or folder as what it looks like."""
        if path.suffix.lower() in (".csv", ".tsv", ".txt", ".xlsx", ".xlsm"):
            self.labels.put(path)
        else:
            self.slides.put(path)

    def extend(self, database: str) -> None:
        """Add to a database."""
        self.database.put(database)
        self._place_is_ours = False

    def show_prospect(self, prospect: Prospect | None) -> None:
        """Show how the labels were understood, and which encoder a database has."""
        self.columns.show_understood(None if prospect is None else prospect.labels)
        fixed = "" if prospect is None else prospect.outlook.encoder
        if fixed:
            at = self.encoder.findData(fixed)
            if at < 0:
                self.encoder.addItem(fixed, fixed)
                at = self.encoder.count() - 1
            self.encoder.blockSignals(True)
            self.encoder.setCurrentIndex(at)
            self.encoder.blockSignals(False)
        self.encoder.setEnabled(not fixed)

    def _chose_slides(self, path: str) -> None:
        self._own_mpp.turn_to(str(expanded(path)) if path else "")
        if self._place_is_ours:
            self.database.put(suggested_place(path), tell=False)
        if self._labels_are_ours:
            self.labels.put(suggested_labels(path), tell=False)
            self.columns.forget()
        self.changed.emit()

    def _chose_place(self, path: str) -> None:
        self._place_is_ours = not path
        self.changed.emit()

    def _chose_labels(self, path: str) -> None:
        self._labels_are_ours = not path
        self.columns.forget()
        self.changed.emit()

    def _make(self) -> None:
        tips = field_help(BuildParams)
        self.slides = PathField(
            OWNER,
            "slides",
            "A folder of slides, searched with its subfolders; drop it here.",
            "folder",
            "Choose a folder of slides",
        )
        self.slides.line.setPlaceholderText("choose a folder, or drop it here")
        self.labels = PathField(
            OWNER,
            "labels",
            "A table with what is known of the slides: CSV, TSV or Excel, one row a slide. "
            "A file named labels among the slides is found by itself.",
            "file",
            "Choose a labels file",
            TABLES,
        )
        self.labels.line.setPlaceholderText("optional: CSV, TSV or Excel")
        self.database = PathField(
            OWNER,
            "place",
            "Where the database will be, or the one to resume or extend.",
            "new",
            "Choose where the database will be",
        )
        self.database.line.setPlaceholderText("NAME.fish")
        self.columns = LabelsPanel(OWNER)
        self.patient = named(OWNER, QLineEdit(), "patient", tips["patient"])
        self.patient.setPlaceholderText("as the labels say")
        self.encoder = named(OWNER, QComboBox(), "encoder", tips["encoder"])
        self.device = DeviceChoice(OWNER)
        self.mpp = mpp_field(OWNER, "mpp", tips["mpp"], "as the slides say")
        self._own_mpp = OwnMpp(self.mpp)
        self.preset = named(OWNER, QComboBox(), "preset", tips["preset"])
        self.preset.addItem("as the database has, or default", None)
        for name in PRESETS:
            self.preset.addItem(name, name)
        self.artefacts = named(OWNER, QComboBox(), "artefacts", tips["artefacts"])
        self.artefacts.addItem("as before, or normal", None)
        for setting in ARTEFACTS:
            self.artefacts.addItem(setting, setting)
        self.patches = named(OWNER, QCheckBox("Each image is one patch"), "patches", tips["patches"])
        self.store_codes = named(OWNER, QCheckBox("Keep latent codes"), "store_codes", tips["store_codes"])
        self.workers = named(OWNER, QSpinBox(), "workers", tips["workers"])
        self.workers.setRange(0, MOST_WORKERS)
        self.workers.setSpecialValueText("as suits this computer")
        for box in (self.encoder, self.device.box, self.preset, self.artefacts):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(8)

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.setVerticalSpacing(5)
        form.addRow("Slides", self.slides)
        form.addRow("Labels", self.labels)
        form.addRow(self.columns)
        form.addRow("Patient", self.patient)
        form.addRow("Encoder", self.encoder)
        form.addRow("Device", self.device)
        form.addRow("Database", self.database)
        more = QFormLayout()
        more.addRow("µm per px", self.mpp)
        more.addRow("Preset", self.preset)
        more.addRow("Artefacts", self.artefacts)
        more.addRow("Workers", self.workers)
        more.addRow(self.patches)
        more.addRow(self.store_codes)
        inside = QWidget()
        inside.setLayout(more)
        self._more = Fold(OWNER, "more", "More options", "Options that few builds need.", inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(form)
        layout.addWidget(self._more)

    def _connect(self) -> None:
        self.slides.changed.connect(self._chose_slides)
        self.labels.changed.connect(self._chose_labels)
        self.database.changed.connect(self._chose_place)
        self.columns.changed.connect(self.changed)
        self.patient.editingFinished.connect(self.changed)
        signals: tuple[Any, ...] = (
            self.encoder.currentIndexChanged,
            self.device.box.currentIndexChanged,
            self.mpp.valueChanged,
            self.preset.currentIndexChanged,
            self.artefacts.currentIndexChanged,
            self.patches.toggled,
            self.store_codes.toggled,
            self.workers.valueChanged,
        )
        for signal in signals:
            signal.connect(self._tell)

    def _tell(self, *_: Any) -> None:
        self.changed.emit()


def _known() -> dict[str, Any]:
    known = preferences.remembered(KEY, {})
    return known if isinstance(known, dict) else {}
