"""Artefacts painted over clean tissue, to train the filters on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.artefacts.measure import RGB

Field = NDArray[np.float32]
Colour = NDArray[np.float64]
Mask = NDArray[np.bool_]
Painter = Callable[[RGB, float, np.random.Generator], tuple[RGB, Mask]]
INKS: tuple[tuple[float, float, float], ...] = (
    (1.3, 0.4, 1.0),
    (1.6, 0.9, 0.25),
    (1.2, 1.2, 1.1),
    (0.12, 1.2, 1.0),
    (1.0, 1.3, 0.4),
    (1.3, 0.6, 0.5),
    (0.1, 0.5, 1.5),
)
"""Optical densities of green, blue, black, red, violet, turquoise and orange pens (natural logarithm)."""


def a_pen(rng: np.random.Generator) -> Colour:
    """Return the optical density of the ink of some pen."""
    return np.asarray(INKS[int(rng.integers(len(INKS)))]) * rng.uniform(0.75, 1.25, 3)


def ink(rgb: RGB, mpp: float, rng: np.random.Generator, pen: Colour | None = None) -> tuple[RGB, Mask]:
    """Draw with a felt pen, translucent or opaque: a stroke, wet or dry, a dot, or a whole patch of ink."""
    colour = a_pen(rng) if pen is None else pen * rng.uniform(0.95, 1.05, 3)
    shape = rgb.shape[:2]
    form = rng.random()
    if form < 0.6:
        inside = _band(shape, mpp, rng, rng.uniform(40, 220))
    elif form < 0.85:
        inside = _spot(shape, mpp, rng, rng.uniform(100, 300))
    else:
        inside = np.full(shape, 100, np.float32)
    amount = (
        0.9
        + rng.uniform(0, 0.2) * clouds(shape, rng, 90 / mpp)
        + 0.3 * np.exp(-np.clip(inside, 0, None) / 12)
    )
    if rng.random() < 0.25:
        # A dry tip leaves tissue bare here and there.
        amount = amount * (clouds(shape, rng, rng.uniform(15, 60) / mpp) > rng.uniform(-1.5, -0.5))
    cover = np.clip(amount, 0, 2) * smooth(inside, rng.uniform(1, 5))
    strength = rng.uniform(0.35, 1.4)
    if rng.random() < 0.35:
        # Opaque ink hides what lies below it.
        flat = 256 * np.exp(-colour * rng.uniform(0.7, 1.8))
        alpha = np.clip(cover, 0, 1)[..., None] * rng.uniform(0.6, 1.0)
        return _whole(rgb + alpha * (flat - rgb)), inside > 0
    return darkened(rgb, cover[..., None] * (strength * colour).astype(np.float32)), inside > 0


def fold(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Lay strips of tissue, 30 to 380 µm wide, over their neighbours."""
    tissue = ndimage.binary_closing(density(rgb).sum(axis=2) > 0.3, iterations=3)
    painted, strips = rgb, np.zeros(rgb.shape[:2], bool)
    half = rng.uniform(20, 190) if rng.random() < 0.75 else rng.uniform(15, 40)
    for _ in range(1 if half > 60 else int(rng.integers(1, 5))):
        inside = _band(rgb.shape[:2], mpp, rng, half)
        shift = [round(s) for s in rng.uniform(-2, 2, 2) * half / mpp]
        other = np.roll(rgb if rng.random() < 0.5 else rgb[::-1], shift, axis=(0, 1))
        # What lies above is tissue throughout: where it had gaps, its neighbours slide in.
        lightest = 235 if rng.random() < 0.5 else np.median(rgb[tissue], axis=0) if tissue.any() else 235
        over = density(np.minimum(other, lightest).astype(np.uint8)) * rng.uniform(0.7, 1.4)
        if rng.random() < 0.3:
            over = over.mean(axis=(0, 1), keepdims=True) * rng.uniform(0.8, 1.6)
        crease = np.exp(-((inside - 3) ** 2) / 20)[..., None] * rng.uniform(0, 0.5)
        cover = smooth(inside, rng.uniform(1, 5))[..., None] * (over + crease)
        painted = darkened(painted, cover * tissue[..., None])
        strips |= inside > 0
    return painted, strips & tissue


def dust(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Scatter dark specks, 5 to 100 µm wide, and fibres over part of the patch or all of it."""
    shape = rgb.shape[:2]
    y, x = np.ogrid[: shape[0], : shape[1]]
    inside = np.full(shape, -1e3, np.float32)
    centre = rng.uniform(0.2, 0.8, 2) * shape
    largest, reach = rng.uniform(15, 60), rng.uniform(60, 250) / mpp
    for _ in range(int(rng.integers(20, 40) * 60 / largest)):
        cy, cx = centre + rng.normal(0, reach, 2)
        distance = np.hypot((y - cy) * rng.uniform(0.6, 1.6), x - cx) * mpp
        np.maximum(inside, largest * rng.uniform(0.2, 1) - distance, out=inside)
    for _ in range(int(rng.integers(0, 4))):
        np.maximum(inside, _band(shape, mpp, rng, rng.uniform(4, 12)), out=inside)
    if rng.random() < 0.3:
        blots = ndimage.gaussian_filter(clouds(shape, rng, rng.uniform(20, 80) / mpp), 1.5)
        inside = np.asarray(20 * (blots - np.quantile(blots, rng.uniform(0.45, 0.85))), np.float32)
    inside += rng.uniform(0, 4) * clouds(shape, rng, 12 / mpp)
    cover = smooth(inside, rng.uniform(1, 5))[..., None]
    if rng.random() < 0.4:
        dirt = rng.uniform(10, 130) + rng.uniform(-15, 15, 3)
        return _whole(rgb + rng.uniform(0.7, 1.0) * cover * (dirt - rgb)), inside > 0
    colour = rng.uniform(0.7, 2.2) * rng.uniform(0.8, 1.2, 3)
    return darkened(rgb, cover * colour.astype(np.float32)), inside > 0


def bubble(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Leave air under the coverslip: a dark rim around tissue that is paler, duller or out of focus."""
    inside = _spot(rgb.shape[:2], mpp, rng, rng.uniform(120, 320))
    pixels = rgb.astype(np.float32)
    soft = _softer(pixels, rng.uniform(1, 6) / mpp)
    glow = rng.uniform(170, 250) + rng.uniform(-8, 8, 3)
    within = soft + rng.uniform(0.25, 0.8) * (glow - soft)
    side = smooth(inside, 4.0)[..., None]
    width = rng.uniform(4, 20)
    rim = rng.uniform(0.4, 2.2) * np.exp(-((inside / width) ** 2))
    rim = rim + rng.uniform(0, 0.5) * np.exp(-(((inside - 3 * width) / width) ** 2))
    return darkened(
        _whole(pixels + side * (within - pixels)), rim[..., None].repeat(3, axis=2)
    ), inside > -width


def edge(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Lay the edge of the coverslip across: a dark line, and a duller, blurred side beyond it."""
    inside = crossing(rgb.shape[:2], mpp, rng)
    pixels = rgb.astype(np.float32)
    beyond = _softer(pixels, rng.uniform(3, 8) / mpp) * rng.uniform(0.6, 0.95) * rng.uniform(0.94, 1.06, 3)
    if rng.random() < 0.5:
        beyond = beyond + rng.uniform(0.1, 0.5) * (rng.uniform(150, 235) - beyond)
    mixed = _whole(pixels + smooth(inside, 4.0)[..., None] * (beyond - pixels))
    width = rng.uniform(6, 40)
    line = rng.uniform(0.6, 2.2) * np.exp(-((inside / width) ** 2))
    return darkened(mixed, line[..., None].repeat(3, axis=2)), inside > -width


def blur(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Put the patch, or more than half of it, out of focus by 2.5 to 8 µm."""
    shape = rgb.shape[:2]
    inside = np.full(shape, 100, np.float32)
    if rng.random() < 0.3:
        inside = crossing(shape, mpp, rng) + 60
    pixels = rgb.astype(np.float32)
    soft = _softer(pixels, rng.uniform(2.5, 8.0) / mpp)
    return _whole(pixels + smooth(inside, 20.0)[..., None] * (soft - pixels) + 0.5), inside > 0


PAINTERS: dict[str, Painter] = {
    "ink": ink,
    "fold": fold,
    "dust": dust,
    "bubble": bubble,
    "edge": edge,
    "blur": blur,
}
"""Each takes a patch of shape (rows, columns, 3), its µm per px and a generator of random numbers, and
returns the painted patch and where it was painted."""


def _band(shape: tuple[int, ...], mpp: float, rng: np.random.Generator, half: float) -> Field:
    """Return the signed distance in µm into a bent band that crosses the patch, positive inside."""
    along, across = _line(shape, mpp, rng)
    inside = half - np.abs(across)
    if rng.random() < 0.3:
        # The stroke ends inside the patch.
        inside = np.minimum(inside, along + rng.uniform(0, 150))
    return np.asarray(inside, np.float32)


def crossing(shape: tuple[int, ...], mpp: float, rng: np.random.Generator) -> Field:
    """Return the signed distance in µm beyond a bent line that crosses the patch."""
    return _line(shape, mpp, rng)[1]


def _line(shape: tuple[int, ...], mpp: float, rng: np.random.Generator) -> tuple[Field, Field]:
    """Return how far in µm along a bent line each pixel is, and how far beside it."""
    rows, columns = shape
    y, x = np.ogrid[:rows, :columns]
    centre = rng.uniform(0.25, 0.75, 2) * (rows, columns)
    angle = rng.uniform(0, 2 * math.pi)
    u = ((x - centre[1]) * math.cos(angle) + (y - centre[0]) * math.sin(angle)) * mpp
    v = ((y - centre[0]) * math.cos(angle) - (x - centre[1]) * math.sin(angle)) * mpp
    v = v + rng.normal(0, 0.0006) * u**2 + rng.uniform(0, 5) * clouds(shape, rng, 60 / mpp)
    return np.asarray(u, np.float32), np.asarray(v, np.float32)


def _spot(shape: tuple[int, ...], mpp: float, rng: np.random.Generator, radius: float) -> Field:
    """Return the signed distance in µm into a round spot, positive inside."""
    y, x = np.ogrid[: shape[0], : shape[1]]
    cy, cx = rng.uniform(0.2, 0.8, 2) * shape
    distance = np.hypot((y - cy) * rng.uniform(0.8, 1.25), x - cx) * mpp
    ragged = rng.uniform(0, 0.06) * radius * clouds(shape, rng, 1.5 * radius / mpp)
    return np.asarray(radius - distance + ragged, np.float32)


def clouds(shape: tuple[int, ...], rng: np.random.Generator, wavelength: float) -> Field:
    """Return smooth noise of standard deviation 1."""
    knots = [math.ceil(side / max(1.0, wavelength / 2)) + 3 for side in shape]
    coarse = rng.standard_normal(knots)
    zoom = [(side + 1) / (knot - 2) for side, knot in zip(shape, knots, strict=True)]
    fine = ndimage.zoom(coarse, zoom, order=1, grid_mode=False)[: shape[0], : shape[1]]
    return np.asarray(fine / max(1e-6, float(fine.std())), np.float32)


def smooth(inside: Field, width: float) -> Field:
    """Rise from 0 to 1 over ``width`` µm on either side of an edge."""
    t = np.clip(inside / (2 * width) + 0.5, 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def _softer(pixels: Field, sigma: float) -> Field:
    return np.asarray(ndimage.gaussian_filter(pixels, (sigma, sigma, 0), truncate=2.5), np.float32)


def density(rgb: RGB) -> Field:
    """Return the optical density (natural logarithm) of each pixel and colour."""
    return np.asarray(-np.log((rgb.astype(np.float32) + 1) / 256), np.float32)


def darkened(rgb: RGB, by: NDArray[np.floating[Any]]) -> RGB:
    """Lay something of this optical density over an image."""
    return _whole((rgb.astype(np.float32) + 1) * np.exp(-by) - 0.5)


def _whole(values: NDArray[np.floating[Any]]) -> RGB:
    return np.asarray(np.clip(values, 0, 255), np.uint8)
