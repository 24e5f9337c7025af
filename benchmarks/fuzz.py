"""What becomes of files that are damaged or forged: refused in our words, or accepted; nothing else.

Sound files of every kind the program reads are changed (bytes, values, arrays with right checksums, tables of right
schema) and given to it in a process of their own, which is watched: an exception that is no FishError, a crash, more
than two minutes of the processor (or six by the clock, twice) or more than 1 GB is a finding, and printed. The same
seed makes the same files.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, options, report
from fuzzing.kinds import KINDS
from fuzzing.worker import Worker, in_memory

QUICK, ALL = 20, 1000
COLUMNS = {
    "refused": "refused in our words",
    "accepted": "accepted",
    "foreign": "foreign exceptions",
    "crash": "crashes",
    "hang": "hangs",
    "memory": "over 1 GB",
}


def fuzz(kind: str, numbers: range, seed: int, seconds: float, kept: Path | None) -> tuple[Row, list[str]]:
    """Try mutants of one kind, by their numbers; return a line of the table, and what was found."""
    worker, outcomes, found = Worker(seconds), Counter[str](), []
    most, slowest = 0, 0.0
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=in_memory()) as room, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arrays that are changed beyond their type
        home = Path(room)
        (home / "sound").mkdir()
        sound = list(KINDS[kind].make(home / "sound"))
        for number in numbers if sound else ():
            source = sound[number % len(sound)]
            target = home / str(number) / source.name
            for _ in range(2):
                _make(kind, source, target, [seed, zlib.crc32(kind.encode()), number])
                if kept:
                    _keep(target, kept / f"{kind}-{number}")
                result = worker.ask(kind, target)
                # A machine that is busy with other things is slow, too: only what hangs twice does hang.
                if result["outcome"] != "hang":
                    break
            outcomes[result["outcome"]] += 1
            most, slowest = max(most, result["memory"]), max(slowest, result["seconds"])
            if result["outcome"] not in ("refused", "accepted"):
                found.append(f"{kind} {number} ({source.name}): {result['outcome']}: {result['said']}")
                print(found[-1], flush=True)
            elif kept:
                shutil.rmtree(kept / f"{kind}-{number}", ignore_errors=True)
            shutil.rmtree(target.parent, ignore_errors=True)
    worker.close()
    row: dict[str, Any] = {"kind": kind, "mutants": sum(outcomes.values())}
    row |= {title: outcomes[name] for name, title in COLUMNS.items()}
    return row | {"most MB": most >> 20, "slowest s": round(slowest, 1)}, found


def _make(kind: str, source: Path, target: Path, seed: list[int]) -> None:
    shutil.rmtree(target.parent, ignore_errors=True)
    target.parent.mkdir()
    KINDS[kind].change(source, target, np.random.default_rng(seed))


def _keep(target: Path, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    copy = place / target.name
    if target.is_dir():
        shutil.copytree(target, copy, symlinks=True, ignore=_pipes, dirs_exist_ok=True)
    elif target.is_file():
        shutil.copyfile(target, copy)


def _pipes(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_fifo()]


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mutants", type=int, help=f"of each kind; by default {ALL}, quick {QUICK}")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first of each kind, to share a run out"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds",
        type=float,
        default=120,
        help="of the processor that a file may take; three times as many by the clock",
    )
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), metavar="KIND")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the files that something was found with"
    )


def main() -> None:
    """Run the table."""
    asked = options(__doc__ or "", _more)
    mutants = asked.mutants or (QUICK if asked.quick else ALL)
    rows: list[Row] = []
    for kind in asked.kinds:
        rows.append(
            fuzz(kind, range(asked.first, asked.first + mutants), asked.seed, asked.seconds, asked.keep)[0]
        )
        print(f"done: {rows[-1]}", file=sys.stderr, flush=True)
    names = [name for name in rows[0] if name != "kind"]
    total = {
        name: (max if name in ("most MB", "slowest s") else sum)(row[name] for row in rows) for name in names
    }
    report([*rows, {"kind": "all", **total}], asked.json)


if __name__ == "__main__":
    main()
