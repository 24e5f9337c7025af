"""A drawn region becomes patches."""

from __future__ import annotations

import math

from napari_fish.encode.patches import PatchBox
from napari_fish.errors import EncoderError


def boxes_of_region(
    x: float,
    y: float,
    width: float,
    height: float,
    slide_mpp: float,
    encoder_mpp: float = 0.5,
    size: int = 1024,
) -> list[PatchBox]:
    """Cover a drawn region with patches.

    Parameters
    ----------
    x, y, width, height : float
        The region in level-0 px.
    slide_mpp, encoder_mpp : float
        µm per level-0 px, and per px of a patch.
    size : int
        Side of a patch in px.

    Returns
    -------
    list of (x, y, side)
        One patch centred on a region no larger than a patch, else a grid of patches centred on it
        that overlap just enough to reach its edges.
    """
    if not (width > 0 and height > 0):
        raise EncoderError(f"a region of {width:g} x {height:g} px is empty. Draw a larger box.")
    side = size * encoder_mpp / slide_mpp

    def starts(start: float, extent: float) -> list[float]:
        # up to a tenth of a patch may be cut off before another row of patches is worth its cost
        count = max(1, math.ceil(extent / side - 0.1))
        if count == 1:
            return [start + (extent - side) / 2]
        step = (extent - side) / (count - 1)
        return [start + i * step for i in range(count)]

    return [(left, top, side) for top in starts(y, height) for left in starts(x, width)]
