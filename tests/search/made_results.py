"""Answers made by hand, to see what is said of them."""

from __future__ import annotations

from napari_fish.search import Explanation, Hit, ListFate, Results, SlideHit
from napari_fish.store import Box
from napari_fish.texts import Note


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
            query_index=i,
            query_box=Box(100 * i, 0, 100, 100),
            hit_box=Box(7 * rank, 9 * i, 50, 50),
            row=10 * rank + i,
            distance=int(distance),
            percentile=percentile,
        )
        for i in regions
    )
    return SlideHit(
        rank=rank,
        slide=f"s{rank}",
        name=f"slide {rank}.svs",
        patient=patient or f"p{rank}",
        diagnosis=diagnosis,
        site="kidney",
        distance=distance,
        percentile=percentile,
        entropy=0.0,
        matches=matches,
        filled=filled,
    )


def fate(
    index: int, vote: str = "KIRC", entropy: float = 0.0, kind: str = "kept", **votes: float
) -> ListFate:
    """Return what became of a region."""
    return ListFate(
        query_index=index,
        length=5,
        entropy=entropy,
        mean_distance=40.0,
        vote=vote,
        votes=votes or {vote: 1.0},
        fate=kind,
        reason="" if kind == "kept" else "why",
    )  # type: ignore[arg-type]


def answer(
    *hits: SlideHit, fates: tuple[ListFate, ...] = (), threshold: int = 60, notes: tuple[Note, ...] = ()
) -> Results:
    """Return an answer."""
    boxes = tuple(Box(100 * one.query_index, 0, 100, 100) for one in fates)
    told = Explanation("fish" if fates else "label-free", fates)
    return Results(
        query="query.svs",
        mode="exact",
        ranking=told.ranking,
        k=5,
        threshold=threshold,
        hits=hits,
        notes=notes,
        elapsed_ms={"search": 2.0},
        explanation=told,
        query_boxes=boxes,
        labels=("BLCA", "KIRC", "KIRP", "PRAD"),
    )
