"""How fast search is, and how much of the truth it finds.

Guided search against the paper's algorithms in plain Python and against reading the same bytes; slide queries with
ranking; exact search against faiss.IndexBinaryFlat; clustered search against faiss.IndexBinaryIVF, recall for
latency. Archives are described in ``archives.py``. One thread unless said. Times are of the thread or process that
did the work where one thread works, so that other programs on the machine disturb less; alternatives take turns.

faiss searches the same cells with the same centres as ours (its own training takes hours at these sizes on two
cores); ``--faiss-train`` lets it make its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import faiss
import numpy as np
import plain
from archives import SLIDE, WORDS, BarcodeModel, LatencyArchive, latency_archive
from common import Row, report
from numba import njit
from numpy.typing import NDArray

from napari_fish.database import MemoryStore, SlideRecord, SlideTable
from napari_fish.index import (
    ClusteredIndex,
    GuidedParams,
    NeighbourLists,
    Segment,
    exact_neighbours,
)
from napari_fish.index.cells import CellFinder
from napari_fish.index.guided import GuidedIndex
from napari_fish.search import Query, SearchParams, search

K = 10
Calls = dict[str, Callable[[int], object]]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="100k mosaics only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's rows as JSON")
    parser.add_argument(
        "--barcodes", type=Path, metavar="FILE.npy", help="real barcodes (n, 16) to fit the model to"
    )
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="mosaics, multiples of 100 000")
    parser.add_argument("--parts", nargs="+", choices=["guided", "slide", "exact", "clustered"])
    parser.add_argument("--faiss-train", action="store_true", help="let faiss make its own cells (slow)")
    return parser.parse_args()


class ArchiveStore(MemoryStore):
    """A store over an archive that is already in order."""

    def __init__(self, archive: LatencyArchive) -> None:
        segment = archive.segment
        self.words, self.calibration, self._slides = segment.words, None, {}
        self._segment, n = segment, len(archive.classes)
        self.slides = SlideTable(
            SlideRecord(f"s{i}", patient=f"p{i}", diagnosis=f"class {c}")
            for i, c in enumerate(archive.classes)
        )
        self.slides.codes("patient"), self.slides.codes("diagnosis"), self.slides.number("s0")
        self.mosaics_per_slide = np.bincount(segment.slides, minlength=n)
        self._row_keys = np.repeat(segment.keys, np.diff(segment.offsets))
        self._boxes = np.zeros((len(segment), 4), np.int32)
        self._by_slide = np.argsort(segment.slides, kind="stable")
        self._first = np.concatenate([[0], np.cumsum(self.mosaics_per_slide)])
        self._guided, self._clustered = GuidedIndex(segment), None


@njit(nogil=True, cache=True)
def read_spans(barcodes: NDArray[np.uint64], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> int:
    """Read rows and do nothing with them."""
    total = np.uint64(0)
    for i in range(len(starts)):
        flat = barcodes[starts[i] : stops[i]].reshape(-1)
        for word in range(flat.size):
            total ^= flat[word]
    return total


def timed(calls: Calls, rounds: int, clock: Callable[[], float] = time.thread_time) -> dict[str, list[float]]:
    """Time alternatives in turns, in ms."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call(0)
    for turn in range(rounds):
        for name in list(calls)[:: 1 if turn % 2 else -1]:
            start = clock()
            calls[name](turn)
            times[name].append(1e3 * (clock() - start))
    return times


def row(part: str, n: int, what: str, times: Sequence[float], per: int = 1, **more: object) -> Row:
    ms = [t / per for t in times]
    return {"part": part, "mosaics": n, "what": what, "ms": statistics.median(ms), "best_ms": min(ms), **more}


def spans_of(segment: Segment, key: int, params: GuidedParams) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that guided search reads for a key when no walk is left out."""
    starts, stops = [], []
    for away, direction in params.walks():
        if 0 <= key + away < 1 << 50:
            side = "left" if direction < 0 or away == 0 else "right"
            at = int(np.searchsorted(segment.keys, key + away, side))
            low, high = (at, at + params.limit) if direction > 0 else (at - params.limit, at)
            starts.append(segment.offsets[max(low, 0)])
            stops.append(segment.offsets[min(max(high, 0), len(segment.keys))])
    return np.array(starts, np.int64), np.array(stops, np.int64)


def plain_archive(
    segment: Segment, keys: Sequence[int], p: GuidedParams
) -> tuple[plain.Mosaics, plain.DictVeb]:
    """Make the dicts plain Python needs, of all mosaics its walks can reach: the whole of 10M would not fit."""
    table: plain.Mosaics = {}
    for key in keys:
        for away, _ in p.walks():
            at = int(np.searchsorted(segment.keys, key + away))
            for i in range(max(0, at - p.limit - 2), min(len(segment.keys), at + p.limit + 2)):
                one = int(segment.keys[i])
                if one not in table:
                    rows = range(segment.offsets[i], segment.offsets[i + 1])
                    table[one] = [(int.from_bytes(segment.barcodes[r].tobytes(), "little"), r) for r in rows]
    return table, plain.tree_of(table)


def guided_part(archive: LatencyArchive, n: int, quick: bool) -> list[Row]:
    segment, p = archive.segment, GuidedParams()
    index = GuidedIndex(segment)
    dice = np.random.default_rng(3)
    chosen = dice.choice(len(archive.keys), 400, replace=False)
    keys, codes = archive.keys[chosen], archive.barcodes[chosen]
    few = 5 if quick else 12
    table, tree = plain_archive(segment, keys[:few].tolist(), p)
    ints = [int.from_bytes(code.tobytes(), "little") for code in codes[:few]]
    for i in range(few):
        rows, near = index.search(keys[i : i + 1], codes[i], p)[0]
        slow = plain.guided_search(int(keys[i]), ints[i], table, tree)
        assert [(d, r) for d, r in zip(near.tolist(), rows.tolist(), strict=True)] == slow, "results differ"
    spans = [spans_of(segment, int(key), p) for key in keys]
    mask = np.zeros(len(archive.classes), np.bool_)
    mask[dice.choice(len(mask), max(1, len(mask) // 1000), replace=False)] = True
    allbut = np.ones(len(mask), np.bool_)
    allbut[0] = False
    bunch = 40

    def one_by_one(mask: NDArray[np.bool_] | None = None) -> Callable[[int], None]:
        def run(i: int) -> None:
            for q in range(bunch * (i % 10), bunch * (i % 10 + 1)):
                index.search(keys[q : q + 1], codes[q : q + 1], p, mask=mask)

        return run

    def in_python(_: int) -> None:
        for i in range(few):
            plain.guided_search(int(keys[i]), ints[i], table, tree)

    isolated = timed(
        {
            "guided, isolated": one_by_one(),
            "guided, one slide excluded": one_by_one(allbut),
            "guided, filter leaves 0.1 %": one_by_one(mask),
            "plain Python": in_python,
        },
        10,
    )
    isolated["plain Python"] = [t * bunch / few for t in isolated["plain Python"]]

    def read(i: int) -> None:
        for s in spans[bunch * (i % 10) : bunch * (i % 10 + 1)]:
            read_spans(segment.barcodes, *s)

    def run(i: int) -> NeighbourLists:
        at = slice(bunch * (i % 10), bunch * (i % 10 + 1))
        return index.search(keys[at], codes[at], p)

    together = timed({"guided, back to back": run, "reading the same bytes": read}, 20)
    median = {name: statistics.median(times) for name, times in (isolated | together).items()}
    rows = [row("guided", n, name, times, bunch) for name, times in (isolated | together).items()]
    for one in rows:
        if one["what"] == "guided, isolated":
            one |= {
                "against": "plain Python",
                "times_faster": median["plain Python"] / median["guided, isolated"],
            }
        if one["what"] == "guided, back to back":
            ratio = statistics.median(a / b for a, b in zip(*together.values(), strict=True))
            one |= {"against": "reading", "times_slower": ratio}
        if "filter" in one["what"]:
            one |= {"against": "unfiltered", "times_slower": median[one["what"]] / median["guided, isolated"]}
    return rows


def slide_part(archive: LatencyArchive, n: int, clustered: ClusteredIndex | None) -> list[Row]:
    store = ArchiveStore(archive)
    store._clustered = clustered
    kinds = np.random.default_rng(5).choice(len(archive.keys) // SLIDE, 20, replace=False)
    boxes = np.zeros((SLIDE, 4), np.int32)
    queries = [
        Query("q", archive.keys[at], archive.barcodes[at], boxes, slide=f"s{kind}")
        for kind in kinds.tolist()
        for at in [slice(SLIDE * kind, SLIDE * kind + SLIDE)]
    ]
    rows = []
    modes = ["guided", *(["clustered"] if clustered else [])]
    for mode in modes:
        calls: Calls = {}
        for threads in (1, 2):
            params = SearchParams(mode=mode, ranking="fish", threads=threads, threshold=128)  # type: ignore[arg-type]
            calls[f"{mode}, slide of {SLIDE} mosaics, {threads} threads"] = lambda i, params=params: search(
                store, queries[i % len(queries)], params
            )
        rows += [row("slide", n, name, times) for name, times in timed(calls, 20, time.perf_counter).items()]
    return rows


def exact_part(segment: Segment, queries: NDArray[np.uint64], n: int) -> list[Row]:
    flat = faiss.IndexBinaryFlat(64 * WORDS)
    flat.add(np.ascontiguousarray(segment.barcodes).view(np.uint8))
    blocks = [(segment.barcodes, segment.slides)]
    bytes_of = queries.view(np.uint8)
    rows = []
    for count, name in ((1, "one query"), (100, "batch of 100")):
        near, _ = flat.search(bytes_of[:count], K)
        ours = exact_neighbours(blocks, queries[:count], k=K)
        assert np.array_equal(ours.distances.reshape(count, K), near), "distances differ"
        rounds = 9 if count * n < 2e7 else 5
        times = timed(
            {
                "exact": lambda i, c=count: exact_neighbours(blocks, queries[:c], k=K),
                "faiss flat": lambda i, c=count: flat.search(bytes_of[:c], K),
            },
            rounds,
            time.process_time,
        )
        ratio = statistics.median(a / b for a, b in zip(*times.values(), strict=True))
        rows += [row("exact", n, f"{which}, {name}", t) for which, t in times.items()]
        rows[-2] |= {"against": "faiss flat", "times_slower": ratio}
    return rows


def faiss_cells(index: ClusteredIndex, cell: NDArray[np.int32], train: bool) -> faiss.IndexBinaryIVF:
    """Put the same rows in the same cells of faiss's index."""
    quantiser = faiss.IndexBinaryFlat(64 * WORDS)
    ivf = faiss.IndexBinaryIVF(quantiser, 64 * WORDS, len(index.centres))
    codes = np.ascontiguousarray(index.main.barcodes).view(np.uint8)
    if train:
        dice = np.random.default_rng(0)
        ivf.train(codes[dice.choice(len(codes), min(len(codes), 40 * len(index.centres)), replace=False)])
        ivf.add(codes)
    else:
        quantiser.add(np.ascontiguousarray(index.centres).view(np.uint8))
        ivf.is_trained = True
        at = cell.astype(np.int64)
        ivf.add_core(len(codes), faiss.swig_ptr(codes), None, faiss.swig_ptr(at))
    ivf._kept = quantiser
    return ivf


def clustered_part(segment: Segment, queries: NDArray[np.uint64], n: int, train: bool) -> list[Row]:
    start = time.perf_counter()
    index = ClusteredIndex.train(segment, threads=2)
    made = time.perf_counter() - start
    cell, _ = CellFinder(index.centres)(segment.barcodes, 2)
    ivf = faiss_cells(index, cell, train)
    truth = exact_neighbours([(segment.barcodes, segment.slides)], queries, k=K, threads=2)
    furthest = truth.distances.reshape(len(queries), K)[:, -1:]
    bytes_of = queries.view(np.uint8)

    def recall_of(near: NDArray[np.int32]) -> float:
        return float((near <= furthest).mean())

    def theirs(probes: int) -> NDArray[np.int32]:
        ivf.nprobe = probes
        return np.asarray(ivf.search(bytes_of, K)[0])

    def ours(probes: int, rerank: int) -> NDArray[np.int32]:
        found = index.search(queries, k=K, probes=probes, rerank=rerank)
        return found.distances.reshape(len(queries), K)

    points: Calls = {}
    recall: dict[str, float] = {}
    for probes in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        name = f"faiss IVF, {probes} probes"
        points[name] = lambda i, p=probes: theirs(p)
        recall[name] = recall_of(theirs(probes))
        for rerank in (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800):
            name = f"clustered, {probes} probes, {rerank} compared in full"
            points[name] = lambda i, p=probes, r=rerank: ours(p, r)
            recall[name] = recall_of(ours(probes, rerank))
    times = timed(points, 5, time.process_time)
    best = {name: min(t) / len(queries) for name, t in times.items()}
    rows = [
        row("clustered", n, "making the cells, 2 threads", [1e3 * made], note=f"{len(index.centres)} cells"),
    ]
    for name, t in times.items():
        one = row("clustered", n, name, t, len(queries), recall_at_10=recall[name])
        if name.startswith("faiss"):
            rivals = {o: best[o] for o in best if o.startswith("clustered") and recall[o] >= recall[name]}
            if rivals:
                winner = min(rivals, key=lambda o: rivals[o])
                one |= {"ours_at_that_recall": winner, "ours_over_faiss": rivals[winner] / best[name]}
        elif any(
            recall[o] >= recall[name] and best[o] < best[name] for o in best if o.startswith("clustered")
        ):
            continue
        rows.append(one)
    per_mosaic = index_bytes(index) / max(1, n)
    rows.append(
        {"part": "clustered", "mosaics": n, "what": "bytes a mosaic, all arrays", "bytes": per_mosaic}
    )
    return rows


def index_bytes(index: ClusteredIndex) -> int:
    arrays = [index.centres, index.main_cells.starts, index.main_cells.rows, index.main_cells.sketches]
    part = index.main
    return sum(a.nbytes for a in [*arrays, part.keys, part.offsets, part.barcodes, part.slides])


def main() -> None:
    chosen = options()
    faiss.omp_set_num_threads(1)
    sizes = chosen.sizes or ([100_000] if chosen.quick else [100_000, 1_000_000, 10_000_000])
    parts = chosen.parts or ["guided", "slide", "exact", "clustered"]
    model = BarcodeModel.fitted(np.load(chosen.barcodes)) if chosen.barcodes else BarcodeModel.synthetic()
    rows: list[Row] = []
    for n in sizes:
        load = os.getloadavg()[0]
        if "guided" in parts or "slide" in parts:
            archive = latency_archive(n, BarcodeModel.synthetic(spread=0.2, sharpness=6.0))
            if "guided" in parts:
                rows += guided_part(archive, n, chosen.quick)
            if "slide" in parts:
                rows += slide_part(archive, n, None)
            del archive
        if "exact" in parts or "clustered" in parts:
            codes, queries = model.draw(n, 1), model.draw(100, 2)
            keys = np.arange(n, dtype=np.int64)
            segment = Segment(keys, np.arange(n + 1, dtype=np.int32), codes, (keys // SLIDE).astype(np.int32))
            if "exact" in parts:
                rows += exact_part(segment, queries, n)
            if "clustered" in parts:
                rows += clustered_part(segment, queries, n, chosen.faiss_train)
            del segment, codes
        rows.append({"part": "machine", "mosaics": n, "what": f"load {load:.1f} to {os.getloadavg()[0]:.1f}"})
    report(rows, chosen.json)


if __name__ == "__main__":
    main()
