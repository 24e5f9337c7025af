"""Encoding beside a viewer."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import napari, numpy as np
viewer = napari.Viewer(show=True)
viewer.add_image(np.zeros((64, 64)))
viewer.screenshot(canvas_only=True, flash=False)
from napari_fish.encode.networks.densenet import DenseNetTexture
import torch
features = DenseNetTexture()(torch.zeros(1, 3, 64, 64))
torch.optim.Adam([torch.zeros(1, requires_grad=True)]).step()
viewer.close()
print("features:", tuple(features.shape))
"""


def test_networks_load_in_a_process_whose_graphics_driver_brought_its_own_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert "features: (1, 1024)" in done.stdout, (done.returncode, done.stderr[-2000:])


GENTLY = """
import pathlib, sys
from napari_fish.encode.bundle.device import available_devices, load_torch_libraries
load_torch_libraries()
assert "torch" not in sys.modules
print("loaded:", "libtorch_cpu" in pathlib.Path("/proc/self/maps").read_text())
load_torch_libraries()
print("devices:", available_devices()[-1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_libraries_of_torch_are_loaded_before_it_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", GENTLY], capture_output=True, text=True, check=False)
    assert done.stdout == "loaded: True\ndevices: cpu\n", (done.returncode, done.stderr[-2000:])
