"""Slides and boxes in the viewer become questions, however layers lie and whatever their units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Image, Shapes

from napari_fish._napari.layers.coordinates import level0_to_drawn
from napari_fish._napari.layers.queries import (
    LayerQuestion,
    Pixels,
    cursor_on,
    drawn_corners,
    facts_of,
    looked_at,
    lying_like,
    region_drawn,
    slide_layers,
    slide_under,
)
from napari_fish.errors import SlideError

REGION = (120.0, 60.0, 200.0, 90.0)
PLACES: dict[str, dict[str, Any]] = {
    "pixels": {},
    "scaled pixels": {"scale": (3, 3)},
    "µm": {"scale": (0.5, 0.5), "units": "um"},
    "mm, moved": {"scale": (0.0005, 0.0005), "units": "mm", "translate": (2, 7)},
    "turned": {"scale": (0.25, 0.25), "units": "um", "rotate": 30},
    "turned by a quarter": {"scale": (0.25, 0.25), "units": "um", "rotate": 90, "translate": (40, 5)},
    "affine": {"affine": [[0, 0.5, 9], [-0.5, 0, 4], [0, 0, 1]], "units": "um"},
}


def image(shape: tuple[int, int] = (300, 400), **options: Any) -> Image:
    return Image(np.zeros((*shape, 3), np.uint8), rgb=True, name=options.pop("name", "slide"), **options)


@pytest.mark.parametrize("place", PLACES)
def test_a_box_on_a_layer_that_lies_like_the_slide_is_upright_on_it(place: str) -> None:
    layer = image(**PLACES[place])
    box = Shapes([drawn_corners(REGION)], shape_type="rectangle", **lying_like(layer))
    np.testing.assert_allclose(region_drawn(box, box.data[0], "rectangle", layer), REGION, atol=1e-6)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("units", ["pixel", "um", "nm"])
def test_a_box_drawn_on_any_layer_keeps_its_centre_and_its_sides(place: str, units: str) -> None:
    layer = image(**PLACES[place])
    box = Shapes(ndim=2, units=units)
    x, y, width, height = REGION
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
    drawn = level0_to_drawn(box, corners, layer, Pixels.of(layer))
    np.testing.assert_allclose(region_drawn(box, drawn, "rectangle", layer), REGION, atol=1e-6)


def test_an_upright_box_on_a_turned_slide_is_as_large_on_the_slide() -> None:
    layer = image(scale=(0.5, 0.5), units="um", rotate=30)
    box = Shapes(ndim=2, units="um")
    square = np.array([(50, 20), (50, 70), (100, 70), (100, 20)], float)
    _, _, width, height = region_drawn(box, square, "rectangle", layer)
    np.testing.assert_allclose((width, height), (100, 100), atol=1e-6)


def test_of_a_polygon_the_box_around_it_counts() -> None:
    layer = image()
    box = Shapes(ndim=2)
    triangle = [(9.5, 19.5), (59.5, 19.5), (34.5, 99.5)]
    assert region_drawn(box, triangle, "polygon", layer) == (20, 10, 80, 50)


def test_a_layer_with_more_axes_takes_a_box_too() -> None:
    layer = Image(
        np.zeros((2, 1, 300, 400), np.uint8), scale=(1, 1, 0.5, 0.5), units=("pixel", "um", "um", "um")
    )
    box = Shapes([drawn_corners(REGION)], shape_type="rectangle", **lying_like(layer))
    assert box.ndim == 2
    np.testing.assert_allclose(region_drawn(box, box.data[0], "rectangle", layer), REGION)


def test_the_box_belongs_to_the_slide_under_it() -> None:
    left, right = image(name="left"), image(name="right", translate=(0, 500))
    layers = [right, left]
    box = Shapes(ndim=2)
    on_right = [(10, 600), (10, 650), (60, 650), (60, 600)]
    assert slide_under(box, on_right, layers, [left]) is right
    nowhere = [(10, 430), (10, 470), (60, 470), (60, 430)]
    assert slide_under(box, nowhere, layers, [left]) is None


def test_of_slides_on_top_of_each_other_the_preferred_one_has_the_box_else_the_topmost_visible() -> None:
    below, above = image(name="below"), image(name="above")
    box = Shapes(ndim=2)
    corners = [(10, 10), (10, 50), (50, 50), (50, 10)]
    assert slide_under(box, corners, [above, below], [below]) is below
    assert slide_under(box, corners, [above, below], [None]) is above
    above.visible = False
    assert slide_under(box, corners, [above, below], []) is below


def test_the_cursor_is_found_on_a_slide_whatever_units_the_scene_has() -> None:
    layer = image(scale=(0.5, 0.5), units="um")
    np.testing.assert_allclose(cursor_on(layer, (10.0, 20.0), ("um", "um")), (40.5, 20.5))
    np.testing.assert_allclose(cursor_on(layer, (10_000.0, 20_000.0), ("nm", "nm")), (40.5, 20.5))
    np.testing.assert_allclose(cursor_on(layer, (0.0, 10.0, 20.0), None), (40.5, 20.5))


def test_three_colours_of_a_file_are_one_slide(model: ViewerModel, slide_path: Path) -> None:
    for colour in ("red", "green", "blue"):
        layer = model.add_image(np.zeros((30, 40), np.uint8), name=colour)
        layer._set_source(layer.source.model_copy(update={"path": str(slide_path)}))
    alone = model.add_image(np.zeros((30, 40), np.uint8), name="alone")
    model.add_points([(1, 1)])
    layers = slide_layers(model.layers)
    assert [layer.name for layer in layers] == ["alone", "red"]
    assert looked_at(layers, model.layers["green"]) is layers[1]
    assert looked_at(layers, None) is alone


def test_a_region_of_a_coarser_copy_is_scaled_to_the_file(model: ViewerModel, slide_path: Path) -> None:
    (layer,) = model.open(slide_path, plugin="napari-fish")
    coarse = model.add_image(np.asarray(layer.data[1]), rgb=True, metadata={"path": str(slide_path)})
    slide, box = LayerQuestion(coarse, (), (10, 20, 30, 40))()
    with slide:
        assert slide.dimensions == (900, 700)
        np.testing.assert_allclose(box, (20, 40, 60, 80))
    facts = facts_of(LayerQuestion(coarse))
    assert (facts.width, facts.height, facts.mpp) == (900, 700, 0.5)
    assert facts.um_per_pixel == pytest.approx(1.0)


def test_the_pixel_size_the_user_states_counts(model: ViewerModel) -> None:
    layer = model.add_image(np.zeros((30, 40, 3), np.uint8), rgb=True)
    assert facts_of(LayerQuestion(layer)).mpp is None
    assert facts_of(LayerQuestion(layer, mpp=0.25)).um_per_pixel == 0.25


def test_what_is_no_image_is_refused_in_words(model: ViewerModel) -> None:
    points = model.add_points([(1, 1)])
    with pytest.raises(SlideError, match="no image"):
        LayerQuestion(points)()
