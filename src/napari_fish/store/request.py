"""What is asked of a store: the neighbours of query patches. Plain values, so that a server can be asked, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import Barcodes, Keys, Mask
from napari_fish.index.clustered.params import ClusterParams
from napari_fish.index.guided.params import GuidedParams, Index

Way = Literal["exact", "clustered", "guided"]


#: Where masks leave no more rows than this, exact search reads only these rows, and clusters do not pay.
FEW_ROWS = 32_768


@dataclass(frozen=True, eq=False)
class Request:
    """Query patches, and how their neighbours are to be found.

    Masks are over slides, True where a slide may be returned. A batch of queries, each with its own exclusions, shares one
    request.

    Attributes
    ----------
    barcodes : uint64, shape (n, words)
        Of the query patches.
    way
        ``exact``: the nearest of all; ``clustered``: of those in the nearest clusters; ``guided``: of those along walks from
        the seeds of each key.
    masks : bool, shape (n_slides,) or (n_masks, n_slides)
        One mask for all query patches, or a table of them; None allows every slide.
    which : int64, shape (n,)
        With a table: the mask each query patch goes by.
    k, radius
        At most this many neighbours, at most this far (bits, included; None for any distance); ``guided`` goes by its own.
    keys : int64, shape (n,)
        Of the query patches (``guided``).
    guided, clustered
        How far these look.
    index
        What ``guided`` walks along: sorted keys, or the paper's van Emde Boas tree; the neighbours are the same.
    threads
        Threads that share the work.
    """

    barcodes: Barcodes
    way: Way = "exact"
    masks: Mask | None = None
    which: NDArray[np.int64] | None = None
    k: int = 50
    radius: int | None = None
    keys: Keys | None = None
    guided: GuidedParams = field(default_factory=GuidedParams)
    clustered: ClusterParams = field(default_factory=ClusterParams)
    index: Index = "sorted"
    threads: int = 1

    def __len__(self) -> int:
        return len(self.barcodes)
