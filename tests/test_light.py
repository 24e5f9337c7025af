"""What is light stays light: the command line's help and the plugin's menu are there at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numba", "pandas", "scipy", "sklearn", "torch")


@pytest.mark.parametrize(
    "module", ["napari_fish", "napari_fish.cli", "napari_fish.search.params", "napari_fish.evaluate.params"]
)
def test_help_and_parameters_load_no_heavy_library(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
