"""How much faster an evaluation is on two cores, with all that other processes cost.

A database on disk of slides with 100 mosaics each; a sample of its slides is asked in every mode, in one process and in
two, turn by turn. Beside the wall clock, which other programs disturb, stands what the processors did: two processes
that together need little more than one are nearly twice as fast on two idle cores.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from archives import WORDS, BarcodeModel
from common import Row, options, report

from napari_fish.database import DiskStore, EncodedSlide, SlideRecord
from napari_fish.database.truth import Truth
from napari_fish.evaluate.asking import choose_questions
from napari_fish.evaluate.params import EvaluateParams
from napari_fish.evaluate.running import ask_all
from napari_fish.search import calibrate

MOSAICS, LABELS = 100, 12


def make_database(folder: Path, slides: int) -> Path:
    """Write a database of slides whose barcodes tell their label, two slides a patient."""
    dice, model = np.random.default_rng(0), BarcodeModel.synthetic()
    Truth.create(folder, words=WORDS, encoder="synthetic", weights_hash="0").close()
    with DiskStore(folder, writer=True) as store:
        store.truth.begin_build()
        for i in range(slides):
            label = i // 2 % LABELS
            family = label * 16 + dice.integers(0, 16, MOSAICS)
            store.truth.commit(
                EncodedSlide(
                    SlideRecord(f"s{i}", f"s{i}", f"p{i // 2}", diagnosis=f"label {label}"),
                    np.sort(dice.integers(2 * 10**14, 6 * 10**14, MOSAICS)),
                    model.draw(MOSAICS, i, family),
                    np.zeros((MOSAICS, 4), np.int32) + np.arange(MOSAICS, dtype=np.int32)[:, None],
                )
            )
        store.truth.end_build()
        store.settle()
        store.calibration = calibrate(store)
    return folder


def cpu_seconds() -> float:
    """Return what this process and those it started have used."""
    me = psutil.Process()
    used = 0.0
    for process in (me, *me.children(recursive=True)):
        times = process.cpu_times()
        used += times.user + times.system
    return used


def main() -> None:
    given = options(__doc__ or "")
    slides, asked, rounds = (200, 60, 2) if given.quick else (1000, 200, 3)
    with tempfile.TemporaryDirectory() as temporary:
        with DiskStore(make_database(Path(temporary) / "a.fish", slides)) as store:
            params = EvaluateParams(sample=asked)
            questions, _ = choose_questions(store, store, params, "slide")
            rows: list[Row] = []
            for way in params.ways("slide"):
                wall: dict[int, list[float]] = {1: [], 2: []}
                used: dict[int, list[float]] = {1: [], 2: []}
                for turn in range(-1, rounds):
                    for jobs in (1, 2):
                        start, before = time.perf_counter(), cpu_seconds()
                        ask_all(
                            store,
                            store,
                            questions,
                            [params.search(way)],
                            "slide",
                            jobs=jobs,
                            worth_seconds=0.0,
                        )
                        if turn >= 0:  # the first turn compiles, and starts the processes
                            wall[jobs].append(time.perf_counter() - start)
                            used[jobs].append(cpu_seconds() - before)
                one, two = (statistics.median(used[jobs]) for jobs in (1, 2))
                rows.append(
                    {
                        "way": way.name,
                        "mosaics": len(store),
                        "queries": asked,
                        "s, one process": statistics.median(wall[1]),
                        "s, two": statistics.median(wall[2]),
                        "speed-up": statistics.median(a / b for a, b in zip(wall[1], wall[2], strict=True)),
                        "CPU s, one": one,
                        "CPU s, two": two,
                        "speed-up on two idle cores": 2 * one / two,
                    }
                )
        report(rows, given.json)


if __name__ == "__main__":
    main()
