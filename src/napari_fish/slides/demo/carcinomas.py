"""Architectures made of epithelium: glands, sheets, fronds, and clusters afloat in mucin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import ndimage

from napari_fish.slides.demo.grid import STEP_UM, Field, Grid, smoothstep
from napari_fish.slides.demo.outline import depth
from napari_fish.slides.demo.plan import Look, Plan, Population, everywhere, flow_around, inside
from napari_fish.slides.demo.shapes import ellipses, fronds, polygons, spaced_points
from napari_fish.slides.demo.stroma import furnished


def adenocarcinoma(grid: Grid, rng: np.random.Generator, tissue: Field) -> Plan:
    """Glands with a lumen and columnar cells whose nuclei stand at the base, in desmoplastic stroma."""
    deep = depth(tissue)
    scale = rng.uniform(0.88, 1.15)
    area = float((tissue > 0).sum()) * STEP_UM**2
    radii = scale * rng.gamma(7.0, 8.6, max(4, int(area / 6500))).clip(26, 105)
    discs = spaced_points(rng, grid, radii, deep > rng.uniform(25, 60))
    discs[:, 2] *= rng.uniform(0.90, 1.0)
    gland = ellipses(grid, rng, discs, 13.0, (1.0, 2.2))
    gland = np.minimum(gland, deep - 12).astype(np.float32)
    thick = np.float32(29 * scale) + 5 * grid.noise(rng, 80)
    bridges = 42 * np.abs(grid.noise(rng, 120)) - np.float32(17)
    cribriform = grid.noise(rng, 420) > 0.45
    lumen = gland - thick
    lumen = np.where(cribriform, np.minimum(lumen, bridges), lumen).astype(np.float32)
    long_um, short_um = 5.6 * rng.uniform(0.9, 1.12), 3.1 * rng.uniform(0.92, 1.1)
    solid_part = smoothstep(-2, -8, lumen) * smoothstep(2, 5, gland) * inside(tissue)
    tumour = Population(
        where=solid_part * (gland < thick * 0.8),
        long_um=long_um,
        short_um=short_um,
        spacing=(0.80, 0.96),
        axis="across",
        spread=0.14,
        dark=rng.uniform(0.9, 1.05),
        vesicular=rng.uniform(0.35, 0.6),
        nucleolus=0.35,
        cell_um=(17.0, 6.0),
        base_um=(9.5, 3.6),
        tries=7.0,
    )
    within = replace(tumour, where=solid_part * (gland >= thick * 0.8), base_um=None, spacing=(1.1, 1.1))
    debris = Population(
        where=smoothstep(4, 9, lumen) * smoothstep(0.3, 1.3, grid.noise(rng, 200)) * np.float32(0.05),
        long_um=1.7,
        short_um=1.2,
        spread=0.5,
        dark=0.7,
        vesicular=0.0,
        nucleolus=0.0,
        tries=1.0,
    )
    plan = Plan(
        grid=grid,
        tissue=tissue,
        epithelium=gland,
        lumen=lumen,
        mucin=np.float32(0.25) * smoothstep(0.2, 1.2, grid.noise(rng, 300)),
        loose=np.float32(0.27) + 0.12 * grid.noise(rng, 260),
        flow=flow_around(grid, rng, gland, 40),
        populations=(tumour, within, debris),
        look=Look(
            cytoplasm_eosin=rng.uniform(0.42, 0.58),
            cytoplasm_haem=rng.uniform(0.10, 0.2),
            membrane=0.16,
            apical_pallor=rng.uniform(0.15, 0.5),
            retraction_um=rng.uniform(0.5, 2.0),
            fluid=rng.uniform(0.0, 0.06),
        ),
    )
    return furnished(plan, rng, fibroblasts=0.55, lymphocytes=rng.uniform(0.15, 0.5))


def solid_carcinoma(grid: Grid, rng: np.random.Generator, tissue: Field) -> Plan:
    """Broad sheets and nests of polygonal cells, parted by thin fibrovascular septa."""
    deep = depth(tissue)
    edge, _ = polygons(grid, rng, rng.uniform(170, 260), 30.0, merge=0.25)
    septum = np.float32(rng.uniform(6, 10)) + 6 * np.maximum(grid.noise(rng, 240), -0.5)
    nest = ndimage.gaussian_filter(edge, 2.0) - septum
    nest = np.minimum(nest, deep - 10).astype(np.float32)
    radius = 4.7 * rng.uniform(0.9, 1.15)
    gap = rng.uniform(1.32, 1.5)
    tumour = Population(
        where=smoothstep(3, 6, nest) * inside(tissue),
        long_um=radius * 1.12,
        short_um=radius * 0.93,
        spacing=(gap, gap),
        spread=0.2,
        dark=rng.uniform(0.78, 0.95),
        vesicular=rng.uniform(0.6, 0.95),
        nucleolus=rng.uniform(0.55, 0.9),
        cell_um=(radius * 2.6, radius * 2.6),
        tries=6.0,
    )
    plan = Plan(
        grid=grid,
        tissue=tissue,
        epithelium=nest,
        lumen=everywhere(grid, -200),
        mucin=everywhere(grid, 0),
        loose=np.float32(0.28) + 0.12 * grid.noise(rng, 200),
        flow=flow_around(grid, rng, nest, 50),
        populations=(tumour,),
        look=Look(
            cytoplasm_eosin=rng.uniform(0.38, 0.56),
            cytoplasm_haem=rng.uniform(0.09, 0.16),
            membrane=rng.uniform(0.25, 0.5),
            grain=0.45,
            retraction_um=rng.uniform(0.5, 2.5),
            vacuoles=rng.uniform(0.0, 0.12),
        ),
    )
    return furnished(plan, rng, fibroblasts=0.6, lymphocytes=rng.uniform(0.2, 0.6), vessel_um=(4, 9))


def papillary_carcinoma(grid: Grid, rng: np.random.Generator, tissue: Field) -> Plan:
    """Fronds with fibrovascular cores under one layer of cuboidal cells, in a walled cavity."""
    deep = depth(tissue)
    wall = np.float32(rng.uniform(45, 75)) + 14 * grid.noise(rng, 300)
    cavity = (deep - wall).astype(np.float32)
    thick = np.float32(rng.uniform(15, 18)) + 1.5 * grid.noise(rng, 80)
    spacing = rng.uniform(94, 110)
    frond = fronds(grid, rng, cavity, spacing, (rng.uniform(34, 38), rng.uniform(25, 29)))
    frond = frond + 3.0 * grid.turbulence(rng, 50, 2)
    solid = np.maximum(frond, -cavity + thick * 0.5)
    core = (thick - solid).astype(np.float32)
    lumen = (-solid).astype(np.float32)
    radius = 3.9 * rng.uniform(0.92, 1.12)
    tumour = Population(
        where=smoothstep(1.5, 4, core) * smoothstep(-1, -4, lumen) * inside(tissue),
        long_um=radius * 1.15,
        short_um=radius * 0.92,
        spacing=(0.86, 1.02),
        axis="across",
        dark=rng.uniform(0.85, 1.0),
        vesicular=rng.uniform(0.55, 0.8),
        nucleolus=0.15,
        cell_um=(11.0, 6.5),
        base_um=(7.0, 2.2),
        tries=8.0,
    )
    plan = Plan(
        grid=grid,
        tissue=tissue,
        epithelium=core,
        lumen=lumen,
        mucin=everywhere(grid, 0),
        loose=np.float32(0.34) + 0.12 * grid.noise(rng, 160) - 0.12 * (deep < wall * 0.7),
        flow=flow_around(grid, rng, core, 60),
        populations=(tumour,),
        look=Look(
            cytoplasm_eosin=rng.uniform(0.48, 0.62),
            cytoplasm_haem=rng.uniform(0.1, 0.18),
            membrane=0.22,
            fluid=float(rng.choice([0.0, 0.0, 0.05, 0.09])),
            stroma_eosin=0.62,
        ),
    )
    return furnished(
        plan, rng, fibroblasts=0.5, lymphocytes=rng.uniform(0.05, 0.3), vessel_um=(5, 11), vessels=3.0
    )


def mucinous_carcinoma(grid: Grid, rng: np.random.Generator, tissue: Field) -> Plan:
    """Pools of pale mucin between fibrous septa, with clusters of tumour cells afloat."""
    deep = depth(tissue)
    edge, _ = polygons(grid, rng, rng.uniform(330, 470), 50.0, merge=0.2)
    septum = np.float32(rng.uniform(15, 21)) + 11 * np.maximum(grid.noise(rng, 260), -0.8)
    pool = ndimage.gaussian_filter(edge, 3.0) - septum
    pool = np.minimum(pool, deep - 30).astype(np.float32)
    area = float((pool > 0).sum()) * STEP_UM**2
    radii = rng.gamma(5.0, 7.5, max(3, int(area / 9500))).clip(16, 75)
    discs = spaced_points(rng, grid, radii * 1.35, pool > 18)
    discs[:, 2] *= 0.72
    cluster = ellipses(grid, rng, discs, 7.0, (1.0, 2.2), 110.0, lobes=0.06)
    lining = np.where(grid.noise(rng, 260) > 0.75, np.float32(13), np.float32(-4))
    lining = ndimage.gaussian_filter(lining, 2.0)
    lumen = np.minimum(pool - np.maximum(lining, 0), -cluster).astype(np.float32)
    radius = 4.0 * rng.uniform(0.92, 1.12)
    tumour = Population(
        where=smoothstep(-1.5, -4.5, lumen) * smoothstep(1, 3, pool) * inside(tissue),
        long_um=radius * 1.15,
        short_um=radius * 0.92,
        spacing=(1.12, 1.12),
        spread=0.14,
        dark=rng.uniform(0.9, 1.05),
        vesicular=rng.uniform(0.3, 0.6),
        nucleolus=0.3,
        cell_um=(9.5, 9.5),
        tries=7.0,
    )
    plan = Plan(
        grid=grid,
        tissue=tissue,
        epithelium=np.where(pool > 1.5, np.maximum(pool, cluster), pool).astype(np.float32),
        lumen=lumen,
        mucin=np.clip(0.85 + 0.12 * grid.noise(rng, 200), 0.5, 1).astype(np.float32),
        loose=np.float32(0.26) + 0.12 * grid.noise(rng, 200),
        flow=flow_around(grid, rng, np.where(pool > 0, np.maximum(cluster, -pool), pool), 60),
        populations=(tumour,),
        look=Look(
            cytoplasm_eosin=rng.uniform(0.45, 0.6),
            cytoplasm_haem=rng.uniform(0.12, 0.2),
            membrane=0.2,
            mucin_haem=rng.uniform(0.15, 0.22),
            vacuoles=0.3,
        ),
    )
    return furnished(plan, rng, fibroblasts=0.5, lymphocytes=rng.uniform(0.05, 0.35))
