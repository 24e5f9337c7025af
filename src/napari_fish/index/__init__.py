"""Ordered keys and Hamming distances: plain arrays in, rows and distances out."""

from napari_fish.index.arrays import NeighbourLists
from napari_fish.index.barcodes import SplitBarcodes
from napari_fish.index.clustered.search import ClusteredIndex, ClusterParams
from napari_fish.index.exact.search import Block, exact_neighbours
from napari_fish.index.guided.search import GuidedIndex, GuidedParams
from napari_fish.index.segment import Segment
from napari_fish.index.veb.search import VebIndex
from napari_fish.index.veb.tree import VebTree
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
    "VebTree",
    "exact_neighbours",
    "warm_up",
]
