"""An answer as people read it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from napari_fish.texts import in_columns, one_line

if TYPE_CHECKING:
    from napari_fish.search import Results
    from napari_fish.search.recall import Recall

_HEADER = ("rank", "slide", "diagnosis", "site", "patient", "distance", "closer than", "matches")


def print_answer(answer: Results, explain: bool = False) -> None:
    """Print an answer as a table."""
    typer.echo(answer_text(answer, explain))


def answer_text(answer: Results, explain: bool = False) -> str:
    """Return an answer as a table, with the numbers that cards show."""
    from napari_fish.search.verdict import matched_regions

    times = answer.elapsed_ms
    said = (
        f"{one_line(answer.query)}: mode {answer.mode}, ranking {answer.ranking}, threshold {answer.threshold} bits; "
        f"read {times.get('read', 0):.0f} ms, encode {times.get('encode', 0):.0f} ms, "
        f"search {times.get('search', 0):.1f} ms, rank {times.get('rank', 0):.1f} ms"
    )
    rows: list[tuple[str, ...]] = [_HEADER]
    for hit in answer.hits:
        matched, regions = matched_regions(hit, answer)
        names = (hit.slide + (" (filled in)" if hit.filled else ""), hit.diagnosis, hit.site, hit.patient)
        numbers = (f"{hit.distance:.0f}", _closer_than(hit.percentile), f"{matched} of {regions}")
        rows.append((str(hit.rank), *map(one_line, names), *numbers))
    notes = [f"note: {note}" for note in answer.notes]
    return "\n".join([said, in_columns(rows), *notes, *([str(answer.explanation)] if explain else [])])


def recall_text(measured: Recall) -> str:
    """Say which recall was measured."""
    said = (
        "-, as none of those drawn has a neighbour within the threshold"
        if measured.recall is None
        else f"{measured.recall:.3f}"
    )
    return (
        f"recall@{measured.k} of mode {measured.mode} against exact search, on "
        f"{measured.queries} patches of this database: {said}"
    )


def _closer_than(percentile: float | None) -> str:
    """Say how many random pairs are farther apart."""
    from napari_fish.search.verdict import closer_than

    shown = closer_than(percentile)
    return (
        ""
        if shown is None
        else "all pairs"
        if percentile is not None and percentile <= 0
        else f"{shown:g} % of pairs"
    )
