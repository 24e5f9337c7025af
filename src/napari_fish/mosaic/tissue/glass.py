"""What differs from the glass of a slide: its own colour, tint and uneven light are measured, not assumed.

Glass is smooth and bright, whatever its colour; tissue is darker and never smooth. So texture finds tissue, the glass beside
it says how dark is dark, and what is coloured but smooth (ink, a smear of stain, a black border) is neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.tissue.windows import closed, densities, grown, mean_and_texture, opened, tightened

Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]
WINDOW_UM = 40.0
"""Side of the square in which texture is measured."""
SOFTENING = 16
"""Added to intensities before their logarithm, so that the noise of black is no texture."""
SMOOTH = 0.012
"""Texture (standard deviation of the logarithm of light) that glass does not exceed, JPEG and dust films included."""
LEAST_GLASS = 0.002
"""Share of an overview that must be smooth and bright for it to be glass."""
LEAST_LIGHT = -0.9
"""Logarithm of the light that glass lets through at least, as a share of white; what is darker and smooth is ink."""
LEAST_TEXTURE = 0.005
"""Texture that even the faintest tissue has."""
LEAST_DENSITY = 0.02
"""Optical density (natural logarithm) of the faintest tissue."""
OF_TYPICAL = 0.08
"""Tissue is at least this share as dense as half of the tissue on its slide."""
CLOSE_UM, OPEN_UM = 48.0, 36.0
"""Gaps up to the first are closed; threads and lines up to the second are no tissue."""
FILL_MM2 = 0.05
"""Gaps up to this area, of lung, fat or glands, belong to the tissue around them before threads are left out."""
DENSE = 0.5
"""What is at least this share as dense as half of the tissue is tissue even where it is smooth, like bone."""
INK_DENSITY = 0.35
"""Optical density that ink has at least."""
FLAT, STREAKY = 0.05, 0.2
"""Texture over density of what is surely no tissue, and of ink at most."""
RIM = 0.35
"""What at the rim is paler than this share of the densest two px around is the blur of an overview."""
SAMPLE = 20_000
"""Pixels that are enough to know the colour of glass, or what half of them have."""
LIGHT = np.log((np.arange(256, dtype=np.float32) + SOFTENING) / (255 + SOFTENING))
"""Logarithm of the light that an intensity stands for, as a share of white."""


@dataclass(frozen=True, eq=False)
class Overview:
    """What is measured on an overview of a slide.

    Attributes
    ----------
    density : ndarray of float32, shape (rows, columns, 3)
        Optical density over the glass beside it (natural logarithm), in red, green and blue.
    dark : ndarray of float32, shape (rows, columns)
        The greatest of the three.
    texture : ndarray of float32, shape (rows, columns)
        Standard deviation of the logarithm of light in a square of `WINDOW_UM`.
    glass : float
        Share of the overview that is surely glass.
    noise : float
        Texture that glass has.
    """

    density: Floats
    dark: Floats
    texture: Floats
    glass: float
    noise: float


def measure(rgb: NDArray[np.uint8], um: float) -> Overview:
    """Measure density and texture of an overview of ``um`` µm a px, shape (rows, columns, 3)."""
    mean, texture = mean_and_texture(rgb, LIGHT, max(3, 2 * round(WINDOW_UM / um / 2) + 1))
    bright = mean @ np.full(3, 1 / 3, np.float32)
    smooth = texture < SMOOTH
    # What is smooth but darker than most of what is not is a border or a shadow.
    level = _quantile(bright[~smooth], 0.75) if not smooth.all() else -np.inf
    glass = smooth & (bright > max(level, LEAST_LIGHT))
    share = float(glass.mean())
    if share < LEAST_GLASS:
        density, dark = densities(rgb, LIGHT, np.zeros((6, 3)))
        return Overview(density, dark, texture, 0.0, 0.0)
    glass &= bright > _quantile(bright[glass], 0.9) - 0.25
    noise = _quantile(texture[glass], 0.5)
    density, dark = densities(rgb, LIGHT, _light_of(mean, glass))
    return Overview(density, dark, texture, share, noise)


def _light_of(mean: Floats, glass: Mask) -> NDArray[np.float64]:
    """Return the light that the glass would let through: a smooth field, as :func:`densities` takes it."""
    height, width = glass.shape
    places = np.flatnonzero(glass)
    count = len(places)
    rows, columns = np.divmod(places[:: max(1, count // SAMPLE)], width)
    values = mean[rows, columns]
    # A curved field needs glass on most sides; with less, what is left of tissue would bend it.
    seen = [np.ptp(rows) / max(1, height - 1), np.ptp(columns) / max(1, width - 1)]
    curved = min(seen) > 0.6 and count > 0.1 * glass.size
    y, x = 2 * rows / max(1, height - 1) - 1, 2 * columns / max(1, width - 1) - 1
    one = np.ones(len(y))
    terms = np.stack([one, y, x, y * y, x * x, x * y] if curved else [one], axis=1)
    keep = one > 0
    for _ in range(4):
        fit = np.linalg.lstsq(terms[keep], values[keep], rcond=None)[0]
        off = (values - terms @ fit).mean(axis=1)
        keep = np.abs(off) < max(0.01, 2.5 * float(np.median(np.abs(off))))
    return np.pad(fit, ((0, 6 - len(fit)), (0, 0))).astype(np.float64)


def _quantile(values: Floats, share: float) -> float:
    """Return a quantile of many values, of some of them where they are more than enough."""
    return float(np.quantile(values[:: max(1, len(values) // SAMPLE)], share))


def find_tissue(seen: Overview, um: float, sensitivity: float = 1.0) -> Mask:
    """Return where there is tissue on an overview of ``um`` µm a px; all False where there is none."""
    dark = seen.dark
    textured = seen.texture > texture_level(seen) / sensitivity
    if seen.glass and textured.any():
        typical = _quantile(dark[textured], 0.5)
        dense = dark > max(10 * LEAST_DENSITY, DENSE * typical)
        mask = (textured | dense) & (dark > max(LEAST_DENSITY / sensitivity, OF_TYPICAL * typical))
    else:
        mask = textured
    ink = _ink(seen, dark, mask, um)
    mask = closed(mask & ~ink, _px(CLOSE_UM, um))
    gap = FILL_MM2 * 1e6 / um**2
    # On a picture no larger than a few such gaps, a speck of dust must not make tissue of all the glass around it.
    if gap < mask.size / 8 or opened(mask, _px(OPEN_UM, um)).any():
        mask |= _small(~mask, min(gap, mask.size / 2))
    return np.asarray(tightened(opened(mask & ~ink, _px(OPEN_UM, um)), dark, RIM))


def _small(mask: Mask, area: float) -> Mask:
    """Return the pieces of a mask up to an area in px."""
    pieces, count = ndimage.label(mask)
    small = np.bincount(pieces.ravel(), minlength=count + 1) <= area
    small[0] = False
    return np.asarray(small[pieces])


def texture_level(seen: Overview) -> float:
    """Return the texture that tells tissue from glass on this slide."""
    if not seen.glass:
        return LEAST_TEXTURE
    rough = seen.texture[seen.texture > max(3 * seen.noise, LEAST_TEXTURE)]
    typical = _quantile(rough, 0.75) if len(rough) else LEAST_TEXTURE
    return max(LEAST_TEXTURE, 3 * seen.noise, float(np.sqrt(max(seen.noise, 0.001) * typical)))


def _ink(seen: Overview, dark: Floats, mask: Mask, um: float) -> Mask:
    """Return what is cold or black and too smooth for tissue; stains of such a colour are more than half of a slide."""
    red, green, blue = (seen.density[..., channel] for channel in range(3))
    cold = (dark > INK_DENSITY) & ((red > 1.15 * green) | (np.minimum(red, blue) > 0.85 * green))
    if not cold.any():
        return cold
    flat = cold & (seen.texture < FLAT * dark)
    streaky = cold & (seen.texture < STREAKY * dark)
    if streaky[mask].mean() > 0.5 if mask.any() else True:
        streaky = flat
    return grown(opened(streaky, _px(24, um)), _px(24, um)) & (cold | flat)


def _px(length: float, um: float) -> int:
    return max(1, round(length / um))
