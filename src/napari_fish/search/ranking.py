"""From the neighbours of each query patch to slides: the paper's Algorithms 4-7 as array code.

Lists with clear votes are trusted first. A step that would leave nothing is skipped and said so; the switches
between the published program, the paper's ablations and the full ranking are in :data:`VARIANTS`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import NeighbourLists

# Lists the prediction is made from, and hits that stand for a list.
CERTAIN, TOP = 5, 5
_SLACK = 1e-9
# Digits that count: sums in another order differ in the last ones, and must not decide between equals.
_DIGITS, _COUNT_DIGITS = 9, 12
_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Variant:
    """Which parts of the ranking are on.

    Attributes
    ----------
    weighted
        Weigh labels by rarity and position, not alike.
    clean
        Drop lists of unusual length and lists that are far.
    by_prediction
        Drop certain lists that disagree with what the certain lists predict.
    released
        As the published program does: counts normalised instead of raised to 1, lengths looked at only from four
        distinct ones, a slide first seen in a dropped list lost.
    """

    weighted: bool = True
    clean: bool = True
    by_prediction: bool = True
    released: bool = False


VARIANTS = {
    "fish": Variant(),
    "fish-clean": Variant(by_prediction=False),
    "fish-weighted": Variant(by_prediction=False, clean=False),
    "fish-naive": Variant(by_prediction=False, clean=False, weighted=False),
    "released": Variant(released=True),
}


@dataclass(frozen=True, eq=False)
class Votes:
    """What the labels in each list say.

    Attributes
    ----------
    counts : float64, shape (n_lists, n_labels)
        Weighted occurrences.
    first : int64, shape (n_lists, n_labels)
        Position of a label's first hit; past the end where it has none.
    entropy : float64, shape (n_lists,)
        Uncertainty in bits.
    best : int64, shape (n_lists,)
        The label with most weight, the first seen of equals; -1 where no hit is labelled.
    """

    counts: _Floats
    first: _Ints
    entropy: _Floats
    best: _Ints


@dataclass(frozen=True, eq=False)
class Ranked:
    """Slides in order, and what became of the lists.

    Attributes
    ----------
    slides : int64, shape (n,)
        Slide numbers, best first.
    distances : int32, shape (n,)
        Distance of the hit that brought each, in bits.
    entropies : float64, shape (n,)
        Entropy of the list that brought each.
    lists : int64, shape (n,)
        That list.
    votes
        What the labels in each list say.
    means : float64, shape (n_lists,)
        Mean distance of each list's first five; NaN for an empty list.
    dropped
        List -> (why, in words), for lists that did not count.
    hit_threshold
        Largest distance at which hits of uncertain lists count.
    prediction
        The label that certain lists predict; -1 where none was made.
    skipped
        Steps left out because nothing would have been left.
    """

    slides: _Ints
    distances: NDArray[np.int32]
    entropies: _Floats
    lists: _Ints
    votes: Votes
    means: _Floats
    dropped: dict[int, tuple[str, str]]
    hit_threshold: float
    prediction: int
    skipped: tuple[str, ...]


def label_weights(slides_per_label: _Ints, total: float) -> _Floats:
    """Return 1 / number of slides of each label, scaled to a sum; 0 for labels without slides.

    Parameters
    ----------
    slides_per_label : int64, shape (n_labels,)
        Among the slides that the search may return: labels of others would take their share of the sum.
    total
        N, see :meth:`~napari_fish.search.SearchParams.label_weight_sum`.
    """
    inverse = np.where(slides_per_label > 0, 1 / np.maximum(slides_per_label, 1), 0.0)
    return inverse * (total / inverse.sum()) if inverse.sum() else inverse


def count_votes(
    hits: NeighbourLists, labels: _Ints, weights: _Floats, variant: Variant
) -> Votes:  # fmt: skip
    """Weigh the labels in each list (Algorithm 5).

    Parameters
    ----------
    hits
        Neighbours of each query patch.
    labels : int64, shape (n_hits,)
        Label of each hit, -1 for none.
    weights : float64, shape (n_labels,)
        Weight of each label.
    variant
        Which parts are on.
    """
    n, n_labels = len(hits), len(weights)
    of_list = np.repeat(np.arange(n), hits.lengths)
    position = np.arange(len(labels)) - hits.offsets[of_list] + 1
    known = labels >= 0
    cell = of_list[known] * n_labels + labels[known]
    weight = weights[labels[known]] / position[known] if variant.weighted else np.ones(int(known.sum()))
    counts: _Floats = np.bincount(cell, weight, n * n_labels).astype(np.float64).reshape(n, n_labels)
    first = np.full(n * n_labels, len(labels) + 1, np.int64)
    np.minimum.at(first, cell, position[known])
    first_seen = first.reshape(n, n_labels)
    present = first_seen <= len(labels)
    if not variant.released:
        counts = np.where(present, np.maximum(counts, 1.0), 0.0)
    counts = counts.round(_COUNT_DIGITS)
    total = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    if variant.released:
        counts = share.round(_COUNT_DIGITS)
    logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
    voted = present.any(axis=1)
    # A list without labelled hits knows nothing.
    entropy = np.where(voted, np.abs((share * logs).sum(axis=1)), np.log2(max(n_labels, 2)))
    entropy = entropy.round(_DIGITS)
    best = np.full(n, -1, np.int64)
    if n_labels:
        most = counts == counts.max(axis=1, keepdims=True)
        best = np.where(voted, np.argmin(np.where(most & present, first_seen, len(labels) + 2), axis=1), -1)
    return Votes(counts, first_seen, entropy, best)


def mean_of_nearest(hits: NeighbourLists) -> _Floats:
    """Return the mean distance of each list's first five, NaN for an empty one."""
    lengths = np.minimum(hits.lengths, TOP)
    sums = np.concatenate([[0.0], np.cumsum(hits.distances, dtype=np.float64)])
    total = sums[hits.offsets[:-1] + lengths] - sums[hits.offsets[:-1]]
    means: _Floats = np.divide(total, lengths, out=np.full(len(hits), np.nan), where=lengths > 0)
    return means


def _clean(
    lists: _Ints, lengths: _Ints, means: _Floats, variant: Variant, dropped: dict[int, tuple[str, str]]
) -> tuple[_Ints, float, list[str]]:
    """Drop lists of unusual length and far lists (Algorithm 6); return those left and θ_h'."""
    skipped = []
    if len(np.unique(lengths[lists])) >= (4 if variant.released else 3):
        low, high = np.quantile(lengths[lists], [0.05, 0.95])
        usual = (lengths[lists] > low) & (lengths[lists] < high)
        if usual.any():
            for i in lists[~usual].tolist():
                dropped[i] = (
                    "length",
                    f"{lengths[i]} neighbours, usual are more than {low:g} and fewer than {high:g}",
                )
            lists = lists[usual]
        else:
            skipped.append("dropping lists of unusual length (no list would have been left)")
    limit = float(means[lists].mean())
    return _near(lists, means, limit, dropped), limit, skipped


def _near(lists: _Ints, means: _Floats, limit: float, dropped: dict[int, tuple[str, str]]) -> _Ints:
    """Drop lists whose mean distance is above a limit."""
    near = means[lists] <= limit + _SLACK
    for i in lists[~near].tolist():
        dropped[i] = "distance", f"mean distance {means[i]:.1f} above the average {limit:.1f}"
    return lists[near]


def _predict(lists: _Ints, votes: Votes, importance: _Floats) -> tuple[list[int], int]:
    """Find the certain lists that disagree with the certain lists' prediction (Algorithm 7)."""
    certain = [i for i in lists[:CERTAIN].tolist() if votes.best[i] >= 0]
    score: dict[int, float] = {}
    for i in certain:
        present = np.flatnonzero(votes.counts[i])
        for label in present[np.argsort(votes.first[i, present], kind="stable")].tolist():
            score[label] = score.get(label, 0.0) + float(votes.counts[i, label] * importance[i])
    for label in sorted(score, key=lambda one: -round(score[one], _DIGITS)):
        removed = [i for i in certain if votes.best[i] != label]
        # Compared with the lists really there: a prediction no list shares would remove them all.
        if len(removed) < len(certain):
            return removed, label
    return [], -1


def rank_slides(
    hits: NeighbourLists,
    slide_labels: NDArray[np.int32],
    weights: _Floats,
    variant: Variant,
    threshold: float,
    importance: _Floats | None = None,
    own: int | None = None,
) -> Ranked:
    """Rank slides (Algorithm 4).

    Parameters
    ----------
    hits
        Neighbours of each query patch, nearest first.
    slide_labels : int32, shape (n_slides,)
        Label of each slide, -1 for none.
    weights : float64, shape (n_labels,)
        Weight of each label, see :func:`label_weights`.
    variant
        Which parts are on.
    threshold
        θ_h, used where cleaning is off.
    importance : float64, shape (n_lists,)
        How much each list counts in the prediction; a list of importance 0 is left out.
    own
        Lists of the query itself, which come first; None for all. They alone say what is usual and what is predicted:
        lists of regions that were judged relevant bring slides, but never push out the query.
    """
    slides, lengths, means = hits.slides, hits.lengths, mean_of_nearest(hits)
    votes = count_votes(hits, slide_labels[slides].astype(np.int64), weights, variant)
    counts_for = np.ones(len(hits)) if importance is None else importance
    dropped: dict[int, tuple[str, str]] = {
        i: ("empty", "no neighbour within the threshold") for i in np.flatnonzero(lengths == 0).tolist()
    }
    lists = np.flatnonzero((lengths > 0) & (counts_for > 0))
    limit, skipped, prediction = float(threshold), list[str](), -1
    own = len(hits) if own is None else own
    if len(lists) and variant.clean:
        mine, others = lists[lists < own], lists[lists >= own]
        if not len(mine):
            mine, others = others, mine
        lists, limit, skipped = _clean(mine, lengths, means, variant, dropped)
        lists = np.concatenate([lists, _near(others, means, limit, dropped)])
    lists = lists[np.argsort(votes.entropy[lists], kind="stable")]
    removed: list[int] = []
    if variant.by_prediction:
        removed, prediction = _predict(lists[lists < own], votes, counts_for)
        for i in removed:
            dropped[i] = "vote", "disagrees with what the most certain lists predict"
    walked = lists if variant.released else lists[~np.isin(lists, removed)]
    of_list = np.repeat(walked, lengths[walked])
    at = np.concatenate(
        [np.empty(0, np.int64), *(np.arange(hits.offsets[i], hits.offsets[i + 1]) for i in walked)]
    )
    near = (votes.entropy[of_list] == 0) | (hits.distances[at] <= limit)
    of_list, at = of_list[near], at[near]
    _, once = np.unique(slides[at], return_index=True)
    once.sort()
    of_list, at = of_list[once], at[once]
    if variant.released:
        kept = ~np.isin(of_list, removed)
        of_list, at = of_list[kept], at[kept]
    order = np.lexsort([hits.distances[at], votes.entropy[of_list]])
    of_list, at = of_list[order], at[order]
    return Ranked(
        slides=slides[at].astype(np.int64), distances=hits.distances[at], entropies=votes.entropy[of_list], lists=of_list, votes=votes, means=means, dropped=dropped,
        hit_threshold=limit, prediction=prediction, skipped=tuple(skipped),
    )  # fmt: skip
