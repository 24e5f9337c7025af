"""From populations to cells: where each one lies, how large it is, which way it points."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from napari_fish.slides.demo.grid import STEP_UM, Field
from napari_fish.slides.demo.plan import Plan, Population


def place_cells(plan: Plan, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Return a table of cells, one row each, with the columns of `kernels.COLUMNS`, ordered by y."""
    from napari_fish.slides.demo.kernels import COLUMNS, throw

    tables = [_candidates(plan, population, rng) for population in plan.populations]
    cells = np.concatenate([np.zeros((0, len(COLUMNS) + 2)), *tables]).astype(np.float32)
    x, y, cos, sin = (np.ascontiguousarray(cells[:, k]) for k in (0, 1, 4, 5))
    room_long, room_short = (np.ascontiguousarray(cells[:, k]) for k in (-2, -1))
    kept = throw(x, y, room_long, room_short, cos, sin, plan.grid.width_um, plan.grid.height_um)
    cells = cells[kept, : len(COLUMNS)]
    return np.ascontiguousarray(cells[np.argsort(cells[:, 1], kind="stable")])


def _candidates(plan: Plan, population: Population, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Offer more cells than there is room for; the last two columns say how much room each claims."""
    rows, columns = np.nonzero(population.where > 0.01)
    along, across = population.spacing
    claim = math.pi * population.long_um * along * population.short_um * across
    count = math.ceil(population.tries * len(rows) * STEP_UM**2 / claim)
    if len(rows) == 0:
        return np.zeros((0, 16))
    chosen = rng.integers(len(rows), size=count)
    chosen = chosen[rng.random(count) < population.where[rows[chosen], columns[chosen]]]
    count = len(chosen)
    x = (columns[chosen] + rng.random(count)) * STEP_UM
    y = (rows[chosen] + rng.random(count)) * STEP_UM
    if population.base_um is not None:
        x, y = _towards_base(plan, x, y, rng.normal(*population.base_um, count))
    i, j = plan.grid.index(x, y)
    fits = population.where[i, j] > 0.3 if population.base_um is not None else np.ones(count, bool)
    size = np.exp(rng.normal(0, population.spread, count))
    if population.size is not None:
        size = size * population.size[i, j]
    stretch = np.exp(rng.normal(0, 0.10, count))
    long_um = population.long_um * size * stretch
    short_um = population.short_um * size / stretch
    angle = _angles(plan, population, i, j, rng)
    nucleolus = np.where(rng.random(count) < population.nucleolus, rng.uniform(0.65, 1.15, count), 0.0)
    dark = population.dark * np.exp(rng.normal(0, 0.13, count))
    vesicular = np.clip(population.vesicular + rng.normal(0, 0.15, count), 0, 1)
    cell_long, cell_short = population.cell_um
    table = np.stack(
        [
            x,
            y,
            long_um,
            short_um,
            np.cos(angle),
            np.sin(angle),
            dark,
            vesicular,
            nucleolus,
            rng.integers(1 << 20, size=count).astype(float),
            cell_long * size,
            cell_short * size,
            rng.random(count),
            np.full(count, float(population.red)),
            long_um * along,
            short_um * across,
        ],
        axis=1,
    )
    return np.asarray(table[fits])


def _slopes(
    field: Field, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Value and gradient (per µm) of a coarse field at points in µm."""
    at = np.stack([y / STEP_UM - 0.5, x / STEP_UM - 0.5])
    tables = field, np.gradient(field, STEP_UM, axis=1), np.gradient(field, STEP_UM, axis=0)
    value, slope_x, slope_y = (
        np.asarray(ndimage.map_coordinates(table, at, order=1, mode="nearest"), np.float64)
        for table in tables
    )
    return value, slope_x, slope_y


def _towards_base(
    plan: Plan, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], height: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Slide points up or down the epithelium until they stand at the wanted height."""
    for _ in range(2):
        value, slope_x, slope_y = _slopes(plan.epithelium, x, y)
        steep = slope_x**2 + slope_y**2 + 0.05
        move = np.clip(height - value, -18, 18) / steep
        x, y = x + move * slope_x, y + move * slope_y
    return x, y


def _angles(
    plan: Plan,
    population: Population,
    i: npt.NDArray[np.intp],
    j: npt.NDArray[np.intp],
    rng: np.random.Generator,
) -> npt.NDArray[np.float64]:
    """Direction of the long axis of each cell in radians."""
    if population.axis == "flow":
        return np.asarray(plan.flow[i, j] + rng.normal(0, 0.14, len(i)))
    if population.axis == "across":
        smooth = np.asarray(ndimage.gaussian_filter(plan.epithelium, 1.0), np.float32)
        slope_y, slope_x = np.gradient(smooth, axis=0), np.gradient(smooth, axis=1)
        return np.asarray(np.arctan2(slope_y[i, j], slope_x[i, j]) + rng.normal(0, 0.16, len(i)))
    return rng.uniform(0, math.pi, len(i))
