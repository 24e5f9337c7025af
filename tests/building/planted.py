"""Slides that end, hold up or bloat the program that reads them, for workers that are processes of their own."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from napari_fish.encode import Encoder, load_encoder
from tests.tiny import QuickEncoder, quick_encoder


def planted_encoder(name_or_path: object = "quick", device: str = "auto") -> QuickEncoder:
    """Stand in for ``load_encoder`` in a worker, without networks, where slides do what they are called."""
    plant()
    return quick_encoder(name_or_path, device)


def planted_real_encoder(name_or_path: str, device: str = "auto") -> Encoder:
    """Load an encoder in a worker, where slides do what they are called."""
    plant()
    return load_encoder(name_or_path, device)


def plant() -> None:
    """Let what slides are called decide what opening them does to this process."""
    from napari_fish.building import encoding

    really = encoding.open_slide

    def opened(path: Path, **options: Any) -> Any:
        if "segfault" in path.name:
            ctypes.string_at(0)
        if "hang" in path.name:
            time.sleep(3600)
        if "hog" in path.name:
            kept = []
            while True:
                kept.append(np.ones(8_000_000))
        if "exception" in path.name:
            raise ZeroDivisionError("in the depths of a library")
        if "moody" in path.name and not (tried := path.with_suffix(".tried")).exists():
            tried.touch()
            os.kill(os.getpid(), signal.SIGBUS)
        return really(path, **options)

    encoding.open_slide = opened  # type: ignore[assignment]
