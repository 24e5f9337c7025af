"""What a training run leaves on disk, so that it can go on."""

from __future__ import annotations

import json
import math
import os
import pickle  # for the name of an error only
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_fish.errors import EncoderError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAY_CHANGE = frozenset({"steps", "epochs", "patience"})
"""Settings that an interrupted run may be resumed with other values of."""


def save_state(path: Path, params: DataclassInstance, state: dict[str, Any]) -> None:
    """Write tensors and numbers beside the settings they belong to; never half a file."""
    import torch

    partial = path.with_name(path.name + ".part")
    torch.save({"params": json.dumps(asdict(params)), **state}, partial)
    os.replace(partial, path)


def load_state(path: Path, params: DataclassInstance) -> dict[str, Any]:
    """Return what :func:`save_state` wrote; a run with other settings is refused."""
    import torch

    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        before = json.loads(state["params"])
    except (pickle.UnpicklingError, RuntimeError, EOFError, LookupError, TypeError, ValueError) as error:
        raise EncoderError(
            f"{path}: the state of the interrupted training cannot be read. Delete it to start afresh."
        ) from error
    now = json.loads(json.dumps(asdict(params)))
    changed = sorted(k for k in now if before.get(k) != now[k] and k not in MAY_CHANGE)
    if changed:
        raise EncoderError(
            f"{path.parent} holds a run with other settings ({', '.join(changed)}). "
            "Use the same settings to go on, or another folder to start afresh."
        )
    return state


def cosine_rate(rate: float, step: int, steps: int) -> float:
    """Return a learning rate that falls to a twentieth along a cosine."""
    return rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))
