"""The rooms of the house keep to themselves."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import napari_fish


def modules_outside_the_plugin() -> list[str]:
    names = (m.name for m in pkgutil.walk_packages(napari_fish.__path__, "napari_fish."))
    return [n for n in names if "._napari" not in n and not n.endswith("__main__")]


def test_everything_but_the_plugin_works_without_qt_and_napari() -> None:
    code = (
        "import importlib, sys\n"
        "for blocked in ('qtpy', 'napari', 'magicgui', 'PySide6', 'PyQt6'): sys.modules[blocked] = None\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print('all there')\n"
    )
    names = modules_outside_the_plugin()
    assert "napari_fish.slides.tiff" in names
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=False)
    assert "all there" in done.stdout, done.stderr
