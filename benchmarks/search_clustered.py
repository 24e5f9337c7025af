"""Clustered search against faiss.IndexBinaryIVF: recall for latency, one curve for each, compared at equal recall.

Both search the same clusters with the same centres (faiss's own training takes hours at these sizes on two cores;
``--faiss-train`` lets it make its own). Each program goes up one ladder of probes, the same for every size,
everything else as it is shipped. A curve's time at a recall is interpolated between the two rungs around it, linearly
in log time over log missed share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import faiss
import numpy as np
from archives import WORDS
from common import Row, claim, row, timed
from numpy.typing import NDArray

from napari_fish.index import ClusteredIndex, exact_neighbours

K = 10
LADDER = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
EQUAL = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)


def faiss_clusters(index: ClusteredIndex, rows: NDArray[np.uint64], train: bool) -> faiss.IndexBinaryIVF:
    """Put the same rows in the same clusters of faiss's index."""
    quantiser = faiss.IndexBinaryFlat(64 * WORDS)
    ivf = faiss.IndexBinaryIVF(quantiser, 64 * WORDS, len(index.centres))
    codes = np.ascontiguousarray(rows).view(np.uint8)
    if train:
        dice = np.random.default_rng(0)
        ivf.train(codes[dice.choice(len(codes), min(len(codes), 40 * len(index.centres)), replace=False)])
        ivf.add(codes)
    else:
        quantiser.add(np.ascontiguousarray(index.centres).view(np.uint8))
        ivf.is_trained = True
        at = np.empty(len(codes), np.int64)
        at[index.clusters.rows] = np.repeat(np.arange(len(index.centres)), np.diff(index.clusters.starts))
        ivf.add_core(len(codes), faiss.swig_ptr(codes), None, faiss.swig_ptr(at))
    ivf._kept = quantiser
    return ivf


def time_at(recall: float, curve: Sequence[tuple[float, float]]) -> float | None:
    """Return the time at a recall on a curve of (recall, ms); None outside it."""
    points = sorted(curve)
    missed = [np.log(max(1 - r, 1e-4)) for r, _ in points]
    if not points[0][0] <= recall <= points[-1][0]:
        return None
    # Along the curve the missed share falls.
    return float(
        np.exp(
            np.interp(-np.log(max(1 - recall, 1e-4)), [-m for m in missed], np.log([t for _, t in points]))
        )
    )


def clustered_part(
    index: ClusteredIndex,
    codes: NDArray[np.uint64],
    queries: NDArray[np.uint64],
    n: int,
    made: float,
    train: bool,
) -> list[Row]:
    """Go up the ladder with both programs and compare them at equal recall."""
    ivf = faiss_clusters(index, codes, train)
    truth = exact_neighbours([index.block], queries, k=K, threads=2)
    furthest = truth.distances.reshape(len(queries), K)[:, -1:]
    bytes_of = queries.view(np.uint8)

    def theirs(probes: int) -> NDArray[np.int32]:
        ivf.nprobe = probes
        return np.asarray(ivf.search(bytes_of, K)[0])

    def ours(probes: int) -> NDArray[np.int32]:
        found = index.search(queries, k=K, probes=probes)
        # A small cluster may hold fewer than are wanted: what is missing was not found.
        table = np.full((len(queries), K), 64 * WORDS + 1, np.int32)
        table[np.arange(K) < found.lengths[:, None]] = found.distances
        return table

    calls: dict[str, Callable[[int], object]] = {}
    recall: dict[str, float] = {}
    for probes in LADDER:
        for name, one in (("clustered", ours), ("faiss IVF", theirs)):
            rung = f"{name}, {probes} probes"
            calls[rung] = lambda i, one=one, p=probes: one(p)
            recall[rung] = float((one(probes) <= furthest).mean())
    times = timed(calls, 7, time.process_time)
    rows = [
        row(
            "clustered",
            n,
            "making the clusters, 2 threads",
            [1e3 * made],
            note=f"{len(index.centres)} clusters",
        )
    ]
    rows += [
        row("clustered", n, name, t, len(queries), recall_at_10=round(recall[name], 4))
        for name, t in times.items()
    ]
    curves = {
        name: [(one["recall_at_10"], one["ms"]) for one in rows if one["what"].startswith(name)]
        for name in ("clustered", "faiss IVF")
    }
    for wanted in EQUAL:
        mine, other = (time_at(wanted, curve) for curve in curves.values())
        if mine is not None and other is not None:
            one = {"part": "clustered", "patches": n, "what": f"clustered at recall {wanted}", "ms": mine}
            rows.append(one | claim(mine / other, "times faiss IVF", 1 if n >= 10**6 else None))
    return rows
