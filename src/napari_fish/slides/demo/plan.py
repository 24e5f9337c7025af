"""What an architecture hands to the painter: fields on the coarse grid, populations of cells, a look."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from napari_fish.slides.demo.grid import STEP_UM, Field, Grid


@dataclass(frozen=True)
class Look:
    """Concentrations and contrasts of what is painted between the nuclei (1 = unit dye).

    `paint` receives these as numbers in this order.
    """

    cytoplasm_eosin: float = 0.55
    cytoplasm_haem: float = 0.16
    membrane: float = 0.25
    grain: float = 0.35
    apical_pallor: float = 0.0
    stroma_eosin: float = 0.75
    stroma_haem: float = 0.05
    fibre_contrast: float = 1.0
    fluid: float = 0.0
    retraction_um: float = 0.0
    mucin_haem: float = 0.16
    vacuoles: float = 0.0


@dataclass(frozen=True)
class Population:
    """One kind of cell, and where it lives.

    Parameters
    ----------
    where
        Probability that a candidate is kept, per coarse pixel.
    long_um, short_um
        Semi-axes of the nucleus in µm.
    spacing
        Closest approach of two nuclei along and across the long axis, in nuclear diameters.
    axis
        ``"flow"`` along the fibres, ``"across"`` perpendicular to the nearest epithelial base,
        ``"any"`` at random.
    spread
        Relative standard deviation of the size.
    dark
        Haematoxylin of the chromatin (1 = a usual nucleus).
    vesicular
        0 = evenly dark, 1 = pale with a dark rim.
    nucleolus
        Probability of a prominent nucleolus.
    cell_um
        Reach of the cytoplasm around the nucleus, along and across its axis; 0 = none painted.
    base_um
        If set, nuclei gather at this depth (mean, spread) above the epithelial base.
    size
        Relative size per coarse pixel.
    red
        A red cell: no nucleus, a disc of its own colour.
    tries
        Candidates offered for each place there is.
    """

    where: Field
    long_um: float
    short_um: float
    spacing: tuple[float, float] = (1.0, 1.0)
    axis: str = "any"
    spread: float = 0.12
    dark: float = 1.0
    vesicular: float = 0.3
    nucleolus: float = 0.1
    cell_um: tuple[float, float] = (0.0, 0.0)
    base_um: tuple[float, float] | None = None
    size: Field | None = None
    red: bool = False
    tries: float = 3.0


@dataclass(frozen=True)
class Plan:
    """A slide's geometry on the coarse grid; every distance in µm, positive inside.

    Parameters
    ----------
    grid
        The coarse grid.
    tissue
        Distance to the edge of the tissue.
    epithelium
        Height above the epithelial base: negative in stroma, positive in epithelium and lumen.
    lumen
        Distance to the edge of lumens, vessels and mucin.
    mucin
        How much of a lumen's content is mucin, 0 to 1.
    loose
        0 = dense collagen, 1 = mostly gaps.
    flow
        Direction of the fibres in radians.
    populations
        Cells, most important first: later ones take the room that is left.
    look
        How the rest is painted.
    """

    grid: Grid
    tissue: Field
    epithelium: Field
    lumen: Field
    mucin: Field
    loose: Field
    flow: Field
    populations: tuple[Population, ...]
    look: Look = field(default_factory=Look)


def everywhere(grid: Grid, value: float) -> Field:
    """Return a field that has one value all over."""
    return np.full(grid.shape, value, np.float32)


def inside(tissue: Field, margin_um: float = 7.0) -> Field:
    """Return 1 where a cell has room within the tissue, else 0."""
    return (tissue > margin_um).astype(np.float32)


def flow_around(
    grid: Grid, rng: np.random.Generator, distance: Field | None, reach_um: float = 30.0
) -> Field:
    """Return fibre directions (radians) that drift over the slide and wrap around what ``distance`` bounds."""
    angle = (
        np.float32(rng.uniform(0, np.pi))
        + np.float32(0.9) * grid.noise(rng, 900)
        + np.float32(0.35) * grid.noise(rng, 220)
        + np.float32(0.22) * grid.noise(rng, 70)
    )
    if distance is None:
        return np.asarray(angle, np.float32)
    slope_y, slope_x = np.gradient(distance, STEP_UM)
    tangent = np.arctan2(slope_y, slope_x) + np.float32(np.pi / 2)
    weight = np.exp(-np.abs(distance) / np.float32(reach_um)) * np.float32(1.6)
    cos = np.cos(2 * angle) + weight * np.cos(2 * tangent)
    sin = np.sin(2 * angle) + weight * np.sin(2 * tangent)
    return np.asarray(0.5 * np.arctan2(sin, cos), np.float32)
