"""The neighbours of each query patch, in any mode, for a batch of queries at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isinf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import Mask, NeighbourLists
from napari_fish.search.params import SearchParams
from napari_fish.search.values import Query
from napari_fish.store.protocol import Store
from napari_fish.store.request import FEW_ROWS, Request, Way
from napari_fish.texts import Note

# How many times more clusters a filter may make clustered search probe.
MORE_PROBES = 4
# Query patches, and entries of masks, in one pass: they bound the memory a batch takes.
PASS_PATCHES, PASS_MASKS = 4096, 1 << 26


@dataclass(frozen=True, eq=False)
class Found:
    """Neighbour lists, how they were found, and what the reader must know."""

    lists: NeighbourLists
    mode: str
    notes: tuple[Note, ...] = ()


def allowed_rows(store: Store, mask: Mask | None) -> int:
    """Return how many patches a mask leaves."""
    return len(store) if mask is None else int(store.patches_per_slide[mask].sum())


def batches(queries: Sequence[Query], n_slides: int) -> Iterator[Sequence[Query]]:
    """Divide queries into batches that share a pass, each small enough for its lists and masks."""
    start = patches = 0
    for i, query in enumerate(queries):
        patches += len(query)
        if i > start and (patches > PASS_PATCHES or (i - start + 1) * n_slides > PASS_MASKS):
            yield queries[start:i]
            start, patches = i, len(query)
    if len(queries):
        yield queries[start:]


def find_neighbours(
    store: Store, queries: Sequence[Query], params: SearchParams, threshold: int, masks: Sequence[Mask | None]
) -> list[Found]:
    """Find the neighbours of each patch of a batch of queries within the threshold.

    How each query is searched does not depend on the others; those searched the same way share one pass.

    Parameters
    ----------
    store
        Where to look.
    queries
        Encoded patches.
    params
        Mode and its parameters.
    threshold
        θ_h in bits.
    masks : bool, each of shape (n_slides,)
        Slides that may be returned for each query; None for all. What was liked never finds its own slide.
    """
    pieces = [_apart(store, query, mask) for query, mask in zip(queries, masks, strict=True)]
    asked = [part for piece in pieces for part, _ in piece]
    allowed = [mask for piece in pieces for _, mask in piece]
    found = iter(_find(store, asked, params, threshold, allowed))
    return [_together([next(found) for _ in piece]) for piece in pieces]


def nearest_of_all(
    store: Store, queries: Sequence[Query], masks: Sequence[Mask | None], *, k: int, radius: int | None = None, threads: int
) -> list[NeighbourLists]:  # fmt: skip
    """Find the k nearest of each patch, as far as the radius allows; what was liked never finds its own slide."""
    pieces = [_apart(store, query, mask) for query, mask in zip(queries, masks, strict=True)]
    asked = [query for piece in pieces for query, _ in piece]
    allowed = [mask for piece in pieces for _, mask in piece]
    found = iter(_ask(store, asked, allowed, k=k, radius=radius, threads=threads))
    return [NeighbourLists.joined([next(found) for _ in piece]) for piece in pieces]


def _apart(store: Store, query: Query, mask: Mask | None) -> list[tuple[Query, Mask | None]]:
    """Take a query's own patches and those of each slide that was liked apart: the latter may not find their slide."""
    if not query.liked:
        return [(query, mask)]
    parts: list[tuple[Query, Mask | None]] = []
    for a, b in pairwise([0, *range(query.own, len(query) + 1)]):
        part = replace(
            query, keys=query.keys[a:b], barcodes=query.barcodes[a:b], boxes=query.boxes[a:b], weights=None, liked=()
        )  # fmt: skip
        number = store.slides.number(query.liked[a - query.own]) if a else None
        left = mask
        if number is not None:
            left = (store.slides.alive if mask is None else mask).copy()
            left[number] = False
        parts.append((part, left))
    return parts


def _together(parts: Sequence[Found]) -> Found:
    if len(parts) == 1:
        return parts[0]
    return Found(NeighbourLists.joined([part.lists for part in parts]), parts[0].mode, parts[0].notes)


def _find(
    store: Store, queries: Sequence[Query], params: SearchParams, threshold: int, masks: Sequence[Mask | None]
) -> list[Found]:  # fmt: skip
    ways = [_way(store, query, params, mask) for query, mask in zip(queries, masks, strict=True)]
    found: dict[int, Found] = {}
    for way in dict.fromkeys(ways):
        at = [i for i, other in enumerate(ways) if other == way]
        mine, allowed = [queries[i] for i in at], [masks[i] for i in at]
        lists = _ask(
            store, mine, allowed, way=way.way, k=params.neighbours, radius=threshold, threads=params.threads,
            guided=params.walks(threshold), clustered=replace(params.clustered, probes=way.probes), index=params.index,
        )  # fmt: skip
        for i, one in zip(at, lists, strict=True):
            found[i] = Found(one, way.mode, _notes(store, params, way, masks[i], one))
    return [found[i] for i in range(len(queries))]


class _Way(NamedTuple):
    """How a query is searched; ``few`` where a filter leaves too few patches for clusters to pay."""

    mode: str
    way: Way
    probes: int = 0
    few: bool = False


def _way(store: Store, query: Query, params: SearchParams, mask: Mask | None) -> _Way:
    mode = params.mode
    if mode in ("guided", "released"):
        return _Way(mode, "guided")
    if mode == "auto":
        request = Request(query.barcodes, masks=mask, threads=params.threads)
        in_time = store.cost(request) <= params.latency_budget_ms
        mode = "exact" if in_time or isinf(store.cost(replace(request, way="clustered"))) else "clustered"
    rows = allowed_rows(store, mask)
    if mode == "clustered" and rows > FEW_ROWS:
        share = rows / max(1, len(store))
        return _Way(mode, mode, round(params.clustered.probes * min(MORE_PROBES, 1 / share)))
    return _Way("exact", "exact", few=mode == "clustered" and mask is not None)


def _ask(
    store: Store, queries: Sequence[Query], masks: Sequence[Mask | None], **how: Any
) -> list[NeighbourLists]:
    """Ask a store for the neighbours of all queries at once."""
    if not len(queries):
        return []
    sizes = [len(query) for query in queries]
    keys, barcodes = (
        np.concatenate([getattr(query, name) for query in queries]) for name in ("keys", "barcodes")
    )
    table, which = _table(masks, sizes)
    return store.nearest(Request(barcodes, keys=keys, masks=table, which=which, **how)).split(sizes)


def _notes(
    store: Store, params: SearchParams, way: _Way, mask: Mask | None, lists: NeighbourLists
) -> tuple[Note, ...]:
    cut = int(lists.cut.sum())
    if cut:
        most = params.guided.skips * params.guided.limit
        note = (
            f"{cut} walks ended because the filter excluded more than {most} keys on their way; "
            "mode exact or clustered sees all that match."
        )
        return (Note("neighbours", note),)
    if way.few:
        note = f"The filter leaves {allowed_rows(store, mask)} patches; they were searched exactly."
        return (Note("neighbours", note),)
    return ()


def _table(
    masks: Sequence[Mask | None], sizes: Sequence[int]
) -> tuple[Mask | None, NDArray[np.int64] | None]:
    """Join the masks of queries into a table without repetition, and say which of it each patch goes by."""
    names = [None if mask is None else mask.tobytes() for mask in masks]
    lines = {name: i for i, name in enumerate(dict.fromkeys(names))}
    if len(lines) == 1:
        return masks[0], None
    n_slides = max(len(mask) for mask in masks if mask is not None)
    table = np.ones((len(lines), n_slides), np.bool_)
    for name, mask in zip(names, masks, strict=True):
        if mask is not None:
            table[lines[name]] = mask
    return table, np.repeat(np.array([lines[name] for name in names], np.int64), sizes)
