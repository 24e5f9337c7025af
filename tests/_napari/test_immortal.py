"""Qt may lose references to None, True and False; the viewer lives on."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import napari_fish._napari
from qtpy.QtCore import QCoreApplication, QObject, Signal

class Sender(QObject):
    sent = Signal(bool)

app, sender = QCoreApplication([]), Sender()
sender.sent.connect(lambda value: None)
for _ in range(200_000):
    sender.sent.emit(True)
    app.processEvents()
print("alive", flush=True)
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="counts references in another way")
def test_many_signals_and_calls_do_not_end_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "alive"
