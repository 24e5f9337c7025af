"""From all patches of a slide to the few that stand for it: K-means on colour, then on place."""

from __future__ import annotations

import threading
import warnings

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# threadpoolctl changes the whole process; two mosaics made at once must not restore each other's limits.
_ONE_AT_A_TIME = threading.Lock()


def kmeans(values: Floats, clusters: int, n_init: int, seed: int) -> tuple[NDArray[np.int64], Floats]:
    """Cluster rows, with the same result on any number of threads.

    Parameters
    ----------
    values : ndarray, shape (n, features)
        What to cluster.
    clusters : int
        How many clusters; fewer when there are fewer distinct rows.
    n_init : int
        How often to start anew.
    seed : int
        Seed of the starting points.

    Returns
    -------
    labels : ndarray of int64, shape (n,)
        Cluster of each row.
    centres : ndarray, shape (clusters, features)
        Mean of each cluster.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    values = np.ascontiguousarray(values, np.float64)
    clusters = min(clusters, len({row.tobytes() for row in values}))
    model = KMeans(clusters, n_init=n_init, random_state=seed)
    # With several threads the partial sums of a cluster are added in whatever order the threads end.
    with _ONE_AT_A_TIME, threadpool_limits(1), warnings.catch_warnings():
        # Of many threads on Windows, where we take one; may go when scikit-learn gives no such warning.
        warnings.filterwarnings("ignore", message="KMeans is known to have a memory leak")
        labels = model.fit_predict(values)
    return labels.astype(np.int64), np.asarray(model.cluster_centers_, np.float64)


def colour_clusters(
    histograms: NDArray[np.float32], clusters: int, n_init: int, seed: int
) -> NDArray[np.int64]:
    """Return the colour cluster of each patch, numbered from the largest; histograms: shape (n, 768)."""
    labels, _ = kmeans(histograms.astype(np.float64), clusters, n_init, seed)
    counts = np.bincount(labels)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return rank[labels]


def representatives(
    corners: NDArray[np.int64],
    share: float,
    n_init: int,
    seed: int,
    doubtful: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Choose the patches that stand for one colour cluster.

    Parameters
    ----------
    corners : ndarray of int64, shape (n, 2)
        Corners of the cluster's patches in level-0 px.
    share : float
        Choose this share of them, rounded down; all of them when that is none.
    n_init, seed : int
        As in :func:`kmeans`.
    doubtful : ndarray of bool, shape (n,), optional
        Patches that are chosen only where there is no other beside them.

    Returns
    -------
    members : ndarray of int64, shape (k,)
        The patch nearest to each centre, as a row of ``corners``; no patch twice.
    centres : ndarray of int64, shape (k, 2)
        The centres themselves in level-0 px, rounded down.
    """
    # The tiny addition keeps int(0.05 * 20) from being 0 for shares that binary fractions miss.
    count = int(share * len(corners) + 1e-9)
    if count == 0:
        return np.arange(len(corners)), corners
    sound = np.ones(len(corners), bool) if doubtful is None else ~doubtful
    labels, centres = kmeans(corners.astype(np.float64), count, n_init, seed)
    members = np.empty(len(centres), np.int64)
    for cluster, centre in enumerate(centres):
        own = np.nonzero(labels == cluster)[0]
        own = own[sound[own]] if sound[own].any() else own
        distance = ((corners[own] - centre) ** 2).sum(axis=1)
        members[cluster] = own[np.argmin(distance)]
    order = np.lexsort((corners[members, 0], corners[members, 1]))
    return members[order], np.floor(centres[order]).astype(np.int64)
