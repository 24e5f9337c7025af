"""The trained filters, and what is measured on a patch for them to judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import FishError
from napari_fish.mosaic.artefacts.beside import KINDS, NAMES, PATCH_NAMES
from napari_fish.mosaic.artefacts.measure import (
    LBP_BINS,
    RGB,
    colour_histograms,
    grey,
    local_patterns,
    pattern_histogram,
    white_share,
)
from napari_fish.mosaic.artefacts.tiles import TILE, sharpness, tile_features
from napari_fish.mosaic.artefacts.trees import Trees
from napari_fish.mosaic.params import MosaicParams
from napari_fish.texts import parsed_json

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
    """

    mean: Floats
    spread: Floats
    weights: Floats
    bias: float

    def __call__(self, features: Floats) -> Floats:
        """Return the probability that each row, shape (rows, features), shows an artefact."""
        total = ((features - self.mean) / self.spread) @ self.weights + self.bias
        return np.asarray(1 / (1 + np.exp(-np.clip(total, -50, 50))))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for JSON."""
        lists = {
            name: [float(f"{v:.6g}") for v in getattr(self, name)] for name in ("mean", "spread", "weights")
        }
        return {**lists, "bias": float(f"{self.bias:.6g}")}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Filter:
        """Return the filter that :meth:`to_dict` wrote."""
        mean, spread, weights = (np.asarray(values[n], np.float64) for n in ("mean", "spread", "weights"))
        sound = mean.shape == spread.shape == weights.shape == (LBP_BINS,) and (spread > 0).all()
        if not (sound and np.isfinite([*mean, *spread, *weights, float(values["bias"])]).all()):
            raise ValueError(
                f"mean, spread and weights must be {LBP_BINS} finite numbers each, spreads positive"
            )
        return cls(mean, spread, weights, float(values["bias"]))


@dataclass(frozen=True, eq=False)
class Filters:
    """What ``train-artefacts`` makes.

    Attributes
    ----------
    lbp : Filter
        The paper's filter on texture.
    tiles, patches : Trees
        Tell kinds of tiles apart, and by their tiles which patches show an artefact.
    limits : dict
        Log odds of an artefact above which a patch is left out: ``"normal"``, and ``"strict"``.
    """

    lbp: Filter
    tiles: Trees
    patches: Trees
    limits: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for JSON."""
        trees = {name: getattr(self, name).to_dict() for name in ("lbp", "tiles", "patches")}
        return {**trees, "limits": self.limits}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Filters:
        """Return the filters that :meth:`to_dict` wrote; what could lead astray is a ValueError."""
        tiles, patches = (Trees.from_dict(values[name]) for name in ("tiles", "patches"))
        limits = {name: float(values["limits"][name]) for name in ("normal", "strict")}
        if (tiles.kinds, tiles.features) != (KINDS, len(NAMES)):
            raise ValueError(f"the trees must tell {', '.join(KINDS)} apart by {len(NAMES)} features")
        if (patches.kinds, patches.features) != (("artefact",), len(PATCH_NAMES)):
            raise ValueError(f"the trees of patches must tell artefacts by {len(PATCH_NAMES)} features")
        if not (np.isfinite([*limits.values()]).all() and limits["strict"] <= limits["normal"]):
            raise ValueError("limits must be finite, the strict one the lower")
        return cls(Filter.from_dict(values["lbp"]), tiles, patches, limits)


def read_filters(path: Path | None = None) -> Filters:
    """Read trained filters; those inside the package by default."""
    return _shipped() if path is None else _parse(path.read_text(encoding="utf-8"), str(path))


@cache
def _shipped() -> Filters:
    return _parse((files("napari_fish.mosaic.artefacts") / SHIPPED).read_text(encoding="utf-8"), SHIPPED)


def _parse(text: str, name: str) -> Filters:
    try:
        return Filters.from_dict(parsed_json(text)["filters"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
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
        As in :class:`~napari_fish.mosaic.values.Patch`; an artefact is known here only to the paper's filter.
    tiles : ndarray of float32, shape (tiles, len(FEATURES)), or None
        The parts of the patch, to be judged beside the whole slide.
    """

    histogram: NDArray[np.float32]
    white: float
    artefact: float = 0.0
    focus: float = 0.0
    tiles: NDArray[np.float32] | None = None


class Measurer:
    """Measures the pixels of a patch; may be called from several threads.

    Parameters
    ----------
    params : MosaicParams
        Says what to measure, and with which filter.
    """

    def __init__(self, params: MosaicParams) -> None:
        self.params = params
        self.side = params.patch // SHRINK
        """Side in px at which a patch must be read."""

    def __call__(self, rgb: RGB) -> Measured:
        """Measure a patch of shape (side, side, 3)."""
        image = grey(rgb)
        known = Measured(colour_histograms(rgb), white_share(image, self.params.white_level))
        if self.params.artefacts == "off":
            return known
        if self.params.artefact_model == "lbp":
            patterns = pattern_histogram(local_patterns(image))
            return replace(known, artefact=float(read_filters().lbp(patterns[None])[0]))
        if min(image.shape) < TILE:
            return known
        tiles = tile_features(rgb, image, local_patterns(image))
        return replace(known, focus=sharpness(tiles), tiles=tiles.astype(np.float32))


def shrunk(rgb: RGB, factor: int) -> RGB:
    """Average blocks of ``factor`` by ``factor`` px; rows and columns must be multiples of it."""
    rows, columns = rgb.shape[0] // factor, rgb.shape[1] // factor
    blocks = rgb[: rows * factor, : columns * factor].reshape(rows, factor, columns, factor, 3)
    total = blocks.sum(axis=(1, 3), dtype=np.uint32)
    return np.asarray((total + factor * factor // 2) // (factor * factor), np.uint8)
