"""What every tissue has between its tumour cells: vessels with red cells, fibroblasts, lymphocytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from napari_fish.slides.demo.grid import STEP_UM, smoothstep
from napari_fish.slides.demo.plan import Plan, Population
from napari_fish.slides.demo.shapes import ellipses, spaced_points


def with_vessels(
    plan: Plan, rng: np.random.Generator, per_mm2: float, radius_um: tuple[float, float]
) -> Plan:
    """Put vessels into the stroma; some of them are full of red cells."""
    grid = plan.grid
    area_mm2 = float((plan.tissue > 0).sum()) * STEP_UM**2 / 1e6
    radii = rng.uniform(*radius_um, max(1, round(per_mm2 * area_mm2)))
    room = (plan.tissue > radii.max() + 12) & (plan.epithelium < -radii.max() * 0.8 - 3)
    discs = spaced_points(rng, grid, radii, room)
    if len(discs) == 0:
        return plan
    vessel = ellipses(grid, rng, discs, 2.5, (1.1, 3.0), 60.0, lobes=0.06)
    full = ellipses(grid, rng, discs[rng.random(len(discs)) < 0.65], 2.5, (1.0, 1.3), 60.0)
    inside = plan.epithelium < 0
    red_cells = Population(
        where=smoothstep(1.5, 3.5, vessel) * (full > -14) * inside * np.float32(0.95),
        long_um=3.5,
        short_um=3.0,
        spacing=(0.93, 0.93),
        spread=0.08,
        red=True,
        tries=6.0,
    )
    lining = Population(
        where=((vessel > -3.5) & (vessel < -0.5) & inside).astype(np.float32) * np.float32(0.7),
        long_um=5.0,
        short_um=1.5,
        spacing=(1.3, 1.6),
        axis="flow",
        dark=1.05,
        vesicular=0.1,
        nucleolus=0.0,
        tries=6.0,
    )
    slope_y, slope_x = np.gradient(vessel)
    tangent = (np.arctan2(slope_y, slope_x) + np.pi / 2).astype(np.float32)
    outside = (vessel < -2.5) | ~inside
    populations = tuple(replace(p, where=p.where * outside) for p in plan.populations)
    return replace(
        plan,
        lumen=np.maximum(plan.lumen, np.where(inside, vessel, np.float32(-200))),
        flow=np.where((np.abs(vessel) < 14) & inside, tangent, plan.flow),
        populations=(*populations, red_cells, lining),
    )


def stromal_cells(
    plan: Plan, rng: np.random.Generator, fibroblasts: float, lymphocytes: float
) -> tuple[Population, ...]:
    """Return fibroblasts along the fibres and lymphocytes in loose crowds."""
    grid = plan.grid
    stroma = (
        smoothstep(-1, -4, plan.epithelium) * smoothstep(-1, -4, plan.lumen) * smoothstep(5, 8, plan.tissue)
    )
    spindle = Population(
        where=stroma * np.float32(fibroblasts) * (0.55 + 0.45 * smoothstep(-1.2, 0.6, grid.noise(rng, 150))),
        long_um=6.4,
        short_um=1.55,
        spacing=(1.5, 3.0),
        axis="flow",
        spread=0.22,
        dark=1.05,
        vesicular=0.15,
        nucleolus=0.0,
        tries=2.0,
    )
    crowd = smoothstep(0.4, 1.6, grid.turbulence(rng, 220, 2)) + np.float32(0.03)
    small = Population(
        where=stroma * np.float32(lymphocytes) * crowd,
        long_um=3.1,
        short_um=2.8,
        spacing=(1.25, 1.25),
        dark=1.2,
        vesicular=0.1,
        nucleolus=0.0,
        tries=2.5,
    )
    return tuple(p for p, share in ((small, lymphocytes), (spindle, fibroblasts)) if share > 0)


def furnished(
    plan: Plan,
    rng: np.random.Generator,
    fibroblasts: float,
    lymphocytes: float,
    vessel_um: tuple[float, float] = (7, 24),
    vessels: float = 6.0,
) -> Plan:
    """Add what every tissue has: vessels, fibroblasts and a few inflammatory cells."""
    plan = with_vessels(plan, rng, vessels, vessel_um)
    return replace(plan, populations=(*plan.populations, *stromal_cells(plan, rng, fibroblasts, lymphocytes)))
