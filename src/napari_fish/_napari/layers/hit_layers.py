"""Between hits and napari's layers: pure functions, no viewer needed."""

from __future__ import annotations

import colorsys
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from napari_fish._napari.layers.coordinates import LayerData, Points, ToWorld
from napari_fish.search.values import Hit, Results, SlideHit
from napari_fish.search.verdict import bits, closeness_in_short
from napari_fish.store.records import Box

CELL_KEY = "napari_fish_compare"
"""Marks in its metadata a layer that is a cell of a comparison."""
KEPT_KEY = "napari_fish_kept"
"""Where the metadata of a kept picture say of which slide of which database it is."""
OTHER_REGION = "like another region"
KEPT_PICTURE = "slide away, kept picture"


@dataclass(frozen=True)
class Pair:
    """A hit and the region of it that is shown beside a patch of the query.

    Attributes
    ----------
    hit
        The slide.
    match
        The regions.
    other
        Whether it was found by another patch of the query than the one shown.
    """

    hit: SlideHit
    match: Hit
    other: bool

    def title(self, most: float = math.inf) -> str:
        """Return what the pair is called in the list of layers and on the canvas, where ``most`` letters fit."""
        name, other = self.hit.diagnosis or self.hit.name, (OTHER_REGION,) if self.other else ()
        rank, near = str(self.hit.rank), f"{self.match.distance:g}"
        # How close that is stands on the card as well.
        for distance in (distance_text(self.match), bits(self.match.distance), near):
            said = " · ".join((rank, name, distance, *other))
            if len(said) <= most:
                return said
        # Two letters less than fit, for the ellipsis and the edge; never less than tells diagnoses apart.
        room = max(6, int(most) - len(said) + len(name) - 2)
        return " · ".join((rank, f"{name[:room].rstrip()}…", near, *other)) if room < len(name) else said


@dataclass(frozen=True, eq=False)
class Picture:
    """Pixels to show, and which point of them belongs in the middle.

    Attributes
    ----------
    levels
        Arrays of shape (rows, columns, 3 or 4), finest first.
    um_per_px
        Size of a px of the finest level.
    centre
        The point in px of the finest level, rows first, from the corner of the first px.
    kept
        Whether it is the small picture that the database kept, in place of the slide.
    """

    levels: Sequence[Any]
    um_per_px: float
    centre: tuple[float, float]
    kept: bool = False

    def translate(self, anchor: Sequence[float]) -> tuple[float, float]:
        """Return the translation that takes the centre to a world position in µm, rows first."""
        # napari puts the centre of the first px at 0.
        rows, columns = ((a - (c - 0.5) * self.um_per_px) for a, c in zip(anchor, self.centre, strict=True))
        return rows, columns


def shows_hits(layer: Any) -> bool:
    """Whether a layer was made to show hits, so that it is no slide to search for."""
    return CELL_KEY in layer.metadata or KEPT_KEY in layer.metadata


def distance_text(match: Hit) -> str:
    """Say how far two regions are apart, and how that compares with random pairs."""
    words = [bits(match.distance)]
    if match.percentile is not None:
        words.append(closeness_in_short(match.percentile))
    return " · ".join(words)


def shown_query(results: Results) -> int | None:
    """Return the patch of the query that most hits match, of several the nearest; None for none."""
    known = {i for i, box in enumerate(results.query_boxes) if box.width > 0 and box.height > 0}
    votes: Counter[int] = Counter()
    nearest: dict[int, float] = {}
    for hit in results.hits:
        for match in hit.matches:
            i = match.query_index
            nearest[i] = min(nearest.get(i, math.inf), match.distance)
        votes.update({match.query_index for match in hit.matches})
    candidates = [i for i in votes if i in known]
    return min(candidates, key=lambda i: (-votes[i], nearest[i], i)) if candidates else None


def pairs_of(results: Results, query_index: int | None, most: int) -> list[Pair]:
    """Choose the region to show of each hit: the nearest to a patch of the query, else the nearest of all.

    Parameters
    ----------
    results
        The answer.
    query_index
        The patch of the query that is shown.
    most
        How many at most.
    """
    pairs = []
    for hit in results.hits:
        same = [match for match in hit.matches if match.query_index == query_index]
        if hit.matches:
            match = min(same or hit.matches, key=lambda m: m.distance)
            pairs.append(Pair(hit, match, not same and query_index is not None))
    return pairs[:most]


def centre_of(box: Box) -> tuple[float, float]:
    """Return the middle of a box in level-0 px, rows first."""
    return box.y + box.height / 2, box.x + box.width / 2


def grid_shape(cells: int, height: float, width: float) -> tuple[int, int]:
    """Return rows and columns in which square pictures on a canvas are largest."""

    def side(columns: int) -> tuple[float, int]:
        rows = math.ceil(cells / columns)
        return min(width / columns, height / rows), -(rows * columns)

    columns = max(range(1, max(1, cells) + 1), key=side)
    return math.ceil(max(1, cells) / columns), columns


def pair_colour(number: int) -> tuple[float, float, float, float]:
    """Return the colour of a pair of regions, numbered from 1: neighbours in number are far apart in hue."""
    hue = (0.58 + 0.381966 * (number - 1)) % 1
    return (*colorsys.hsv_to_rgb(hue, 0.9, 0.85), 1.0)


def matches_layer(
    matches: Sequence[Hit], side: str, to_world: ToWorld, name: str, chosen: Hit | None = None
) -> LayerData:
    """Return matched regions as a Shapes layer; a pair has the same number and colour on both sides.

    Parameters
    ----------
    matches
        In the order in which they are numbered, from 1.
    side
        ``query`` or ``hit``: whose regions are drawn.
    to_world
        From level-0 px of that slide to the layer's coordinates.
    name
        Of the layer.
    chosen
        One that is drawn thicker.
    """
    drawn = [
        (number, match, box)
        for number, match in enumerate(matches, 1)
        if (box := match.query_box if side == "query" else match.hit_box).width > 0
    ]
    corners = [to_world(corners_of(box)) for _, _, box in drawn]
    sides = [float(np.linalg.norm(c[1] - c[0])) for c in corners]
    widths = [s / (70 if m is chosen else 140) for s, (_, m, _) in zip(sides, drawn, strict=True)]
    colours = np.array([pair_colour(n) for n, _, _ in drawn]).reshape(-1, 4)
    options: dict[str, Any] = {
        "name": name,
        "opacity": 1.0,
        "shape_type": "rectangle",
        "edge_width": widths or 1,
        "edge_color": colours if drawn else "white",
        "face_color": "transparent",
        "features": {
            "pair": [n for n, _, _ in drawn],
            "distance": [m.distance for _, m, _ in drawn],
            "percentile": [math.nan if m.percentile is None else m.percentile for _, m, _ in drawn],
            "x": [box.x for _, _, box in drawn],
            "y": [box.y for _, _, box in drawn],
        },
    }
    if drawn:
        options["text"] = {"string": "{pair}", "size": 20, "anchor": "upper_left", "color": colours}
    return corners, options, "shapes"


def corners_of(box: Box) -> Points:
    """Return the four corners of a box, x and y in level-0 px."""
    x, y, w, h = box
    return np.array([(x, y), (x + w, y), (x + w, y + h), (x, y + h)], float)


def level0_to_um(points: ArrayLike, mpp: float) -> Points:
    """Return where level-0 px (x, y) lie in µm, rows first, as our reader places slides."""
    # The middle of the first px is at 0, not its corner.
    return (np.atleast_2d(np.asarray(points, float))[:, ::-1] - 0.5) * mpp


def picture_layer(box: Box, jpeg: bytes, mpp: float, name: str, about: dict[str, Any]) -> LayerData:
    """Return a small picture of a region as a layer that lies where the region lies on its slide."""
    pixels = decoded(jpeg)
    scale = (box.height * mpp / pixels.shape[0], box.width * mpp / pixels.shape[1])
    corner = level0_to_um([(box.x, box.y)], mpp)[0]
    options = {
        "name": name,
        "rgb": True,
        "scale": scale,
        "translate": (corner[0] + scale[0] / 2, corner[1] + scale[1] / 2),
        "units": ("µm", "µm"),
        "axis_labels": ("y", "x"),
        "metadata": about,
    }
    return pixels, options, "image"


def decoded(jpeg: bytes) -> NDArray[np.uint8]:
    """Return the pixels of a picture, shape (rows, columns, 3)."""
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))
