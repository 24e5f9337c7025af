"""From the viewer to level-0 px and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from napari.components import ViewerModel
from napari.layers import Image, Points
from numpy.typing import NDArray

from napari_fish._napari.layers.slide_layers import (
    drawn_to_level0,
    level0_to_drawn,
    level0_to_world,
    slide_of,
    world_to_level0,
)
from napari_fish._napari.reader.reader import PLUGIN
from tests.slides.conftest import MPP, shrink, write_omezarr

RGB = NDArray[np.uint8]
CORNERS = [(0, 0), (900, 0), (900, 700), (0, 700), (123.25, 456.5)]


def test_the_corner_of_the_picture_in_the_viewer_is_the_origin_of_the_slide(
    slide_path: Path, model: ViewerModel
) -> None:
    (layer,) = model.open(slide_path, plugin=PLUGIN)
    low, high = layer.extent.world
    with slide_of(layer) as slide:
        np.testing.assert_allclose(world_to_level0(layer, slide, [(0, 0)]), [(0.5, 0.5)])
        edges = world_to_level0(layer, slide, [low - MPP / 2, high + MPP / 2])
        np.testing.assert_allclose(edges, [(0, 0), (900, 700)], atol=1e-9)


@pytest.mark.parametrize(
    "shown",
    [
        {"plugin": PLUGIN},
        {"plugin": PLUGIN, "translate": (1000, -300)},
        {"plugin": "napari"},
        {"plugin": "napari", "scale": (3, 3), "translate": (7, 8)},
        {"plugin": "napari-tiff", "rotate": 30, "translate": (50, 60)},
        {"plugin": "napari-tiff", "units": ("mm", "mm"), "scale": (5e-4, 5e-4)},
    ],
    ids=str,
)
def test_positions_survive_the_way_to_the_viewer_and_back_and_pixels_are_where_they_say(
    shown: dict[str, Any], slide_path: Path, scene: RGB, model: ViewerModel
) -> None:
    (layer,) = model.open(slide_path, **shown)
    with slide_of(layer) as slide:
        world = level0_to_world(layer, slide, CORNERS)
        np.testing.assert_allclose(world_to_level0(layer, slide, world), CORNERS, atol=1e-6)
        (place,) = level0_to_world(layer, slide, [(250.5, 330.5)])
        row, column = np.rint(layer.world_to_data(place)).astype(int)
        level = layer.data[0] if layer.multiscale else layer.data
        np.testing.assert_array_equal(np.asarray(level[row, column]), scene[330, 250])


def test_positions_on_a_layer_with_more_axes_are_those_of_its_last_two(
    tmp_path: Path, scene: RGB, model: ViewerModel
) -> None:
    layers = model.open(write_omezarr(tmp_path / "a.zarr", scene), plugin="napari-ome-zarr")
    assert layers[0].ndim == 4
    with slide_of(layers[0], model.layers) as slide:
        xy = world_to_level0(layers[0], slide, [(0, 0, 100 * MPP, 200 * MPP)])
        np.testing.assert_allclose(xy, [(200.5, 100.5)])


@settings(deadline=None, max_examples=50)
@given(
    st.sampled_from(["µm", "mm", "nm", "cm"]),
    st.sampled_from(["µm", "mm", "nm", "inch"]),
    st.floats(0.1, 30),
    st.tuples(st.floats(-50, 50), st.floats(-50, 50)),
)
def test_a_box_drawn_in_other_units_is_the_same_place(
    image_unit: str, drawn_unit: str, drawn_scale: float, shift: tuple[float, float]
) -> None:
    um = {"µm": 1.0, "mm": 1e3, "nm": 1e-3, "cm": 1e4, "inch": 25_400.0}
    layer = Image(
        np.zeros((50, 60, 3), np.uint8), rgb=True, scale=[0.5 / um[image_unit]] * 2, units=[image_unit] * 2
    )
    drawn = Points(ndim=2, scale=[drawn_scale] * 2, translate=shift, units=[drawn_unit] * 2)
    with slide_of(layer) as slide:
        box = [(4.0, 8.0), (20.0, 8.0), (20.0, 30.0)]
        data = level0_to_drawn(drawn, box, layer, slide)
        world_um = np.array([drawn.data_to_world(p) for p in data]) * um[drawn_unit]
        np.testing.assert_allclose(
            world_um, [(3.75, 1.75), (3.75, 9.75), (14.75, 9.75)], rtol=1e-6, atol=1e-3
        )
        np.testing.assert_allclose(drawn_to_level0(drawn, data, layer, slide), box, atol=0.01)


def test_the_scene_may_have_smaller_units_than_the_layer(slide_path: Path, model: ViewerModel) -> None:
    (layer,) = model.open(slide_path, plugin=PLUGIN)
    model.add_points(ndim=2, units=("nm", "nm"))
    assert [str(u) for u in model.layers.units] == ["nanometer", "nanometer"]
    with slide_of(layer) as slide:
        xy = world_to_level0(layer, slide, [(50_000, 100_000)], units=model.layers.units)
        np.testing.assert_allclose(xy, [(200.5, 100.5)])


def test_pixels_and_micrometres_are_taken_as_the_same_numbers_as_napari_draws_them(
    slide_path: Path, model: ViewerModel
) -> None:
    (layer,) = model.open(slide_path, plugin=PLUGIN)
    drawn = model.add_shapes([[(0, 0), (0, 100), (50, 100), (50, 0)]])
    assert str(drawn.units[0]) == "pixel"
    with slide_of(layer) as slide:
        xy = drawn_to_level0(drawn, drawn.data[0], layer, slide)
        np.testing.assert_allclose(xy[2], (200.5, 100.5))


def test_a_coarser_copy_is_mapped_to_level_0(slide_path: Path, scene: RGB, model: ViewerModel) -> None:
    (layer,) = model.open(slide_path, plugin="napari")
    layer.data = shrink(scene, 2)
    with slide_of(layer) as slide:
        np.testing.assert_allclose(world_to_level0(layer, slide, [(-0.5, -0.5)]), [(0, 0)])
        np.testing.assert_allclose(world_to_level0(layer, slide, [(349.5, 449.5)]), [(900, 700)])
