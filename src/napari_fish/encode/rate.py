"""How fast an encoder is on this machine: measured once, then remembered from real work."""

from __future__ import annotations

import time

import numpy as np

from napari_fish.encode.bundle.device import describe_device
from napari_fish.encode.encoder import Encoder
from napari_fish.encode.speed.remembered import remember, remembered

MEMORY = "rates.json"


def known_rate(weights_hash: str, device: str) -> float | None:
    """Return patches per second of an encoder on a device, where they were measured before.

    Parameters
    ----------
    weights_hash
        Hash of the encoder.
    device
        Where it computes: cuda, mps, xpu or cpu.
    """
    rate = remembered(MEMORY).get(_name(weights_hash, device))
    return rate if isinstance(rate, float) and rate > 0 else None


def remember_rate(weights_hash: str, device: str, rate: float) -> None:
    """Keep patches per second."""
    remember(MEMORY, _name(weights_hash, device), rate)


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
