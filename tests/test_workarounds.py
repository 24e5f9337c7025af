"""What we do because of a fault of others: each test has the fault happen, and fails on the day on which it is gone.

Whoever sees one fail deletes what is named in it, then the test.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "napari_fish"
CLOSED_VIEWER = """
import gc, sys, threading
import napari
from qtpy.QtWidgets import QApplication

gc.disable()
viewer = napari.Viewer(show=False)
viewer.close()
del viewer
QApplication.processEvents()
if sys.argv[1] == "thread":
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()
else:
    gc.collect()
for _ in range(20):
    QApplication.processEvents()
"""
TWO_LLVMS = """
import ctypes, sys

ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
import triton._C.libtriton
"""


def _ends(program: str, argument: str) -> int:
    """Return the code with which a program ends that is given an argument."""
    return subprocess.run(
        [sys.executable, "-c", program, argument], capture_output=True, check=False
    ).returncode


@pytest.mark.skipif(
    sys.platform != "linux", reason="how a program ends that touches a window from a thread differs"
)
def test_a_closed_viewer_must_still_not_be_collected_in_a_thread() -> None:
    assert _ends(CLOSED_VIEWER, "main thread") == 0
    # Now and then one gets away with it.
    assert any(_ends(CLOSED_VIEWER, "thread") != 0 for _ in range(8)), (
        "napari's canvas may be collected in any thread now: jobs.housekeeping.Collector need not keep garbage for the "
        "main thread"
    )


def test_the_viewer_still_encodes_queries_in_its_own_process() -> None:
    jobs = (SOURCE / "_napari" / "session" / "session_jobs.py").read_text(encoding="utf-8")
    assert "database.encoder" in jobs, (
        "nothing heavy runs in a thread of the viewer any more: the shorter turns of threads in jobs.housekeeping and "
        "load_torch_libraries in encode.bundle.device may go"
    )


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="TRITON MISSING: torch came without it"
)
def test_triton_still_ends_a_process_that_has_the_llvm_of_a_graphics_driver() -> None:
    llvm = ctypes.util.find_library("LLVM") or next(
        (found for n in range(30, 10, -1) if (found := ctypes.util.find_library(f"LLVM-{n}"))), None
    )
    if llvm is None:
        pytest.skip("LLVM MISSING: this machine has no graphics driver that brings one")
    assert _ends(TWO_LLVMS, llvm) != 0, "Triton lives with another LLVM now: keep_triton_out may go"


def test_scikit_learn_still_warns_of_a_leak_that_we_cannot_have() -> None:
    spec = importlib.util.find_spec("sklearn.cluster._kmeans")
    assert spec is not None and spec.origin is not None
    assert "KMeans is known to have a memory leak" in Path(spec.origin).read_text(encoding="utf-8"), (
        "mosaic.select need not silence a warning that is never given"
    )


def test_python_3_11_is_still_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=3.11", (
        "from Python 3.12 on no PySide6 loses references to None: _napari.qt_version, its test and the second "
        "requirement of the extra all may go"
    )


def test_napari_still_does_not_bind_the_keys_of_a_manifest() -> None:
    spec = importlib.util.find_spec("napari.plugins._npe2")
    assert spec is not None and spec.origin is not None
    assert "keybindings=[]," in Path(spec.origin).read_text(encoding="utf-8"), (
        "napari may bind the keys of a manifest by itself now: see whether _napari.shortcuts may go"
    )
