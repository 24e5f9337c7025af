"""A process in which files are asked, one after the other: it may crash, hang or take all memory, and is started again."""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import IO, Any

#: Bytes that a file may take beyond what the process had before.
MOST_MEMORY = 1 << 30
#: Room above which memory is refused, in case it is taken faster than anybody looks.
_NET = 6 << 30
_LOOK_EVERY = 0.05
#: Seconds by the clock for one of the processor.
_BY_THE_CLOCK = 3


def in_memory() -> str | None:
    """Return a folder that is kept in memory, where there is one: to wait for a disk finds nothing."""
    folder = Path("/dev/shm")
    return str(folder) if folder.is_dir() and os.access(folder, os.W_OK) else None


class Worker:
    """A process that is asked about files; one that ended is replaced.

    Parameters
    ----------
    seconds
        How long a file may take: of the processor's time, for others may keep the machine busy; of the clock's
        three times as much, for who waits for ever takes none of the processor's.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, kind: str, path: Path) -> dict[str, Any]:
        """Return what became of a file: its outcome, what was said, and the memory and the time it took."""
        if self._process is None:
            self._process = self._started()
            self._write({"kind": kind, "warm": True})
            found = self._answer(600)
            if found["outcome"] != "ready":
                raise RuntimeError(f"sound files of kind {kind} are not taken: {found['said']}")
        start = time.monotonic()
        self._write({"kind": kind, "path": str(path)})
        found = self._answer(self._seconds)
        return found | {"seconds": time.monotonic() - start}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @staticmethod
    def _started() -> subprocess.Popen[bytes]:
        # Of this checkout, whatever is installed.
        source = str(Path(__file__).parents[2] / "src")
        environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONPATH": source}
        return subprocess.Popen(
            [sys.executable, "-m", "fuzzing.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[1], env=environment,
        )  # fmt: skip

    def _write(self, job: dict[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        self._process.stdin.flush()

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        before, end, peak = _memory(self._process.pid), time.monotonic() + _BY_THE_CLOCK * seconds, 0
        used_up = _processor_time(self._process.pid) + seconds
        while True:
            ready, _, _ = select.select([self._process.stdout], [], [], _LOOK_EVERY)
            peak = max(peak, _memory(self._process.pid) - before)
            if ready:
                line = self._process.stdout.readline()
                if line:
                    found: dict[str, Any] = json.loads(line)
                    peak = max(peak, found.pop("peak"))
                    return found | ({"outcome": "memory"} if peak > MOST_MEMORY else {}) | {"memory": peak}
                code = self._process.wait()
                self.close()
                return {"outcome": "crash", "said": f"exit {code}", "memory": peak}
            is_late = time.monotonic() > end or _processor_time(self._process.pid) > used_up
            if peak > MOST_MEMORY or is_late:
                self.close()
                return {"outcome": "memory" if peak > MOST_MEMORY else "hang", "said": "", "memory": peak}


def _memory(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _processor_time(process: int) -> float:
    """Return the seconds that a process has computed; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    return 0


def _asked(job: dict[str, Any]) -> dict[str, Any]:
    from fuzzing.kinds import KINDS
    from napari_fish.errors import FishError

    before = _memory(os.getpid())
    Path("/proc/self/clear_refs").write_text("5")
    try:
        KINDS[job["kind"]].ask(Path(job["path"]))
        outcome, said = "accepted", ""
    except FishError as error:
        outcome, said = "refused", str(error)
    except BaseException as error:  # noqa: BLE001 - what else there is, is what is looked for
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "napari_fish" in f.filename]
        outcome, said = (
            "foreign",
            f"{type(error).__name__}: {str(error)[:150]} ({' < '.join(ours[::-1][:3])})",
        )
    peak = _peak() - before
    gc.collect()
    return {"outcome": outcome, "said": said[:600], "peak": peak}


def main() -> None:
    """Answer questions from the standard input until it ends."""
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        job = json.loads(line)
        found = _warmed(job["kind"]) if job.get("warm") else _asked(job)
        answers.write(json.dumps(found).encode() + b"\n")
        answers.flush()


def _warmed(kind: str) -> dict[str, Any]:
    """Ask sound files of a kind, so that libraries and kernels are loaded, then bound the memory."""
    import tempfile

    from fuzzing.kinds import KINDS

    with tempfile.TemporaryDirectory(dir=in_memory()) as folder:
        for path in KINDS[kind].make(Path(folder)):
            found = _asked({"kind": kind, "path": str(path)})
            if found["outcome"] != "accepted":
                return found
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _NET
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return {"outcome": "ready", "said": "", "peak": 0}


if __name__ == "__main__":
    main()
