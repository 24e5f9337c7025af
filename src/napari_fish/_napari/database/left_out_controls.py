"""The controls for what was left out of the selected slides: look at it, keep it, leave it out again."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QPushButton, QWidget

from napari_fish._napari.controls.common import named
from napari_fish.store.records import SlideRecord

LOOK = "Show what was left out"
LOOK_TIP = "Open the selected slide, with the patches that were kept and those that were left out, and why."
KEEP, LEAVE_OUT = "Keep them", "Leave them out again"
_TIPS = {
    KEEP: "Encode the selected slides again with everything that was left out: artefacts off.",
    LEAVE_OUT: "Encode the selected slides again without ink, folds, debris and blur: artefacts normal.",
}


class LeftOutControls(QWidget):
    """Two buttons that fit the slides that are selected."""

    look = Signal(str)
    """The slide to look at."""
    overrule = Signal(list, str)
    """Slides to encode again, and how strictly artefacts are left out of them."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self._chosen: Sequence[SlideRecord] = []
        self._look = named(owner, QPushButton(LOOK), "show_left_out", LOOK_TIP)
        self._keep = named(owner, QPushButton(KEEP), "keep", _TIPS[KEEP])
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for button in (self._look, self._keep):
            row.addWidget(button, 1)
        self._look.clicked.connect(lambda: self.look.emit(self._chosen[0].slide))
        self._keep.clicked.connect(self._overrule)

    def offer(self, chosen: Sequence[SlideRecord], usable: bool = True) -> None:
        """Fit the buttons to the slides that are selected."""
        self._chosen = chosen
        kept = bool(chosen) and all(record.choice.artefacts == "off" for record in chosen)
        text = LEAVE_OUT if kept else KEEP
        self._keep.setText(text)
        self._keep.setToolTip(_TIPS[text])
        self._keep.setEnabled(usable and bool(chosen))
        self._look.setEnabled(usable and len(chosen) == 1)

    def _overrule(self) -> None:
        setting = "normal" if self._keep.text() == LEAVE_OUT else "off"
        self.overrule.emit([record.slide for record in self._chosen], setting)
