"""Ranking slides without labels, by distance alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Mask, NeighbourLists
from napari_fish.search.values import Query
from napari_fish.store.protocol import Store

# Slides whose distances are measured in full, and rows that are read for it; never fewer slides than are wanted.
CANDIDATES, CANDIDATE_ROWS = 256, 1 << 15
# Further passes over the database for the sake of candidates, when there are as many slides as wanted already.
MORE_PASSES = 3

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class Nearest(NamedTuple):
    """Slides, nearest first, their medians, and the lists they were found in."""

    slides: _Ints
    medians: _Floats
    lists: NeighbourLists


def nearest_slides(
    store: Store,
    query: Query,
    lists: NeighbourLists,
    k: int,
    *,
    longest: int | None,
    beyond: int,
    more: Callable[[Mask, int], NeighbourLists],
    threads: int = 1,
) -> Nearest:
    """Rank slides by the median, over query patches, of the distance of their nearest patch.

    Lists of neighbours say which slides may be near; how near they are is then measured. A slide that is not in a list that was
    cut is at least as far as the list's last entry: where that leaves slides a chance that were not seen yet, more lists
    are asked for, without the slides that were, until there are enough candidates.

    Parameters
    ----------
    store, query
        Where to look, and for what.
    lists
        Neighbours of each query patch.
    k
        Slides wanted.
    longest
        Lists of this length were cut; None where none is.
    beyond
        The distance, in bits, that is not in a list that was not cut.
    more
        Given the slides seen and a length, finds lists without them that are cut at that length.
    threads
        Threads that measure.
    """
    parts = [lists]
    slides, columns = np.empty(0, np.int64), np.empty((3, 0))
    seen = np.zeros(len(store.slides), np.bool_)
    while True:
        cut = lists.lengths >= (longest or np.inf)
        bounds = np.full(len(lists), float(beyond))
        bounds[cut] = lists.distances[lists.offsets[1:][cut] - 1]
        order, _, _ = rank_without_labels(lists, bounds, query.weights)
        seen[order] = True
        chosen = _affordable(store, order, k)
        near = store.slide_distances(chosen, query.barcodes, threads).astype(np.float64)
        slides = np.concatenate([slides, chosen])
        columns = np.hstack([columns, _scores(near, query, _own_regions(store, query, chosen))])
        best = np.lexsort([slides, columns[1], columns[0]])
        slides, columns = slides[best], columns[:, best]
        enough = len(slides) >= k and (
            len(slides) >= CANDIDATES
            or len(parts) > MORE_PASSES
            or columns[0, k - 1] <= _scores(bounds[None], query)[0, 0]
        )
        if longest is None or enough or not cut.any():
            break
        longest *= 2
        lists = more(seen, longest)
        if not len(lists.rows):
            break
        parts.append(lists)
    return Nearest(slides, columns[2], _side_by_side(parts))


def _scores(near: _Floats, query: Query, own_regions: NDArray[np.bool_] | None = None) -> _Floats:
    """Return what slides are ordered by, the mean that decides between equals, and the median that is told, shape (3, n_slides).

    Without judgements the first is the median. Where slides were judged relevant, it is a mean of the medians over the
    query's patches and over what was liked, by their weights, so that neither replaces the other: a weighted median over both
    would be the query's alone, or that of what was liked alone, whichever weighs more. What was liked is no evidence for its
    own slide, and not against it: that slide counts as near to it as the nearest other.
    """
    weight, own = _weights(query), query.own
    mine, liked = weight[:own], weight[own:]
    medians = _weighted_median(near[:, :own], mine)
    means = near[:, :own] @ mine / max(mine.sum(), 1e-300)
    order = medians
    if len(liked):
        theirs = near[:, own:]
        if own_regions is not None:
            nearest = np.where(own_regions, np.inf, theirs).min(axis=0, initial=np.inf)
            instead = np.where(np.isfinite(nearest), nearest, medians[:, None])
            theirs = np.where(own_regions, instead, theirs)
        order = (mine.sum() * medians + liked.sum() * _weighted_median(theirs, liked)) / weight.sum()
    return np.stack([order, means, medians])


def _own_regions(store: Store, query: Query, slides: _Ints) -> NDArray[np.bool_]:
    """Say which of what was liked are regions of each slide itself, shape (n_slides, n_liked)."""
    numbers = [store.slides.number(slide) for slide in query.liked]
    liked = np.array([-1 if n is None else n for n in numbers], np.int64)
    return np.asarray(slides[:, None] == liked, np.bool_)


def _affordable(store: Store, order: _Ints, k: int) -> _Ints:
    rows = np.cumsum(store.patches_per_slide[order])
    return order[: max(k, min(CANDIDATES, int(np.searchsorted(rows, CANDIDATE_ROWS, "right"))))]


def _side_by_side(parts: list[NeighbourLists]) -> NeighbourLists:
    """Join lists of the same patches."""
    if len(parts) == 1:
        return parts[0]
    of_list = np.concatenate([np.repeat(np.arange(len(part)), part.lengths) for part in parts])
    rows, distances, slides = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "distances", "slides")
    )
    order = np.lexsort([distances, of_list])
    lengths = np.bincount(of_list, minlength=len(parts[0]))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return NeighbourLists(offsets, rows[order], distances[order], parts[0].cut, slides[order])


def rank_without_labels(
    hits: NeighbourLists, missing: ArrayLike, importance: _Floats | None = None
) -> tuple[_Ints, _Floats, _Floats]:
    """Rank slides by the median, over query patches, of the minimum distance, as far as lists tell it.

    Parameters
    ----------
    hits
        Neighbours of each query patch.
    missing : float64, shape (n_lists,) or ()
        Distance of a slide that is not in a patch's list.
    importance : float64, shape (n_lists,)
        How much each patch counts.

    Returns
    -------
    slides, medians, means
        Slide numbers, best first; equal medians by mean.
    """
    weight = np.ones(len(hits)) if importance is None else np.asarray(importance, np.float64)
    found, of_slide = np.unique(hits.slides, return_inverse=True)
    table = np.empty((len(found), len(hits)))
    table[:] = missing
    of_list = np.repeat(np.arange(len(hits)), hits.lengths)
    np.minimum.at(table, (of_slide, of_list), hits.distances)
    medians, means = _weighted_median(table, weight), table @ weight / max(weight.sum(), 1e-300)
    order = np.lexsort([found, means, medians])
    return found[order].astype(np.int64), medians[order], means[order]


def _weights(query: Query) -> _Floats:
    return np.ones(len(query)) if query.weights is None else np.asarray(query.weights, np.float64)


def _weighted_median(table: _Floats, weight: _Floats) -> _Floats:
    """Return the median of each line, entries counted by weight; between two, their mean."""
    if not len(table) or not weight.sum():
        return np.zeros(len(table))
    if (weight == weight[0]).all():
        return np.asarray(np.median(table, axis=1), np.float64)
    order = np.argsort(table, axis=1, kind="stable")
    values = np.take_along_axis(table, order, 1)
    share = np.cumsum(weight[order], axis=1) / weight.sum()
    low = np.argmax(share >= 0.5 - 1e-12, axis=1)
    high = np.argmax(share > 0.5 + 1e-12, axis=1)
    lines = np.arange(len(table))
    return np.asarray((values[lines, low] + values[lines, high]) / 2, np.float64)
