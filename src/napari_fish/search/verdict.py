"""What an answer is worth, in few words and numbers: who votes for what, how certainly, and whether anything is near."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from napari_fish.search.values import Results, SlideHit
from napari_fish.texts import Note

FAR = 5.0
"""Percent of random pairs that are as close as the nearest hit: from here on chance would have found it too."""
CERTAIN, FAIR = 0.75, 0.5
"""Certainties from which on a vote is called certain, and fairly certain."""


@dataclass(frozen=True)
class Vote:
    """What speaks for one label.

    Attributes
    ----------
    label
        Empty for slides whose diagnosis is not known.
    count
        Voters.
    share
        Of all voters, 0 to 1.
    certainty
        1 where all neighbours of the voters carry one label, 0 where they carry all labels alike; None where the
        voters are slides.
    """

    label: str
    count: int
    share: float
    certainty: float | None = None


@dataclass(frozen=True)
class Tally:
    """All votes, the most first.

    Attributes
    ----------
    votes
        By label.
    voters
        Who votes: the query's regions, or, where the ranking takes no labels, the slides found.
    """

    votes: tuple[Vote, ...]
    voters: Literal["regions", "slides"]

    @property
    def total(self) -> int:
        """How many voted."""
        return sum(vote.count for vote in self.votes)


def tally(results: Results) -> Tally:
    """Count the votes of an answer."""
    voters = [
        fate for fate in results.explanation.lists if fate.fate == "kept" and fate.vote and not fate.liked
    ]
    if not voters:
        found = Counter(hit.diagnosis for hit in results.hits)
        return Tally(
            tuple(Vote(label, n, n / found.total()) for label, n in found.most_common()), voters="slides"
        )
    most = math.log2(max(2, len({label for fate in results.explanation.lists for label in fate.votes})))
    votes = []
    for label, n in Counter(fate.vote for fate in voters).most_common():
        mean = sum(fate.entropy or 0.0 for fate in voters if fate.vote == label) / n
        votes.append(Vote(label, n, n / len(voters), min(1.0, max(0.0, 1 - mean / most))))
    return Tally(tuple(votes), voters="regions")


def certainty_in_words(certainty: float | None) -> str:
    """Say how certain a vote is."""
    if certainty is None:
        return ""
    return "certain" if certainty >= CERTAIN else "fairly certain" if certainty >= FAIR else "uncertain"


def bits(distance: float) -> str:
    """Write a distance."""
    return f"{distance:.1f}".removesuffix(".0") + (" bit" if distance == 1 else " bits")


def closer_than(percentile: float | None) -> float | None:
    """Return the percentage of random pairs that are farther apart, as it is shown everywhere; None for not known.

    Rounded down, as 99.996 % is not all of them, to as many digits as say something.
    """
    if percentile is None:
        return None
    farther = min(100.0, max(0.0, 100 - percentile))
    scale = (1, 10, 100)[_digits(farther)]
    return math.floor(farther * scale + 1e-6) / scale


def _digits(farther: float) -> int:
    return 2 if farther > 99 else 1 if farther > 90 else 0


def closeness(percentile: float | None) -> str:
    """Say what a percentile, the percentage of random pairs at most so far apart, means."""
    shown = closer_than(percentile)
    if percentile is None or shown is None:
        return "not calibrated: how close that is cannot be said"
    farther = 100 - percentile
    if percentile <= 0:
        return "closer than every random pair that was measured"
    if farther <= 0:
        return "no closer than any random pair that was measured"
    if not shown:
        return "closer than fewer than 1 % of random pairs"
    return f"closer than {'only ' if farther < 50 else ''}{shown:.{_digits(farther)}f} % of random pairs"


def closeness_in_short(percentile: float | None) -> str:
    """Return what a percentile means, short enough for a card."""
    if percentile is None:
        return "not calibrated"
    if percentile <= 0:
        return "closer than all"
    if percentile >= 100:
        return "no closer than any"
    return closeness(percentile).removesuffix(" of random pairs").replace("fewer than 1 %", "< 1 %")


def notes_of(results: Results) -> list[Note]:
    """Return what the reader must know, the most important first: nothing near, fewer, filled in, and why."""
    if not results.hits:
        return [Note("short", "No slide was found."), *results.notes]
    near = [match.distance for hit in results.hits for match in hit.matches]
    closest = [_closest(hit) for hit in results.hits]
    known = [percentile for percentile in closest if percentile is not None]
    if len(known) == len(closest) and min(known) >= FAR:
        return [Note("far", _nothing_similar(min(known))), *results.notes]
    # Where all were filled in, the notes say as much.
    if near and min(near) > results.threshold and not all(hit.filled for hit in results.hits):
        said = (
            f"Nothing in the database is within the threshold of {results.threshold} bits: "
            "these are the nearest slides, but none of them is near."
        )
        return [Note("far", said), *results.notes]
    return list(results.notes)


def _closest(hit: SlideHit) -> float | None:
    """Return the percentile of a slide's nearest pair."""
    known = [match.percentile for match in hit.matches if match.percentile is not None]
    return min(known) if known else hit.percentile


def _nothing_similar(percentile: float) -> str:
    """Say that the nearest pair is no nearer than chance; percentages are rounded down: 99.6 % is not all."""
    if percentile >= 50:
        return f"All hits are farther than {math.floor(percentile):d} % of random pairs: nothing similar in this database."
    # Cards say "closer than 94 %", which sounds near to whoever does not know how near a true match is.
    return (
        f"Nothing similar in this database: the nearest region is merely {closeness(percentile)}: "
        f"1 in {100 / percentile:.0f} of them is as close."
    )


def matched_regions(hit: SlideHit, results: Results) -> tuple[int, int]:
    """Return how many of the query's regions match a slide within the threshold, and how many regions there are.

    Only pairs that are reported count, see :attr:`~napari_fish.search.SearchParams.matches`.
    """
    near = {
        match.query_index for match in hit.matches if match.distance <= results.threshold and not match.liked
    }
    return len(near), sum(not fate.liked for fate in results.explanation.lists)


def regions_in_words(hit: SlideHit, results: Results) -> str:
    """Say how many of the query's regions match a hit."""
    matched, total = matched_regions(hit, results)
    return f"{matched} of {total} region{'' if total == 1 else 's'}"


def bar_of(distance: float, results: Results) -> tuple[float, float]:
    """Return which part of a bar a distance fills, and where on it the threshold lies, 0 to 1 each."""
    scale = 1.1 * max([1.0, float(results.threshold), *(hit.distance for hit in results.hits)])
    return min(1.0, max(0.0, distance) / scale), min(1.0, results.threshold / scale)
