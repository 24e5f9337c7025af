"""The compiled loops that turn fields, fibres and cells into the colours of a stained section."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from napari_fish.slides.demo.kernels import Array, compiled, place_hash, place_noise, step_between

FIELDS = ("tissue", "epithelium", "lumen", "mucin", "loose", "uneven")
"""Order of the coarse fields in the last axis of ``fields``."""

FALL = np.exp(-np.arange(4097) / 256).astype(np.float32)
"""exp(-x) at steps of 1/256, for `fall`."""


@compiled
def fall(table: Array, x: float) -> float:
    """Return exp(-x) for x from 0 up to 16, several times faster than exp."""
    at = min(x * 256, 4095.0)
    low = int(at)
    return float(table[low] + (table[low + 1] - table[low]) * (at - low))


@compiled
def paint(
    light: Array,
    top: int,
    mpp: float,
    fields: Array,
    step_um: float,
    fibres: Array,
    fibre_um: float,
    look: Array,
    knots: Array,
    table: Array,
    nuclei: Array,
    red: Array,
    nearest: Array,
    second: Array,
    tint: Array,
    dyes: Array,
    white: Array,
) -> None:
    """Light (0 to 255) through one band whose first row is ``top`` (px): mix the dyes, then Beer-Lambert."""
    cytoplasm_eosin, cytoplasm_haem, membrane, grain = look[0], look[1], look[2], look[3]
    apical_pallor, stroma_eosin, stroma_haem, contrast = look[4], look[5], look[6], look[7]
    fluid, retraction_um, mucin_haem, vacuoles = look[8], look[9], look[10], look[11]
    rows, columns = nuclei.shape
    value = np.zeros(6, np.float32)
    last_y, last_x = fields.shape[0] - 1.001, fields.shape[1] - 1.001
    for i in range(rows):
        y = (i + top + 0.5) * mpp
        gy = min(max(y / step_um - 0.5, 0.0), last_y)
        iy = int(gy)
        wy = np.float32(gy - iy)
        fy = min(max(y / fibre_um - 0.5, 0.0), fibres.shape[0] - 1.001)
        jy = int(fy)
        vy = np.float32(fy - jy)
        for j in range(columns):
            x = (j + 0.5) * mpp
            gx = min(max(x / step_um - 0.5, 0.0), last_x)
            ix = int(gx)
            wx = np.float32(gx - ix)
            a, b, c, d = (1 - wy) * (1 - wx), (1 - wy) * wx, wy * (1 - wx), wy * wx
            tissue = (
                fields[iy, ix, 0] * a
                + fields[iy, ix + 1, 0] * b
                + fields[iy + 1, ix, 0] * c
                + fields[iy + 1, ix + 1, 0] * d
            )
            covered = 0.0
            if tissue > -6:
                broad = place_noise(knots, x * 0.17, y * 0.17) - 0.5
                fine = place_noise(knots, x * 0.52 + 31, y * 0.52 + 17) - 0.5
                tissue += 5.0 * broad + 2.2 * fine
                covered = step_between(-1.3, 1.3, tissue)
            if covered == 0:
                for k in range(3):
                    light[i, j, k] = white[k]
                continue
            for k in range(1, 6):
                value[k] = (
                    fields[iy, ix, k] * a
                    + fields[iy, ix + 1, k] * b
                    + fields[iy + 1, ix, k] * c
                    + fields[iy + 1, ix + 1, k] * d
                )
            height = value[1] + 3.0 * broad + 1.3 * fine
            hollow = value[2] + 3.4 * broad + 1.0 * fine
            speck = place_noise(knots, x * 1.05 + 77, y * 1.05 + 141) - 0.5
            fx = min(max(x / fibre_um - 0.5, 0.0), fibres.shape[1] - 1.001)
            jx = int(fx)
            vx = np.float32(fx - jx)
            upper = fibres[jy, jx] + (fibres[jy, jx + 1] - fibres[jy, jx]) * vx
            lower = fibres[jy + 1, jx] + (fibres[jy + 1, jx + 1] - fibres[jy + 1, jx]) * vx
            fibre = upper + (lower - upper) * vy
            is_epithelium = step_between(-0.8, 0.8, height)
            is_hollow = step_between(-0.8, 0.8, hollow)
            haem = eosin = 0.0
            if is_epithelium < 1:
                loose = value[4] + 0.12 * broad
                solid = 0.10 + 0.90 * step_between(loose - 0.16, loose + 0.14, fibre)
                if retraction_um > 0:
                    cleft = step_between(-2.2 * retraction_um, -0.4 * retraction_um, height)
                    solid *= 1 - 0.85 * cleft * step_between(-0.15, 0.2, broad + 0.4 * (fibre - 0.5))
                body = solid * (0.78 + contrast * 0.9 * (fibre - 0.5) + 0.25 * speck + 0.18 * broad)
                eosin = stroma_eosin * body
                haem = stroma_haem * body
            if is_epithelium > 0:
                own = tint[i, j]
                gap = second[i, j] - nearest[i, j]
                cytoplasm = 0.76 + 0.48 * own + grain * (0.8 * fine + 1.0 * speck + 0.6 * broad)
                if own < vacuoles:
                    cytoplasm *= 1 - 0.5 * step_between(0.2, 3.5, gap)
                if apical_pallor > 0 and own > 0.2:
                    cytoplasm *= 1 - apical_pallor * step_between(-17.0, -5.0, hollow)
                seam = membrane * fall(table, gap * gap * 0.8) if gap < 3 else 0.0
                top_edge = 0.32 * fall(table, (hollow + 1.3) ** 2 * 0.5) if hollow > -5 else 0.0
                base = 0.20 * fall(table, (height - 0.6) ** 2 * 0.6) if height < 4 else 0.0
                inner_eosin = cytoplasm_eosin * (cytoplasm + top_edge + seam) + base
                inner_haem = cytoplasm_haem * (cytoplasm + 0.8 * seam)
                eosin += is_epithelium * (inner_eosin - eosin)
                haem += is_epithelium * (inner_haem - haem)
            if is_hollow > 0:
                wisp = max(0.0, 0.62 + 0.75 * (fibre - 0.5) + 0.30 * broad + 0.10 * fine)
                in_eosin = fluid * (1 + 0.5 * fine + 0.5 * broad) + 0.12 * value[3] * wisp
                in_haem = value[3] * mucin_haem * wisp
                eosin += is_hollow * (in_eosin - eosin)
                haem += is_hollow * (in_haem - haem)
            nucleus = nuclei[i, j]
            eosin *= 1 - 0.45 * min(1.0, nucleus)
            haem = max(0.0, haem) + nucleus
            amount = covered * value[5] * (1 + 0.22 * fall(table, max(0.0, tissue) * 0.11))
            haem, eosin, blood = haem * amount, max(0.0, eosin) * amount, red[i, j] * covered
            for k in range(3):
                density = haem * dyes[0, k] + eosin * dyes[1, k] + blood * dyes[2, k]
                light[i, j, k] = white[k] * fall(table, density)


@compiled
def expose(light: Array, weights: Array, rgb: npt.NDArray[np.uint8], top: int, seed: int) -> None:
    """Blur a band by the lens, add the noise of the sensor, and keep what has enough rows around it.

    ``light`` has ``len(weights) - 1`` rows more than ``rgb`` above and below; ``weights`` is half of
    the kernel, from its middle outwards.
    """
    rows, columns = rgb.shape[0], rgb.shape[1]
    reach = len(weights) - 1
    flat = light.reshape(light.shape[0], columns * 3)
    line = np.zeros((columns + 2 * reach) * 3, np.float32)
    out = np.zeros(columns * 3, np.float32)
    for i in range(rows):
        middle = flat[i + reach]
        for n in range(3 * columns):
            line[3 * reach + n] = middle[n] * weights[0]
        for r in range(1, reach + 1):
            above, below, weight = flat[i + reach - r], flat[i + reach + r], weights[r]
            for n in range(3 * columns):
                line[3 * reach + n] += (above[n] + below[n]) * weight
        for r in range(3 * reach):
            line[r] = line[3 * reach + r % 3]
            line[3 * (reach + columns) + r] = line[3 * (reach + columns - 1) + r % 3]
        for n in range(3 * columns):
            out[n] = line[3 * reach + n] * weights[0]
        for r in range(1, reach + 1):
            weight = weights[r]
            for n in range(3 * columns):
                out[n] += (line[3 * (reach - r) + n] + line[3 * (reach + r) + n]) * weight
        for j in range(columns):
            h = int(place_hash(i + top, j, seed) * 1073741824.0)
            for k in range(3):
                noise = ((h >> (10 * k)) & 1023) * np.float32(4.0 / 1023) - np.float32(1.5)
                rgb[i, j, k] = np.uint8(min(np.float32(255.0), max(np.float32(0.0), out[3 * j + k] + noise)))
