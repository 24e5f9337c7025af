"""Answers made by hand, to see what is said of them."""

from __future__ import annotations

from napari_fish.search import Explanation, Hit, ListFate, Results, SlideHit
from napari_fish.store import Box


def hit(
    rank: int,
    diagnosis: str = "KIRC",
    patient: str = "",
    *,
    distance: float = 40,
    percentile: float | None = 0.01,
    regions: tuple[int, ...] = (0,),
    filled: bool = False,
) -> SlideHit:
    """Return a slide that these regions of the query match, all at one distance."""
    matches = tuple(
        Hit(
            i,
            Box(100 * i, 0, 100, 100),
            Box(7 * rank, 9 * i, 50, 50),
            10 * rank + i,
            int(distance),
            percentile,
        )
        for i in regions
    )
    return SlideHit(
        rank, f"s{rank}", f"slide {rank}.svs", patient or f"p{rank}", diagnosis, "kidney", distance, percentile,
        0.0, matches, filled,
    )  # fmt: skip


def fate(
    index: int, vote: str = "KIRC", entropy: float = 0.0, kind: str = "kept", **votes: float
) -> ListFate:
    """Return what became of a region."""
    return ListFate(
        index, 5, entropy, 40.0, vote, votes or {vote: 1.0}, kind, "" if kind == "kept" else "why"
    )  # type: ignore[arg-type]


def answer(
    *hits: SlideHit, fates: tuple[ListFate, ...] = (), threshold: int = 60, notes: tuple[str, ...] = ()
) -> Results:
    """Return an answer."""
    boxes = tuple(Box(100 * one.query_index, 0, 100, 100) for one in fates)
    told = Explanation("fish" if fates else "label-free", fates)
    return Results(
        "query.svs", "exact", told.ranking, 5, threshold, hits, notes, {"search": 2.0}, told, boxes,
        ("BLCA", "KIRC", "KIRP", "PRAD"),
    )  # fmt: skip
