"""Architectures without epithelium: lymphoid and spindle cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import ndimage

from napari_fish.slides.demo.grid import STEP_UM, Field, Grid, smoothstep
from napari_fish.slides.demo.outline import depth
from napari_fish.slides.demo.plan import Look, Plan, Population, everywhere, flow_around, inside
from napari_fish.slides.demo.shapes import ellipses, polygons, spaced_points
from napari_fish.slides.demo.stroma import furnished


def lymphoma(grid: Grid, rng: np.random.Generator, tissue: Field) -> Plan:
    """Crowded small round cells; follicles with paler, larger cells and a dark mantle."""
    deep = depth(tissue)
    area = float((tissue > 0).sum()) * STEP_UM**2
    radii = rng.uniform(95, 200, max(2, int(area / 130000)))
    discs = spaced_points(rng, grid, radii, deep > 70)
    discs[:, 2] *= 0.86
    follicle = ellipses(grid, rng, discs, 10.0, (1.0, 1.5), lobes=0.03)
    centre = smoothstep(38, 58, follicle)
    mantle = smoothstep(0, 18, follicle) * (1 - centre)
    capsule = (1 - smoothstep(14, 26, deep + 5 * grid.noise(rng, 120))).astype(np.float32)
    trabecula, _ = polygons(grid, rng, 620, 60.0)
    fibrous = np.maximum(capsule, 1 - smoothstep(3, 11, trabecula - 4 * grid.noise(rng, 300)))
    fibrous = fibrous * (follicle < -6)
    radius = 3.0 * rng.uniform(0.93, 1.1)
    size = 1 + np.float32(0.42) * centre - np.float32(0.05) * mantle + 0.04 * grid.noise(rng, 250)
    cells = Population(
        where=(1 - 0.93 * fibrous) * (0.75 + 0.25 * mantle) * inside(tissue, 5),
        long_um=radius * 1.08,
        short_um=radius * 0.95,
        spacing=(1.04, 1.04),
        spread=0.13,
        dark=rng.uniform(1.05, 1.2),
        vesicular=0.25,
        nucleolus=0.12,
        cell_um=(radius * 2.1, radius * 2.1),
        size=size.astype(np.float32),
        tries=3.0,
    )
    centroblasts = replace(
        cells, where=cells.where * centre * 0.9, dark=0.85, vesicular=0.75, nucleolus=0.5, spacing=(1.2, 1.2)
    )
    cells = replace(cells, where=(cells.where * (1 - 0.85 * centre)).astype(np.float32))
    plan = Plan(
        grid=grid,
        tissue=tissue,
        epithelium=(30 * (0.5 - fibrous) + 2 * grid.noise(rng, 60)).astype(np.float32),
        lumen=everywhere(grid, -200),
        mucin=everywhere(grid, 0),
        loose=np.float32(0.24) + 0.10 * grid.noise(rng, 120),
        flow=flow_around(grid, rng, np.maximum(-trabecula, -deep), 40),
        populations=(centroblasts, cells),
        look=Look(
            cytoplasm_eosin=rng.uniform(0.28, 0.40),
            cytoplasm_haem=rng.uniform(0.12, 0.2),
            membrane=-0.75,
            grain=0.55,
            stroma_eosin=0.62,
            stroma_haem=0.08,
        ),
    )
    return furnished(plan, rng, fibroblasts=0.35, lymphocytes=0.0, vessel_um=(6, 15))


def sarcoma(grid: Grid, rng: np.random.Generator, tissue: Field) -> Plan:
    """Fascicles of spindle cells that run in different directions and meet at angles."""
    edge, cell = polygons(grid, rng, rng.uniform(260, 400), 50.0, merge=0.25)
    angles = rng.uniform(0, np.pi, int(cell.max()) + 1)
    angle = angles[cell].astype(np.float32)
    blur = 5.0
    cos = ndimage.gaussian_filter(np.cos(2 * angle), blur)
    sin = ndimage.gaussian_filter(np.sin(2 * angle), blur)
    flow = 0.5 * np.arctan2(sin, cos) + 0.30 * grid.noise(rng, 240) + 0.16 * grid.noise(rng, 80)
    endways = (rng.random(int(cell.max()) + 1) < 0.18).astype(np.float32)[cell]
    endways = ndimage.gaussian_filter(endways * (edge > 12), 3.0)
    long_um, short_um = rng.uniform(8.5, 11.0), rng.uniform(2.2, 2.8)
    density = np.clip(0.85 + 0.25 * grid.noise(rng, 260), 0.25, 1.0)
    spindle = Population(
        where=(density * (endways < 0.5) * inside(tissue)).astype(np.float32),
        long_um=long_um,
        short_um=short_um,
        spacing=(0.98, 1.5),
        axis="flow",
        spread=0.2,
        dark=rng.uniform(0.85, 1.0),
        vesicular=rng.uniform(0.3, 0.6),
        nucleolus=0.15,
        tries=5.0,
    )
    cut_across = replace(
        spindle,
        where=(density * (endways >= 0.5) * inside(tissue)).astype(np.float32),
        long_um=3.4,
        short_um=2.7,
        spacing=(1.55, 1.55),
    )
    plan = Plan(
        grid=grid,
        tissue=tissue,
        epithelium=everywhere(grid, -200),
        lumen=everywhere(grid, -200),
        mucin=everywhere(grid, 0),
        loose=np.float32(rng.uniform(0.14, 0.26)) + 0.10 * grid.noise(rng, 180),
        flow=flow.astype(np.float32),
        populations=(spindle, cut_across),
        look=Look(
            stroma_eosin=rng.uniform(0.62, 0.8), stroma_haem=rng.uniform(0.10, 0.18), fibre_contrast=0.8
        ),
    )
    return furnished(plan, rng, fibroblasts=0.0, lymphocytes=rng.uniform(0, 0.06), vessel_um=(6, 20))
