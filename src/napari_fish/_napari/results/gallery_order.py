"""In which order hits stand in the gallery, and under which headings; nothing of Qt in here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from napari_fish.search import Results, SlideHit
from napari_fish.search.verdict import bits, closeness, regions_in_words

SORTS = ("rank", "distance", "diagnosis", "patient")
GROUPS = ("nothing", "patient", "diagnosis")


@dataclass(frozen=True)
class Heading:
    """A line above hits that belong together.

    Attributes
    ----------
    text
        What they share, in words.
    count
        How many they are.
    diagnosis
        Their diagnosis, for its colour; empty where they do not share one.
    """

    text: str
    count: int
    diagnosis: str = ""


_KEYS: dict[str, Callable[[SlideHit], Any]] = {
    "rank": lambda hit: hit.rank,
    "distance": lambda hit: (hit.distance, hit.rank),
    # What is not known comes last.
    "diagnosis": lambda hit: (not hit.diagnosis, hit.diagnosis.casefold(), hit.rank),
    "patient": lambda hit: (not hit.patient, hit.patient.casefold(), hit.rank),
}


def arranged(
    hits: Sequence[SlideHit], sort: str = "rank", group: str = "nothing"
) -> list[Heading | SlideHit]:
    """Sort hits, and put those that share a patient or a diagnosis under a heading.

    Parameters
    ----------
    hits
        Slides of an answer.
    sort
        One of :data:`SORTS`; groups come in the order of their first hit.
    group
        One of :data:`GROUPS`.
    """
    ordered = sorted(hits, key=_KEYS[sort])
    if group == "nothing":
        return list(ordered)
    groups: dict[str, list[SlideHit]] = {}
    for hit in ordered:
        groups.setdefault(str(getattr(hit, group)).casefold(), []).append(hit)
    lines: list[Heading | SlideHit] = []
    for members in groups.values():
        name = str(getattr(members[0], group))
        shared = {hit.diagnosis.casefold() for hit in members}
        text = f"{group} {name}" if group == "patient" and name else name or f"{group} not known"
        lines += [Heading(text, len(members), members[0].diagnosis if len(shared) == 1 else ""), *members]
    return lines


def where_from(hit: SlideHit) -> str:
    """Return site and patient of a hit in a line."""
    return " · ".join(word for word in (hit.site, hit.patient) if word)


def described(hit: SlideHit, results: Results) -> str:
    """Return everything a card shows as text, for tooltips and for readers of the screen."""
    lines = [
        f"{hit.rank}. {hit.name or hit.slide}",
        hit.diagnosis or "diagnosis not known",
        where_from(hit),
        f"{bits(hit.distance)}: {closeness(hit.percentile)}",
        regions_in_words(hit, results) + f" within the threshold of {results.threshold} bits",
        "filled in: the nearest of the rest" if hit.filled else "",
    ]
    return "\n".join(line for line in lines if line)
