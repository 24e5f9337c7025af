"""Ordered keys and Hamming distances: plain arrays in, rows and distances out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from napari_fish.later import loaded_from

if TYPE_CHECKING:
    from napari_fish.index.arrays import NeighbourLists
    from napari_fish.index.barcodes import SplitBarcodes
    from napari_fish.index.clustered.params import ClusterParams
    from napari_fish.index.clustered.search import ClusteredIndex
    from napari_fish.index.exact.search import Block, exact_neighbours
    from napari_fish.index.guided.params import GuidedParams
    from napari_fish.index.guided.search import GuidedIndex
    from napari_fish.index.segment import Segment
    from napari_fish.index.veb.search import VebIndex
    from napari_fish.index.warm import warm_up

__all__ = [
    "Block",
    "ClusterParams",
    "ClusteredIndex",
    "GuidedIndex",
    "GuidedParams",
    "NeighbourLists",
    "Segment",
    "SplitBarcodes",
    "VebIndex",
    "exact_neighbours",
    "warm_up",
]

__getattr__ = loaded_from(
    __name__,
    "clustered.params",
    "guided.params",
    "arrays",
    "barcodes",
    "clustered.search",
    "exact.search",
    "guided.search",
    "segment",
    "veb.search",
    "veb.tree",
    "warm",
)
