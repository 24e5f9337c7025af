"""Shapes that architectures are made of: ellipses, polygons and branching fronds."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from napari_fish.slides.demo.grid import STEP_UM, Field, Grid


def spaced_points(
    rng: np.random.Generator, grid: Grid, radii_um: npt.NDArray[np.float64], where: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Throw discs where there is room, largest first; rows of x, y and radius in µm."""
    rows, columns = np.nonzero(where)
    if len(rows) == 0:
        return np.zeros((0, 3))
    kept = np.zeros((len(radii_um), 3))
    count = 0
    for radius in np.sort(radii_um)[::-1]:
        chosen = rng.integers(len(rows), size=12)
        offset = rng.random((12, 2))
        for pick, (dx, dy) in zip(chosen, offset, strict=True):
            x, y = (columns[pick] + dx) * STEP_UM, (rows[pick] + dy) * STEP_UM
            gaps = np.hypot(kept[:count, 0] - x, kept[:count, 1] - y) - kept[:count, 2] - radius
            if count == 0 or gaps.min() > 0:
                kept[count] = x, y, radius
                count += 1
                break
    return kept[:count]


def ellipses(
    grid: Grid,
    rng: np.random.Generator,
    discs: npt.NDArray[np.float64],
    warp_um: float,
    stretch: tuple[float, float] = (1.0, 1.8),
    wavelength_um: float = 130.0,
    lobes: float = 0.05,
) -> Field:
    """Return the signed depth in warped, lobed ellipses at the discs (x, y, radius in µm)."""
    x = grid.x + warp_um * grid.noise(rng, wavelength_um)
    y = grid.y + warp_um * grid.noise(rng, wavelength_um)
    depth = np.full(grid.shape, -200.0, np.float32)
    for centre_x, centre_y, radius in discs:
        aspect = math.sqrt(rng.uniform(*stretch))
        angle, phase = rng.uniform(0, math.pi), rng.uniform(0, 6.28, 3)
        strength = rng.normal(0, lobes, 3)
        reach = 1.4 * radius * aspect + 4 * warp_um + 60
        top, bottom = (max(0, int((centre_y + sign * reach) / STEP_UM)) for sign in (-1, 1))
        left, right = (max(0, int((centre_x + sign * reach) / STEP_UM)) for sign in (-1, 1))
        box = np.s_[top : bottom + 1, left : right + 1]
        dx, dy = x[box] - centre_x, y[box] - centre_y
        if dx.size == 0:
            continue
        u = (dx * math.cos(angle) + dy * math.sin(angle)) / aspect
        v = (dy * math.cos(angle) - dx * math.sin(angle)) * aspect
        distance = np.sqrt(u**2 + v**2)
        around = np.arctan2(v, u)
        ripple = sum(s * np.cos(k * around + p) for k, s, p in zip((2, 3, 5), strength, phase, strict=True))
        depth[box] = np.maximum(depth[box], (radius - distance * (1 + ripple)).astype(np.float32))
    return depth


def polygons(
    grid: Grid, rng: np.random.Generator, size_um: float, warp_um: float, merge: float = 0.0
) -> tuple[Field, npt.NDArray[np.intp]]:
    """Divide the plane into cells about ``size_um`` wide; return the distance to the next edge, and labels.

    A share ``merge`` of the cells joins a neighbour, which makes shapes less regular.
    """
    across, down = (max(2, round(extent / size_um) + 2) for extent in (grid.width_um, grid.height_um))
    column, row = np.meshgrid(np.arange(across), np.arange(down))
    x = ((column + rng.uniform(0.0, 1.0, column.shape)) / across * 1.1 - 0.05) * grid.width_um
    y = ((row + rng.uniform(0.0, 1.0, row.shape)) / down * 1.1 - 0.05) * grid.height_um
    group = np.arange(column.size).reshape(column.shape)
    joined = rng.random(column.shape) < merge
    sideways = rng.random(column.shape) < 0.5
    group = np.where(joined, np.where(sideways, np.roll(group, 1, 1), np.roll(group, 1, 0)), group)
    markers = np.ones(grid.shape, bool)
    labels = np.zeros(grid.shape, np.intp)
    rows, columns = grid.index(x.ravel(), y.ravel())
    markers[rows, columns] = False
    labels[rows, columns] = group.ravel()
    nearest = ndimage.distance_transform_edt(markers, return_distances=False, return_indices=True)
    shift_x = warp_um / STEP_UM * grid.turbulence(rng, size_um * 0.7, 2)
    shift_y = warp_um / STEP_UM * grid.turbulence(rng, size_um * 0.7, 2)
    i = np.clip(np.arange(grid.shape[0])[:, None] + shift_y, 0, grid.shape[0] - 1).astype(np.intp)
    j = np.clip(np.arange(grid.shape[1])[None, :] + shift_x, 0, grid.shape[1] - 1).astype(np.intp)
    cell = labels[tuple(nearest)][i, j]
    edge = np.zeros(grid.shape, bool)
    edge[:, 1:] |= cell[:, 1:] != cell[:, :-1]
    edge[1:] |= cell[1:] != cell[:-1]
    distance = ndimage.distance_transform_edt(~edge) * STEP_UM
    return ndimage.gaussian_filter(distance.astype(np.float32), 1.4), cell


def fronds(
    grid: Grid, rng: np.random.Generator, cavity: Field, spacing_um: float, width_um: tuple[float, float]
) -> Field:
    """Grow branching fronds from the wall of a cavity; return the signed depth in them (µm).

    Parameters
    ----------
    cavity
        Distance to the wall, positive in the cavity.
    spacing_um
        Distance that neighbouring fronds keep between their middle lines.
    width_um
        Half-width of the trunks and of the last branches.
    """
    growth = _Growth(grid, rng, cavity, spacing_um, width_um)
    growth.run()
    distance, nearest = ndimage.distance_transform_edt(growth.width == 0, return_indices=True)
    depth = growth.width[tuple(nearest)] - distance.astype(np.float32) * np.float32(STEP_UM)
    return np.asarray(ndimage.gaussian_filter(depth, 1.6), np.float32)


class _Growth:
    """Tips that advance in turn, keep away from other branches, and branch."""

    STRIDE_UM = 6.0

    def __init__(
        self, grid: Grid, rng: np.random.Generator, cavity: Field, spacing: float, width: tuple[float, float]
    ) -> None:
        self.grid, self.rng, self.cavity, self.spacing = grid, rng, cavity, spacing
        self.trunk, self.twig = width
        self.owner = np.zeros(grid.shape, np.int32)
        self.width = np.zeros(grid.shape, np.float32)
        self.families: list[set[int]] = [set()]
        radius = max(1, round(spacing * 0.30 / STEP_UM))
        offsets = np.mgrid[-radius : radius + 1, -radius : radius + 1].reshape(2, -1)
        self.disc = offsets[:, np.hypot(*offsets) <= radius]
        self.tips: list[list[float]] = []

    def run(self) -> None:
        """Grow from the wall, then fill what is left with fronds that are cut across."""
        slope_y, slope_x = np.gradient(self.cavity, axis=0), np.gradient(self.cavity, axis=1)
        rows, columns = np.nonzero((self.cavity > 0) & (self.cavity < 10))
        for pick in self.rng.permutation(len(rows)):
            row, column = int(rows[pick]), int(columns[pick])
            if self._is_free(row, column, 1.25):
                heading = math.atan2(slope_y[row, column], slope_x[row, column])
                self._sprout(column * STEP_UM, row * STEP_UM, heading)
                self._claim(row, column, len(self.families) - 1)
        self._advance()
        rows, columns = np.nonzero(self.cavity > self.spacing * 0.4)
        for pick in self.rng.permutation(len(rows))[:1500]:
            if self._is_free(int(rows[pick]), int(columns[pick]), 0.62):
                self._sprout(columns[pick] * STEP_UM, rows[pick] * STEP_UM, self.rng.uniform(0, 6.28))
                self._advance()

    def _is_free(self, row: int, column: int, share: float) -> bool:
        """Tell whether no branch is within about this share of the spacing."""
        reach = round(self.spacing * (share - 0.25) / STEP_UM)
        box = self.owner[max(0, row - reach) : row + reach + 1, max(0, column - reach) : column + reach + 1]
        return not box.any()

    def _sprout(self, x: float, y: float, angle: float, parent: int = 0, width: float | None = None) -> None:
        self.families.append({len(self.families)} | ({parent} if parent else set()))
        half = self.rng.uniform(0.8, 1.2) * self.trunk if width is None else width
        until_branch = self.spacing * self.rng.uniform(0.8, 1.6)
        self.tips.append([x, y, angle, len(self.families) - 1, 0.0, half, until_branch])

    def _advance(self) -> None:
        while self.tips:
            self.tips = [tip for tip in self.tips if self._step(tip)]

    def _owner_at(self, x: float, y: float) -> int:
        row, column = int(y / STEP_UM), int(x / STEP_UM)
        if not (0 <= row < self.grid.shape[0] and 0 <= column < self.grid.shape[1]):
            return -1
        return int(self.owner[row, column]) if self.cavity[row, column] > self.spacing * 0.2 else -1

    def _claim(self, row: int, column: int, name: int) -> None:
        rows = np.clip(self.disc[0] + row, 0, self.grid.shape[0] - 1)
        columns = np.clip(self.disc[1] + column, 0, self.grid.shape[1] - 1)
        free = self.owner[rows, columns] == 0
        self.owner[rows[free], columns[free]] = name

    def _step(self, tip: list[float]) -> bool:
        x, y, angle, name, age, half, until_branch = tip
        family = self.families[int(name)] if age < 1.2 * self.spacing else {int(name)}
        angle += self.rng.normal(0, 0.15)
        ahead = self.spacing * 0.66
        others = {0} | family
        left, straight, right, near = (
            self._owner_at(x + reach * math.cos(angle + turn), y + reach * math.sin(angle + turn))
            not in others
            for turn, reach in ((-0.9, ahead), (0.0, ahead), (0.9, ahead), (0.0, 0.68 * ahead))
        )
        if near or (left and right) or (straight and left == right and age > 0):
            return False
        angle += 0.25 * (left - right)
        x, y = x + self.STRIDE_UM * math.cos(angle), y + self.STRIDE_UM * math.sin(angle)
        row, column = int(y / STEP_UM), int(x / STEP_UM)
        if not (0 <= row < self.grid.shape[0] and 0 <= column < self.grid.shape[1]):
            return False
        self._claim(row, column, int(name))
        half += (self.twig - half) * self.STRIDE_UM / 400
        self.width[row, column] = half * (1 + 0.10 * math.sin(age / 23 + name))
        until_branch -= self.STRIDE_UM
        if until_branch < 0:
            side = self.rng.choice([-1, 1]) * self.rng.uniform(0.7, 1.3)
            self._sprout(x, y, angle + side, int(name), 0.8 * half + 0.2 * self.twig)
            until_branch = self.spacing * self.rng.uniform(0.8, 1.7)
        tip[:] = [x, y, angle, name, age + self.STRIDE_UM, half, until_branch]
        return True
