"""Which device computes."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from napari_fish.errors import EncoderError

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cuda", "mps", "xpu", "cpu")


def keep_triton_out() -> None:
    """Let torch do without Triton where loading it would end the process; call before networks are made.

    Triton carries an LLVM of its own, which crashes beside that of Mesa, the graphics driver of many a
    Linux viewer. torch imports it along with torchvision and with its optimisers, and needs it only for
    compiling on GPUs. May go when Triton hides its LLVM: ``tests/test_workarounds.py`` fails on that day.
    """
    maps = Path("/proc/self/maps")
    if "triton" not in sys.modules and maps.exists() and "libLLVM" in maps.read_text(errors="replace"):
        sys.modules["triton"] = None  # type: ignore[assignment]


def load_torch_libraries() -> None:
    """Load what makes importing torch slow without keeping other threads from running; changes nothing else.

    An import holds the interpreter while it loads a library of hundreds of megabytes, and so holds up a viewer even
    from another thread. A call through ctypes lets go of it. Where this fails, the import does the same or says why.
    May go when the viewer's process does not encode any more: ``tests/test_workarounds.py`` fails on that day.
    """
    if "torch" in sys.modules or not hasattr(os, "RTLD_LAZY"):
        return
    found = importlib.util.find_spec("torch")
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        for library in Path(folder).glob("lib/libtorch.*"):
            if library.suffix in (".so", ".dylib"):
                load = ctypes.CDLL(None).dlopen
                load.restype, load.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
                load(os.fsencode(library), os.RTLD_LAZY)


def available_devices() -> list[str]:
    """Return the devices of this machine, the fastest first; the last is always ``"cpu"``."""
    import torch

    found = []
    if torch.cuda.is_available():
        found.append("cuda")
    if torch.backends.mps.is_available():
        found.append("mps")
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        found.append("xpu")
    return [*found, "cpu"]


def pick_device(name: str = "auto") -> torch.device:
    """Return the device called ``name``, or the fastest for ``"auto"``.

    Parameters
    ----------
    name : str
        One of :data:`DEVICES`, or one with a number, such as ``"cuda:1"``.
    """
    import torch

    devices = available_devices()
    if name == "auto":
        return torch.device(devices[0])
    kind = name.split(":")[0]
    if kind not in DEVICES:
        raise EncoderError(f"unknown device {name!r}; choose one of {', '.join(DEVICES)}.")
    if kind not in devices:
        raise EncoderError(f"this machine has no usable {kind!r} device; it has {', '.join(devices)}.")
    return torch.device(name)


def describe_device(name: str = "auto") -> str:
    """Return a name for people, such as ``"cuda: NVIDIA RTX A4000, 14.9 of 16.0 GiB free"``."""
    import torch

    device = pick_device(name)
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        gib = 2**30
        title = torch.cuda.get_device_name(device)
        return f"cuda: {title}, {free / gib:.1f} of {total / gib:.1f} GiB free"
    if device.type == "xpu":
        return f"xpu: {torch.xpu.get_device_name(device)}"
    if device.type == "mps":
        return "mps: Apple GPU"
    return f"cpu: {torch.get_num_threads()} threads of {os.cpu_count()} cores"
