"""What a training run leaves on disk, so that it can go on."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.importing import UNREADABLE
from napari_fish.encode.training.params import TrainReport
from napari_fish.errors import EncoderError
from napari_fish.work import ShouldStop

SOURCES = "sources"
"""The setting that is a digest of what is trained on."""
MAY_CHANGE = frozenset({"steps", "epochs", "patience"})
"""Settings that an interrupted run may be resumed with other values of."""


def save_state(path: Path, settings: Mapping[str, object], state: dict[str, Any]) -> None:
    """Write tensors and numbers beside the settings they belong to; never half a file."""
    import torch

    partial = path.with_name(path.name + ".part")
    torch.save({"params": json.dumps(settings), **state}, partial)
    os.replace(partial, path)


def load_state(path: Path, settings: Mapping[str, object]) -> dict[str, Any]:
    """Return what :func:`save_state` wrote; a run with other settings, or on other tissue, is refused."""
    import torch

    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        before = dict(json.loads(state["params"]))
    except UNREADABLE as error:
        raise EncoderError(
            f"{path}: the state of the interrupted training cannot be read. Delete it to start afresh."
        ) from error
    now = json.loads(json.dumps(settings))
    changed = sorted(k for k in now if before.get(k) != now[k] and k not in MAY_CHANGE)
    if SOURCES in changed:
        raise EncoderError(
            f"{path.parent} holds a run on other slides or images, or on files that have changed since. "
            "Use the same files to go on, or another folder to start afresh."
        )
    if changed:
        raise EncoderError(
            f"{path.parent} holds a run with other settings ({', '.join(changed)}). "
            "Use the same settings to go on, or another folder to start afresh."
        )
    return state


@contextmanager
def held_interrupts() -> Iterator[ShouldStop]:
    """Keep Ctrl-C waiting until a step is done; the yielded function says whether it came. A second one ends at once."""
    came: list[int] = []

    def heard(number: int, frame: object) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    if threading.current_thread() is not threading.main_thread():
        # Only the main thread hears signals.
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, heard)
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGINT, before)


class ResumableRun(ABC):
    """A training run that leaves its state behind however it ends, so that it can go on.

    Attributes
    ----------
    step, steps : int
        Steps done, and to be done.
    stale : int
        Validations since the last improvement.
    """

    step: int
    steps: int
    stale: int

    @abstractmethod
    def batches(self) -> Iterable[NDArray[np.uint8] | None]:
        """Yield what the steps that are left learn from, or None where a step finds it itself."""

    @abstractmethod
    def learn(self, batch: Any) -> float:
        """Make one step and return its loss."""

    @abstractmethod
    def check(self, loss: float) -> TrainReport:
        """Measure on held-out tissue, and remember the best network."""

    @abstractmethod
    def save(self) -> None:
        """Write the state."""

    def go(
        self,
        progress: Callable[[TrainReport], None] | None,
        should_stop: ShouldStop | None,
        *,
        check_every: int,
        patience: int,
        report_every: int,
    ) -> None:
        """Train until all steps are done, nothing improves any more, or somebody stops it.

        Parameters
        ----------
        progress, should_stop : callable, optional
            Called with reports; asked after every step.
        check_every, patience, report_every : int
            Steps between validations, validations without improvement before it ends (0 is never), and
            steps between reports.
        """
        # A short run is worth keeping before its first validation, too.
        save_every = max(1, min(check_every, self.steps // 10))
        tell = progress or (lambda report: None)
        losses: list[float] = []
        whole = True
        with held_interrupts() as interrupted:
            try:
                for batch in self.batches():
                    if patience and self.stale >= patience:
                        break
                    whole = False
                    losses.append(self.learn(batch))
                    self.step += 1
                    whole = True
                    finished = self.step == self.steps
                    report = None
                    if self.step % check_every == 0 or finished:
                        report, losses = self.check(float(np.mean(losses))), []
                    elif self.step % report_every == 0:
                        report = TrainReport(self.step, self.steps, float(np.mean(losses[-report_every:])))
                    if self.step % save_every == 0 or not losses:
                        self.save()
                    if report is not None:
                        tell(report)
                    if interrupted():
                        raise KeyboardInterrupt
                    if should_stop and should_stop() and not finished:
                        self.save()
                        break
            except BaseException:
                if whole:  # half a step cannot be gone on from
                    self.save()
                raise


def cosine_rate(rate: float, step: int, steps: int) -> float:
    """Return a learning rate that falls to a twentieth along a cosine."""
    return rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))
