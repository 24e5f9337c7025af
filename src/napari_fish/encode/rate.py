"""How fast an encoder is on this machine: measured once, then remembered from real work."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

import numpy as np

from napari_fish.encode.bundle import cache_folder
from napari_fish.encode.device import describe_device
from napari_fish.encode.encoder import Encoder


def known_rate(weights_hash: str, device: str) -> float | None:
    """Return patches per second of an encoder on a device, where they were measured before.

    Parameters
    ----------
    weights_hash
        Hash of the encoder.
    device
        Where it computes: cuda, mps, xpu or cpu.
    """
    rate = _all().get(_name(weights_hash, device))
    return rate if isinstance(rate, float) and rate > 0 else None


def remember_rate(weights_hash: str, device: str, rate: float) -> None:
    """Keep patches per second; a folder that cannot be written only costs another measurement."""
    path = _file()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        rates = {**_all(), _name(weights_hash, device): rate}
        partial.write_text(json.dumps(rates), encoding="utf-8")
        os.replace(partial, path)


def measure_rate(encoder: Encoder) -> float:
    """Return patches per second of a loaded encoder: one batch to warm up, one on the clock."""
    size = encoder.card.size
    noise = np.random.default_rng(0).integers(0, 256, (encoder.batch, size, size, 3), np.uint8)
    encoder.encode(noise)
    start = time.perf_counter()
    encoder.encode(noise)
    return len(noise) / (time.perf_counter() - start)


def _name(weights_hash: str, device: str) -> str:
    """Return what a rate is remembered under: the encoder and the device, but not its free memory."""
    return f"{weights_hash[:24]} {describe_device(device).rsplit(',', 1)[0]}"


def _file() -> Path:
    return cache_folder() / "rates.json"


def _all() -> dict[str, object]:
    try:
        content = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
