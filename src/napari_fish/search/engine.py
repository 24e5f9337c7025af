"""A query becomes an answer: mask, neighbours, ranking, explanation."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_fish.database.protocol import Store
from napari_fish.database.records import Box
from napari_fish.errors import FishError
from napari_fish.index.arrays import Mask, NeighbourLists
from napari_fish.search.calibrate import threshold_of
from napari_fish.search.filters import exclusion_mask, slide_mask
from napari_fish.search.labelfree import rank_without_labels
from napari_fish.search.neighbours import exact, find_neighbours
from napari_fish.search.params import SearchParams
from napari_fish.search.ranking import VARIANTS, Ranked, label_weights, rank_slides
from napari_fish.search.values import Explanation, Hit, ListFate, Query, Results, SlideHit

# Share of hits that must be labelled for ``auto`` to rank by labels.
_LABELLED = 0.5
# Rounds of filling: each looks for slides that the rounds before did not find.
_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class _Answer:
    """Slides in order with distances, entropies (NaN for none) and the explanation."""

    slides: NDArray[np.int64]
    distances: NDArray[np.float64]
    entropies: NDArray[np.float64]
    explanation: Explanation
    kept: NDArray[np.bool_]


def search(store: Store, query: Query, params: SearchParams | None = None) -> Results:
    """Find the slides most similar to a query.

    Parameters
    ----------
    store
        The database.
    query
        Encoded mosaics of a slide, a box or an image.
    params
        How to search.

    Returns
    -------
    Results
        At most k slides; with fewer, the notes say why.
    """
    p = params or SearchParams()
    if not len(query):
        raise FishError(f"{query.name}: nothing to search for, the query has no mosaics.")
    threshold, note = threshold_of(store, p.threshold)
    mask = allowed_slides(store, query, p)
    start = time.perf_counter()
    found = find_neighbours(store, query, p, threshold, mask)
    slides = store.slides_of(found.lists.rows)
    middle = time.perf_counter()
    answer = _rank(store, found.lists, slides, query, p, threshold)
    hits = _slide_hits(store, query, p, found.lists, slides, answer)
    notes = [note, *found.notes]
    if len(hits) < p.k and p.fills:
        more = _fill(store, query, p, threshold, mask, hits)
        if more:
            notes.append(
                f"Only {len(hits)} slides have mosaics within the threshold of {threshold} bits; "
                f"{len(more)} more were filled in from exact search, nearest first."
            )
        hits += more
    if len(hits) < p.k:
        notes.append(_why_short(store, mask, len(hits), p, threshold, found.lists))
    end = time.perf_counter()
    return Results(
        query.name,
        found.mode,
        answer.explanation.ranking,
        p.k,
        threshold,
        tuple(hits),
        tuple(text for text in notes if text),
        {"search": 1e3 * (middle - start), "rank": 1e3 * (end - middle)},
        answer.explanation,
        tuple(Box(*box) for box in query.boxes.tolist()),
    )


def allowed_slides(store: Store, query: Query, params: SearchParams) -> Mask | None:
    """Return which slides may be returned, None where all may."""
    mask = slide_mask(store.slides, params.where)
    if params.exclude_query and (query.slide or query.patient):
        mask &= exclusion_mask(store.slides, query.slide, query.patient)
    return None if mask.all() else mask


def _rank(
    store: Store, lists: NeighbourLists, slides: NDArray[np.int32], query: Query, p: SearchParams, threshold: int
) -> _Answer:  # fmt: skip
    codes, names = store.slides.codes(p.target)
    ranking = p.ranking
    if ranking == "auto":
        labelled = len(slides) > 0 and (codes[slides] >= 0).mean() >= _LABELLED
        ranking = "fish" if labelled and len(query) > 1 else "label-free"
    if ranking == "label-free":
        # METHOD.md, section 5: past every distance that was returned.
        missing = max(threshold, int(lists.distances.max(initial=0))) + 1
        order, medians, _ = rank_without_labels(lists, slides, missing, query.weights)
        fates = tuple(
            ListFate(i, int(n), None, None, "", {}, "kept" if n else "empty")
            for i, n in enumerate(lists.lengths)
        )
        nothing = np.full(len(order), np.nan)
        return _Answer(
            order, medians, nothing, Explanation("label-free", fates), np.ones(len(lists), np.bool_)
        )
    weights = label_weights(np.bincount(codes[codes >= 0], minlength=len(names)), p.label_weight_sum)
    ranked = rank_slides(lists, slides, codes, weights, VARIANTS[ranking], threshold, query.weights)
    kept = np.ones(len(lists), np.bool_)
    kept[list(ranked.dropped)] = False
    return _Answer(
        ranked.slides,
        ranked.distances.astype(np.float64),
        ranked.entropies,
        _explain(ranking, lists, ranked, names),
        kept,
    )


def _explain(ranking: str, lists: NeighbourLists, ranked: Ranked, names: list[str]) -> Explanation:
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
                i,
                length,
                entropy if length else None,
                mean if length else None,
                names[best] if best >= 0 else "",
                counted[i],
                fate,  # type: ignore[arg-type]
                reason,
            )
        )
    said = names[ranked.prediction] if ranked.prediction >= 0 else ""
    return Explanation(ranking, tuple(fates), said, ranked.hit_threshold, ranked.skipped)


def _slide_hits(
    store: Store,
    query: Query,
    p: SearchParams,
    lists: NeighbourLists,
    slides: NDArray[np.int32],
    answer: _Answer,
    first_rank: int = 1,
    filled: bool = False,
) -> list[SlideHit]:
    """Make the values users see of the first k slides, with the regions that match."""
    chosen = answer.slides[: p.k - first_rank + 1]
    of_list = np.repeat(np.arange(len(lists)), lists.lengths)
    useful = np.flatnonzero(answer.kept[of_list] & np.isin(slides, chosen))
    useful = useful[np.argsort(lists.distances[useful], kind="stable")]
    hits = []
    for i, slide in enumerate(chosen.tolist()):
        record = store.slides[slide]
        at = useful[slides[useful] == slide][: p.matches]
        hits.append(
            SlideHit(
                first_rank + i,
                record.slide,
                record.name,
                record.patient,
                record.diagnosis,
                record.site,
                float(answer.distances[i]),
                _percentile(store, float(answer.distances[i])),
                None if np.isnan(answer.entropies[i]) else float(answer.entropies[i]),
                _matches(store, query, lists, of_list, at),
                filled,
            )
        )
    return hits


def _matches(
    store: Store, query: Query, lists: NeighbourLists, of_list: NDArray[np.int64], at: NDArray[np.int64]
) -> tuple[Hit, ...]:  # fmt: skip
    near = lists.distances[at].tolist()
    return tuple(
        Hit(i, Box(*query.boxes[i].tolist()), record.box, record.row, distance, _percentile(store, distance))
        for i, record, distance in zip(of_list[at].tolist(), store.records(lists.rows[at]), near, strict=True)
    )


def _percentile(store: Store, distance: float) -> float | None:
    return None if store.calibration is None else float(store.calibration.percentile(int(distance)))


def _fill(
    store: Store, query: Query, p: SearchParams, threshold: int, mask: Mask | None, hits: list[SlideHit]
) -> list[SlideHit]:
    """Complete a short answer with the nearest slides, however far."""
    left = (store.slides.alive if mask is None else mask).copy()
    for hit in hits:
        number = store.slides.number(hit.slide)
        assert number is not None
        left[number] = False
    more: list[SlideHit] = []
    for _ in range(_ROUNDS):
        first_rank = 1 + len(hits) + len(more)
        if first_rank > p.k or not store.mosaics_per_slide[left].any():
            break
        lists = exact(store, query.barcodes, k=p.neighbours, radius=None, mask=left, threads=p.threads)
        slides = store.slides_of(lists.rows)
        missing = max(threshold, int(lists.distances.max(initial=0))) + 1
        order, medians, _ = rank_without_labels(lists, slides, missing, query.weights)
        left[order] = False
        nothing = np.full(len(order), np.nan)
        answer = _Answer(order, medians, nothing, Explanation("label-free"), np.ones(len(lists), np.bool_))
        more += _slide_hits(store, query, p, lists, slides, answer, first_rank, filled=True)
    return more


def _why_short(
    store: Store, mask: Mask | None, n: int, p: SearchParams, threshold: int, lists: NeighbourLists
) -> str:  # fmt: skip
    allowed = int((store.slides.alive if mask is None else mask).sum())
    if allowed <= n:
        return f"{n} of {p.k} slides: the filters and the exclusion of the query leave only {allowed}."
    if not len(lists.rows):
        return f"{n} of {p.k} slides: no mosaic lies within the threshold of {threshold} bits."
    return (
        f"{n} of {p.k} slides: {int((lists.lengths > 0).sum())} of {len(lists)} query mosaics have neighbours within "
        f"the threshold of {threshold} bits, and the ranking kept {n} slides of them."
    )
