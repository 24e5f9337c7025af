"""Patches that are not worth keeping: white, inked, folded, dusty or out of focus."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import FishError
from napari_fish.mosaic.measure import (
    RGB,
    colour_histograms,
    grey,
    local_patterns,
    pattern_histogram,
    white_share,
)
from napari_fish.mosaic.params import MosaicParams
from napari_fish.mosaic.tiles import TILE, sharpness, tile_features

Floats = NDArray[np.float64]
SHIPPED = "artefacts.json"
"""The trained filters inside the package."""
SHRINK = 4
"""A patch is measured at this fraction of its working scale: 5x for 20x."""


@dataclass(frozen=True, eq=False)
class Filter:
    """Logistic regression on standardised features.

    Attributes
    ----------
    mean, spread, weights : ndarray, shape (features,)
        Of the features; a spread is never 0.
    bias : float
        Added to the weighted sum.
    rank : int
        0: one row of features a patch. Else: the probability of a patch is that of its ``rank``-th
        most suspicious tile.
    """

    mean: Floats
    spread: Floats
    weights: Floats
    bias: float
    rank: int = 0

    def __call__(self, features: Floats) -> Floats:
        """Return the probability that each row, shape (rows, features), shows an artefact."""
        total = ((features - self.mean) / self.spread) @ self.weights + self.bias
        return np.asarray(1 / (1 + np.exp(-np.clip(total, -50, 50))))

    def of_patch(self, features: Floats) -> float:
        """Return the probability for one patch."""
        each = np.sort(self(features))
        return float(each[-min(self.rank, len(each))] if self.rank else each[0])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for JSON."""
        lists = {
            name: [float(f"{v:.6g}") for v in getattr(self, name)] for name in ("mean", "spread", "weights")
        }
        return {**lists, "bias": float(f"{self.bias:.6g}"), "rank": self.rank}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Filter:
        """Return the filter that :meth:`to_dict` wrote."""
        mean, spread, weights = (np.asarray(values[n], np.float64) for n in ("mean", "spread", "weights"))
        if not (mean.ndim == 1 and mean.shape == spread.shape == weights.shape and (spread > 0).all()):
            raise ValueError("mean, spread and weights must be lists of one length, spreads positive")
        return cls(mean, spread, weights, float(values["bias"]), int(values["rank"]))


def read_filters(path: Path | None = None) -> dict[str, Filter]:
    """Read trained filters by name; those inside the package by default."""
    return dict(_shipped()) if path is None else _parse(path.read_text(encoding="utf-8"), str(path))


@cache
def _shipped() -> dict[str, Filter]:
    return _parse((files("napari_fish.mosaic") / SHIPPED).read_text(encoding="utf-8"), SHIPPED)


def _parse(text: str, name: str) -> dict[str, Filter]:
    try:
        return {key: Filter.from_dict(values) for key, values in json.loads(text)["filters"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FishError(
            f"{name}: these are not trained artefact filters ({error}). Make them anew with train-artefacts."
        ) from error


@dataclass(frozen=True, eq=False)
class Measured:
    """What is known of one patch.

    Attributes
    ----------
    histogram : ndarray of float32, shape (768,)
        Pixels of each red, green and blue, 256 bins each, at 5x.
    white, artefact, focus : float
        As in :class:`~napari_fish.mosaic.values.Patch`.
    """

    histogram: NDArray[np.float32]
    white: float
    artefact: float
    focus: float


class Measurer:
    """Measures the pixels of a patch; may be called from several threads.

    Parameters
    ----------
    params : MosaicParams
        Says what to measure, and with which filter.
    """

    def __init__(self, params: MosaicParams) -> None:
        self.params = params
        self.filter = read_filters()[params.artefact_model] if params.artefacts != "off" else None
        self.side = params.patch // SHRINK
        """Side in px at which a patch must be read."""

    def __call__(self, rgb: RGB) -> Measured:
        """Measure a patch of shape (side, side, 3)."""
        image = grey(rgb)
        patterns = local_patterns(image) if self.filter is not None else None
        artefact = focus = 0.0
        if self.filter is not None and patterns is not None:
            if self.params.artefact_model == "lbp":
                artefact = self.filter.of_patch(pattern_histogram(patterns)[None])
            elif min(image.shape) >= TILE:
                tiles = tile_features(rgb, image, patterns)
                artefact, focus = self.filter.of_patch(tiles), sharpness(tiles)
        white = white_share(image, self.params.white_level)
        return Measured(colour_histograms(rgb), white, artefact, focus)


def shrunk(rgb: RGB, factor: int) -> RGB:
    """Average blocks of ``factor`` by ``factor`` px; rows and columns must be multiples of it."""
    rows, columns = rgb.shape[0] // factor, rgb.shape[1] // factor
    blocks = rgb[: rows * factor, : columns * factor].reshape(rows, factor, columns, factor, 3)
    total = blocks.sum(axis=(1, 3), dtype=np.uint32)
    return np.asarray((total + factor * factor // 2) // (factor * factor), np.uint8)
