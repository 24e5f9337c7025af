"""Queries become answers: mask, neighbours, ranking, explanation."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from napari_fish.database.protocol import Store
from napari_fish.database.records import Box
from napari_fish.errors import FishError
from napari_fish.index.arrays import Mask, NeighbourLists, as_barcodes
from napari_fish.search.answers import Answer, rank, slide_hits
from napari_fish.search.calibrate import threshold_of
from napari_fish.search.colours import labels_in
from napari_fish.search.filters import exclusion_mask, slide_mask
from napari_fish.search.labelfree import rank_without_labels
from napari_fish.search.neighbours import Found, batches, exact, find_neighbours
from napari_fish.search.params import SearchParams
from napari_fish.search.values import Explanation, Query, Results, SlideHit

# Rounds of filling: each looks for slides that the rounds before did not find.
_ROUNDS = 8


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
    return search_many(store, [query], params)[0]


def search_many(store: Store, queries: Sequence[Query], params: SearchParams | None = None) -> list[Results]:
    """Find the slides most similar to each of several queries.

    The answers are those of :func:`search` one by one, but the queries share each pass over the database; the
    time of a pass is divided among them by their mosaics.

    Parameters
    ----------
    store
        The database.
    queries
        Each with mosaics, and with a slide and patient of its own to be left out.
    params
        How to search.
    """
    p = params or SearchParams()
    for query in queries:
        if not len(query):
            raise FishError(f"{query.name}: nothing to search for, the query has no mosaics.")
        as_barcodes(query.barcodes, store.words)
    answers: list[Results] = []
    for batch in batches(queries, len(store.slides)):
        answers += _search_batch(store, batch, p)
    return answers


def _search_batch(store: Store, queries: Sequence[Query], p: SearchParams) -> list[Results]:
    threshold, note = threshold_of(store, p.threshold)
    masks = [allowed_slides(store, query, p) for query in queries]
    clock = [time.perf_counter()]
    found = find_neighbours(store, queries, p, threshold, masks)
    clock.append(time.perf_counter())
    ranked, hits = list[Answer](), list[list[SlideHit]]()
    for query, one in zip(queries, found, strict=True):
        slides = store.slides_of(one.lists.rows)
        ranked.append(rank(store, one.lists, slides, query, p, threshold))
        hits.append(slide_hits(store, query, p, one.lists, slides, ranked[-1]))
    more = _fill(store, queries, p, threshold, masks, hits) if p.fills else [[] for _ in queries]
    clock.append(time.perf_counter())
    labels = labels_in(*(store.slides.codes(column)[1] for column in ("diagnosis", p.target)))
    took = 1e3 * np.diff(clock) / sum(len(query) for query in queries)
    return [
        Results(
            query.name,
            found[i].mode,
            ranked[i].explanation.ranking,
            p.k,
            threshold,
            (*hits[i], *more[i]),
            tuple(_notes(store, query, p, threshold, note, masks[i], found[i], len(hits[i]), len(more[i]))),
            {"search": float(took[0] * len(query)), "rank": float(took[1] * len(query))},
            ranked[i].explanation,
            tuple(Box(*box) for box in query.boxes.tolist()),
            labels,
        )
        for i, query in enumerate(queries)
    ]


def allowed_slides(store: Store, query: Query, params: SearchParams) -> Mask | None:
    """Return which slides may be returned, None where all may."""
    mask = slide_mask(store.slides, params.where)
    if params.exclude_query and (query.slide or query.patient):
        mask &= exclusion_mask(store.slides, query.slide, query.patient)
    return None if mask.all() else mask


def _fill(
    store: Store,
    queries: Sequence[Query],
    p: SearchParams,
    threshold: int,
    masks: Sequence[Mask | None],
    hits: Sequence[Sequence[SlideHit]],
) -> list[list[SlideHit]]:
    """Complete short answers with the nearest slides, however far; all that are still short share a pass."""
    left = [(store.slides.alive if mask is None else mask).copy() for mask in masks]
    for mine, found in zip(left, hits, strict=True):
        for hit in found:
            number = store.slides.number(hit.slide)
            assert number is not None
            mine[number] = False
    more: list[list[SlideHit]] = [[] for _ in queries]
    for _ in range(_ROUNDS):
        short = [
            i
            for i, mine in enumerate(left)
            if len(hits[i]) + len(more[i]) < p.k and store.mosaics_per_slide[mine].any()
        ]
        if not short:
            break
        codes, allowed = [queries[i].barcodes for i in short], [left[i] for i in short]
        parts = exact(store, codes, allowed, k=p.neighbours, radius=None, threads=p.threads)
        for i, lists in zip(short, parts, strict=True):
            slides = store.slides_of(lists.rows)
            missing = max(threshold, int(lists.distances.max(initial=0))) + 1
            order, medians, _ = rank_without_labels(lists, slides, missing, queries[i].weights)
            left[i][order] = False
            nothing, all_kept = np.full(len(order), np.nan), np.ones(len(lists), np.bool_)
            answer = Answer(order, medians, nothing, Explanation("label-free"), all_kept)
            first = 1 + len(hits[i]) + len(more[i])
            more[i] += slide_hits(store, queries[i], p, lists, slides, answer, first, filled=True)
    return more


def _notes(
    store: Store,
    query: Query,
    p: SearchParams,
    threshold: int,
    note: str,
    mask: Mask | None,
    found: Found,
    n: int,
    filled: int,
) -> list[str]:
    """Say what the reader must know of an answer of ``n`` slides and ``filled`` more."""
    notes = [_not_left_out(query) if p.exclude_query and n + filled else "", note, *found.notes]
    if filled and not len(found.lists.rows):
        nearest = f"the {filled} nearest slides are" if filled > 1 else "the nearest slide is"
        notes.append(f"Nothing lies within the threshold of {threshold} bits; {nearest} shown.")
    elif filled:
        notes.append(
            f"Within the threshold of {threshold} bits the search gave {n} of {p.k} slides; "
            f"{filled} more {'was' if filled == 1 else 'were'} filled in from exact search, nearest first."
        )
    if n + filled < p.k:
        notes.append(_why_short(store, mask, n + filled, p, threshold, found.lists))
    return [text for text in notes if text]


def _not_left_out(query: Query) -> str:
    """Say what could not be left out of an answer, because nobody knows whose slide the query is."""
    if query.patient:
        return ""
    which = "other slides" if query.slide else "its own slide, or others"
    return f"The query's patient is not known: {which} of the same patient may be among the hits."


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
