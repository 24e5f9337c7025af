"""Where there is tissue on the glass: pieces with irregular edges, holes and tears."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import ndimage

from napari_fish.slides.demo.grid import STEP_UM, Field, Grid, as_distance


def tissue_distance(grid: Grid, rng: np.random.Generator) -> Field:
    """Return the signed distance to the edge of the tissue in µm, positive inside."""
    width, height = grid.width_um, grid.height_um
    size = min(width, height)
    reach = min(1.0, size / 1600)
    wobble_x = 60 * reach * grid.noise(rng, 0.5 * size) + 16 * reach * grid.turbulence(rng, 0.12 * size + 40)
    wobble_y = 60 * reach * grid.noise(rng, 0.5 * size) + 16 * reach * grid.turbulence(rng, 0.12 * size + 40)
    x, y = grid.x + wobble_x, grid.y + wobble_y
    tissue = np.full(grid.shape, -size, np.float32)
    for centre_x, centre_y, radius_x, radius_y, angle in _pieces(grid, rng):
        tissue = np.maximum(tissue, _blob(rng, x, y, centre_x, centre_y, radius_x, radius_y, angle))
    # Keep a rim of glass, as the scanned area is chosen around the tissue.
    margin = 0.02 * size
    side_x = np.minimum(grid.x, width - grid.x) - 0.4 * np.abs(wobble_x)
    side_y = np.minimum(grid.y, height - grid.y) - 0.4 * np.abs(wobble_y)
    rim = np.minimum(side_x, side_y) - np.float32(margin)
    tissue = np.minimum(tissue, rim)
    for _ in range(int(rng.integers(1, 4) * (size > 600))):
        tissue = np.minimum(tissue, -_tear(grid, rng, x, y, tissue))
    tissue += 3.0 * grid.turbulence(rng, 40)
    return _without_crumbs(as_distance(tissue, 120.0))


def depth(distance: Field) -> Field:
    """Return how deep each coarse pixel lies in the tissue (µm, 0 outside), also far from the edge.

    Tears do not count as an edge: they cut through whatever has grown there.
    """
    exact = ndimage.distance_transform_edt(ndimage.binary_fill_holes(distance > 0)) * STEP_UM
    return np.asarray(ndimage.gaussian_filter(exact.astype(np.float32), 2.0), np.float32)


def _pieces(grid: Grid, rng: np.random.Generator) -> list[tuple[float, float, float, float, float]]:
    """Centre, radii and angle of each piece of tissue."""
    width, height = grid.width_um, grid.height_um
    count = 1 if min(width, height) < 1200 else int(rng.choice([1, 1, 2, 2, 3]))
    pieces = []
    shares = rng.uniform(0.8, 1.2, count)
    edges = np.concatenate([[0.0], np.cumsum(shares / shares.sum())])
    along_x = width >= height
    for low, high in itertools.pairwise(edges):
        middle, half = (low + high) / 2, (high - low) / 2
        slant = rng.normal(0, 0.10 if count > 1 else 0.25)
        if along_x:
            centre = (middle * width, height * rng.uniform(0.47, 0.53))
            radii = (half * width * 0.97, 0.5 * height * rng.uniform(0.86, 0.97))
        else:
            centre = (width * rng.uniform(0.47, 0.53), middle * height)
            radii = (0.5 * width * rng.uniform(0.86, 0.97), half * height * 0.97)
        pieces.append((*centre, *radii, float(slant)))
    return pieces


def _blob(
    rng: np.random.Generator,
    x: Field,
    y: Field,
    centre_x: float,
    centre_y: float,
    radius_x: float,
    radius_y: float,
    angle: float,
) -> Field:
    """Signed depth in a rounded, lobed piece of tissue."""
    cos, sin = math.cos(angle), math.sin(angle)
    u = ((x - centre_x) * cos + (y - centre_y) * sin) / radius_x
    v = (-(x - centre_x) * sin + (y - centre_y) * cos) / radius_y
    # An exponent above 2 makes a slab with rounded corners, as a cut block is.
    power = rng.uniform(2.2, 3.2)
    rho = (np.abs(u) ** power + np.abs(v) ** power) ** (1 / power)
    around = np.arctan2(v, u)
    for harmonic in (2, 3, 4, 5):
        rho = rho + rng.normal(0, 0.05 / math.sqrt(harmonic)) * np.cos(
            harmonic * around + rng.uniform(0, 6.28)
        )
    return np.asarray((0.93 - rho) * min(radius_x, radius_y), np.float32)


def _tear(grid: Grid, rng: np.random.Generator, x: Field, y: Field, tissue: Field) -> Field:
    """Signed depth in a hole or a lens-shaped slit through which glass is seen."""
    rows, columns = np.nonzero(tissue > 120)
    if len(rows) == 0:
        return np.full(grid.shape, -1e3, np.float32)
    chosen = int(rng.integers(len(rows)))
    centre_x, centre_y = columns[chosen] * STEP_UM, rows[chosen] * STEP_UM
    angle = rng.uniform(0, math.pi)
    cos, sin = math.cos(angle), math.sin(angle)
    u = (x - centre_x) * cos + (y - centre_y) * sin
    v = -(x - centre_x) * sin + (y - centre_y) * cos
    if rng.random() < 0.6:
        length, opening = rng.uniform(120, 320), rng.uniform(8, 26)
        v = v + rng.normal(0, 0.0012) * u**2
        opening = opening * np.clip(1 - (u / length) ** 2, -1, 1)
        return np.asarray(opening - np.abs(v), np.float32)
    radius = rng.uniform(22, 60)
    return np.asarray(radius - np.sqrt(u**2 + (v * rng.uniform(1.0, 1.8)) ** 2), np.float32)


def _without_crumbs(distance: Field) -> Field:
    """Remove detached specks, which a real section loses in the water bath."""
    pieces, count = ndimage.label(distance > 0)
    if count < 2:
        return distance
    areas = np.bincount(pieces.ravel())[1:]
    small = np.isin(pieces, 1 + np.nonzero(areas < 0.04 * areas.max())[0])
    return np.where(ndimage.binary_dilation(small, iterations=2), np.float32(-40), distance)
