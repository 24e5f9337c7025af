"""Binary k-means: clusters of barcodes that are near each other, their centres made by majority of bits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Barcodes, frozen, in_threads
from napari_fish.index.hamming import distances_into

# With more clusters than this, rows look for their cluster in two steps, unless they are so few that grouping the clusters
# would cost more than it saves.
FLAT_CELLS = 512
FEW_ROWS = 1024
# Groups of clusters looked into, in the second step.
GROUPS_TRIED = 6


@njit(nogil=True, cache=True)
def _nearest_cluster(
    barcodes: Barcodes, start: int, stop: int, centres: Barcodes, cluster: NDArray[np.int32], near: NDArray[np.int32]
) -> None:  # fmt: skip
    from_centre = np.empty(len(centres), np.int32)
    for row in range(start, stop):
        distances_into(centres, 0, len(centres), barcodes[row], 0, from_centre)
        best = np.argmin(from_centre)
        near[row], cluster[row] = from_centre[best], best


@njit(nogil=True, cache=True)
def _nearest_cluster_in_groups(
    barcodes: Barcodes, start: int, stop: int, centres: Barcodes, heads: Barcodes,
    group_start: NDArray[np.int64], members: NDArray[np.int64], cluster: NDArray[np.int32], near: NDArray[np.int32],
) -> None:  # fmt: skip
    tried = min(GROUPS_TRIED, len(heads))
    best = np.empty(tried, np.int32)
    groups = np.empty(tried, np.int64)
    distances = np.empty(max(len(heads), len(centres)), np.int32)
    for row in range(start, stop):
        query = barcodes[row]
        best[:] = 2**30
        distances_into(heads, 0, len(heads), query, 0, distances)
        for g in range(len(heads)):
            distance = distances[g]
            if distance < best[tried - 1]:
                at = tried - 1
                while at > 0 and best[at - 1] > distance:
                    best[at], groups[at] = best[at - 1], groups[at - 1]
                    at -= 1
                best[at], groups[at] = distance, g
        near[row] = 2**30
        for i in range(tried):
            first, last = group_start[groups[i]], group_start[groups[i] + 1]
            distances_into(centres, first, last, query, 0, distances)
            for m in range(last - first):
                if distances[m] < near[row]:
                    near[row], cluster[row] = distances[m], members[first + m]


@njit(nogil=True, cache=True)
def _count_bits(barcodes: Barcodes, cluster: NDArray[np.int32], ones: NDArray[np.int32], sizes: NDArray[np.int64]) -> None:  # fmt: skip
    for row in range(len(barcodes)):
        sizes[cluster[row]] += 1
        for word in range(barcodes.shape[1]):
            bits = barcodes[row, word]
            for bit in range(64):
                ones[cluster[row], 64 * word + bit] += np.int32((bits >> np.uint64(bit)) & np.uint64(1))


@njit(nogil=True, cache=True)
def _majority(ones: NDArray[np.int32], sizes: NDArray[np.int64], centres: Barcodes) -> None:
    """Set each bit to what most members have; where they are even, and in empty clusters, it stays."""
    for c in range(len(centres)):
        for word in range(centres.shape[1]):
            bits = centres[c, word]
            for bit in range(64):
                twice, one = 2 * ones[c, 64 * word + bit], np.uint64(1) << np.uint64(bit)
                if twice > sizes[c]:
                    bits |= one
                elif twice < sizes[c]:
                    bits &= ~one
            centres[c, word] = bits


@dataclass(frozen=True, eq=False)
class ClusterPart:
    """One segment's rows in cluster order, within a cluster the farthest from its centre first.

    Attributes
    ----------
    starts : int32, shape (n_clusters + 1,)
        Entries ``starts[c]:starts[c + 1]`` lie in cluster ``c``.
    rows : int32, shape (n_rows,)
        The row of the segment each entry stands for.
    far : uint16, shape (n_rows,)
        The distance of each entry from the centre of its cluster, in bits.
    """

    starts: NDArray[np.int32]
    rows: NDArray[np.int32]
    far: NDArray[np.uint16]

    def __post_init__(self) -> None:
        for name, dtype in (("starts", np.int32), ("rows", np.int32), ("far", np.uint16)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        # Kernels make room for the largest cluster and read from start to start: they look at nothing again.
        edges, n = self.starts, len(self.rows)
        if (
            len(self.far) != n
            or len(edges) < 2
            or edges[0] != 0
            or edges[-1] != n
            or (edges[1:] < edges[:-1]).any()
        ):
            raise DatabaseError("The clusters of a segment do not cover its rows one after the other.")

    @classmethod
    def of(
        cls, n_clusters: int, cluster: NDArray[np.int32], far: NDArray[np.int32] | None = None
    ) -> ClusterPart:
        """Order rows, given the cluster of each, shape (n_rows,), and its distance from the centre, where that matters."""
        far = np.zeros(len(cluster), np.int32) if far is None else far
        starts = np.concatenate([[0], np.cumsum(np.bincount(cluster, minlength=n_clusters))])
        rows = np.argsort(cluster.astype(np.int64) << 32 | (2**31 - far.astype(np.int64)), kind="stable")
        return cls(starts.astype(np.int32), rows.astype(np.int32), far[rows].astype(np.uint16))


class ClusterFinder:
    """Finds the nearest centre of each barcode; with many centres, by way of groups of centres.

    Parameters
    ----------
    centres : uint64, shape (n_clusters, words)
        Cluster centres.
    """

    def __init__(self, centres: Barcodes) -> None:
        self.centres: Barcodes = frozen(centres, np.uint64, 2)

    @cached_property
    def _groups(self) -> tuple[Barcodes, Barcodes, NDArray[np.int64], NDArray[np.int64]]:
        """The centres by group, the centres of groups, where each group begins, and the cluster of each centre."""
        heads = binary_kmeans(self.centres, round(len(self.centres) ** 0.5), seed=0, rounds=6)
        group, _ = ClusterFinder(heads)(self.centres)
        members = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[members], np.arange(len(heads) + 1))
        return frozen(self.centres[members], np.uint64, 2), frozen(heads, np.uint64, 2), starts, members

    def __call__(self, barcodes: Barcodes, threads: int = 1) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the cluster of each barcode, shape (n,), and its distance from the centre in bits."""
        rows = frozen(barcodes, np.uint64, 2)
        cluster, near = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int32)
        groups = self._groups if len(self.centres) > FLAT_CELLS and len(rows) > FEW_ROWS else None

        def work(start: int, stop: int) -> None:
            if groups is not None:
                _nearest_cluster_in_groups(rows, start, stop, *groups, cluster, near)
            else:
                _nearest_cluster(rows, start, stop, self.centres, cluster, near)

        in_threads(work, len(rows), threads)
        return cluster, near


def binary_kmeans(
    barcodes: Barcodes, n_clusters: int, *, seed: int = 0, rounds: int = 8, threads: int = 1
) -> Barcodes:  # fmt: skip
    """Cluster barcodes; the same input gives the same centres.

    Parameters
    ----------
    barcodes : uint64, shape (n, words)
        What to cluster.
    n_clusters
        Clusters wanted; no more than there are distinct barcodes.
    seed, rounds, threads
        Where to begin, how often to move the centres, how many threads to use.

    Returns
    -------
    uint64, shape (n_clusters, words)
        The centres.
    """
    distinct = np.unique(barcodes, axis=0) if len(barcodes) <= 4 * n_clusters else barcodes
    n_clusters = max(1, min(n_clusters, len(distinct)))
    chosen = np.sort(np.random.default_rng(seed).choice(len(distinct), n_clusters, replace=False))
    centres = np.array(distinct[chosen], np.uint64)
    for _ in range(rounds):
        cluster, near = ClusterFinder(centres)(barcodes, threads)
        ones, sizes = np.zeros((n_clusters, 64 * centres.shape[1]), np.int32), np.zeros(n_clusters, np.int64)
        _count_bits(frozen(barcodes, np.uint64, 2), cluster, ones, sizes)
        before = centres.copy()
        _majority(ones, sizes, centres)
        empty = np.flatnonzero(sizes == 0)
        # An empty cluster takes over one of the barcodes that fit worst where they are.
        centres[empty] = barcodes[np.argsort(-near, kind="stable")[: len(empty)]]
        if np.array_equal(before, centres):
            break
    return centres
