"""Where to compute, with what the devices of this machine are called."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QComboBox, QLabel, QVBoxLayout, QWidget

from napari_fish._napari.controls.common import named
from napari_fish._napari.jobs.one_job import OneJob


class DeviceChoice(QWidget):
    """A box of devices that fills itself beside the viewer, as asking for them loads torch."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self.box = named(
            owner, QComboBox(), "device", "Where patches are encoded: a GPU is ten to a hundred times faster."
        )
        self.box.addItem("fastest", "auto")
        self.text = named(owner, QLabel("Looking for devices …"), "device_text", "What this device is.")
        self.text.setWordWrap(True)
        self._described: dict[str, str] = {}
        self._job = OneJob(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.box)
        layout.addWidget(self.text)
        self.box.currentIndexChanged.connect(self._describe)
        self._job.failed.connect(self.text.setText)
        self._job.start(self._found, found_devices)

    @property
    def device(self) -> str:
        """Its name: auto, cuda, mps, xpu or cpu."""
        return str(self.box.currentData())

    def choose(self, device: str) -> None:
        """Choose a device; one that this machine lacks is shown, and refused when it is used."""
        if self.box.findData(device) < 0:
            self.box.addItem(device, device)
        self.box.setCurrentIndex(self.box.findData(device))

    def _found(self, devices: dict[str, str]) -> None:
        chosen = self.device
        self._described = devices
        self.box.blockSignals(True)
        self.box.clear()
        for device, text in devices.items():
            kind = text.split(":")[0].upper()
            self.box.addItem(f"fastest ({kind})" if device == "auto" else kind, device)
        self.choose(chosen)
        self.box.blockSignals(False)
        self._describe()

    def _describe(self, *_: Any) -> None:
        text = self._described.get(self.device, "This machine has no such device." if self._described else "")
        self.text.setText(text.partition(": ")[2] or text)


def found_devices(progress: Any = None, should_stop: Any = None) -> dict[str, str]:
    """Return the devices of this machine with a text for people; the first, ``auto``, is the fastest."""
    from napari_fish.encode.bundle.device import (
        available_devices,
        describe_device,
        keep_triton_out,
        load_torch_libraries,
    )

    load_torch_libraries()
    keep_triton_out()
    return {device: describe_device(device) for device in ("auto", *available_devices())}
