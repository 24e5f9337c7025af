"""Artefacts painted over clean tissue, to train the filters on."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.measure import RGB

Field = NDArray[np.float32]
Mask = NDArray[np.bool_]
INKS: tuple[tuple[float, float, float], ...] = (
    (1.3, 0.4, 1.0),
    (1.6, 0.9, 0.25),
    (1.2, 1.2, 1.1),
    (0.12, 1.2, 1.0),
    (1.0, 1.3, 0.4),
    (1.3, 0.6, 0.5),
)
"""Optical densities of green, blue, black, red, violet and turquoise pens (natural logarithm)."""
JPEG_QUALITY = 85


def restained(rgb: RGB, rng: np.random.Generator) -> RGB:
    """Make tissue paler, darker or of another hue, as other laboratories do."""
    density = -np.log((rgb.astype(np.float32) + 1) / 256)
    factor = rng.uniform(0.55, 1.35) * rng.uniform(0.88, 1.12, 3)
    return _whole(256 * np.exp(-density * factor.astype(np.float32)) - 0.5)


def compressed(rgb: RGB) -> RGB:
    """Return what JPEG leaves of an image."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "JPEG", quality=JPEG_QUALITY)
    return np.asarray(Image.open(file))


def ink(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Draw a translucent stroke of a felt pen, 100 to 500 µm wide."""
    colour = (
        np.asarray(INKS[int(rng.integers(len(INKS)))]) * rng.uniform(0.75, 1.25, 3) * rng.uniform(0.5, 1.4)
    )
    inside = _band(rgb.shape[:2], mpp, rng, rng.uniform(50, 250))
    amount = 0.9 + 0.12 * _clouds(rgb.shape[:2], rng, 90 / mpp) + 0.3 * np.exp(-np.clip(inside, 0, None) / 12)
    cover = np.clip(amount, 0.4, 2) * _smooth(inside, 3.0)
    return _darkened(rgb, cover[..., None] * colour.astype(np.float32)), inside > 0


def fold(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Lay a strip of tissue, 40 to 160 µm wide, over its neighbour."""
    half = rng.uniform(20, 80)
    inside = _band(rgb.shape[:2], mpp, rng, half)
    shift = [round(s) for s in rng.uniform(-2, 2, 2) * half / mpp]
    other = np.roll(rgb if rng.random() < 0.5 else rgb[::-1], shift, axis=(0, 1))
    tissue = -np.log((rgb.min(axis=2).astype(np.float32) + 1) / 256) > 0.1
    density = -np.log((np.minimum(other, 235).astype(np.float32) + 1) / 256)
    crease = np.exp(-((inside - 3) ** 2) / 20)[..., None] * rng.uniform(0, 0.4)
    cover = _smooth(inside, 2.0)[..., None] * (density + crease)
    strip = inside > 0
    return _darkened(rgb, cover * ndimage.binary_closing(tissue, iterations=3)[..., None]), strip & tissue


def dust(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Scatter dark specks, 10 to 100 µm wide, over part of the patch."""
    rows, columns = rgb.shape[:2]
    y, x = np.ogrid[:rows, :columns]
    inside = np.full((rows, columns), -1e3, np.float32)
    centre = rng.uniform(0.2, 0.8, 2) * (rows, columns)
    for _ in range(int(rng.integers(8, 30))):
        cy, cx = centre + rng.normal(0, 80 / mpp, 2)
        radius = rng.uniform(5, 50) * rng.uniform(0.3, 1)
        distance = np.hypot((y - cy) * rng.uniform(0.6, 1.6), x - cx) * mpp
        np.maximum(inside, radius - distance, out=inside)
    inside += 3 * _clouds((rows, columns), rng, 12 / mpp)
    colour = rng.uniform(0.8, 2.0) * np.asarray([0.95, 1.0, 1.1])
    return _darkened(rgb, _smooth(inside, 3.0)[..., None] * colour.astype(np.float32)), inside > 0


def edge(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Lay the edge of the coverslip across: a dark line, and a duller, blurred side beyond it."""
    inside = _band(rgb.shape[:2], mpp, rng, 1e4, through=True)
    beyond = ndimage.gaussian_filter(rgb.astype(np.float32), (4 / mpp, 4 / mpp, 0))
    side = _smooth(inside, 4.0)[..., None]
    mixed = _whole(rgb.astype(np.float32) + side * (0.88 * beyond - rgb))
    line = rng.uniform(0.8, 2.0) * np.exp(-((inside / rng.uniform(8, 25)) ** 2))
    return _darkened(mixed, line[..., None].repeat(3, axis=2).astype(np.float32)), np.abs(inside) < 30


def blur(rgb: RGB, mpp: float, rng: np.random.Generator) -> tuple[RGB, Mask]:
    """Put the whole patch out of focus by 2.5 to 6 µm."""
    sigma = rng.uniform(2.5, 6.0) / mpp
    soft = ndimage.gaussian_filter(rgb.astype(np.float32), (sigma, sigma, 0), truncate=2.5)
    return (soft + 0.5).astype(np.uint8), np.ones(rgb.shape[:2], bool)


PAINTERS: dict[str, Callable[[RGB, float, np.random.Generator], tuple[RGB, Mask]]] = {
    "ink": ink,
    "fold": fold,
    "dust": dust,
    "edge": edge,
    "blur": blur,
}
"""Each takes a patch of shape (rows, columns, 3), its µm per px and a generator of random numbers, and
returns the painted patch and where it was painted."""


def _band(
    shape: tuple[int, int], mpp: float, rng: np.random.Generator, half: float, through: bool = False
) -> Field:
    """Return the signed distance in µm into a bent band that crosses the patch, positive inside."""
    rows, columns = shape
    y, x = np.ogrid[:rows, :columns]
    centre = rng.uniform(0.25, 0.75, 2) * (rows, columns)
    angle = rng.uniform(0, 2 * math.pi)
    u = ((x - centre[1]) * math.cos(angle) + (y - centre[0]) * math.sin(angle)) * mpp
    v = ((y - centre[0]) * math.cos(angle) - (x - centre[1]) * math.sin(angle)) * mpp
    v = v + rng.normal(0, 0.0006) * u**2 + 4 * _clouds(shape, rng, 60 / mpp)
    if through:
        return np.asarray(v, np.float32)
    inside = half - np.abs(v)
    if rng.random() < 0.4:
        # The stroke ends inside the patch.
        inside = np.minimum(inside, u + rng.uniform(0, 150))
    return np.asarray(inside, np.float32)


def _clouds(shape: tuple[int, int], rng: np.random.Generator, wavelength: float) -> Field:
    """Return smooth noise of standard deviation 1."""
    knots = [math.ceil(side / max(1.0, wavelength / 2)) + 3 for side in shape]
    coarse = rng.standard_normal(knots)
    zoom = [(side + 1) / (knot - 2) for side, knot in zip(shape, knots, strict=True)]
    fine = ndimage.zoom(coarse, zoom, order=1, grid_mode=False)[: shape[0], : shape[1]]
    return np.asarray(fine / max(1e-6, float(fine.std())), np.float32)


def _smooth(inside: Field, width: float) -> Field:
    """Rise from 0 to 1 over ``width`` µm on either side of an edge."""
    t = np.clip(inside / (2 * width) + 0.5, 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def _darkened(rgb: RGB, density: NDArray[np.floating[Any]]) -> RGB:
    return _whole((rgb.astype(np.float32) + 1) * np.exp(-density) - 0.5)


def _whole(values: NDArray[np.floating[Any]]) -> RGB:
    return np.asarray(np.clip(values, 0, 255), np.uint8)
