"""No PySide6 that loses references to None, True and False is installed with the viewer."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from napari_fish._napari.qt_version import loses_references

PROGRAM = """
import sys
from qtpy.QtCore import QCoreApplication, QObject, Signal

class Sender(QObject):
    sent = Signal(bool)

app, sender = QCoreApplication([]), Sender()
sender.sent.connect(lambda value: None)
before = [sys.getrefcount(one) for one in (None, True, False)]
for _ in range(300):
    sender.sent.emit(True)
    app.processEvents()
after = [sys.getrefcount(one) for one in (None, True, False)]
print(min(b - a for a, b in zip(before, after, strict=True)))
"""


def test_what_is_installed_loses_no_references() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) > -100, "this PySide6 loses references; run tools/setup test again"


@pytest.mark.parametrize(
    ("python", "pyside", "is_wanted"),
    [("3.11", "6.11.3", True), ("3.11", "6.12.0", False), ("3.12", "6.12.0", True), ("3.13", "6.12.1", True)],
)
def test_the_extra_brings_no_pair_that_loses_references(python: str, pyside: str, is_wanted: bool) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    extra = [Requirement(one) for one in project["project"]["optional-dependencies"]["all"]]
    counting = [
        one
        for one in extra
        if one.name == "PySide6" and (one.marker is None or one.marker.evaluate({"python_version": python}))
    ]
    assert all(pyside in one.specifier for one in counting) == is_wanted
    major, minor = (int(part) for part in python.split("."))
    assert loses_references((major, minor), pyside) != is_wanted
