"""Neighbour lists become slides in order, with the regions that match and the reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import Mask, NeighbourLists
from napari_fish.search.labelfree import Nearest, nearest_slides
from napari_fish.search.params import SearchParams
from napari_fish.search.ranking import VARIANTS, Ranked, label_weights, rank_slides
from napari_fish.search.values import Explanation, Hit, ListFate, Query, SlideHit
from napari_fish.store.protocol import Store
from napari_fish.store.records import Box

# Share of hits that must be labelled for ``auto`` to rank by labels.
_LABELLED = 0.5


@dataclass(frozen=True, eq=False)
class Answer:
    """Slides in order with distances, entropies (NaN for none), the explanation, and the lists it was made of."""

    slides: NDArray[np.int64]
    distances: NDArray[np.float64]
    entropies: NDArray[np.float64]
    explanation: Explanation
    kept: NDArray[np.bool_]
    lists: NeighbourLists


def rank(
    store: Store,
    lists: NeighbourLists,
    query: Query,
    p: SearchParams,
    *,
    threshold: int,
    mask: Mask | None,
    more: Callable[[Mask, int], NeighbourLists],
) -> Answer:
    """Rank the slides of a query's neighbours; ``mask`` says which slides may be returned, ``more`` is as in :func:`nearest_slides`."""
    codes, names = store.slides.numbered(p.target)
    ranking = p.ranking
    if ranking == "auto":
        # What was liked does not change the kind of ranking: the query's own patches decide.
        mine = lists.slides[: lists.offsets[query.own]]
        labelled = len(mine) > 0 and (codes[mine] >= 0).mean() >= _LABELLED
        ranking = "fish" if labelled and query.own > 1 else "label-free"
    if ranking == "label-free":
        longest = None if p.mode in ("guided", "released") else p.neighbours
        near = nearest_slides(
            store, query, lists, p.k, longest=longest, beyond=threshold + 1, more=more, threads=p.threads
        )
        return by_distance(query, near)
    variant = VARIANTS[ranking]
    weights, void = _label_weights(store, p, mask, len(names))
    ranked = rank_slides(lists, codes, weights, variant, threshold, query.weights, query.own)
    if void and variant.weighted and not variant.released:
        ranked = replace(ranked, skipped=(*ranked.skipped, void))
    kept = np.ones(len(lists), np.bool_)
    kept[list(ranked.dropped)] = False
    return Answer(
        slides=ranked.slides,
        distances=ranked.distances.astype(np.float64),
        entropies=ranked.entropies,
        explanation=_explain(ranking, query, lists, ranked, names),
        kept=kept,
        lists=lists,
    )


def _label_weights(
    store: Store, p: SearchParams, mask: Mask | None, n_labels: int
) -> tuple[NDArray[np.float64], str]:
    """Weigh the labels of the slides that may be returned; say so where that comes to nothing."""
    given = store.patches_per_slide > 0
    codes = store.slides.numbered(p.target)[0][given if mask is None else given & mask]
    counts = np.bincount(codes[codes >= 0], minlength=n_labels)
    labels = int((counts > 0).sum())
    total = p.label_weight_sum(labels)
    weights = label_weights(counts, total)
    if not labels or weights.max() >= 1:
        return weights, ""
    return weights, (
        f"weighing labels by rarity (a sum of {total:g} over {labels} labels leaves each weight below 1, "
        "and what is below 1 is raised to 1)"
    )


def by_distance(query: Query, near: Nearest) -> Answer:
    """Make an answer of slides that were ranked by distance alone."""
    fates = tuple(
        ListFate(query_index=i, length=int(n), fate="kept" if n else "empty", liked=query.origins[i])
        for i, n in enumerate(near.lists.lengths)
    )
    nothing, all_kept = np.full(len(near.slides), np.nan), np.ones(len(near.lists), np.bool_)
    return Answer(
        slides=near.slides,
        distances=near.medians,
        entropies=nothing,
        explanation=Explanation("label-free", fates),
        kept=all_kept,
        lists=near.lists,
    )


def _explain(
    ranking: str, query: Query, lists: NeighbourLists, ranked: Ranked, names: list[str]
) -> Explanation:
    counted: list[dict[str, float]] = [{} for _ in range(len(lists))]
    where, label = np.nonzero(ranked.votes.counts)
    for i, j, n in zip(
        where.tolist(), label.tolist(), ranked.votes.counts[where, label].tolist(), strict=True
    ):
        counted[i][names[j]] = n
    columns = (lists.lengths, ranked.votes.entropy, ranked.means, ranked.votes.best)
    fates = []
    for i, (length, entropy, mean, best) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        fate, reason = ranked.dropped.get(i, ("kept", ""))
        fates.append(
            ListFate(
                query_index=i,
                length=length,
                entropy=entropy if length else None,
                mean_distance=mean if length else None,
                vote=names[best] if best >= 0 else "",
                votes=counted[i],
                fate=fate,  # type: ignore[arg-type]
                reason=reason,
                liked=query.origins[i],
            )
        )
    said = names[ranked.prediction] if ranked.prediction >= 0 else ""
    return Explanation(ranking, tuple(fates), said, ranked.hit_threshold, ranked.skipped)


def slide_hits(
    store: Store,
    query: Query,
    p: SearchParams,
    answer: Answer,
    *,
    first_rank: int = 1,
    filled: bool = False,
) -> list[SlideHit]:
    """Make the values users see of the first k slides, with the regions that match."""
    chosen, lists = answer.slides[: p.k - first_rank + 1], answer.lists
    of_list = np.repeat(np.arange(len(lists)), lists.lengths)
    useful = np.flatnonzero(answer.kept[of_list] & np.isin(lists.slides, chosen))
    useful = useful[np.lexsort([lists.distances[useful], of_list[useful] >= query.own])]
    of_slide = [useful[lists.slides[useful] == slide][: p.matches] for slide in chosen.tolist()]
    matches = iter(_matches(store, query, lists, of_list, np.concatenate([useful[:0], *of_slide])))
    return [
        SlideHit(
            rank=first_rank + i,
            slide=record.slide,
            name=record.name,
            patient=record.patient,
            diagnosis=record.diagnosis,
            site=record.site,
            distance=float(answer.distances[i]),
            percentile=_percentile(store, float(answer.distances[i])),
            entropy=None if np.isnan(answer.entropies[i]) else float(answer.entropies[i]),
            matches=tuple(islice(matches, len(at))),
            filled=filled,
        )
        for i, (record, at) in enumerate(zip(store.slides.records_of(chosen), of_slide, strict=True))
    ]


def _matches(
    store: Store, query: Query, lists: NeighbourLists, of_list: NDArray[np.int64], at: NDArray[np.int64]
) -> list[Hit]:  # fmt: skip
    near = lists.distances[at].tolist()
    return [
        Hit(
            query_index=i,
            query_box=Box(*query.boxes[i].tolist()),
            hit_box=record.box,
            row=record.row,
            distance=distance,
            percentile=_percentile(store, distance),
            liked=query.origins[i],
        )
        for i, record, distance in zip(of_list[at].tolist(), store.regions(lists.rows[at]), near, strict=True)
    ]


def _percentile(store: Store, distance: float) -> float | None:
    return None if store.calibration is None else float(store.calibration.percentile(int(distance)))
