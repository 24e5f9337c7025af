"""Compile, or load from the cache, everything a search needs, before the first query has to wait for it."""

from __future__ import annotations

import numpy as np

from napari_fish.index.clustered.params import ClusterParams
from napari_fish.index.clustered.search import ClusteredIndex
from napari_fish.index.exact.minima import minima
from napari_fish.index.exact.search import exact_neighbours
from napari_fish.index.guided.search import GuidedIndex
from napari_fish.index.segment import Segment


def warm_up(words: int = 16) -> None:
    """Run each kernel once on a few rows; call it in a thread of its own when a database is opened.

    Parameters
    ----------
    words
        64-bit words a barcode; any number compiles the same code.
    """
    codes = np.arange(8 * words, dtype=np.uint64).reshape(8, words)
    segment, _ = Segment.from_rows(np.arange(8), codes, np.zeros(8))
    mask = np.ones(1, np.bool_)
    clusters = ClusteredIndex.train(segment, ClusterParams(clusters=2, rounds=1))
    clusters.search(codes[:1], k=2, mask=mask)
    guided = GuidedIndex(clusters.main)
    guided.search([0], codes[:1], mask=mask)
    guided.search([0, 1], codes[:2], mask=mask)
    exact_neighbours([clusters.block, segment.block], codes[:2], k=2, mask=mask)
    minima(codes, [0, 8], codes[:1])
