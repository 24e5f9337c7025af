"""Rendering: a spec becomes pixels, together with what is truly where."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from napari_fish.slides.demo.artefacts import APPLY, Scene
from napari_fish.slides.demo.grid import STEP_UM, Field, Grid
from napari_fish.slides.demo.outline import tissue_distance
from napari_fish.slides.demo.plan import Plan
from napari_fish.slides.demo.specs import ARTEFACTS, GLASS, DemoSpec
from napari_fish.slides.demo.stain import Stain, stain_of

Mask = npt.NDArray[np.bool_]

_BAND_PX = 256
_FIBRE_UM = 1.5
_LENS_UM = 0.34


@dataclass(frozen=True)
class Truth:
    """What is where on a demo slide, as masks of shape (rows, columns) at ``um_per_px``.

    Parameters
    ----------
    um_per_px
        Size of a mask pixel in µm; pixel (i, j) covers ``[j, j+1) x [i, i+1)`` times this.
    tissue
        Tissue, with its lumens and vessels; holes and tears that show glass are left out.
    ink, fold, blur, dust, bubble
        Pen marks; doubled tissue; out of focus; specks and fibres; air under the coverslip.
    """

    um_per_px: float
    tissue: Mask
    ink: Mask
    fold: Mask
    blur: Mask
    dust: Mask
    bubble: Mask


@dataclass(frozen=True)
class DemoImage:
    """A rendered slide: uint8 RGB of shape (height, width, 3) at ``spec.mpp``, and its truth."""

    spec: DemoSpec
    rgb: npt.NDArray[np.uint8]
    truth: Truth


def render(spec: DemoSpec) -> DemoImage:
    """Render a slide; equal specs give equal bytes, and geometry in µm does not depend on ``spec.mpp``."""
    grid = Grid(spec.width_um, spec.height_um)
    stain = stain_of(spec.patient)
    rgb = np.empty((*spec.shape, 3), np.uint8)
    if spec.diagnosis == GLASS:
        tissue = np.full(grid.shape, -120.0, np.float32)
        _paint_bands(rgb, spec, _stacked(grid, tissue, None, None), None, None, stain)
    else:
        from napari_fish.slides.demo.architecture import plan_of
        from napari_fish.slides.demo.cells import place_cells

        tissue = tissue_distance(grid, np.random.default_rng([1, spec.seed]))
        plan = plan_of(spec.diagnosis, grid, np.random.default_rng([2, spec.seed]), tissue)
        cells = place_cells(plan, np.random.default_rng([3, spec.seed]))
        rng = np.random.default_rng([4, spec.seed])
        uneven = 1 + 0.07 * grid.noise(rng, 700) + 0.05 * grid.noise(rng, 180)
        maps = _stacked(grid, tissue, plan, uneven.astype(np.float32))
        _paint_bands(rgb, spec, maps, plan, cells, stain)
    masks = {name: np.zeros(grid.shape, bool) for name in ARTEFACTS}
    scene = Scene(grid=grid, mpp=spec.mpp, rgb=rgb, white=stain.white, tissue=tissue, masks=masks)
    for number, (name, apply) in enumerate(APPLY.items()):
        if name in spec.artefacts:
            apply(scene, np.random.default_rng([5, number, spec.seed]))
    return DemoImage(spec, rgb, Truth(um_per_px=STEP_UM, tissue=tissue > 0, **masks))


def _stacked(grid: Grid, tissue: Field, plan: Plan | None, uneven: Field | None) -> Field:
    """Put the coarse fields next to each other in memory, in the order of `paint.FIELDS`."""
    from napari_fish.slides.demo.paint import FIELDS

    maps = np.zeros((*grid.shape, len(FIELDS)), np.float32)
    maps[..., 0] = tissue
    if plan is not None:
        for index, name in enumerate(FIELDS[1:-1], start=1):
            maps[..., index] = getattr(plan, name)
        maps[..., -1] = uneven
    if min(grid.shape) < 2:
        maps = np.pad(maps, ((0, 1), (0, 1), (0, 0)), mode="edge")
    return maps


def fibres(plan: Plan, rng: np.random.Generator) -> Field:
    """Return fibre texture at `_FIBRE_UM` per px, mean 0.5, where stroma or mucin will be painted."""
    from napari_fish.slides.demo.kernels import comb

    shape = math.ceil(plan.grid.height_um / _FIBRE_UM) + 1, math.ceil(plan.grid.width_um / _FIBRE_UM) + 1
    hair = ndimage.uniform_filter(rng.random(shape, np.float32) - np.float32(0.5), 2)
    bundle = ndimage.uniform_filter(rng.random(shape, np.float32) - np.float32(0.5), 4)
    # Each is the mean of n uniform numbers, whose standard deviation is 0.2887 / sqrt(n).
    noise = np.float32(0.7 * 2 / 0.2887) * hair + np.float32(0.7 * 4 / 0.2887) * bundle
    wanted = (plan.tissue > -8) & ((plan.epithelium < 6) | ((plan.mucin > 0.02) & (plan.lumen > -5)))
    wanted = ndimage.binary_dilation(wanted, iterations=2)
    strides = 7
    combed = comb(
        np.cos(plan.flow).astype(np.float32),
        np.sin(plan.flow).astype(np.float32),
        STEP_UM / _FIBRE_UM,
        noise,
        wanted,
        strides,
    )
    spread = 1.9 * math.sqrt(2 * strides + 1)
    return np.asarray(np.clip(0.5 + 0.26 * combed / np.float32(spread), 0, 1), np.float32)


def _lens(mpp: float) -> npt.NDArray[np.float32]:
    """Half of the kernel by which the lens blurs, from its middle outwards."""
    sigma = max(0.4, _LENS_UM / mpp)
    weights = np.exp(-0.5 * (np.arange(math.ceil(2.2 * sigma) + 1) / sigma) ** 2)
    return np.asarray(weights / (2 * weights.sum() - weights[0]), np.float32)


def _paint_bands(
    rgb: npt.NDArray[np.uint8],
    spec: DemoSpec,
    maps: Field,
    plan: Plan | None,
    cells: npt.NDArray[np.float32] | None,
    stain: Stain,
) -> None:
    """Paint band by band, so that memory beyond the picture itself stays small."""
    from napari_fish.slides.demo.kernels import COLUMNS, stamp
    from napari_fish.slides.demo.paint import FALL, expose, paint

    if plan is None or cells is None:
        cells, look = np.zeros((0, len(COLUMNS)), np.float32), np.zeros(12, np.float32)
        weave = np.zeros((2, 2), np.float32)
    else:
        look = np.asarray(astuple(plan.look), np.float32)
        weave = fibres(plan, np.random.default_rng([6, spec.seed]))
    knots = np.random.default_rng([8, spec.seed]).random((256, 256), np.float32)
    reach_um = float(np.max(np.maximum(cells[:, 2] * 1.3 + 1, cells[:, 10]), initial=1.0))
    lens = _lens(spec.mpp)
    halo = len(lens) - 1
    height, width = spec.shape
    light = np.empty((_BAND_PX + 2 * halo, width, 3), np.float32)
    nuclei, red, nearest, second, tint = (np.empty(light.shape[:2], np.float32) for _ in range(5))
    for top in range(0, height, _BAND_PX):
        rows = min(_BAND_PX, height - top)
        first_row = top - halo
        size = rows + 2 * halo
        nuclei[:], red[:], nearest[:], second[:], tint[:] = 0, 0, 1e6, 2e6, 0.5
        limits = first_row * spec.mpp - reach_um, (first_row + size) * spec.mpp + reach_um
        first, last = np.searchsorted(cells[:, 1], limits)
        buffers = nuclei[:size], red[:size], nearest[:size], second[:size], tint[:size]
        stamp(cells[first:last], first_row, spec.mpp, knots, *buffers)
        paint(
            light[:size],
            first_row,
            spec.mpp,
            maps,
            STEP_UM,
            weave,
            _FIBRE_UM,
            look,
            knots,
            FALL,
            *buffers,
            stain.dyes,
            stain.white,
        )
        expose(light[:size], lens, rgb[top : top + rows], top, spec.seed & 0xFFFFFF)
