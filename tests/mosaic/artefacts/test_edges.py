"""Straight edges in the lightest pixels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from napari_fish.mosaic.artefacts.edges import BAND, EDGE_FEATURES, PATCH_ANGLES, edge_features, lightest
from tests.mosaic.artefacts.test_measure import grain

EDGE, LINE, BACK = (EDGE_FEATURES.index(name) for name in ("edge", "line", "line back"))


def inside(angle: float, middle: float, half: float, wobble: float = 0.0) -> np.ndarray:
    """Return a band across a patch; with a wobble its borders bend to and fro."""
    y, x = np.mgrid[:256, :256] - 127.5
    across = (
        x * math.cos(angle)
        + y * math.sin(angle)
        + wobble * np.sin((y * math.cos(angle) - x * math.sin(angle)) / 12)
    )
    return np.abs(across - middle) < half


def darkened(where: np.ndarray, by: float = 0.5, seed: int = 0) -> np.ndarray:
    rgb = grain(seed).astype(float)
    rgb[where] *= by
    return rgb.astype(np.uint8)


def described(rgb: np.ndarray) -> np.ndarray:
    return edge_features(lightest(rgb))


@pytest.mark.parametrize("angle", [0.0, 0.4, math.pi / 2, 2.3])
def test_a_straight_band_is_an_edge_a_line_and_a_line_back(angle: float) -> None:
    plain, banded = described(grain(0)), described(darkened(inside(angle, 10, 45)))
    step = -3 * math.log(0.5)
    assert banded[:, EDGE].max() > 0.8 * step > 4 * plain[:, EDGE].max()
    assert banded[0, LINE] == pytest.approx(step, rel=0.2)
    assert banded[0, BACK] == pytest.approx(step, rel=0.2)
    assert plain[0, LINE] < 0.3 * step


def test_a_border_that_bends_to_and_fro_is_less_of_an_edge() -> None:
    straight, bent = (described(darkened(inside(0.4, 0, 45, wobble)))[:, EDGE].max() for wobble in (0, 25))
    assert bent < 0.5 * straight


def test_an_edge_has_the_colour_of_what_lies_beyond_it() -> None:
    rgb = grain(0)
    rgb[:, 128:, 0] //= 3
    tile = described(rgb)[:, EDGE].argmax()
    red, green, blue = described(rgb)[tile, [EDGE_FEATURES.index(f"share of {c} in the edge") for c in "RGB"]]
    assert red > 0.8
    assert max(abs(green), abs(blue)) < 0.1


def test_lines_are_what_a_plain_loop_finds() -> None:
    light = lightest(darkened(inside(0.7, 20, 30), 0.7))
    total, side = light.sum(axis=2), light.shape[0]
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    best = 0.0
    for k in range(PATCH_ANGLES):
        turn = math.pi * k / PATCH_ANGLES
        line = np.floor(x * math.cos(turn) + y * math.sin(turn)).astype(int)
        for m in range(line.min() + BAND, line.max() - BAND + 2):
            before, beyond = (line >= m - BAND) & (line < m), (line >= m) & (line < m + BAND)
            if min(before.sum(), beyond.sum()) >= BAND * side / 2:
                best = max(best, abs(total[beyond].mean() - total[before].mean()))
    assert edge_features(light)[0, LINE] == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("shape", [(64, 64), (64, 192), (128, 320)])
def test_patches_of_any_number_of_tiles_are_described(shape: tuple[int, int]) -> None:
    found = described(grain(0, side=320)[: shape[0], : shape[1]].copy())
    assert found.shape == (shape[0] // 64 * (shape[1] // 64), len(EDGE_FEATURES))
    assert np.isfinite(found).all()
