"""Ranking slides without labels, by distance alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import NeighbourLists

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


def rank_without_labels(
    hits: NeighbourLists, slides: NDArray[np.int32], missing: float, importance: _Floats | None = None
) -> tuple[_Ints, _Floats, _Floats]:
    """Rank slides by the median, over query mosaics, of the minimum distance.

    Parameters
    ----------
    hits
        Neighbours of each query mosaic.
    slides : int32, shape (n_hits,)
        Slide of each hit.
    missing
        Distance of a slide that is in a mosaic's list nowhere.
    importance : float64, shape (n_lists,)
        How much each mosaic counts.

    Returns
    -------
    slides, medians, means
        Slide numbers, best first; equal medians by mean.
    """
    weight = np.ones(len(hits)) if importance is None else np.asarray(importance, np.float64)
    weight = np.where(hits.lengths > 0, weight, 0.0) if weight[hits.lengths > 0].any() else weight
    found, of_slide = np.unique(slides, return_inverse=True)
    table = np.full((len(found), len(hits)), float(missing))
    of_list = np.repeat(np.arange(len(hits)), hits.lengths)
    np.minimum.at(table, (of_slide, of_list), hits.distances)
    medians, means = _weighted_median(table, weight), table @ weight / max(weight.sum(), 1e-300)
    order = np.lexsort([found, means, medians])
    return found[order].astype(np.int64), medians[order], means[order]


def _weighted_median(table: _Floats, weight: _Floats) -> _Floats:
    """Return the median of each line, entries counted by weight; between two, their mean."""
    if not len(table) or not weight.sum():
        return np.zeros(len(table))
    order = np.argsort(table, axis=1, kind="stable")
    values = np.take_along_axis(table, order, 1)
    share = np.cumsum(weight[order], axis=1) / weight.sum()
    low = np.argmax(share >= 0.5 - 1e-12, axis=1)
    high = np.argmax(share > 0.5 + 1e-12, axis=1)
    lines = np.arange(len(table))
    return np.asarray((values[lines, low] + values[lines, high]) / 2, np.float64)
