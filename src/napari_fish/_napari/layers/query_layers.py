"""Between an answer and the boxes drawn on the query slide: pure functions, no viewer needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish._napari.layers.coordinates import Points
from napari_fish.building.slide_task import Region
from napari_fish.search import Results

Colours = NDArray[np.float64]
ToDrawn = Callable[[Region], Points]
"""Takes a box in level-0 px to the corners of a shape."""
LAYER = "Query regions"
LOW, HIGH = np.array([0.27, 0.33, 0.53]), np.array([0.99, 0.55, 0.15])
"""Colours, RGB, of a patch that counted but led to no slide, and of the one that contributed most."""
DROPPED = (0.55, 0.55, 0.55, 0.9)
FILL = 0.14
"""How opaque the inside of the patch that contributed most is."""
EDGE = 1 / 30
"""Width of an outline as a share of a patch's side."""


@dataclass(frozen=True)
class Contribution:
    """What a patch of the query did for the answer.

    Attributes
    ----------
    region
        Its number in the query.
    x, y, width, height
        Where it lies, in level-0 px.
    contribution
        Its share of the matching regions that support the slides found; all patches together have 1.
    hits
        Slides found that it supports.
    fate, reason
        Whether its neighbours counted, or why not.
    vote
        The label that its neighbours stand for.
    entropy
        How much they disagree, in bits; NaN where that is not known.
    neighbours
        Patches of the database within the threshold.
    """

    region: int
    x: int
    y: int
    width: int
    height: int
    contribution: float
    hits: int
    fate: str
    reason: str
    vote: str
    entropy: float
    neighbours: int


def contributions(results: Results) -> list[Contribution]:
    """Return what each patch of the query did; those that come from elsewhere (feedback) are left out."""
    shares = np.zeros(len(results.query_boxes))
    supported: list[set[str]] = [set() for _ in results.query_boxes]
    for hit in results.hits:
        for match in hit.matches:
            shares[match.query_index] += 1 / len(hit.matches)
            supported[match.query_index].add(hit.slide)
    if shares.sum():
        shares /= shares.sum()
    fates = {fate.query_index: fate for fate in results.explanation.lists}
    found = []
    for i, box in enumerate(results.query_boxes):
        if not box.width or not box.height:
            continue
        fate = fates.get(i)
        known: tuple[str, str, str, float | None, int] = ("", "", "", None, 0)
        if fate is not None:
            known = (fate.fate, fate.reason, fate.vote, fate.entropy, fate.length)
        entropy = np.nan if known[3] is None else known[3]
        found.append(
            Contribution(i, *box, float(shares[i]), len(supported[i]), *known[:3], entropy, known[4])
        )
    return found


def colours(found: Sequence[Contribution]) -> Colours:
    """Return RGBA of each patch, shape (n, 4): from blue to orange by contribution, grey where dropped."""
    most = max((one.contribution for one in found), default=0.0) or 1.0
    table = np.ones((len(found), 4))
    for row, one in zip(table, found, strict=True):
        if one.fate not in ("kept", "") and not one.contribution:
            row[:] = DROPPED
        else:
            row[:3] = LOW + (HIGH - LOW) * (one.contribution / most)
    return table


def _inset(one: Contribution) -> Region:
    """Return a box whose outline lies inside the patch, so that neighbours do not cover each other's."""
    edge = EDGE * min(one.width, one.height)
    return one.x + edge / 2, one.y + edge / 2, one.width - edge, one.height - edge


def query_regions(results: Results, to_drawn: ToDrawn) -> tuple[list[Any], dict[str, Any]]:
    """Return corners and options of a Shapes layer with the patches of a query."""
    found = contributions(results)
    corners = [to_drawn(_inset(one)) for one in found]
    edges = colours(found)
    most = max((one.contribution for one in found), default=0.0) or 1.0
    faces = edges.copy()
    # A single one needs no comparison, and its tissue is what the user looks at.
    faces[:, 3] = [FILL * one.contribution / most * (len(found) > 1) for one in found]
    side = min((float(np.ptp(c, axis=0).max()) for c in corners), default=1.0)
    features = {name: [asdict(one)[name] for one in found] for name in Contribution.__dataclass_fields__}
    options = {"edge_color": edges, "face_color": faces, "edge_width": side * EDGE, "features": features}
    return corners, options
