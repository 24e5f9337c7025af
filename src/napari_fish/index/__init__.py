"""Ordered keys and Hamming distances: plain arrays in, rows and distances out."""

from napari_fish.index.arrays import NeighbourLists
from napari_fish.index.clustered import ClusteredIndex, ClusterParams
from napari_fish.index.codes import Codes
from napari_fish.index.exact import Block, exact_neighbours
from napari_fish.index.guided import GuidedParams, guided_search
from napari_fish.index.segment import Segment
from napari_fish.index.sortedkeys import SortedKeys
from napari_fish.index.veb import VebTree
from napari_fish.index.vebindex import VebIndex
from napari_fish.index.warm import warm_up

__all__ = [
    "Block",
    "ClusterParams",
    "ClusteredIndex",
    "Codes",
    "GuidedParams",
    "NeighbourLists",
    "Segment",
    "SortedKeys",
    "VebIndex",
    "VebTree",
    "exact_neighbours",
    "guided_search",
    "warm_up",
]
