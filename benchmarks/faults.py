"""How much is lost when a build or its workers are killed or a database is damaged: nothing, or it is said.

Slides and encoder are tiny (``tests/tiny.py``), so that kills fall on reading, writing, snapshots and calibration and not
only on a network at work; everything else is the real command line in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
from common import Row, options, report

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.tiny import DOOM, QuickEncoder, write_archive

from napari_fish.building.build import build
from napari_fish.errors import DatabaseError
from napari_fish.names import Mode
from napari_fish.search import Query, SearchParams, search
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue

KILLS_A_DATABASE = 5
SECONDS_TO_END = 30.0
"""A worker whose program was killed ends by itself, once its libraries are loaded."""
SLIDES = 9
Digests = dict[str, bytes]


def digests(database: Path) -> Digests:
    """Return a digest of each slide by id; an error where SQLite is not sound."""
    truth = SqliteCatalogue.open(database)
    try:
        if wrong := truth.integrity():
            raise DatabaseError(wrong[0])
        names = {number: record.slide for number, record in truth.slides()}
        return {names[number]: digest for number, digest in truth.slide_digests().items()}
    finally:
        truth.close()


def start_build(slides: Path, database: Path, doom: str = "-1:0") -> subprocess.Popen[bytes]:
    """Start the command line."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    arguments = ["build", slides, "-o", database, "--labels", slides / "labels.csv", "--store-codes"]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.tiny", *map(str, arguments), "--workers", "2"],
        cwd=ROOT, env=os.environ | {DOOM: doom, "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def workers_of(program: int) -> list[psutil.Process]:
    """Return the workers of a build."""
    try:
        return [
            one
            for one in psutil.Process(program).children()
            if any("LokyProcess" in word for word in one.cmdline())
        ]
    except psutil.Error:
        return []


def worker_kills(slides: Path, work: Path, whole: Digests, count: int, dice: np.random.Generator) -> Row:
    """Kill workers of builds at random; each build must end as if nothing had been."""
    tally: Counter[str] = Counter()
    while tally["tries"] < count:
        database, kills = work / "killed.fish", 0
        program = start_build(slides, database)
        while program.poll() is None:
            time.sleep(dice.uniform(0, 3))
            workers = workers_of(program.pid)
            if workers and kills < KILLS_A_DATABASE - 1:
                workers[dice.integers(len(workers))].kill()
                kills += 1
        tally["tries"] += kills
        found = digests(database)
        tally["lost slides"] += len(whole.keys() - found.keys())
        tally["torn"] += not found.items() <= whole.items()
        tally["same in the end"] += found == whole and program.returncode == 0
        tally["databases"] += 1
        shutil.rmtree(database)
    return {
        "fault": "kill -9 of a worker", "tries": tally["tries"], "lost slides": tally["lost slides"],
        "wrong or torn": tally["torn"],
        "outcome": f"{tally['same in the end']} of {tally['databases']} builds end as undisturbed ones do",
    }  # fmt: skip


def kills(slides: Path, work: Path, whole: Digests, count: int, dice: np.random.Generator) -> Row:
    """Kill builds at random; between kills every finished slide must be whole, and the last run must end the same."""
    tally: Counter[str] = Counter()
    while tally["tries"] < count:
        database = work / "killed.fish"
        before: Digests = {}
        for _ in range(KILLS_A_DATABASE):
            # After the last batch, about one for each slide that is left, come snapshot and calibration.
            left = SLIDES - len(before)
            doom = f"{dice.integers(0, left + 1)}:{dice.uniform(0, 0.3):.4f}"
            program = start_build(slides, database, doom)
            workers: dict[int, psutil.Process] = {}
            while program.poll() is None:
                workers |= {one.pid: one for one in workers_of(program.pid)}
                time.sleep(0.05)
            tally["left over"] += len(psutil.wait_procs(workers.values(), SECONDS_TO_END)[1])
            killed = program.returncode == -signal.SIGKILL
            tally["tries"] += killed
            tally["too late"] += not killed
            try:
                found = digests(database) if (database / "fish.sqlite").exists() else {}
            except DatabaseError:
                tally["torn"] += 1
                break
            tally["lost slides"] += len(before.keys() - found.keys())
            tally["torn"] += not found.items() <= whole.items()
            before = found
        build(slides, database, slides / "labels.csv", encoder=QuickEncoder())
        with SnapshotStore(database, writer=True) as store:
            sound = store.verify() == []
        tally["same in the end"] += digests(database) == whole and sound
        tally["databases"] += 1
        shutil.rmtree(database)
    return {
        "fault": "kill -9 of a build", "tries": tally["tries"], "lost slides": tally["lost slides"],
        "wrong or torn": tally["torn"],
        "outcome": f"{tally['same in the end']} of {tally['databases']} databases end the same; "
        f"{tally['left over']} workers outlive their program",
    }  # fmt: skip


def answers(database: Path, mode: Mode = "auto") -> list[tuple[str, float]]:
    """Ask for a slide, and return what is found."""
    with SnapshotStore(database) as store:
        rows = store.rows_of([0])
        keys, barcodes = store.encoded(rows)
        query = Query("first", keys, barcodes, np.zeros((len(rows), 4), np.int32), store.slides[0].slide)
        return [(hit.slide, hit.distance) for hit in search(store, query, SearchParams(k=8, mode=mode)).hits]


def truncated(path: Path, dice: np.random.Generator) -> None:
    path.write_bytes(path.read_bytes()[: int(dice.integers(0, path.stat().st_size))])


def deleted(path: Path, dice: np.random.Generator) -> None:
    path.unlink()


def flipped(path: Path, dice: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    content[int(dice.integers(0, len(content)))] ^= 1 << int(dice.integers(0, 8))
    path.write_bytes(content)


def garbled(path: Path, dice: np.random.Generator) -> None:
    """Overwrite a page."""
    content = bytearray(path.read_bytes())
    start = int(dice.integers(0, -(-len(content) // 4096))) * 4096
    size = min(4096, len(content) - start)
    content[start : start + size] = dice.bytes(size)
    path.write_bytes(content)


Damage = Callable[[Path, np.random.Generator], None]


def damaged_snapshot(made: Path, work: Path, damage: Damage, rounds: int, dice: np.random.Generator) -> Row:
    """Damage each file of a snapshot; a search must survive it, ``verify`` mend it, and answers be what they were.

    Until then a flipped bit in a large file may change a distance, but never end the program.
    """
    expected, tally = answers(made), Counter[str]()
    for _ in range(rounds):
        for file in sorted(p.relative_to(made) for p in (made / "snapshot").rglob("*") if p.is_file()):
            database = Path(shutil.copytree(made, work / "damaged.fish"))
            damage(database / file, dice)
            for mode in ("exact", "clustered", "guided"):
                answers(database, mode)
            with SnapshotStore(database, writer=True) as store:
                store.verify()
                sound = store.verify() == []
            tally["tries"] += 1
            tally["wrong"] += not sound or answers(database) != expected
            shutil.rmtree(database)
    return {
        "fault": f"snapshot file {damage.__name__}", "tries": tally["tries"], "lost slides": 0,
        "wrong or torn": tally["wrong"], "outcome": "mended",
    }  # fmt: skip


def damaged_truth(
    made: Path, work: Path, whole: Digests, damage: Damage, count: int, dice: np.random.Generator
) -> Row:
    """Damage the SQLite file; that must be harmless or be said, in words, by ``verify``."""
    tally: Counter[str] = Counter()
    for _ in range(count):
        database = Path(shutil.copytree(made, work / "damaged.fish"))
        damage(database / "fish.sqlite", dice)
        try:
            with SnapshotStore(database, writer=True) as store:
                said = store.verify() != []
        except DatabaseError:
            said = True
        try:
            same = not said and digests(database) == whole
        except DatabaseError:
            same = False
        tally["said"] += said
        tally["harmless"] += same
        tally["silent"] += not said and not same
        shutil.rmtree(database)
    return {
        "fault": f"fish.sqlite {damage.__name__}", "tries": count, "lost slides": None, "wrong or torn": tally["silent"],
        "outcome": f"{tally['said']} named with the remedy, {tally['harmless']} harmless",
    }  # fmt: skip


def main() -> None:
    chosen = options(__doc__ or "")
    count = 10 if chosen.quick else 100
    dice = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        slides, made = write_archive(work / "slides"), work / "whole.fish"
        build(slides, made, slides / "labels.csv", encoder=QuickEncoder())
        whole = digests(made)
        assert len(whole) == SLIDES
        rows = [of_whom(slides, work, whole, count, dice) for of_whom in (kills, worker_kills)]
        rows += [
            damaged_snapshot(made, work, damage, 1 if chosen.quick else 5, dice)
            for damage in (truncated, deleted, flipped, garbled)
        ]
        rows += [
            damaged_truth(made, work, whole, damage, count, dice) for damage in (truncated, flipped, garbled)
        ]
    report(rows, chosen.json)


if __name__ == "__main__":
    main()
