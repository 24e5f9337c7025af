"""Who keeps a viewer's event loop waiting: a clock in the loop, and a thread that looks when the clock is late."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from common import claim
from qtpy.QtCore import QTimer

TICK_MS = 5
LATE_MS = 25
"""A loop that has not turned for so long is looked at."""
LOOK_S = 0.005
BLOCKED_MS = 50
"""For longer nothing of ours may hold the loop."""
OURS, THROUGH, THEIRS, IDLE = "ours", "napari, called by us", "napari and Qt", "nobody"


def blamed(frame: FrameType | None) -> tuple[str, str]:
    """Say who is at work in a thread, and where: the innermost of our frames and of napari's decide."""
    inner_napari, place = False, ""
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if "napari_fish" in file.parts:
            place = f"{file.stem}.{frame.f_code.co_name}"
            return (THROUGH if inner_napari else OURS), place
        if "napari" in file.parts or "vispy" in file.parts:
            inner_napari = True
            place = place or f"{file.stem}.{frame.f_code.co_name}"
        frame = frame.f_back
    return (THEIRS, place) if inner_napari else (IDLE, "")


@dataclass
class Late:
    """What one party kept the loop waiting for in late turns, in ms: by the clock on the wall, and computing."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    where: str = ""


@dataclass
class Gaps:
    """How long the loop did not turn, in ms, and by whom: each has the share of a turn in which it was seen at work."""

    late: dict[str, Late] = field(default_factory=dict)
    turns: list[float] = field(default_factory=list)

    def add(self, ms: float, cpu_ms: float, seen: Counter[tuple[str, str]]) -> None:
        """Take note of a turn of the loop: how long it took, and how much of that this thread was computing."""
        self.turns.append(ms)
        if ms < LATE_MS or not seen:
            return
        for who in {who for who, _ in seen}:
            own = {place: n for (party, place), n in seen.items() if party == who}
            share = sum(own.values()) / seen.total()
            late = self.late.setdefault(who, Late())
            if ms * share > max(late.wall, default=0.0):
                late.where = max(own, key=lambda place: own[place])
            # Waiting counts too: for a disk, which is our fault, and on a busy machine for a core, which is not.
            late.wall.append(ms * share)
            late.cpu.append(min(ms, cpu_ms) * share)

    def rows(self, part: str) -> list[dict[str, Any]]:
        """Return a row for the loop and two for each party."""
        rows = [{"part": part, "what": "turn of the event loop (wall)", **_spread(self.turns)}]
        for who in (OURS, THROUGH, THEIRS, IDLE):
            late = self.late.get(who, Late())
            for clock, times in (("wall", late.wall), ("cpu", late.cpu)):
                row = {"part": part, "what": f"late: {who} ({clock})", "n": len(times), **_spread(times)}
                if who == OURS:
                    row |= claim(max(times, default=0.0), "ms at most", BLOCKED_MS)
                rows.append(row | {"where": late.where})
        return rows


def _spread(times: list[float]) -> dict[str, float | None]:
    if not times:
        return {"median_ms": None, "p95_ms": None, "max_ms": None}
    ordered = sorted(times)
    at = min(len(ordered) - 1, int(0.95 * len(ordered)))
    return {"median_ms": statistics.median(ordered), "p95_ms": ordered[at], "max_ms": ordered[-1]}


@contextmanager
def probe() -> Iterator[Gaps]:
    """Watch the event loop of this thread while the block runs it."""
    gaps, seen, stop = Gaps(), Counter[tuple[str, str]](), threading.Event()
    main, last = threading.get_ident(), [time.perf_counter(), time.thread_time()]
    timer = QTimer()
    timer.setInterval(TICK_MS)

    def tick() -> None:
        now, cpu = time.perf_counter(), time.thread_time()
        gaps.add(1e3 * (now - last[0]), 1e3 * (cpu - last[1]), seen.copy())
        seen.clear()
        last[:] = time.perf_counter(), time.thread_time()

    def watch() -> None:
        while not stop.wait(LOOK_S):
            if 1e3 * (time.perf_counter() - last[0]) > LATE_MS:
                seen[blamed(sys._current_frames().get(main))] += 1

    timer.timeout.connect(tick)
    watcher = threading.Thread(target=watch, daemon=True)
    timer.start()
    watcher.start()
    try:
        yield gaps
    finally:
        timer.stop()
        stop.set()
        watcher.join()
