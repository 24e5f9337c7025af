"""Exact search against faiss.IndexBinaryFlat, one thread each."""

from __future__ import annotations

import statistics
import time

import faiss
import numpy as np
from archives import WORDS
from common import Row, claim, row, timed
from numpy.typing import NDArray

from napari_fish.index import ClusteredIndex, exact_neighbours

K = 10


def exact_part(
    index: ClusteredIndex, codes: NDArray[np.uint64], queries: NDArray[np.uint64], n: int
) -> list[Row]:
    flat = faiss.IndexBinaryFlat(64 * WORDS)
    flat.add(np.ascontiguousarray(codes).view(np.uint8))
    blocks = [index.block]
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
        rows[-2] |= claim(ratio, "times faiss flat", 1)
    return rows
