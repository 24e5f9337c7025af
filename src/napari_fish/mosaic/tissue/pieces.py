"""Which pieces on an overview are tissue, by their colours: stains give many hues, pen and dirt have one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.tissue.glass import SAMPLE, Overview

DENSE = 0.2
"""Optical density from which a px has a hue that can be told from noise."""
BLUE, RED = 0.85, 1.15
"""Density in blue and in red, over that in green, of black, red and brown dirt, and of blue and green ink, at least; eosin and
haematoxylin absorb green most."""
ONE_HUE = 0.05
"""Range of the shares of red and of blue in the density, of four fifths of the px, that ink, dust and fibres do not exceed."""
LEAST_STAINED = 0.25
"""Share of a piece that has the hue of stained tissue at least; the rest may be pen beside it."""


def stained(
    seen: Overview, labels: NDArray[np.int32], count: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say where there is surely stained tissue, and which pieces are of one hue that no stain of tissue has.

    Parameters
    ----------
    seen : Overview
        The overview on which the pieces were found.
    labels : ndarray of int32, shape (rows, columns)
        0 for glass, 1, 2, … for the pieces.
    count : int
        How many pieces there are.

    Returns
    -------
    ndarray of bool, shape (rows, columns)
        Pieces of many hues, without what on them has the hue of pen or dirt.
    ndarray of bool, shape (count,)
        Pieces of pen or dirt, if there is stained tissue on the same slide.
    """
    sure, dirt = np.zeros(labels.shape, bool), np.zeros(count, bool)
    for number, box in enumerate(ndimage.find_objects(labels, count)):
        step = max(1, math.isqrt(labels[box].size // SAMPLE))
        some = tuple(slice(side.start, side.stop, step) for side in box)
        density = seen.density[some][(labels[some] == number + 1) & (seen.dark[some] > DENSE)]
        if len(density) == 0:
            continue
        red, green, blue = np.maximum(density, 0.01).T
        total = red + green + blue
        low, high = np.quantile([red / total, blue / total], (0.1, 0.9), axis=1)
        if float((high - low).sum()) < ONE_HUE:
            dirt[number] = np.median(blue / green) > BLUE or np.median(red / green) > RED
        elif np.mean((red < green) & (blue < BLUE * green)) > LEAST_STAINED:
            red, green, blue = np.moveaxis(seen.density[box], -1, 0)
            clean = (seen.dark[box] < DENSE) | ((red < green) & (blue < BLUE * green))
            sure[box] |= clean & (labels[box] == number + 1)
    # Silver and other stains without a second one have a single hue, too, but on all of a slide.
    return sure, dirt & sure.any()
