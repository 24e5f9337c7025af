"""How much faster an evaluation is on two cores, with all that other processes cost.

A database on disk of slides with 100 patches each; samples of its slides are asked in all modes, as ``napari-fish evaluate`` does, in
one process and in two, turn by turn. Each turn is a new Python, as for somebody who types the command, so that starting it, importing, opening
the database and starting the second process are all in the wall time; kernels were compiled before. Two ratios
stand side by side: of wall times, which is the speed-up that was had, with whatever else the machine was doing; and of
processor times, two processes against one, which tells what the second process costs. On two idle cores the
speed-up can be no more than 2 divided by that.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from archives import WORDS, BarcodeModel
from common import Row, options, report

from napari_fish.evaluate.asking.questions import choose_questions
from napari_fish.evaluate.asking.running import ask_all
from napari_fish.evaluate.params import EvaluateParams
from napari_fish.search.calibrate import calibrate
from napari_fish.store import EncodedSlide, SlideRecord
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue

PATCHES, LABELS = 100, 12


def make_database(folder: Path, slides: int) -> Path:
    """Write a database of slides whose barcodes tell their label, two slides a patient."""
    dice, model = np.random.default_rng(0), BarcodeModel.synthetic()
    SqliteCatalogue.create(folder, words=WORDS, encoder="synthetic", weights_hash="0").close()
    with SnapshotStore(folder, writer=True) as store:
        with store.catalogue.changing():
            for i in range(slides):
                label = i // 2 % LABELS
                family = label * 16 + dice.integers(0, 16, PATCHES)
                store.catalogue.commit(
                    EncodedSlide(
                        SlideRecord(f"s{i}", f"s{i}", f"p{i // 2}", diagnosis=f"label {label}"),
                        np.sort(dice.integers(2 * 10**14, 6 * 10**14, PATCHES)),
                        model.draw(PATCHES, i, family),
                        np.zeros((PATCHES, 4), np.int32) + np.arange(PATCHES, dtype=np.int32)[:, None],
                    )
                )
        store.settle()
        store.calibration = calibrate(store)
    return folder


def ask(folder: Path, jobs: int, sample: int) -> None:
    """Ask a sample of the slides in all ways; what a process of its own does."""
    with SnapshotStore(folder) as store:
        params = EvaluateParams(sample=sample)
        questions, _ = choose_questions(store, store, params, "slide")
        ways = [params.search(way) for way in params.ways("slide")]
        ask_all(store, store, questions, ways, "slide", jobs=jobs, worth_seconds=0.0)


def measured(folder: Path, jobs: int, sample: int) -> tuple[float, float]:
    """Return wall and processor seconds of asking in a process of its own, with those that it starts."""
    command = [sys.executable, __file__, "--ask", str(folder), str(jobs), str(sample)]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    if sys.argv[1:2] == ["--ask"]:
        folder, jobs, sample = sys.argv[2:]
        ask(Path(folder), int(jobs), int(sample))
        return
    given = options(__doc__ or "")
    slides, samples, rounds = (200, (100, 200), 1) if given.quick else (1000, (250, 500), 2)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = make_database(Path(temporary) / "a.fish", slides)
        for asked in samples:
            wall: dict[int, list[float]] = {1: [], 2: []}
            used: dict[int, list[float]] = {1: [], 2: []}
            for turn in range(-1, rounds):
                for jobs in (1, 2):
                    took, cpu = measured(folder, jobs, asked)
                    if turn >= 0:  # the first turn compiles
                        wall[jobs].append(took)
                        used[jobs].append(cpu)
            rows.append(
                {
                    "patches": slides * PATCHES,
                    "queries": asked,
                    "wall s, one process": statistics.median(wall[1]),
                    "wall s, two": statistics.median(wall[2]),
                    "wall ratio": statistics.median(a / b for a, b in zip(wall[1], wall[2], strict=True)),
                    "CPU s, one": statistics.median(used[1]),
                    "CPU s, two": statistics.median(used[2]),
                    "CPU ratio": statistics.median(b / a for a, b in zip(used[1], used[2], strict=True)),
                    "load": os.getloadavg()[0],
                }
            )
    report(rows, given.json)


if __name__ == "__main__":
    main()
