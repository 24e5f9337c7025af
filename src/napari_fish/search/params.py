"""How to search; every option of the command line and of the widgets comes from here."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from napari_fish.index.clustered.params import ClusterParams
from napari_fish.index.guided.params import GuidedParams, Index
from napari_fish.names import MODES, RANKINGS, Mode, Ranking

#: Sums of the label weights in the paper: among the 2 to 5 diagnoses of a site, and among sites.
PAPER_WEIGHTS, PAPER_SITE_WEIGHTS = 10.0, 30.0
#: The first of them for each label, as the paper's databases have them.
WEIGHT_A_LABEL = 3.3


@dataclass(frozen=True)
class SearchParams:
    """What a search depends on besides query and database.

    Attributes
    ----------
    k
        Slides wanted.
    mode
        How neighbours are found.
    ranking
        How slides are ranked.
    target
        The column whose values vote: diagnosis, site or any other.
    threshold
        Bits within which patches count as near, θ_h; by default as measured for the database (``guided`` and ``released`` with
        the paper's encoder: 128).
    neighbours
        Most neighbours of one query patch (``exact`` and ``clustered``).
    latency_budget_ms
        ``auto`` searches exactly while that is estimated to take no longer.
    where
        Only slides with this value, ``column=value``, or without it, ``column!=value``.
    exclude_query
        Leave out the query's own slide and patient.
    weight_sum
        N, the sum of the label weights; None for 3.3 for each label of the slides that may be returned, which is the
        paper's ratio (``guided`` and ``released``: the paper's 10, 30 for site retrieval, whatever the number of labels).
    matches
        Most pairs of matching regions reported for a slide.
    fill
        Complete a short answer from exact search; None for yes in mode ``auto`` only.
    index
        What ``guided`` and ``released`` walk along: sorted keys, or the paper's van Emde Boas tree; the answers are the same.
    threads
        Threads for one search.
    guided, clustered
        Parameters of these modes.
    """

    k: int = 5
    mode: Mode = "auto"
    ranking: Ranking = "auto"
    target: str = "diagnosis"
    threshold: int | None = None
    neighbours: int = 50
    latency_budget_ms: float = 150.0
    where: tuple[str, ...] = ()
    exclude_query: bool = True
    weight_sum: float | None = None
    matches: int = 10
    fill: bool | None = None
    index: Index = "sorted"
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    guided: GuidedParams = field(default_factory=GuidedParams)
    clustered: ClusterParams = field(default_factory=ClusterParams)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}; got {self.mode!r}.")
        if self.ranking not in RANKINGS:
            raise ValueError(f"ranking is one of {', '.join(RANKINGS)}; got {self.ranking!r}.")
        if self.index not in get_args(Index):
            raise ValueError(f"index is one of {', '.join(get_args(Index))}; got {self.index!r}.")
        if self.index != "sorted" and self.mode not in ("guided", "released"):
            raise ValueError(f"index {self.index} is for modes guided and released; got mode {self.mode}.")
        if self.k < 1 or self.neighbours < 1 or self.threads < 1:
            raise ValueError("k, neighbours and threads are at least 1.")
        if self.threshold is not None and self.threshold < 0:
            raise ValueError(f"threshold is a number of bits, at least 0; got {self.threshold}.")

    def label_weight_sum(self, labels: int) -> float:
        """Return N for so many labels: the paper's, in its modes, or one that any number of labels can live with."""
        if self.weight_sum:
            return self.weight_sum
        if self.mode in ("guided", "released"):
            return PAPER_SITE_WEIGHTS if self.target.lower() == "site" else PAPER_WEIGHTS
        return WEIGHT_A_LABEL * labels

    @property
    def fills(self) -> bool:
        """Whether a short answer is completed."""
        return self.mode == "auto" if self.fill is None else self.fill

    def walks(self, threshold: int) -> GuidedParams:
        """Return the parameters of the guided modes at a threshold."""
        variant: Literal["paper", "released"] = "released" if self.mode == "released" else "paper"
        return replace(self.guided, variant=variant, threshold=threshold)
