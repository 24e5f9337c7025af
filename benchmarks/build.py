"""How fast a folder becomes a database: in one process, and with workers that are processes of their own.

    python benchmarks/build.py [--quick] [--json FILE] [--slides N] [--rounds N]

Each build is a program of its own, from its start to its end, on the same demo slides; of several rounds the fastest counts,
as other work on the machine only ever slows it down. CPU seconds are of all processes, peak memory of the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import Row, report

from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.building.summary import SlideDone, Watch
from napari_fish.encode import DEFAULT_ENCODER, load_encoder
from napari_fish.slides.demo import write_demo
from napari_fish.store.opening import open_store

WAYS = {"in process": 0, "1 worker": 1, "2 workers": 2}
OURS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""How many threads is what is measured."""


def one_build(slides: Path, database: Path, workers: int) -> None:
    """Build, and print what it took as JSON; 0 workers for this process."""
    start, first = time.perf_counter(), 0.0

    def finished(_: SlideDone) -> None:
        nonlocal first
        first = first or time.perf_counter() - start

    encoder = None if workers else load_encoder(DEFAULT_ENCODER, "cpu")
    params = BuildParams(device="cpu", workers=workers)
    summary = build(
        slides, database, slides / "labels.csv", params, encoder=encoder, watch=Watch(finished=finished)
    )
    seconds = time.perf_counter() - start
    with open_store(database) as store:
        digest = store.digest()
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(
        json.dumps(
            {
                "slides": summary.slides,
                "patches": summary.patches,
                "seconds": seconds,
                "first": first,
                "cpu": sum(one.ru_utime + one.ru_stime for one in used),
                "memory": [peak_memory(), used[1].ru_maxrss / 1e6],
                "digest": digest,
            }
        )
    )


def peak_memory() -> float:
    """Return GB; what the system counts as resources includes what the program was that started this one."""
    said = Path("/proc/self/status").read_text()
    return int(said.split("VmHWM:")[1].split()[0]) / 1e6


def measured(slides: Path, database: Path, workers: int) -> dict[str, object]:
    """Build in a program of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    command = [sys.executable, __file__, "--one", str(slides), str(database), str(workers)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="6 slides, one round")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--slides", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        one_build(Path(asked.one[0]), Path(asked.one[1]), int(asked.one[2]))
        return
    count, rounds = (6, 1) if asked.quick else (asked.slides, asked.rounds)
    best: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as place:
        slides = Path(place) / "slides"
        for extra in write_demo(slides)[count:]:
            extra.unlink()
        for number in range(rounds):
            for way, workers in WAYS.items():
                found = measured(slides, Path(place) / f"{way} {number}.fish", workers)
                if way not in best or found["seconds"] < best[way]["seconds"]:
                    best[way] = found
    if len({found["digest"] for found in best.values()}) > 1:
        sys.exit("The databases differ.")
    here = best["in process"]
    rows: list[Row] = [
        {
            "build": way,
            "slides": found["slides"],
            "patches": found["patches"],
            "s": round(found["seconds"], 1),
            "first slide, s": round(found["first"], 1),
            "slides/h": round(3600 * found["slides"] / found["seconds"]),
            "times in process": round(here["seconds"] / found["seconds"], 2),
            "CPU s": round(found["cpu"], 1),
            "peak GB, driver": round(found["memory"][0], 2),
            "peak GB, worker": round(found["memory"][1], 2) if WAYS[way] else None,
        }
        for way, found in best.items()
    ]
    report(rows, asked.json)


if __name__ == "__main__":
    main()
