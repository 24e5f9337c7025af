"""What a worker of a cluster does for a build, and what it is asked beforehand."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from napari_fish import __version__
from napari_fish.building.encoding import encode_tasks
from napari_fish.building.slide_task import Begun, Desk, Outcome, SlideTask
from napari_fish.encode import Encoder, load_encoder
from napari_fish.encode.bundle.bundle import cache_folder, list_encoders

_loading = threading.Lock()


@dataclass(frozen=True)
class Wanted:
    """What workers are to work with.

    Attributes
    ----------
    version
        Of this program.
    encoder, sha256
        Id and hash of the encoder.
    device, batch
        Where it is to compute, and how many patches at once; 0 for what suits the device.
    topic
        Under which signs of life are told.
    live
        Whether pictures of slides are told as well.
    """

    version: str
    encoder: str
    sha256: str
    device: str
    batch: int
    topic: str
    live: bool


@dataclass(frozen=True)
class Sign:
    """A sign of life from a slide: its task's number, which worker has it, and how many of its patches were encoded."""

    number: int
    worker: str
    patches: int = 0


def heard(message: Mapping[str, Any]) -> Sign | Begun:
    """Return what a worker told: it speaks in plain values."""
    if "overview" not in message:
        return Sign(**message)
    boxes = np.array(message["boxes"], np.int32).reshape(-1, 4)
    return Begun(message["number"], message["overview"], tuple(message["dimensions"]), boxes)


def fitness(wanted: Wanted) -> tuple[str, bool]:
    """Return the version of this program on a worker, and whether it has the encoder."""
    return __version__, _bundle(wanted) is not None


def receive(wanted: Wanted, files: Mapping[str, bytes]) -> None:
    """Keep an encoder that was sent; it is checked whenever it is loaded."""
    folder = _received(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        part = folder / f"{name}.{os.getpid()}.part"
        part.write_bytes(content)
        part.replace(folder / name)


def work(task: SlideTask, wanted: Wanted, *, look: bool) -> Outcome:
    """Encode a slide, or only look at which it is: then it counts as known."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def tell(number: int, patches: int = 0) -> None:
        worker.log_event(wanted.topic, {"number": number, "worker": worker.address, "patches": patches})

    def show(begun: Begun) -> None:
        worker.log_event(wanted.topic, vars(begun) | {"boxes": begun.boxes.tolist()})

    def is_given_up() -> bool:
        state = worker.state.tasks.get(key)
        return state is None or state.state == "cancelled"

    desk = Desk(
        claim=lambda number, content_hash: look,
        opening=tell,
        begun=show if wanted.live else lambda begun: None,
        encoded=tell,
        should_stop=is_given_up,
    )
    with _loading:
        encoder = _loaded(wanted)
    (outcome,) = encode_tasks([task], encoder, desk)
    return outcome


@lru_cache(maxsize=1)
def _loaded(wanted: Wanted) -> Encoder:
    """Load the encoder; builds one after the other on the same worker share it where they want the same."""
    path = _bundle(wanted)
    encoder = load_encoder(wanted.encoder if path is None else path, wanted.device)
    if wanted.batch:
        encoder.batch = wanted.batch
    return encoder


def _bundle(wanted: Wanted) -> Path | None:
    """Return where a worker has the encoder: by its hash, for another one may have the same name."""
    received = _received(wanted)
    if received.is_dir():
        return received
    return next((one.path for one in list_encoders() if one.sha256 == wanted.sha256), None)


def _received(wanted: Wanted) -> Path:
    return cache_folder() / "received" / wanted.sha256
