"""Which architecture each diagnosis has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from napari_fish.slides.demo import carcinomas, other_tumours
from napari_fish.slides.demo.grid import Field, Grid
from napari_fish.slides.demo.plan import Plan

ARCHITECTS: dict[str, Callable[[Grid, np.random.Generator, Field], Plan]] = {
    "adenocarcinoma": carcinomas.adenocarcinoma,
    "solid carcinoma": carcinomas.solid_carcinoma,
    "papillary carcinoma": carcinomas.papillary_carcinoma,
    "lymphoma": other_tumours.lymphoma,
    "sarcoma": other_tumours.sarcoma,
    "mucinous carcinoma": carcinomas.mucinous_carcinoma,
}


def plan_of(diagnosis: str, grid: Grid, rng: np.random.Generator, tissue: Field) -> Plan:
    """Lay out a diagnosis within the given tissue (signed distance to its edge in µm)."""
    return ARCHITECTS[diagnosis](grid, rng, tissue)
