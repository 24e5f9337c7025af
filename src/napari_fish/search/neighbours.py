"""The neighbours of each query mosaic, in any mode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_fish.database.protocol import Store
from napari_fish.index.arrays import Barcodes, Mask, NeighbourLists
from napari_fish.index.exact import exact_neighbours
from napari_fish.search.params import SearchParams
from napari_fish.search.values import Query

# A filter that leaves no more rows than this is searched exactly, reading only these rows.
FEW_ROWS = 32_768
# How many times more cells a filter may make clustered search probe.
MORE_PROBES = 4
# What exact search costs on an ordinary processor: ns to read a 1024-bit row, and to compare it.
_READ_NS, _COMPARE_NS = 11.0, 4.0


@dataclass(frozen=True, eq=False)
class Found:
    """Neighbour lists, how they were found, and what the reader must know."""

    lists: NeighbourLists
    mode: str
    notes: tuple[str, ...] = ()


def allowed_rows(store: Store, mask: Mask | None) -> int:
    """Return how many mosaics a mask leaves."""
    return len(store) if mask is None else int(store.mosaics_per_slide[mask].sum())


def exact_cost_ms(rows: int, queries: int, words: int, threads: int) -> float:
    """Estimate the time of an exact search."""
    return rows * (_READ_NS + _COMPARE_NS * queries) * (words / 16) / threads / 1e6


def find_neighbours(
    store: Store, query: Query, params: SearchParams, threshold: int, mask: Mask | None
) -> Found:  # fmt: skip
    """Find the neighbours of each mosaic of a query within the threshold.

    Parameters
    ----------
    store
        Where to look.
    query
        Encoded mosaics.
    params
        Mode and its parameters.
    threshold
        θ_h in bits.
    mask : bool, shape (n_slides,)
        Slides that may be returned; None for all.
    """
    if params.mode in ("guided", "released"):
        return _guided(store, query, params, threshold, mask)
    rows = allowed_rows(store, mask)
    mode = params.mode
    if mode == "auto":
        cost = exact_cost_ms(rows, len(query), store.words, params.threads)
        mode = "exact" if cost <= params.latency_budget_ms or not store.has_cells else "clustered"
    if mode == "clustered" and rows > FEW_ROWS:
        share = rows / max(1, len(store))
        probes = round(params.clustered.probes * min(MORE_PROBES, 1 / share))
        lists = store.cells(
            query.barcodes,
            replace(params.clustered, probes=probes),
            mask,
            k=params.neighbours,
            radius=threshold,
            threads=params.threads,
        )
        return Found(lists, "clustered")
    few = mode == "clustered" and mask is not None
    note = (f"The filter leaves {rows} mosaics; they were searched exactly.",) if few else ()
    lists = exact(
        store, query.barcodes, k=params.neighbours, radius=threshold, mask=mask, threads=params.threads
    )
    return Found(lists, "exact", note)


def _guided(store: Store, query: Query, params: SearchParams, threshold: int, mask: Mask | None) -> Found:
    lists = store.scan(query.keys, query.barcodes, params.walks(threshold), mask, threads=params.threads)
    cut = int(lists.cut.sum())
    most = params.guided.skips * params.guided.limit
    note = (
        f"{cut} walks ended because the filter excluded more than {most} keys on their way; "
        "mode exact or clustered sees all that match."
    )
    return Found(lists, params.mode, (note,) if cut else ())


def exact(
    store: Store, barcodes: Barcodes, *, k: int, radius: int | None, mask: Mask | None, threads: int = 1
) -> NeighbourLists:
    """Search all mosaics that a mask leaves; when these are few, only they are read."""
    if mask is not None and allowed_rows(store, mask) <= FEW_ROWS:
        rows = store.rows_of(np.flatnonzero(mask))
        blocks: Iterable[tuple[Barcodes, NDArray[np.int32]]] = [
            (store.encoded(rows)[1], store.slides_of(rows))
        ]
        found = exact_neighbours(blocks, barcodes, k=k, radius=radius, threads=threads)
        return replace(found, rows=rows[found.rows])
    return exact_neighbours(store.blocks(mask), barcodes, k=k, radius=radius, mask=mask, threads=threads)
