"""The coarse grid on which a slide's geometry is laid out, and smooth noise on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float32]
"""One value per coarse pixel."""

STEP_UM = 4.0
"""Size of a coarse pixel in µm, whatever the magnification of the slide."""


@dataclass(frozen=True)
class Grid:
    """Coarse pixels over a slide of ``width_um`` x ``height_um``."""

    width_um: float
    height_um: float

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return math.ceil(self.height_um / STEP_UM), math.ceil(self.width_um / STEP_UM)

    @cached_property
    def x(self) -> Field:
        """Centres of the columns in µm, as one row."""
        return ((np.arange(self.shape[1], dtype=np.float32) + 0.5) * STEP_UM)[None, :]

    @cached_property
    def y(self) -> Field:
        """Centres of the rows in µm, as one column."""
        return ((np.arange(self.shape[0], dtype=np.float32) + 0.5) * STEP_UM)[:, None]

    def noise(self, rng: np.random.Generator, wavelength_um: float) -> Field:
        """Return smooth noise of mean 0 and standard deviation about 1 (cubic B-spline of random knots)."""
        spacing = wavelength_um / 2 / STEP_UM
        knots = [math.ceil(n / spacing) + 4 for n in self.shape]
        values = (rng.standard_normal(knots) / 0.479).astype(np.float32)
        return _spread(_spread(values, self.shape[0], spacing).T, self.shape[1], spacing).T

    def turbulence(self, rng: np.random.Generator, wavelength_um: float, octaves: int = 3) -> Field:
        """Return noise with finer and weaker noise on top, of standard deviation about 1."""
        total = np.zeros(self.shape, np.float32)
        for octave in range(octaves):
            total += self.noise(rng, max(wavelength_um / 2**octave, 2 * STEP_UM)) * np.float32(0.55**octave)
        return total / np.float32(math.sqrt(sum(0.55 ** (2 * o) for o in range(octaves))))

    def index(
        self, x_um: npt.NDArray[np.float64], y_um: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return row and column of the coarse pixels under points given in µm."""
        rows = np.clip((y_um / STEP_UM).astype(np.intp), 0, self.shape[0] - 1)
        columns = np.clip((x_um / STEP_UM).astype(np.intp), 0, self.shape[1] - 1)
        return rows, columns


def _spread(knots: Field, length: int, spacing: float) -> Field:
    """Interpolate along the first axis with a cubic B-spline."""
    position = (np.arange(length) + 0.5) / spacing
    first = np.floor(position).astype(np.intp)
    t = (position - first).astype(np.float32)[:, None]
    weights = (
        (1 - t) ** 3 / 6,
        (3 * t**3 - 6 * t**2 + 4) / 6,
        (-3 * t**3 + 3 * t**2 + 3 * t + 1) / 6,
        t**3 / 6,
    )
    total = np.zeros((length, knots.shape[1]), np.float32)
    for offset, weight in enumerate(weights):
        total += weight * knots[first + offset]
    return total


def smoothstep(low: float, high: float, values: Field) -> Field:
    """Rise smoothly from 0 at ``low`` to 1 at ``high``."""
    t = np.clip((values - np.float32(low)) / np.float32(high - low), 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def as_distance(values: Field, limit_um: float) -> Field:
    """Turn a smooth function into a signed distance in µm to its zero line, good near that line."""
    slope_y, slope_x = np.gradient(values, STEP_UM)
    slope = np.sqrt(slope_x**2 + slope_y**2) + np.float32(1e-6)
    return np.asarray(np.clip(values / slope, -limit_um, limit_um), np.float32)
