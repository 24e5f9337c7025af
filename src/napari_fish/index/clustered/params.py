"""How clusters are made and searched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClusterParams:
    """How clusters are made and searched.

    Attributes
    ----------
    clusters
        Number of clusters; None for 4 times the square root of the number of patches.
    sample
        Barcodes per cluster that the clustering is trained on.
    rounds
        Rounds of k-means.
    seed
        Where k-means begins.
    probes
        Clusters searched for a query, the nearest first.
    margin
        Rows are compared in full unless their second half says, by more than so many standard deviations, that they are
        too far; infinite for all rows of the clusters searched.
    depth
        Share of each cluster that is searched, the rows nearest to its centre: the others are hardly anybody's neighbours.

    Margin and depth are for 16 probes. Those who look into more clusters want more of the neighbours, so each doubling adds a
    quarter to the margin and an eighth to the depth; each halving takes as much away.
    """

    clusters: int | None = None
    sample: int = 40
    rounds: int = 8
    seed: int = 0
    probes: int = 32
    margin: float = 1.75
    depth: float = 0.85
