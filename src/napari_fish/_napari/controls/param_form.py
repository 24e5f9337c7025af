"""Forms made from parameter classes: one control a field, its docstring as the tooltip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QFormLayout, QGroupBox, QSpinBox, QWidget

from napari_fish.names import field_help


class ParamForm(QGroupBox):
    """Shows some fields of a frozen dataclass and makes changed copies of it.

    Parameters
    ----------
    title : str
        Heading of the group.
    params : dataclass instance
        What to show at first, and where the fields not shown come from.
    names : sequence of str
        The fields to show, in this order.
    """

    changed = Signal()

    def __init__(self, title: str, params: Any, names: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(title, parent)
        self._params = params
        self._controls: dict[str, QWidget] = {}
        kinds = get_type_hints(type(params))
        explained = field_help(type(params))
        layout = QFormLayout(self)
        for name in names:
            control = _control(kinds[name])
            control.setObjectName(f"{type(params).__name__}.{name}")
            control.setToolTip(explained[name])
            _signal(control).connect(self.changed)
            layout.addRow(name.replace("_", " "), control)
            layout.labelForField(control).setToolTip(explained[name])
            self._controls[name] = control
        self.show_params(params)

    def show_params(self, params: Any) -> None:
        """Show other values, without telling anybody."""
        self._params = params
        for name, control in self._controls.items():
            control.blockSignals(True)
            _put(control, getattr(params, name))
            control.blockSignals(False)

    def params(self) -> Any:
        """Return the parameters as shown; ValueError says what makes no sense."""
        known = {field.name for field in fields(self._params)}
        values = {name: _get(control) for name, control in self._controls.items() if name in known}
        return replace(self._params, **values)


def _control(kind: Any) -> QWidget:
    if kind is bool:
        return QCheckBox()
    if get_origin(kind) is Literal:
        box = QComboBox()
        box.addItems([str(a) for a in get_args(kind)])
        return box
    if kind is int:
        whole = QSpinBox()
        whole.setRange(0, 1_000_000)
        whole.setKeyboardTracking(False)
        return whole
    number = QDoubleSpinBox()
    number.setRange(-1000, 1_000_000)
    number.setDecimals(2)
    number.setSingleStep(0.05)
    number.setKeyboardTracking(False)
    return number


def _signal(control: Any) -> Any:
    if isinstance(control, QCheckBox):
        return control.toggled
    return control.currentTextChanged if isinstance(control, QComboBox) else control.valueChanged


def _put(control: Any, value: Any) -> None:
    if isinstance(control, QCheckBox):
        control.setChecked(value)
    elif isinstance(control, QComboBox):
        control.setCurrentText(value)
    else:
        control.setValue(value)


def _get(control: Any) -> Any:
    if isinstance(control, QCheckBox):
        return control.isChecked()
    return control.currentText() if isinstance(control, QComboBox) else control.value()
