"""The real store: a database on disk of so many patches, opened, added to, filtered and asked.

The database is written in bulk (one transaction, patches in key order, by the tables of ``database/schema.py``),
because a commit a slide would take a day at ten million; its snapshot is made by the store itself. What is measured
is the store as it is used.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from archives import SLIDE, WORDS, LatencyArchive, forget_pages
from common import Row, claim, row, timed
from realbarcodes import CACHE

from napari_fish.search import Query, SearchParams, search
from napari_fish.store import EncodedSlide, SlideRecord
from napari_fish.store.request import Request
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from napari_fish.store.sqlite.schema import SCHEMA

BOX = 2048
_INDEX = next(sql for sql in SCHEMA if "mosaics_of_slide" in sql)


def database(archive: LatencyArchive, n: int) -> tuple[Path, float | None]:
    """Return a database of an archive, and how long its snapshot took in s; from the cache or made now."""
    folder = CACHE / f"store-{n}.fish"
    if folder.is_dir():
        return folder, None
    new = folder.with_name(folder.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    _write_truth(archive, new)
    start = time.perf_counter()
    SnapshotStore(new, writer=True).close()
    took = time.perf_counter() - start
    new.rename(folder)
    return folder, took


def _write_truth(archive: LatencyArchive, folder: Path) -> None:
    segment, classes = archive.segment, archive.classes
    truth = SqliteCatalogue.create(
        folder, words=WORDS, encoder="fish-lite", weights_hash="none: barcodes were drawn"
    )
    for pragma in ("synchronous = OFF", "journal_mode = OFF", "cache_size = -500000"):
        truth.rows(f"PRAGMA {pragma}")
    with truth.transaction() as run:
        run("DROP INDEX mosaics_of_slide")
        for i, kind in enumerate(classes.tolist()):
            # One slide in a thousand is rare: a filter for it leaves 0.1 %.
            cohort = "rare" if i % 1000 == 7 else "common"
            run(
                "INSERT INTO slides VALUES (?, ?, ?, ?, '', ?, '', '', 0, 0, 0.25, 20480, 20480, ?, ?, '')",
                (i + 1, f"s{i}", f"s{i}.svs", f"p{i}", f"class {kind}", SLIDE, i + 1),
            )
            run("INSERT INTO labels VALUES ('cohort', ?, ?)", (i + 1, cohort))
        for values in _patches(archive):
            run("INSERT INTO mosaics VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        run(_INDEX)
        run("UPDATE state SET generation = ?", (len(classes),))
    truth.rows("PRAGMA journal_mode = DELETE")
    truth.close()
    assert len(segment)


def _patches(archive: LatencyArchive) -> Iterator[tuple[int | bytes, ...]]:
    segment = archive.segment
    seen = [0] * len(archive.classes)
    at = 0
    for start in range(0, len(segment.keys), 50_000):
        keys = segment.keys[start : start + 50_000]
        per_key = np.diff(segment.offsets[start : start + len(keys) + 1])
        of_row = np.repeat(keys, per_key).tolist()
        stop = at + len(of_row)
        codes = archive.rows[at:stop].tobytes()
        for i, (key, slide) in enumerate(zip(of_row, segment.slides[at:stop].tolist(), strict=True)):
            number, place = slide + 1, seen[slide]
            seen[slide] += 1
            x, y = place % 10 * BOX, place // 10 * BOX
            barcode = codes[8 * WORDS * i : 8 * WORDS * (i + 1)]
            yield key, number << 24 | place, number, x, y, BOX, BOX, barcode
        at = stop


def store_part(archive: LatencyArchive, n: int) -> list[Row]:
    """Measure the store: opening, its size, filters, slide queries, the estimate of ``auto``, adding."""
    folder, took = database(archive, n)
    rows = [_size(folder, n)]
    if took is not None:
        rows.append(row("store", n, "making the snapshot, all threads", [1e3 * took]))
    rows += _opening(folder, n)
    with SnapshotStore(folder) as store:
        rows += _asking(store, archive, n)
    return rows + _adding(folder, archive, n)


def _size(folder: Path, n: int) -> Row:
    snapshot = sum(path.stat().st_size for path in (folder / "snapshot").rglob("*") if path.is_file())
    truth = (folder / "fish.sqlite").stat().st_size
    return {
        "part": "store", "patches": n, "what": "bytes a patch, files of the snapshot",
        **claim(snapshot / n, "bytes", 200), "note": f"and {truth / n:.0f} of SQLite, not read by a search",
    }  # fmt: skip


def _opening(folder: Path, n: int) -> list[Row]:
    def opened(cold: bool) -> list[float]:
        times = []
        for _ in range(15):
            if cold:
                forget_pages(folder)
            start = time.perf_counter()
            store = SnapshotStore(folder)
            times.append(1e3 * (time.perf_counter() - start))
            store.close()
        return times

    warm = opened(False)
    rows = [row("store", n, "opening", warm, **claim(statistics.median(warm), "ms", 50, 5))]
    if hasattr(os, "posix_fadvise"):
        cold = opened(True)
        rows.append(row("store", n, "opening, none of its files in memory", cold))
        opened(False)
        for path in (folder / "snapshot").rglob("*.npy"):
            path.read_bytes()
    return rows


def _query(archive: LatencyArchive, start: int, patches: int, slide: str = "") -> Query:
    at = slice(start, start + patches)
    return Query("q", archive.keys[at], archive.barcodes[at], np.zeros((patches, 4), np.int32), slide=slide)


def _ask(store: SnapshotStore, queries: Sequence[Query], params: SearchParams, turn: int) -> None:
    search(store, queries[turn % len(queries)], params)


def _asking(store: SnapshotStore, archive: LatencyArchive, n: int) -> list[Row]:
    """Ask with one patch and with a slide, in each mode, with and without a filter that leaves 0.1 %."""
    dice = np.random.default_rng(5)
    starts = dice.choice(len(archive.keys) // SLIDE, 20, replace=False) * SLIDE
    rows: list[Row] = []
    for patches in (1, SLIDE):
        queries = [_query(archive, int(at), patches, f"s{at // SLIDE}") for at in starts]
        what = "one patch" if patches == 1 else f"a slide of {SLIDE} patches"
        for mode in ("guided", "exact", "clustered"):
            rounds = 5 if mode == "exact" and patches * n > 1e7 else 20
            params = SearchParams(mode=mode, ranking="fish", threshold=128, threads=2)
            calls = {
                name: partial(_ask, store, queries, replace(params, where=where))
                for name, where in (("all", ()), ("filtered", ("cohort=rare",)))
            }
            times = timed(calls, rounds, time.perf_counter)
            ratio = statistics.median(times["filtered"]) / statistics.median(times["all"])
            one = row("store", n, f"{mode}, {what}, with ranking, 2 threads", times["all"])
            if mode == "guided" and patches == SLIDE:
                one |= claim(one["ms"], "ms", 40, 20) if n >= 10**7 else {}
            rows += [one, row("store", n, f"{mode}, {what}, filter leaves 0.1 %", times["filtered"])]
            rows[-1] |= claim(ratio, "times unfiltered", 3)
            if mode == "exact":
                guess = store.cost(Request(queries[0].barcodes, threads=2))
                rows.append({
                    "part": "store", "patches": n, "what": f"auto's estimate for exact, {what}", "ms": guess,
                    "figure": round(guess / one["ms"], 2), "unit": "times what it took",
                })  # fmt: skip
    return rows


def _adding(folder: Path, archive: LatencyArchive, n: int) -> list[Row]:
    """Add slides, each durably, and see them from a program that had the database open; then undo it all."""
    dice = np.random.default_rng(9)
    added, seen, first = [], [], []
    with (
        SnapshotStore(folder, writer=True) as store,
        SnapshotStore(folder) as reader,
        store.catalogue.changing(),
    ):
        generation, top = (
            store.catalogue.generation,
            int(store.catalogue.rows("SELECT max(number) FROM slides")[0][0]),
        )
        search(reader, _query(archive, 0, 1), SearchParams(mode="clustered", threads=1))
        for i in range(20):
            at = dice.choice(len(archive.keys), SLIDE)
            # New, but like what is there: one bit in eight is another one.
            flips = dice.integers(0, 1 << 64, (3, SLIDE, WORDS), np.uint64)
            noise = archive.barcodes[at] ^ (flips[0] & flips[1] & flips[2])
            slide = EncodedSlide(
                SlideRecord(f"added {i}", patient=f"new {i}", diagnosis="class 0", labels={"cohort": "common"}),
                archive.keys[at], noise, np.full((SLIDE, 4), BOX, np.int32),
            )  # fmt: skip
            clock = [time.perf_counter()]
            store.catalogue.commit(slide)
            store.refresh()
            store.save_delta()
            clock.append(time.perf_counter())
            assert reader.refresh()
            clock.append(time.perf_counter())
            query = Query("q", slide.keys[:1], noise[:1], np.zeros((1, 4), np.int32))
            found = search(reader, query, SearchParams(mode="clustered", threshold=128, threads=1))
            clock.append(time.perf_counter())
            assert [hit.slide for hit in found.hits][:1] == [f"added {i}"], "an added slide was not found"
            for times, took in zip((added, seen, first), np.diff(clock), strict=True):
                times.append(1e3 * took)
    _undo(folder, generation, top)
    rows = [row("store", n, f"adding a slide of {SLIDE} patches durably", added)]
    rows[0] |= claim(statistics.median(added), "ms", 50)
    rows.append(row("store", n, "another program sees it", seen))
    rows.append(row("store", n, "and its first clustered search after that", first))
    return rows


def _undo(folder: Path, generation: int, top: int) -> None:
    """Bring the kept database back to what it was."""
    truth = SqliteCatalogue.open(folder)
    with truth.transaction() as run:
        run("DELETE FROM slides WHERE number > ?", (top,))
        run("DELETE FROM removed")
        run("UPDATE state SET generation = ?", (generation,))
    truth.close()
    for path in (folder / "snapshot").glob("delta-*"):
        shutil.rmtree(path)
