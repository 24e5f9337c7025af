"""The controls above the gallery, which wrap where there is little room."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QWidget,
)
from superqt import QFlowLayout

from napari_fish._napari.controls.common import named
from napari_fish._napari.layers.magnification import OBJECTIVES, mpp_at
from napari_fish._napari.preferences import remember, remembered, thumbnail_size
from napari_fish._napari.results.card import SIZES
from napari_fish._napari.results.gallery_order import GROUPS, SORTS
from napari_fish._napari.shortcuts import with_shortcut


class ResultsControls(QWidget):
    """Size, order, refining, comparing and exporting; says what was pressed and decides nothing."""

    arranged = Signal(str, str, str)
    """Size, sort and group."""
    refine = Signal()
    undo = Signal()
    compare = Signal()
    clear = Signal()
    jump = Signal()
    zoom = Signal(float)
    """An objective."""

    def __init__(self, export_menu: QMenu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._size = self._choice("size", tuple(SIZES), "How large the cards are.")
        self._sort = self._choice("sort", SORTS, "By what the cards are sorted.")
        self._group = self._choice("group", GROUPS, "What cards are put under a heading for.")
        self._refine = self._button(
            "Refine", "refine", "Search again with your thumbs up and down.", self.refine, "refine_answer"
        )
        self._undo = self._button("Undo", "undo", "Take your last thumb back, and its search too.", self.undo)
        self._jump = self._button(
            "Jump",
            "jump",
            "Open the chosen slide and draw what matches on it and on the query.",
            self.jump,
            "jump_to_hit",
        )
        self._compare = self._button(
            "Compare",
            "compare",
            "Query and hits side by side, same magnification, same camera.",
            self.compare,
            "compare_hits",
        )
        self._clear = self._button(
            "Clear",
            "clear",
            "Stop or leave the comparison: the viewer as it was.",
            self.clear,
            "clear_comparison",
        )
        self._export = self._button("Export", "export", "Write the answer to a file.", None)
        self._export.setMenu(export_menu)
        reset = self._button("Reset", "reset", "Size, order and groups as at first.", None)
        reset.clicked.connect(self.reset)
        flow = QFlowLayout(self)
        flow.setContentsMargins(0, 0, 0, 0)
        flow.setHorizontalSpacing(8)
        groups: tuple[list[Any], ...] = (
            [self._size],
            ["sort", self._sort],
            ["group", self._group],
            [self._refine, self._undo],
            [self._jump, self._compare, self._clear],
            [self._lens(objective) for objective in OBJECTIVES],
            [self._export, reset],
        )
        for group in groups:
            flow.addWidget(_together(group))
        self._restore()
        for box in (self._size, self._sort, self._group):
            box.currentTextChanged.connect(self._changed)
        self.update_state(answered=False, chosen=False, comparing=False, pending=0, judged=0)

    @property
    def arrangement(self) -> tuple[str, str, str]:
        """Size, sort and group as chosen."""
        return self._size.currentText(), self._sort.currentText(), self._group.currentText()

    def reset(self) -> None:
        """Go back to the first size and order, without groups."""
        for box, text in zip((self._size, self._sort, self._group), _first(), strict=True):
            box.setCurrentText(text)

    def update_state(
        self, *, answered: bool, chosen: bool, comparing: bool, pending: int, judged: int
    ) -> None:
        """Enable what makes sense now; ``pending`` thumbs have not been searched with."""
        self._refine.setEnabled(answered and pending > 0)
        self._refine.setText(f"Refine ({pending})" if pending else "Refine")
        self._undo.setEnabled(judged > 0)
        self._jump.setEnabled(answered and chosen)
        self._compare.setEnabled(answered)
        self._clear.setEnabled(comparing)
        self._export.setEnabled(answered)

    def _choice(self, name: str, texts: tuple[str, ...], tip: str) -> QComboBox:
        box = named("results", QComboBox(), name, tip)
        box.addItems(texts)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        return box

    def _button(self, text: str, name: str, tip: str, signal: Any, command: str = "") -> QPushButton:
        button = named("results", QPushButton(text), name, with_shortcut(tip, command))
        button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        if signal is not None:
            button.clicked.connect(lambda: signal.emit())
        return button

    def _lens(self, objective: int) -> QPushButton:
        tip = f"Show the canvas as through a {objective}x objective: one px is {mpp_at(objective):g} µm."
        button = self._button(f"{objective}x", f"x{objective}", tip, None)
        button.setFixedWidth(button.fontMetrics().horizontalAdvance("40x") + 12)
        button.clicked.connect(lambda: self.zoom.emit(float(objective)))
        return button

    def _restore(self) -> None:
        names = ("size", "sort", "group")
        for name, box, first in zip(names, (self._size, self._sort, self._group), _first(), strict=True):
            before = str(remembered(f"results.{name}", first))
            box.setCurrentText(before if box.findText(before) >= 0 else first)

    def _changed(self, *_: Any) -> None:
        for name, text, first in zip(("size", "sort", "group"), self.arrangement, _first(), strict=True):
            # What is as preferred follows the preference, should that change.
            remember(f"results.{name}", "" if text == first else text)
        self.arranged.emit(*self.arrangement)


def _first() -> tuple[str, str, str]:
    """Return size, sort and group to begin with: the size that comes next to the one preferred."""
    wanted = thumbnail_size()
    return min(SIZES, key=lambda name: abs(SIZES[name] - wanted)), SORTS[0], GROUPS[0]


def _together(controls: list[Any]) -> QWidget:
    """Put controls into a group that is never torn apart; a text becomes a label."""
    group = QWidget()
    row = QHBoxLayout(group)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(2)
    for control in controls:
        row.addWidget(QLabel(control) if isinstance(control, str) else control)
    return group
