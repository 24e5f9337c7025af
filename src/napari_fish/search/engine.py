"""Queries become answers: mask, neighbours, ranking, explanation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from napari_fish.errors import FishError
from napari_fish.index.arrays import Mask, NeighbourLists, as_barcodes
from napari_fish.search.answers import Answer, by_distance, rank, slide_hits
from napari_fish.search.calibrate import threshold_of
from napari_fish.search.filters import exclusion_mask, slide_mask
from napari_fish.search.labelfree import nearest_slides
from napari_fish.search.neighbours import Found, batches, find_neighbours, nearest_of_all
from napari_fish.search.output.colours import labels_in
from napari_fish.search.params import SearchParams
from napari_fish.search.values import Query, Results, SlideHit
from napari_fish.store.protocol import Store
from napari_fish.store.records import Box
from napari_fish.texts import Note


def search(store: Store, query: Query, params: SearchParams | None = None) -> Results:
    """Find the slides most similar to a query.

    Parameters
    ----------
    store
        The database.
    query
        Encoded patches of a slide, a box or an image.
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
    time of a pass is divided among them by their patches.

    Parameters
    ----------
    store
        The database.
    queries
        Each with patches, and with a slide and patient of its own to be left out.
    params
        How to search.
    """
    p = params or SearchParams()
    for query in queries:
        if not len(query):
            raise FishError(f"{query.name}: nothing to search for, the query has no regions.")
        as_barcodes(query.barcodes, store.words)
    answers: list[Results] = []
    for batch in batches(queries, len(store.slides)):
        answers += _search_batch(store, batch, p)
    return answers


def _search_batch(store: Store, queries: Sequence[Query], p: SearchParams) -> list[Results]:
    threshold, note = threshold_of(store, p.threshold, p.mode)
    masks = [allowed_slides(store, query, p) for query in queries]
    clock = [time.perf_counter()]
    found = find_neighbours(store, queries, p, threshold, masks)
    clock.append(time.perf_counter())
    ranked, hits = list[Answer](), list[list[SlideHit]]()
    for query, one, mask in zip(queries, found, masks, strict=True):

        def beside(
            seen: Mask, longest: int, query: Query = query, mask: Mask | None = mask
        ) -> NeighbourLists:
            left, deeper = _without(store, mask, seen), replace(p, neighbours=longest)
            return find_neighbours(store, [query], deeper, threshold, [left])[0].lists

        ranked.append(rank(store, one.lists, query, p, threshold=threshold, mask=mask, more=beside))
        hits.append(slide_hits(store, query, p, ranked[-1]))
    more = _fill(store, queries, p, masks, ranked) if p.fills else [[] for _ in queries]
    clock.append(time.perf_counter())
    labels = labels_in(*(store.slides.numbered(column)[1] for column in ("diagnosis", p.target)))
    took = 1e3 * np.diff(clock) / sum(len(query) for query in queries)
    return [
        Results(
            query=query.name,
            mode=found[i].mode,
            ranking=ranked[i].explanation.ranking,
            k=p.k,
            threshold=threshold,
            hits=(*hits[i], *more[i]),
            notes=tuple(
                _notes(
                    store,
                    query,
                    p,
                    mask=masks[i],
                    found=found[i],
                    threshold=threshold,
                    said=note,
                    n=len(hits[i]),
                    filled=len(more[i]),
                )
            ),
            elapsed_ms={"search": float(took[0] * len(query)), "rank": float(took[1] * len(query))},
            explanation=ranked[i].explanation,
            query_boxes=tuple(Box(*box) for box in query.boxes.tolist()),
            labels=labels,
        )
        for i, query in enumerate(queries)
    ]


def allowed_slides(store: Store, query: Query, params: SearchParams) -> Mask | None:
    """Return which slides may be returned, None where all may."""
    mask = slide_mask(store.slides, params.where)
    if params.exclude_query and (query.slide or query.patient):
        mask &= exclusion_mask(store.slides, query.slide, query.patient)
    return None if mask.all() else mask


def _without(store: Store, mask: Mask | None, seen: Mask) -> Mask:
    return (store.slides.alive if mask is None else mask) & ~seen


def _fill(
    store: Store,
    queries: Sequence[Query],
    p: SearchParams,
    masks: Sequence[Mask | None],
    answers: Sequence[Answer],
) -> list[list[SlideHit]]:
    """Complete short answers with the nearest slides, however far; all that are short share the first pass."""
    left: dict[int, Mask] = {}
    for i, answer in enumerate(answers):
        if len(answer.slides) < p.k:
            there = np.zeros(len(store.slides), np.bool_)
            there[answer.slides] = True
            left[i] = _without(store, masks[i], there)
    short = [queries[i] for i in left]
    parts = nearest_of_all(store, short, list(left.values()), k=p.neighbours, threads=p.threads)
    more: list[list[SlideHit]] = [[] for _ in queries]
    for (i, mask), lists in zip(left.items(), parts, strict=True):
        query, first = queries[i], 1 + len(answers[i].slides)

        def beside(seen: Mask, longest: int, query: Query = query, mask: Mask = mask) -> NeighbourLists:
            return nearest_of_all(store, [query], [mask & ~seen], k=longest, threads=p.threads)[0]

        near = nearest_slides(
            store, query, lists, p.k - first + 1, longest=p.neighbours, beyond=64 * store.words + 1, more=beside,
            threads=p.threads,
        )  # fmt: skip
        more[i] = slide_hits(store, query, p, by_distance(query, near), first_rank=first, filled=True)
    return more


def _notes(
    store: Store,
    query: Query,
    p: SearchParams,
    *,
    mask: Mask | None,
    found: Found,
    threshold: int,
    said: str,
    n: int,
    filled: int,
) -> list[Note]:
    """Say what the reader must know of an answer of ``n`` slides and ``filled`` more."""
    unknown = _not_left_out(query) if p.exclude_query and n + filled else ""
    notes = [Note("patient", unknown), Note("threshold", said), *found.notes]
    if filled and not len(found.lists.rows):
        nearest = f"the {filled} nearest slides are" if filled > 1 else "the nearest slide is"
        said = f"Nothing lies within the threshold of {threshold} bits; {nearest} shown."
        notes.append(Note("filled", said))
    elif filled:
        said = (
            f"Within the threshold of {threshold} bits the search gave {n} of {p.k} slides; "
            f"{filled} more {'was' if filled == 1 else 'were'} filled in from exact search, nearest first."
        )
        notes.append(Note("filled", said))
    if n + filled < p.k:
        notes.append(
            Note("short", _why_short(store, mask, n + filled, p, threshold=threshold, lists=found.lists))
        )
    return [note for note in notes if note.text]


def _not_left_out(query: Query) -> str:
    """Say what could not be left out of an answer, because nobody knows whose slide the query is."""
    if query.patient:
        return ""
    which = "other slides" if query.slide else "its own slide, or others"
    return f"The query's patient is not known: {which} of the same patient may be among the hits."


def _why_short(
    store: Store, mask: Mask | None, n: int, p: SearchParams, *, threshold: int, lists: NeighbourLists
) -> str:  # fmt: skip
    left = store.slides.alive if mask is None else mask
    allowed = int((left & (store.patches_per_slide > 0)).sum())
    if allowed <= n:
        return f"{n} of {p.k} slides: the filters and the exclusion of the query leave only {allowed}."
    if not len(lists.rows):
        return f"{n} of {p.k} slides: no region lies within the threshold of {threshold} bits."
    cut = 0 if p.mode in ("guided", "released") else int((lists.lengths >= p.neighbours).sum())
    if cut:
        return (
            f"{n} of {p.k} slides: at most {p.neighbours} neighbours of each query region are looked at, and {cut} of "
            f"{len(lists)} query regions have more within the threshold of {threshold} bits; more (neighbours= in Python) "
            "may bring further slides."
        )
    return (
        f"{n} of {p.k} slides: {int((lists.lengths > 0).sum())} of {len(lists)} query regions have neighbours within "
        f"the threshold of {threshold} bits, and the ranking kept {n} slides of them."
    )
