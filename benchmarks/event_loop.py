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

from qtpy.QtCore import QTimer

TICK_MS = 5
LATE_MS = 25
"""A loop that has not turned for so long is looked at."""
LOOK_S = 0.005
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
class Gaps:
    """How long the loop did not turn, in ms, by who was at work most of that time."""

    gaps: dict[str, list[float]] = field(default_factory=dict)
    turns: list[float] = field(default_factory=list)
    worst: dict[str, tuple[float, str]] = field(default_factory=dict)

    def add(self, ms: float, cpu_ms: float, seen: Counter[tuple[str, str]]) -> None:
        """Take note of a turn of the loop: how long it took, and how much of that this thread was computing."""
        self.turns.append(ms)
        if ms < LATE_MS or not seen:
            return
        by_whom: Counter[str] = Counter()
        for (who, _), n in seen.items():
            by_whom[who] += n
        who, n = by_whom.most_common(1)[0]
        # On a machine with other work a thread may wait for its turn: only what it computed counts against anybody.
        own = min(ms, cpu_ms) * n / sum(by_whom.values())
        self.gaps.setdefault(who, []).append(own)
        if own > self.worst.get(who, (0.0, ""))[0]:
            place = max((p for p in seen if p[0] == who), key=lambda p: seen[p])[1]
            self.worst[who] = (own, place)

    def rows(self, part: str) -> list[dict[str, Any]]:
        """Return a row for the loop and one for each culprit."""
        rows = [{"part": part, "what": "turn of the event loop (wall)", **_spread(self.turns)}]
        for who in (OURS, THROUGH, THEIRS, IDLE):
            times = self.gaps.get(who, [])
            row = {"part": part, "what": f"late: {who} (cpu)", "n": len(times), **_spread(times)}
            rows.append(row | {"where": self.worst.get(who, (0, ""))[1]})
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
