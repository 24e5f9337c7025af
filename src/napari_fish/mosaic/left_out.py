"""What people are told of the patches that were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from napari_fish.mosaic.values import REASONS
from napari_fish.names import LOOK_OR_KEEP

MUCH = 0.2
"""Share of the tissue above which leaving it out needs a second look."""
WARNING = f"more than a fifth of its tissue was left out: {LOOK_OR_KEEP}"
"""What is said of a slide of which so much was left out."""


def told(candidates: int, left_out: Mapping[str, int]) -> str:
    """Say how many patches a slide has and what was left out: "18 patches; 3 left out: 2 ink, 1 blurred".

    Parameters
    ----------
    candidates : int
        Patches on tissue that were good enough.
    left_out : mapping of str to int
        How many were not, by reason.
    """
    reasons = [*REASONS, *sorted(set(left_out) - set(REASONS))]
    counts = [f"{left_out[r]} {REASONS.get(r, r)}" for r in reasons if left_out.get(r)]
    patches = f"{candidates} patch{'es' * (candidates != 1)}"
    return f"{patches}; {sum(left_out.values())} left out: {', '.join(counts)}" if counts else (
        f"{patches}; none left out"
    )  # fmt: skip


def spoiled(left_out: Mapping[str, int]) -> int:
    """Return how many patches with tissue were left out; those that are nearly all glass do not count."""
    return sum(count for reason, count in left_out.items() if reason != "white")


def is_much(candidates: int, left_out: Mapping[str, int]) -> bool:
    """Whether so much tissue was left out that somebody should look."""
    lost = spoiled(left_out)
    return lost > MUCH * (candidates + lost)


def warnings(slides: int) -> list[str]:
    """Return the warning for so many slides of which much was left out; nothing where there are none."""
    if not slides:
        return []
    whose = "of one slide" if slides == 1 else f"of each of {slides} slides"
    return [WARNING.replace("of its tissue", f"of the tissue {whose}")]


def together(slides: Iterable[tuple[int, Mapping[str, int]]]) -> tuple[int, dict[str, int]]:
    """Return the candidates and what was left out over several slides, given by these two."""
    candidates, left_out = 0, Counter[str]()
    for kept, counts in slides:
        candidates += kept
        left_out.update(counts)
    return candidates, {reason: left_out[reason] for reason in sorted(left_out) if left_out[reason]}
