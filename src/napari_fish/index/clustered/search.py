"""Search in the nearest clusters: an ordered key and a fixed budget of contiguous reads, as in guided search.

The key is the cluster of a clustering of the barcodes, so near in key means near in Hamming distance. The second halves of
barcodes lie cluster by cluster and are read from end to end; the first half of a row is fetched as long as the second leaves it
a chance to be nearer than what was found.
"""

from __future__ import annotations

from functools import cached_property
from math import log2

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import (
    Barcodes,
    Mask,
    Masks,
    NeighbourLists,
    as_barcodes,
    frozen,
    in_threads,
)
from napari_fish.index.barcodes import Room, SplitBarcodes, half, in_memory
from napari_fish.index.clustered.kernel import search_many
from napari_fish.index.clustered.params import ClusterParams
from napari_fish.index.exact.search import Block
from napari_fish.index.hamming import pair_distances
from napari_fish.index.kmeans import ClusterFinder, ClusterPart, binary_kmeans
from napari_fish.index.segment import Segment

# Rows that are compared with the centre of their cluster, to learn what their second halves say of the whole.
PAIRS = 256
# Words of the second halves of centres by which the nearest ones are chosen.
PLANES = 4
_CHUNK = 1 << 17


class ClusteredIndex:
    """Clusters over a main segment and a small later one.

    Parameters
    ----------
    centres : uint64, shape (n_clusters, words)
        Cluster centres.
    main, clusters
        Patches in key order, their barcodes in two pieces, the second ones in cluster order; and that order.
    delta, delta_clusters
        Later patches, and their rows in cluster order; none where not given.
    finder
        Finds clusters; made here where not given.
    """

    def __init__(
        self,
        centres: ArrayLike,
        main: Segment,
        clusters: ClusterPart,
        delta: Segment | None = None,
        delta_clusters: ClusterPart | None = None,
        finder: ClusterFinder | None = None,
    ) -> None:
        self.centres: Barcodes = frozen(centres, np.uint64, 2)
        self.main, self.clusters = main, clusters
        self.delta = delta if delta is not None else Segment.empty(main.words)
        self.delta_clusters = delta_clusters or ClusterPart.of(len(self.centres), np.empty(0, np.int32))
        self._check()
        self.finder = finder or ClusterFinder(self.centres)
        self._parts = tuple(
            (part.starts, part.rows, *segment.codes.arrays, segment.slides)
            for segment, part in ((self.main, self.clusters), (self.delta, self.delta_clusters))
        )

    def _check(self) -> None:
        """Refuse clusters that are not those of the segments: a kernel would read and write where nothing is."""
        n_clusters, words = self.centres.shape
        in_two = self.main.codes.tail.shape == (len(self.main), words - half(words))
        if words != self.main.words or words != self.delta.words or not in_two:
            raise DatabaseError("Centres and barcodes have not the same words.")
        for segment, part in ((self.main, self.clusters), (self.delta, self.delta_clusters)):
            if len(part.starts) != n_clusters + 1 or len(part.rows) != len(segment):
                raise DatabaseError("Clusters, centres and rows do not fit each other.")

    @classmethod
    def train(
        cls, main: Segment, params: ClusterParams | None = None, *, threads: int = 1, room: Room = in_memory
    ) -> ClusteredIndex:
        """Make clusters for a segment; the same segment gives the same clusters.

        Parameters
        ----------
        main
            Patches in key order; those of the index are the same with their barcodes in two pieces.
        params, threads
            How clusters are made, and by how many threads.
        room
            Where the pieces come to lie.
        """
        p = params or ClusterParams()
        n_clusters = p.clusters or max(1, round(4 * len(main) ** 0.5))
        size = min(len(main), p.sample * n_clusters)
        centres = np.zeros((1, main.words), np.uint64)
        if size:
            chosen = np.sort(np.random.default_rng(p.seed).choice(len(main), size, replace=False))
            sample = main.codes[chosen]
            centres = binary_kmeans(sample, n_clusters, seed=p.seed, rounds=p.rounds, threads=threads)
        finder = ClusterFinder(centres)
        clusters = ClusterPart.of(len(centres), *_clusters_of(main.codes, finder, threads))
        return cls(centres, main.split(clusters.rows, room), clusters, finder=finder)

    def with_delta(self, delta: Segment, cluster: NDArray[np.int32] | None = None) -> ClusteredIndex:
        """Return the same index with another later segment; the clusters of its rows, shape (n,), are found where not given."""
        clusters = ClusterPart.of(
            len(self.centres), self.finder(delta.codes[:])[0] if cluster is None else cluster
        )
        later = ClusteredIndex(self.centres, self.main, self.clusters, delta, clusters, self.finder)
        # What was learned of the main part still holds.
        later.__dict__ |= {
            name: self.__dict__[name] for name in ("_planes", "_ratio") if name in self.__dict__
        }
        return later

    @property
    def block(self) -> Block:
        """What exact search reads of the main segment."""
        return self.main.block._replace(centres=self.centres, clusters=self.clusters)

    @cached_property
    def _planes(self) -> NDArray[np.uint64]:
        """A few words of the second halves of the centres, one word of all after the other."""
        first = self.main.codes.head.shape[1]
        words = self.centres[:, first : first + PLANES].T
        planes = in_memory("planes", words.shape, np.uint64)
        planes[:] = words
        return frozen(planes, np.uint64, 2)

    @cached_property
    def _ratio(self) -> float:
        """Bits in which near barcodes differ, for each bit in which their second halves do."""
        codes, n = self.main.codes, len(self.main)
        some = np.linspace(0, n - 1, min(PAIRS, n)).astype(np.int64)
        centres = self.centres[np.searchsorted(self.clusters.starts, some, "right") - 1]
        whole = pair_distances(codes[self.clusters.rows[some]], centres).sum()
        half = pair_distances(codes.tail[some], centres[:, codes.head.shape[1] :]).sum()
        return float(whole / half) if half else self.main.words / max(1, codes.tail.shape[1])

    def search(
        self,
        barcodes: ArrayLike,
        *,
        k: int = 50,
        radius: int | None = None,
        probes: int = 32,
        margin: float = 1.75,
        depth: float = 0.85,
        mask: Mask | None = None,
        which: ArrayLike | None = None,
        threads: int = 1,
    ) -> NeighbourLists:
        """Find neighbours of each barcode in the nearest clusters.

        Parameters
        ----------
        barcodes : uint64, shape (n_queries, words)
            Query barcodes.
        k, radius
            At most this many neighbours, at most this far (bits, included; None for any distance).
        probes, margin, depth
            As in :class:`ClusterParams`.
        mask, which, threads
            As in :func:`~napari_fish.index.exact.search.exact_neighbours`.
        """
        codes = as_barcodes(barcodes, self.main.words)
        masks = Masks.over(mask, len(codes), which)
        most = 64 * self.main.words
        reach = most if radius is None else min(int(radius), most)
        doublings = log2(max(probes, 1) / 16)
        wide, deep = max(0.0, margin + doublings / 4), min(1.0, max(0.0, depth + doublings / 8))
        half = 64 * self.main.codes.tail.shape[1]
        table = reaches(most, half, self._ratio, wide)
        main, delta = self._parts

        def work(a: int, b: int) -> NeighbourLists:
            rows, near, counts = search_many(
                self.centres, self._planes, main, delta, codes[a:b], masks.allowed, masks.which[a:b], probes,
                deep if np.isfinite(margin) else 1.0, table,
                reach, k,
            )  # fmt: skip
            return NeighbourLists.from_table(rows, near, counts)

        return NeighbourLists.joined(in_threads(work, len(codes), threads))


def _clusters_of(
    codes: SplitBarcodes, finder: ClusterFinder, threads: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Ask for the cluster of each row; barcodes in two pieces are put together a few at a time."""
    parts = [finder(codes[at : at + _CHUNK], threads) for at in range(0, max(1, len(codes)), _CHUNK)]
    cluster, near = (np.concatenate(some) for some in zip(*parts, strict=True))
    return cluster, near


def reaches(bits: int, part: int, ratio: float, margin: float) -> NDArray[np.int64]:
    """Return, for each distance of barcodes, the farthest part of one that is still looked at to find nearer ones.

    A part that differs in s of its bits stands for a barcode that differs in about ``s * ratio``. One is looked
    at unless it would have to be more than ``margin`` standard deviations nearer than that.
    """
    if np.isinf(margin):
        return frozen(np.full(bits + 1, part), np.int64)
    share = np.arange(part + 1) / part
    # What the part says of its own bits is certain.
    off = bits * np.sqrt(share * (1 - share) / part * (1 - part / bits))
    least = np.arange(part + 1) * ratio - margin * off
    # Where nearly no bit differs the deviation grows faster than the distance.
    least = np.minimum.accumulate(least[::-1])[::-1]
    return frozen(np.searchsorted(least, np.arange(bits + 1), "right") - 1, np.int64)
