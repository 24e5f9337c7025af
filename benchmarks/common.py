"""What the benchmarks share: options, tables, JSON, timing in turns, slides that cost little to write."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

Row = dict[str, Any]


def options(
    description: str, more: Callable[[argparse.ArgumentParser], object] | None = None
) -> argparse.Namespace:
    """Parse the options every benchmark has, and those that ``more`` adds."""
    parser = argparse.ArgumentParser(description=description)
    if more is not None:
        more(parser)
    parser.add_argument("--quick", action="store_true", help="smaller, for a first look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's rows as JSON")
    return parser.parse_args()


def report(rows: Sequence[Row], file: Path | None) -> None:
    """Print rows as a table, and write them as JSON where asked."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    clusters = [[_shown(row.get(name)) for name in names] for row in rows]
    widths = [max(len(c) for c in column) for column in zip(names, *clusters, strict=True)]
    for line in [names, *clusters]:
        print("  ".join(cluster.ljust(width) for cluster, width in zip(line, widths, strict=True)).rstrip())
    if file:
        file.write_text(json.dumps({"rows": list(rows)}, indent=2) + "\n")


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def in_turns(alternatives: dict[str, Callable[[int], object]], rounds: int) -> dict[str, list[float]]:
    """Time alternatives turn by turn, so that a busy machine is equally unkind to all; seconds."""
    times: dict[str, list[float]] = {name: [] for name in alternatives}
    for call in alternatives.values():
        call(0)
    for turn in range(rounds):
        order = list(alternatives)
        if turn % 2:
            order.reverse()
        for name in order:
            start = time.perf_counter()
            alternatives[name](turn)
            times[name].append(time.perf_counter() - start)
    return times


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median, over turns, of our time over theirs."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def timed(
    alternatives: dict[str, Callable[[int], object]],
    rounds: int,
    clock: Callable[[], float] = time.thread_time,
) -> dict[str, list[float]]:
    """Time alternatives turn by turn by a clock of one's choice; ms."""
    times: dict[str, list[float]] = {name: [] for name in alternatives}
    for call in alternatives.values():
        call(0)
    for turn in range(rounds):
        for name in list(alternatives)[:: 1 if turn % 2 else -1]:
            start = clock()
            alternatives[name](turn)
            times[name].append(1e3 * (clock() - start))
    return times


def row(part: str, n: int, what: str, times: Sequence[float], per: int = 1, **more: object) -> Row:
    """Return a line of the table from times in ms, each of ``per`` queries."""
    ms = [t / per for t in times]
    return {"part": part, "patches": n, "what": what, "ms": statistics.median(ms), "best_ms": min(ms), **more}


def claim(
    figure: float, unit: str, floor: float | None, aim: float | None = None, *, larger: bool = False
) -> Row:
    """Return the columns that say what a line shows: the figure, what must hold, what is aimed at, whether it holds."""
    sign = "≥" if larger else "≤"
    one: Row = {"figure": float(f"{figure:.3g}"), "unit": unit}
    if floor is not None:
        one |= {"floor": f"{sign} {floor:g}", "holds": bool(figure >= floor if larger else figure <= floor)}
    if aim is not None:
        one |= {"aim": f"{sign} {aim:g}", "reached": bool(figure >= aim if larger else figure <= aim)}
    return one


def write_markdown(rows: Sequence[Row], file: Path) -> None:
    """Write rows as tables, one for each part."""
    lines: list[str] = []
    for part in dict.fromkeys(row["part"] for row in rows):
        mine = [row for row in rows if row["part"] == part]
        names = [name for name in dict.fromkeys(name for row in mine for name in row) if name != "part"]
        lines += ["", f"### {part}", "", f"| {' | '.join(name.replace('_', ' ') for name in names)} |"]
        lines += ["|" + "---|" * len(names)]
        lines += [f"| {' | '.join(_shown(row.get(name)) for name in names)} |" for row in mine]
    file.write_text("\n".join(lines).strip() + "\n", encoding="utf-8")


def write_big_slide(path: Path, side: int, mpp: float, factor: int = 4, tile: int = 512) -> Path:
    """Write a pyramidal JPEG TIFF of ``side`` px squared from a few encoded tiles, used again and again."""
    import imagecodecs

    dice = np.random.default_rng(0)
    tiles = []
    for _ in range(16):
        texture = dice.integers(0, 120, (tile // 8, tile // 8, 3)).repeat(8, 0).repeat(8, 1)
        shade = (texture + dice.integers(90, 130, 3)).astype(np.uint8)
        tiles.append(imagecodecs.jpeg8_encode(shade, level=80, colorspace="rgb", outcolorspace="ycbcr"))

    def encoded(size: int) -> Iterator[bytes]:
        for i in range((-(-size // tile)) ** 2):
            yield tiles[i * 7919 % len(tiles)]

    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        size, level = side, 0
        while size >= 512 or level == 0:
            tiff.write(
                encoded(size),
                shape=(size, size, 3),
                dtype=np.uint8,
                tile=(tile, tile),
                compression="jpeg",
                photometric="ycbcr",
                subsampling=(2, 2),
                subfiletype=int(level > 0),
                resolution=(1e4 * size / side / mpp,) * 2,
                resolutionunit="CENTIMETER",
                metadata=None,
            )
            size, level = size // factor, level + 1
    return path
