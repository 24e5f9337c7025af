"""What goes wrong on the way to a slide: folds, poor focus, pen marks, dust and bubbles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from napari_fish.slides.demo.grid import STEP_UM, Field, Grid, smoothstep

Pixels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_INKS = {
    "green": (1.30, 0.38, 0.95),
    "blue": (1.60, 0.85, 0.22),
    "black": (1.25, 1.20, 1.10),
    "red": (0.14, 1.25, 0.95),
}


@dataclass
class Scene:
    """A painted slide, and what is known about it; artefacts change ``rgb`` and their own mask in place."""

    grid: Grid
    mpp: float
    rgb: Pixels
    white: npt.NDArray[np.float32]
    tissue: Field
    masks: dict[str, Mask] = field(default_factory=dict)

    def window(self, area: Mask, margin_um: float) -> tuple[slice, slice, slice, slice] | None:
        """Rows and columns around an area: on the coarse grid, then in px of the slide."""
        rows, columns = np.nonzero(area)
        if len(rows) == 0:
            return None
        pad = math.ceil(margin_um / STEP_UM)
        top, bottom = max(0, rows.min() - pad), min(area.shape[0], rows.max() + 1 + pad)
        left, right = max(0, columns.min() - pad), min(area.shape[1], columns.max() + 1 + pad)
        scale = STEP_UM / self.mpp
        height, width = self.rgb.shape[:2]
        fine = (
            slice(round(top * scale), min(height, round(bottom * scale))),
            slice(round(left * scale), min(width, round(right * scale))),
        )
        return slice(top, bottom), slice(left, right), *fine

    def enlarge(self, values: Field, rows: slice, columns: slice) -> Field:
        """Interpolate a coarse field to the px of a window of the slide."""
        scale = self.mpp / STEP_UM
        y = (np.arange(rows.start, rows.stop) + 0.5) * scale - 0.5
        x = (np.arange(columns.start, columns.stop) + 0.5) * scale - 0.5
        return _bilinear(values, y, x)


def _bilinear(values: Field, y: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> Field:
    def along(table: Field, at: npt.NDArray[np.float64]) -> Field:
        at = np.clip(at, 0, len(table) - 1)
        low = np.minimum(at.astype(np.intp), max(0, len(table) - 2))
        weight = (at - low).astype(np.float32)[:, None]
        return np.asarray(table[low] * (1 - weight) + table[np.minimum(low + 1, len(table) - 1)] * weight)

    return along(along(values, y).T, x).T


def _curve(
    grid: Grid,
    rng: np.random.Generator,
    start: npt.NDArray[np.float64],
    angle: float,
    length: float,
    bend: float,
) -> npt.NDArray[np.float64]:
    """Points every few µm along a wandering line, as rows of x and y in µm."""
    count = max(2, int(length / 4))
    turns = ndimage.gaussian_filter1d(rng.normal(0, bend, count), max(2.0, count / 14), mode="nearest")
    heading = angle + np.cumsum(turns)
    steps = 4.0 * np.stack([np.cos(heading), np.sin(heading)], 1)
    return np.asarray(start + np.cumsum(steps, 0))


def _along(grid: Grid, points: npt.NDArray[np.float64]) -> tuple[Field, npt.NDArray[np.intp]]:
    """Distance (µm) of every coarse px from a line, and which of its points is nearest."""
    seen = (points >= 0).all(1) & (points < [grid.width_um, grid.height_um]).all(1)
    number = np.full(grid.shape, -1, np.intp)
    rows, columns = grid.index(points[seen, 0], points[seen, 1])
    number[rows, columns] = np.nonzero(seen)[0]
    if not seen.any():
        return np.full(grid.shape, 1e4, np.float32), np.zeros(grid.shape, np.intp)
    distance, nearest = ndimage.distance_transform_edt(number < 0, return_indices=True)
    smooth = ndimage.gaussian_filter(distance.astype(np.float32) * np.float32(STEP_UM), 1.2)
    return smooth, number[tuple(nearest)]


def _start_on_tissue(scene: Scene, rng: np.random.Generator, inside_um: float) -> npt.NDArray[np.float64]:
    rows, columns = np.nonzero(scene.tissue > min(inside_um, float(scene.tissue.max()) * 0.6))
    if len(rows) == 0:
        return np.array([scene.grid.width_um / 2, scene.grid.height_um / 2])
    pick = int(rng.integers(len(rows)))
    return np.array([columns[pick], rows[pick]]) * STEP_UM


def fold(scene: Scene, rng: np.random.Generator) -> None:
    """Lay a strip of tissue over its neighbour: light passes through both."""
    grid = scene.grid
    size = min(grid.width_um, grid.height_um)
    start = _start_on_tissue(scene, rng, 100)
    angle = rng.uniform(0, math.pi)
    length = size * rng.uniform(0.5, 0.9)
    start = start - 0.5 * length * np.array([math.cos(angle), math.sin(angle)])
    points = _curve(grid, rng, start, angle, length, 0.05)
    distance, number = _along(grid, points)
    taper = np.sqrt(np.sin(np.pi * (number + 0.5) / len(points)))
    half = rng.uniform(0.020, 0.036) * size + 8
    inside = (half * taper * (1 + 0.28 * grid.noise(rng, 260)) - distance).astype(np.float32)
    inside = np.minimum(inside, scene.tissue)
    area = inside > 0
    scene.masks["fold"] |= area
    window = scene.window(area, 12)
    if window is None:
        return
    _, _, fine_rows, fine_columns = window
    depth = scene.enlarge(inside, fine_rows, fine_columns)
    shift = 1.6 * half / scene.mpp
    dy, dx = round(shift * math.cos(angle)), round(-shift * math.sin(angle))
    height, width = scene.rgb.shape[:2]
    other = scene.rgb[
        np.clip(np.arange(fine_rows.start, fine_rows.stop) + dy, 0, height - 1)[:, None],
        np.clip(np.arange(fine_columns.start, fine_columns.stop) + dx, 0, width - 1)[None, :],
    ]
    crease = np.exp(-((depth - 3) ** 2) / 10)
    alpha = smoothstep(-1.5, 1.5, depth)[..., None]
    under = scene.rgb[fine_rows, fine_columns].astype(np.float32) / scene.white
    over = np.minimum(other.astype(np.float32) / scene.white, 0.92)
    # A crease is thicker still than the doubled strip.
    doubled = (
        under * over * np.exp(-np.asarray([0.10, 0.24, 0.12], np.float32) * (1 + 1.6 * crease[..., None]))
    )
    mixed = scene.white * (under + alpha * (doubled - under))
    scene.rgb[fine_rows, fine_columns] = np.clip(mixed + 0.5, 0, 255).astype(np.uint8)


def blur(scene: Scene, rng: np.random.Generator) -> None:
    """Put an area out of focus, more so towards its middle."""
    grid = scene.grid
    size = min(grid.width_um, grid.height_um)
    centre = _start_on_tissue(scene, rng, 100)
    radius = size * rng.uniform(0.24, 0.34)
    stretch = rng.uniform(0.8, 1.3)
    distance = np.hypot((grid.x - centre[0]) / stretch, (grid.y - centre[1]) * stretch)
    inside = (radius * (1 + 0.12 * grid.noise(rng, 0.5 * size)) - distance).astype(np.float32)
    strength = smoothstep(-30, 40, inside)
    scene.masks["blur"] |= inside > 0
    window = scene.window(strength > 0, 12)
    if window is None:
        return
    _, _, fine_rows, fine_columns = window
    local = scene.enlarge(strength, fine_rows, fine_columns)[..., None]
    sharp = scene.rgb[fine_rows, fine_columns].astype(np.float32)
    worst_um = rng.uniform(3.2, 5.0)
    levels = [sharp]
    for share in (0.25, 0.5, 1.0):
        levels.append(_gaussian(sharp, share * worst_um / scene.mpp))
    stops = (0.0, 0.25, 0.5, 1.0)
    mixed = levels[0]
    for low, high, softer in zip(stops[:-1], stops[1:], levels[1:], strict=True):
        mixed = mixed + np.clip((local - low) / (high - low), 0, 1) * (softer - mixed)
    # The sensor adds its noise to whatever light arrives.
    noise = (rng.random(mixed.shape, np.float32) * 4 - np.float32(1.5)) * np.minimum(1, 2 * local)
    scene.rgb[fine_rows, fine_columns] = np.clip(mixed + noise, 0, 255).astype(np.uint8)


def _gaussian(image: npt.NDArray[np.float32], sigma_px: float) -> npt.NDArray[np.float32]:
    """Blur with three box filters, whose cost does not grow with sigma."""
    width = max(1, round(math.sqrt(4 * sigma_px**2 + 1)))
    for _ in range(3):
        image = ndimage.uniform_filter(image, (width, width, 1), mode="nearest")
    return image


def ink(scene: Scene, rng: np.random.Generator) -> None:
    """Draw with a felt pen on the coverslip: translucent strokes over tissue and glass."""
    grid = scene.grid
    size = min(grid.width_um, grid.height_um)
    colour = np.asarray(_INKS[str(rng.choice(list(_INKS)))], np.float32) * np.float32(rng.uniform(0.75, 1.25))
    for _ in range(int(rng.integers(1, 3))):
        half = size * rng.uniform(0.05, 0.085)
        start = _start_on_tissue(scene, rng, 60)
        angle = rng.uniform(0, 2 * math.pi)
        points = _curve(grid, rng, start, angle, size * rng.uniform(0.6, 1.2), 0.10)
        distance, number = _along(grid, points)
        lanes = ndimage.gaussian_filter1d(rng.normal(0, 1, 400), 1.6)
        inside = (half * (1 + 0.08 * grid.noise(rng, 180)) + 3 * grid.turbulence(rng, 50) - distance).astype(
            np.float32
        )
        area = inside > 0
        scene.masks["ink"] |= area
        window = scene.window(area, 12)
        if window is None:
            continue
        _, _, fine_rows, fine_columns = window
        # A felt tip leaves lanes along the stroke, and more ink where it rests and at the edge.
        streak = 0.9 + 0.22 * lanes[np.minimum(distance / 5, 399).astype(np.intp)]
        streak = streak + 0.25 * ndimage.gaussian_filter1d(rng.normal(0, 3, len(points)), 9)[number]
        streak = streak + 0.08 * grid.turbulence(rng, 90) + 0.30 * np.exp(-np.maximum(inside, 0) / 10)
        streak = ndimage.gaussian_filter(streak, 1.2)
        amount = np.clip(scene.enlarge(streak.astype(np.float32), fine_rows, fine_columns), 0.45, 2.0)
        edge = smoothstep(-2.5, 3.0, scene.enlarge(inside, fine_rows, fine_columns))
        _darken(scene, fine_rows, fine_columns, (amount * edge)[..., None] * colour)


def _darken(scene: Scene, rows: slice, columns: slice, density: npt.NDArray[np.float32]) -> None:
    """Put a translucent layer (natural optical density per channel) on top."""
    seen = scene.rgb[rows, columns] * np.exp(-density)
    scene.rgb[rows, columns] = np.clip(seen + 0.5, 0, 255).astype(np.uint8)


def dust(scene: Scene, rng: np.random.Generator) -> None:
    """Scatter dark specks and a few fibres over the coverslip, slightly out of focus."""
    grid = scene.grid
    area_mm2 = grid.width_um * grid.height_um / 1e6
    for _ in range(4 + int(rng.poisson(5 * area_mm2))):
        start = rng.uniform(0, 1, 2) * [grid.width_um, grid.height_um]
        is_fibre = rng.random() < 0.18
        half = rng.uniform(3.2, 4.2) if is_fibre else math.exp(rng.uniform(1.1, 2.6))
        length = rng.uniform(80, 260) if is_fibre else rng.uniform(1, 2.5) * half
        points = _curve(grid, rng, start, rng.uniform(0, 6.28), length, 0.35)
        reach = length + 60
        box_rows = slice(max(0, int((start[1] - reach) / STEP_UM)), int((start[1] + reach) / STEP_UM) + 1)
        box_columns = slice(max(0, int((start[0] - reach) / STEP_UM)), int((start[0] + reach) / STEP_UM) + 1)
        y, x = np.broadcast_arrays(grid.y[box_rows], grid.x[:, box_columns])
        gaps = np.hypot(x[..., None] - points[:, 0], y[..., None] - points[:, 1]).min(-1)
        inside = np.full(grid.shape, -1e3, np.float32)
        ragged = 0.0 if is_fibre else 0.5 * half * rng.standard_normal(gaps.shape)
        inside[box_rows, box_columns] = half - gaps + ndimage.gaussian_filter(ragged + 0 * gaps, 1.0)
        scene.masks["dust"] |= inside > 0
        window = scene.window(inside > 0, 12)
        if window is None:
            continue
        _, _, fine_rows, fine_columns = window
        depth = scene.enlarge(inside, fine_rows, fine_columns)
        colour = rng.uniform(0.9, 1.8) * np.asarray([0.95, 1.0, 1.1], np.float32)
        _darken(
            scene,
            fine_rows,
            fine_columns,
            smoothstep(-2.0, 3.0, depth)[..., None] * colour.astype(np.float32),
        )


def bubble(scene: Scene, rng: np.random.Generator) -> None:
    """Leave air under the coverslip: a dark refracting rim around a slightly dull area."""
    grid = scene.grid
    size = min(grid.width_um, grid.height_um)
    centre = rng.uniform(0.15, 0.85, 2) * [grid.width_um, grid.height_um]
    radius = size * rng.uniform(0.06, 0.12)
    inside = radius - np.hypot(grid.x - centre[0], (grid.y - centre[1]) * rng.uniform(0.9, 1.2))
    inside = (inside + 0.05 * radius * grid.noise(rng, 2.5 * radius)).astype(np.float32)
    scene.masks["bubble"] |= inside > 0
    window = scene.window(inside > -12, 12)
    if window is None:
        return
    _, _, fine_rows, fine_columns = window
    depth = scene.enlarge(inside, fine_rows, fine_columns)
    rim = 1.1 * np.exp(-((depth / 5) ** 2)) + 0.30 * np.exp(-(((depth - 14) / 7) ** 2))
    density = (rim + 0.10 * smoothstep(0, 12, depth))[..., None] * np.asarray([1.0, 0.98, 0.94], np.float32)
    _darken(scene, fine_rows, fine_columns, density.astype(np.float32))


APPLY: dict[str, Callable[[Scene, np.random.Generator], None]] = {
    # From the tissue up to the coverslip.
    "fold": fold,
    "blur": blur,
    "bubble": bubble,
    "dust": dust,
    "ink": ink,
}
