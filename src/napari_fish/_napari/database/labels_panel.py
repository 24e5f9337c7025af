"""Which column of a labels file means what: guessed, shown, corrected."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QGridLayout, QLabel, QVBoxLayout, QWidget

from napari_fish._napari.controls.common import StateLine, named
from napari_fish._napari.database.build_survey import ROLES, Understood

NONE = "(none)"
_TIPS = {
    "slide": "The column with the file names of the slides.",
    "patient": "The column that tells patients apart; hits of the same patient are left out of answers.",
    "site": "The column with the organ.",
    "diagnosis": "The column with the diagnosis, which hits are coloured and ranked by.",
    "stain": "The column with the stain.",
}


class LabelsPanel(QWidget):
    """One box a role, filled with the columns of the file; hidden while there is no file.

    Parameters
    ----------
    owner
        First part of the object names.
    prefix
        Second part, where a widget has two of these.
    """

    changed = Signal()
    """The user corrected a column."""

    def __init__(self, owner: str, prefix: str = "column") -> None:
        super().__init__()
        self._boxes = {role: named(owner, QComboBox(), f"{prefix}_{role}", _TIPS[role]) for role in ROLES}
        self.text = named(owner, StateLine(), f"{prefix}_text", "How the labels fit the slides.")
        self._corrected: dict[str, str] = {}
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(4)
        grid.setVerticalSpacing(3)
        for number, (role, box) in enumerate(self._boxes.items()):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(3)
            box.activated.connect(self._correct)
            row, column = divmod(number, 2)
            grid.addWidget(QLabel(role), row, 2 * column)
            grid.addWidget(box, row, 2 * column + 1)
            # The roles of the second column have longer names, and so have what is chosen for them.
            grid.setColumnStretch(2 * column + 1, 2 + column)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._columns = QWidget()
        self._columns.setLayout(grid)
        layout.addWidget(self._columns)
        layout.addWidget(self.text)
        self.forget()

    @property
    def columns(self) -> dict[str, str]:
        """What the user corrected: a column for each such role, empty for none."""
        return dict(self._corrected)

    def forget(self) -> None:
        """Forget the file and all corrections."""
        self._corrected = {}
        self.text.say("")
        self.hide()

    def complain(self, text: str) -> None:
        """Say why a file could not even be looked at."""
        self.show_understood(Understood(problem=text))

    def show_understood(self, understood: Understood | None) -> None:
        """Show how a file was understood; None where there is none."""
        self.setVisible(understood is not None)
        if understood is None:
            return
        self._columns.setVisible(bool(understood.header))
        for role, box in self._boxes.items():
            box.blockSignals(True)
            box.clear()
            box.addItems([NONE, *dict.fromkeys(name for name in understood.header if name)])
            chosen = (understood.columns or {}).get(role, "")
            at = next((i for i in range(box.count()) if box.itemText(i).casefold() == chosen.casefold()), 0)
            box.setCurrentIndex(at)
            box.blockSignals(False)
        self.text.say(str(understood), bool(understood.problem))

    def _correct(self, *_: Any) -> None:
        """Take all boxes as they are: what was guessed for one must not move to another meanwhile."""
        self._corrected = {
            role: "" if box.currentText() == NONE else box.currentText() for role, box in self._boxes.items()
        }
        self.changed.emit()
