"""The databases of single images behind docs/records/evaluation.md, and its figures that no other script gives.

Lays out the LC25000, BreakHis and CRC images of ../shared/data with a labels file each, builds a database of patches of
each, and evaluates: validation images are asked for, all may be found but those of the same patient (CRC: another
cohort). With ``--pseudo``, the database that ``pseudo_slides.py --out DIR`` leaves, it also asks in pairs how much better
the ranking without labels is than the paper's, from the calibrated threshold to looser ones. The command of every
row is printed before it runs, so that each can be repeated alone.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import Row, report
from pseudo_slides import BENIGN, TISSUE, rows_of

from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.evaluate import EvaluateParams, evaluate, to_json, write_report
from napari_fish.evaluate.asking.questions import choose_questions
from napari_fish.evaluate.asking.running import ask_all
from napari_fish.evaluate.metrics import Resamples, majority_right
from napari_fish.evaluate.params import Way
from napari_fish.evaluate.scoring import labels_of_slides
from napari_fish.store.snapshot.store import SnapshotStore

#: Which folders of images make each database, and the split each is.
ARCHIVES = {
    "lc25000": {"train": "train/lc25000", "validation": "validation/lc25000"},
    "breakhis": {"train": "train/breakhis", "validation": "validation/breakhis"},
    "crc_gallery": {"train": "validation/crc_gallery"},
    "crc_queries": {"validation": "validation/crc_queries"},
}
ASKED = EvaluateParams(query_where=("split=validation",))
#: Database, database of the queries, and what is asked.
EXPERIMENTS: dict[str, tuple[str, str, EvaluateParams]] = {
    "LC25000": ("lc25000", "", ASKED),
    "CRC, other cohort": ("crc_gallery", "crc_queries", EvaluateParams()),
    "BreakHis, benign or malignant": ("breakhis", "", replace(ASKED, target="group")),
    "BreakHis, 8 subtypes": ("breakhis", "", ASKED),
}
QUANTILES = (0.001, 0.01, 0.03, 0.1)


def lay_out(name: str, folder: Path, most: int | None) -> Path:
    """Copy the images of a set, by split and class, and write their labels; return the labels file."""
    labels = folder / "labels.csv"
    folder.mkdir(parents=True, exist_ok=True)
    with labels.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("slide", "patient", "diagnosis", "group", "split"))
        for split, source in ARCHIVES[name].items():
            for images in sorted((TISSUE / source).iterdir()):
                for image in sorted(images.iterdir())[:most]:
                    place = Path(split, images.name, image.name)
                    (folder / place).parent.mkdir(parents=True, exist_ok=True)
                    if not (folder / place).exists():
                        shutil.copy(image, folder / place)
                    known = name == "breakhis"
                    patient = image.name.split("_")[0] if known else ""
                    group = ("benign" if images.name in BENIGN else "malignant") if known else ""
                    table.writerow((place.as_posix(), patient, images.name, group, split))
    return labels


def make(name: str, out: Path, most: int | None) -> Path:
    """Build a database; run again, it goes on where it was."""
    labels, database = lay_out(name, out / name, most), out / f"{name}.fish"
    print(shlex.join(["napari-fish", "build", str(out / name), "-o", str(database), "--labels", str(labels), "--patches", "--store-codes"]))  # fmt: skip
    print(build(out / name, database, labels, BuildParams(patches=True, store_codes=True)))
    return database


def accuracy(out: Path, speed: bool) -> Iterator[Row]:
    """Evaluate every experiment and leave its report."""
    for name, (database, queries, params) in EXPERIMENTS.items():
        if speed and name == "BreakHis, 8 subtypes":
            params = replace(params, speed=True, augment=True)
        asked = ["--queries", str(out / f"{queries}.fish")] if queries else []
        command = shlex.join(["napari-fish", "evaluate", str(out / f"{database}.fish"), *asked, *params.arguments()])  # fmt: skip
        print(command, flush=True)
        with ExitStack() as stack:
            store = stack.enter_context(SnapshotStore(out / f"{database}.fish"))
            other = stack.enter_context(SnapshotStore(out / f"{queries}.fish")) if queries else None
            found = evaluate(store, other, params, command=command)
        write_report(found, out / f"{name}.html")
        yield from rows_of(to_json(found), name)
        for row in found.speed:
            yield {"experiment": f"speed, {row.what}", "patches": row.mosaics, "mode": row.mode, "median ms": row.patch.median, "recall": row.recall.recall}  # fmt: skip


def differences(database: Path) -> Iterator[Row]:
    """Return how much more often the label-free ranking is right than the paper's, asked in pairs, all answers completed."""
    with SnapshotStore(database) as store:
        assert store.calibration is not None
        share = np.cumsum(store.calibration.histogram) / store.calibration.histogram.sum()
        of_slide = labels_of_slides(store, "diagnosis")
        for asked in ((), ("split=validation",)):
            params = EvaluateParams(within="site", query_where=asked, fill=True)
            questions, _ = choose_questions(store, store, params, "slide")
            resamples = Resamples(questions.truth, questions.patient_numbers)
            for quantile in QUANTILES:
                bits = int(np.searchsorted(share, quantile))
                ways = [
                    replace(params, threshold=bits).search(Way("", "exact", r))
                    for r in ("label-free", "fish")
                ]
                answers = ask_all(store, store, questions, ways, "slide", jobs=params.jobs)
                free, fish = (majority_right(a.labels(of_slide, params.k), questions.truth) for a in answers)
                _, macro, _ = resamples.scores(free.astype(float) - fish)
                yield {"experiment": "label-free minus fish, mMV@5 macro", "queries": len(questions), "quantile": quantile, "bits": bits, "difference": str(macro)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="six images of each class and split")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's rows as JSON")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep images, databases and reports here")
    parser.add_argument("--speed", action="store_true", help="also time growing parts and copies of BreakHis")
    parser.add_argument("--pseudo", type=Path, metavar="NAME.fish", help="also compare the rankings on this")
    given = parser.parse_args()
    if not TISSUE.is_dir():
        raise SystemExit("SKIPPED: ../shared/data is not beside this checkout")
    with tempfile.TemporaryDirectory() as temporary:
        out = given.out or Path(temporary)
        for name in ARCHIVES:
            make(name, out, 6 if given.quick else None)
        rows = list(accuracy(out, given.speed))
        if given.pseudo is not None:
            rows += differences(given.pseudo)
        report(rows, given.json)


if __name__ == "__main__":
    main()
