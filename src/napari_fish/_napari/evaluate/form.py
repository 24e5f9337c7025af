"""What the Evaluate widget is asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from qtpy.QtWidgets import QCheckBox, QComboBox, QFormLayout, QHBoxLayout, QLayout, QSpinBox, QWidget

from napari_fish._napari.controls.common import named, offer
from napari_fish.evaluate import EvaluateParams
from napari_fish.evaluate.params import DEPTH, LEVELS
from napari_fish.names import MODES, RANKINGS, WHICH_SLIDE, field_help

ALL_MODES, EVERYWHERE, OWN_RANKING, AS_BUILT = (
    "all, side by side",
    "everywhere",
    "each mode's own",
    "as built",
)
_HELP = field_help(EvaluateParams)
_named = partial(named, "evaluate")


class EvaluateForm(QWidget):
    """The parameters of an evaluation, a few to a line."""

    def __init__(self) -> None:
        super().__init__()
        first = EvaluateParams()
        self._target = _box("target")
        self._within = _box("within")
        self._mode = _box("mode", ALL_MODES, *MODES)
        self._ranking = _box("ranking", OWN_RANKING, *RANKINGS)
        self._level = _box("level", AS_BUILT, *LEVELS)
        self._k = _named(QSpinBox(), "k", _HELP["k"])
        self._k.setRange(1, DEPTH)
        self._k.setValue(first.k)
        self._sample = _named(QSpinBox(), "sample", _HELP["sample"])
        self._sample.setRange(0, 1_000_000)
        self._sample.setSpecialValueText("every slide")
        self._ablation = _named(QCheckBox("parts of the ranking"), "ablation", _HELP["ablation"])
        self._speed = _named(QCheckBox("speed"), "speed", _HELP["speed"] + " Takes minutes.")
        self._lines = QFormLayout(self)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.addRow("right means same", self._target)
        self._lines.addRow("found within same", self._within)
        self._lines.addRow("mode, ranking", in_line(self._mode, self._ranking))
        self._lines.addRow("level, sample", in_line(self._level, self._sample))
        self._lines.addRow("first k", in_line(self._k, self._ablation, self._speed))

    def put_first(self, *rows: tuple[str, QWidget | QLayout]) -> None:
        """Put rows of the widget above ours, so that all align."""
        for at, (text, row) in enumerate(rows):
            self._lines.insertRow(at, text, row)

    def offer_columns(self, columns: list[str]) -> None:
        """Offer the columns of a database."""
        useful = [name for name in columns if name not in WHICH_SLIDE]
        offer(self._target, sorted(useful, key=lambda name: name != "diagnosis"))
        offer(self._within, [EVERYWHERE, *useful])

    def params(self) -> EvaluateParams:
        """Return what is asked for, as shown."""
        return replace(
            EvaluateParams(),
            k=self._k.value(),
            level=_unless(self._level, AS_BUILT),
            target=self._target.currentText() or "diagnosis",
            mode=_unless(self._mode, ALL_MODES),
            ranking=_unless(self._ranking, OWN_RANKING),
            within=_unless(self._within, EVERYWHERE) or "",
            sample=self._sample.value() or None,
            ablation=self._ablation.isChecked(),
            speed=self._speed.isChecked(),
        )

    def reset(self) -> None:
        """Ask as at first."""
        first = EvaluateParams()
        for box in (self._target, self._within, self._mode, self._ranking, self._level):
            box.setCurrentIndex(0)
        self._k.setValue(first.k)
        self._sample.setValue(0)
        self._ablation.setChecked(first.ablation)
        self._speed.setChecked(first.speed)


def in_line(*controls: QWidget) -> QHBoxLayout:
    """Return controls side by side."""
    line = QHBoxLayout()
    for control in controls:
        line.addWidget(control)
    return line


def _box(name: str, *values: str) -> Any:
    box = _named(QComboBox(), name, _HELP[name])
    box.addItems(values)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(8)
    return box


def _unless(box: QComboBox, nothing: str) -> Any:
    """Return what is chosen, None for the entry that stands for nothing."""
    return None if box.currentText() in (nothing, "") else box.currentText()
