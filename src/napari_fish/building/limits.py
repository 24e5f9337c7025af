"""How many workers, and what each of them may take."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

import psutil

from napari_fish.texts import duration, in_bytes

SLIDES_A_WORKER = 4
"""A further worker takes seconds to start: it must have so many slides to do."""
BYTES_A_WORKER = 1_500_000_000
"""What one takes at least, as measured, with its encoder."""
SHARE_OF_MEMORY = 0.75
"""Of this computer's, for all workers together."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Limits:
    """What a worker may take.

    Attributes
    ----------
    seconds, seconds_a_gb
        Without a sign of life from a slide being read, such as a patch that is encoded; and more for each GB of it.
    memory
        Bytes; 0 for a share of this computer's.
    """

    seconds: float = 600.0
    seconds_a_gb: float = 600.0
    memory: int = 0

    def silence(self, size: int) -> float:
        """Return for how many seconds a file of so many bytes may give no sign of life."""
        return self.seconds + self.seconds_a_gb * size / 1e9

    def told(self, size: int) -> str:
        """Return in words that it gave none for so long."""
        return f"no sign of life for {duration(self.silence(size))}, the limit for {in_bytes(size)}"

    def memory_of(self, workers: int) -> int:
        """Return the bytes each of several workers may take."""
        return self.memory or int(SHARE_OF_MEMORY * psutil.virtual_memory().total / workers)


def workers_for(asked: int, device: str, slides: int) -> int:
    """Return how many workers there are to be for so many slides: as many as asked for, else one a GPU or a core."""
    if asked:
        return max(1, min(asked, slides))
    most = len(_gpus(device))
    if not most and (device == "cpu" or (device == "auto" and sys.platform != "darwin")):
        most = min(_cores(), int(SHARE_OF_MEMORY * psutil.virtual_memory().total / BYTES_A_WORKER))
    return max(1, min(most, slides // SLIDES_A_WORKER))


def environments(workers: int, device: str) -> Iterator[dict[str, str]]:
    """Yield for one worker after the other what its environment says: its own GPU, its share of the processor's cores."""
    threads = {} if THREADS[0] in os.environ else dict.fromkeys(THREADS, str(max(1, _cores() // workers)))
    for gpu in cycle(_gpus(device) or [""]):
        yield threads | ({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {})


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _gpus(device: str) -> list[str]:
    """Return by what NVIDIA's GPUs are known, without loading what computes on them."""
    if device not in ("auto", "cuda"):
        return []
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return [name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name and name != "-1"]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    asked = [tool, "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return said.split()
