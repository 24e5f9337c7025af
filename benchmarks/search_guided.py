"""Guided search against the paper's algorithms in plain Python, and against reading alone; slide queries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import plain
from archives import SLIDE, LatencyArchive
from common import Row, claim, row, timed
from numba import njit
from numpy.typing import NDArray

from napari_fish.index import GuidedParams, NeighbourLists, Segment, exact_neighbours
from napari_fish.index.guided.search import GuidedIndex
from napari_fish.index.guided.slide_rows import SlideRows
from napari_fish.index.hamming import distances
from napari_fish.search import Query, SearchParams, search
from napari_fish.store import MemoryStore, SlideRecord, SlideTable
from napari_fish.store.patch_rows import PatchRows

BUNCH = 40
# Queries whose true neighbours are looked for, and how many of each.
ASKED, K = 100, 10


class ArchiveStore(MemoryStore):
    """A store over an archive that is already in order."""

    def __init__(self, archive: LatencyArchive) -> None:
        segment, n = archive.segment, len(archive.classes)
        super().__init__(segment.words)
        self.slides = SlideTable(
            SlideRecord(f"s{i}", patient=f"p{i}", diagnosis=f"class {c}")
            for i, c in enumerate(archive.classes)
        )
        self.slides.numbered("patient"), self.slides.numbered("diagnosis"), self.slides.number("s0")
        boxes = np.zeros((len(segment), 4), np.int32)
        self._rows = PatchRows(
            (segment, Segment.empty(segment.words)), SlideRows.of(segment.slides), np.ones(n, np.bool_),
            np.bincount(segment.slides, minlength=n), boxes.__getitem__, lambda: None,
        )  # fmt: skip


@njit(nogil=True, cache=True)
def read_spans(barcodes: NDArray[np.uint64], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> int:
    """Read rows and do nothing with them."""
    total = np.uint64(0)
    for i in range(len(starts)):
        flat = barcodes[starts[i] : stops[i]].reshape(-1)
        for word in range(flat.size):
            total ^= flat[word]
    return total


@njit(nogil=True, cache=True)
def read_rows(rows: NDArray[np.uint64], places: NDArray[np.int64]) -> int:
    """Read single rows and do nothing with them."""
    total = np.uint64(0)
    for place in places:
        for word in range(rows.shape[1]):
            total ^= rows[place, word]
    return total


def fetched(
    segment: Segment, span: tuple[NDArray[np.int64], ...], code: NDArray[np.uint64], most: int
) -> NDArray[np.int64]:
    """Return the places of the second halves that guided search fetches: those of rows whose first halves are near."""
    codes, words = segment.codes, segment.codes.head.shape[1]
    rows = np.concatenate([np.arange(a, b) for a, b in zip(*span, strict=True)])
    return codes.place[rows[distances(codes.head[rows], code[:words]) <= most]].astype(np.int64)


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
    archive: LatencyArchive, keys: Sequence[int], p: GuidedParams
) -> tuple[plain.Patches, plain.DictVeb]:
    """Make the dicts plain Python needs, of all patches its walks can reach: the whole of 10M would not fit."""
    table: plain.Patches = {}
    segment, barcodes = archive.segment, archive.rows
    for key in keys:
        for away, _ in p.walks():
            at = int(np.searchsorted(segment.keys, key + away))
            for i in range(max(0, at - p.limit - 2), min(len(segment.keys), at + p.limit + 2)):
                one = int(segment.keys[i])
                if one not in table:
                    rows = range(segment.offsets[i], segment.offsets[i + 1])
                    table[one] = [(int.from_bytes(barcodes[r].tobytes(), "little"), r) for r in rows]
    return table, plain.tree_of(table)


def guided_part(archive: LatencyArchive, n: int, quick: bool) -> list[Row]:
    segment, p = archive.segment, GuidedParams()
    index = GuidedIndex(segment, by_slide=SlideRows.of(segment.slides))
    dice = np.random.default_rng(3)
    chosen = dice.choice(len(archive.keys), 400, replace=False)
    keys, codes = archive.keys[chosen], archive.barcodes[chosen]
    few = 5 if quick else 12
    table, tree = plain_archive(archive, keys[:few].tolist(), p)
    ints = [int.from_bytes(code.tobytes(), "little") for code in codes[:few]]
    for i in range(few):
        rows, near = index.search(keys[i : i + 1], codes[i], p)[0]
        slow = plain.guided_search(int(keys[i]), ints[i], table, tree)
        assert [(d, r) for d, r in zip(near.tolist(), rows.tolist(), strict=True)] == slow, "results differ"
    spans, places = [], []
    for start in range(0, len(keys), BUNCH):
        at = slice(start, start + BUNCH)
        some = [spans_of(segment, int(key), p) for key in keys[at]]
        spans.append([np.concatenate(edges) for edges in zip(*some, strict=True)])
        tails = [
            fetched(segment, span, code, p.largest_accepted)
            for span, code in zip(some, codes[at], strict=True)
        ]
        places.append(np.concatenate(tails))
    mask = np.zeros(len(archive.classes), np.bool_)
    mask[dice.choice(len(mask), max(1, len(mask) // 1000), replace=False)] = True
    allbut = np.ones(len(mask), np.bool_)
    allbut[0] = False

    def one_by_one(mask: NDArray[np.bool_] | None = None) -> Callable[[int], None]:
        def run(i: int) -> None:
            for q in range(BUNCH * (i % 10), BUNCH * (i % 10 + 1)):
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
    isolated["plain Python"] = [t * BUNCH / few for t in isolated["plain Python"]]

    def read(i: int) -> None:
        read_spans(archive.rows, *spans[i % 10])

    def read_halves(i: int) -> None:
        read_spans(segment.codes.head, *spans[i % 10])
        read_rows(segment.codes.tail, places[i % 10])

    def run(i: int) -> NeighbourLists:
        at = slice(BUNCH * (i % 10), BUNCH * (i % 10 + 1))
        return index.search(keys[at], codes[at], p)

    together = timed(
        {
            "guided, back to back": run,
            "reading the barcodes it visits, in one piece": read,
            "reading the halves it reads": read_halves,
        },
        30,
    )
    rows = [row("guided", n, name, times, BUNCH) for name, times in (isolated | together).items()]
    named = {one["what"]: one for one in rows}
    alone = named["guided, isolated"]
    faster = named["plain Python"]["ms"] / alone["ms"]
    floor, aim = {100_000: (150, 200), 10_000_000: (80, 120)}.get(n, (None, None))
    alone |= claim(faster, "times faster than plain Python", floor, aim, larger=True)
    ours, whole, halves = together.values()
    slower = statistics.median(a / b for a, b in zip(ours, whole, strict=True))
    named["guided, back to back"] |= claim(slower, "times reading the barcodes it visits", 2.5, 1.5)
    strictly = statistics.median(a / b for a, b in zip(ours, halves, strict=True))
    rows.append(
        {"part": "guided", "patches": n, "what": "guided, back to back, against the halves it reads"}
        | claim(strictly, "times reading the halves it reads", 2.5, 1.5)
    )
    for name, one in named.items():
        if "filter" in name or "excluded" in name:
            one |= claim(one["ms"] / alone["ms"], "times unfiltered", 3)
    return rows


def recall_part(archive: LatencyArchive, n: int) -> list[Row]:
    """Count how many of the true neighbours within the threshold the walks find; the query's own copies are left out."""
    segment = archive.segment
    index = GuidedIndex(segment, by_slide=SlideRows.of(segment.slides))
    chosen = np.random.default_rng(6).choice(len(archive.keys), ASKED, replace=False)
    keys, codes, which = archive.keys[chosen], archive.barcodes[chosen], np.arange(ASKED)
    # Copies of a patch are on every thousandth slide: BASE / SLIDE slides hold each patch once.
    own = np.arange(len(archive.classes)) % (len(archive.keys) // SLIDE)
    mask = own[None, :] != (chosen // SLIDE)[:, None]
    rows = []
    for variant in ("paper", "released"):
        p = GuidedParams(variant=variant)
        most = p.largest_accepted
        truth = exact_neighbours([segment.block], codes, k=K, radius=most, mask=mask, which=which, threads=2)
        found = index.search(keys, codes, p, mask=mask, which=which)
        right = wanted = asked = 0
        for (_, near), (_, true) in zip(found, truth, strict=True):
            if len(true):
                asked, wanted = asked + 1, wanted + len(true)
                right += int((near[: len(true)] <= true[-1]).sum())
        name = "guided" if variant == "paper" else variant
        note = f"{asked} of {ASKED} patches have neighbours within {most} bits"
        recall = right / wanted if wanted else None
        one = {"part": "guided", "patches": n, "what": f"{name}, recall against exact", "note": note}
        rows.append(one | {"recall_at_10": recall})
    return rows


def slide_part(archive: LatencyArchive, n: int) -> list[Row]:
    """Time slide queries, from the mask to the ranked answer."""
    store = ArchiveStore(archive)
    kinds = np.random.default_rng(5).choice(len(archive.keys) // SLIDE, 20, replace=False)
    boxes = np.zeros((SLIDE, 4), np.int32)
    queries = [
        Query("q", archive.keys[at], archive.barcodes[at], boxes, slide=f"s{kind}")
        for kind in kinds.tolist()
        for at in [slice(SLIDE * kind, SLIDE * kind + SLIDE)]
    ]
    calls: dict[str, Callable[[int], object]] = {}
    for threads in (1, 2):
        params = SearchParams(mode="guided", ranking="fish", threads=threads, threshold=128)
        name = f"slide of {SLIDE} patches with ranking, {threads} thread{'s'[: threads - 1]}"
        calls[name] = lambda i, params=params: search(store, queries[i % len(queries)], params)
    rows = [row("guided", n, name, times) for name, times in timed(calls, 20, time.perf_counter).items()]
    if n >= 10**7:
        rows[1] |= claim(rows[1]["ms"], "ms", 40, 20)
    return rows
