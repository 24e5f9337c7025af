"""The box on the slide: placed by a click, drawn, dragged, and never in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.utils.interactions import mouse_move_callbacks, mouse_press_callbacks, mouse_release_callbacks
from qtpy.QtCore import Qt

from napari_fish._napari.search.box_tool import LAYER, BoxTool

PIXELS = np.full((300, 400, 3), 200, np.uint8)


def event(kind: str, position: tuple[float, float], pos: tuple[int, int] = (0, 0), **more: Any) -> Any:
    """Make a mouse event as napari passes it on."""
    dragging = more.pop("is_dragging", False)
    about = {"type": kind, "position": position, "pos": pos, "is_dragging": dragging, "button": 1}
    return _Event(**about, modifiers=(), handled=False, **more)


class _Event(SimpleNamespace):
    @property
    def __wrapped__(self) -> Any:
        return self

    @__wrapped__.setter
    def __wrapped__(self, other: Any) -> None:
        """Become another event, as napari's read-only wrapper does while the mouse is dragged."""
        self.__dict__.update(other.__dict__)


@pytest.fixture
def tool(qtbot: Any, model: ViewerModel) -> Iterator[BoxTool]:
    model.add_image(PIXELS, rgb=True, name="slide", scale=(0.5, 0.5), units="um")
    made = BoxTool(model)
    yield made
    made.forget()


def region(tool: BoxTool) -> tuple[float, ...]:
    found = tool.box()
    assert found is not None
    return tuple(np.round(found[1], 6))


def changes(tool: BoxTool) -> list[int]:
    heard: list[int] = []
    tool.changed.connect(lambda: heard.append(1))
    return heard


def test_a_box_follows_the_cursor_until_a_click_places_it(tool: BoxTool, model: ViewerModel) -> None:
    heard = changes(tool)
    tool.place(model.layers["slide"], 100)
    assert tool.placing and tool.box() is None
    mouse_move_callbacks(model, event("mouse_move", (50, 60)))
    np.testing.assert_allclose(tool.layer.data[0].mean(axis=0), (100, 120))
    mouse_press_callbacks(model, event("mouse_press", (60, 70)))
    mouse_release_callbacks(model, event("mouse_release", (60, 70)))
    assert not tool.placing and heard == [1]
    assert region(tool) == (90.5, 70.5, 100, 100)
    mouse_move_callbacks(model, event("mouse_move", (10, 10)))
    assert region(tool) == (90.5, 70.5, 100, 100)


def test_dragging_while_placing_moves_the_view_and_places_nothing(tool: BoxTool, model: ViewerModel) -> None:
    tool.place(model.layers["slide"], 100)
    mouse_press_callbacks(model, event("mouse_press", (60, 70)))
    mouse_move_callbacks(model, event("mouse_move", (80, 90), (40, 40), is_dragging=True))
    mouse_release_callbacks(model, event("mouse_release", (80, 90), (40, 40)))
    assert tool.placing


def test_stopping_leaves_the_box_where_it_was(tool: BoxTool, model: ViewerModel) -> None:
    slide = model.layers["slide"]
    tool.put(slide, (10, 20, 100, 100))
    tool.place(slide, 100)
    mouse_move_callbacks(model, event("mouse_move", (100, 100)))
    tool.stop()
    assert region(tool) == (10, 20, 100, 100)


def test_a_box_is_dragged_by_its_inside_and_stays_as_large(tool: BoxTool, model: ViewerModel) -> None:
    tool.put(model.layers["slide"], (10, 20, 100, 80))
    model.layers.selection.active = model.layers["slide"]
    heard = changes(tool)
    mouse_press_callbacks(model, event("mouse_press", (25, 25)))
    assert not model.scene.camera.mouse_pan
    mouse_move_callbacks(model, event("mouse_move", (35, 45), is_dragging=True))
    mouse_release_callbacks(model, event("mouse_release", (35, 45)))
    assert model.scene.camera.mouse_pan
    assert region(tool) == (50, 40, 100, 80)
    assert heard


def test_a_box_that_covers_most_of_the_canvas_does_not_keep_the_view_from_being_moved(
    tool: BoxTool, model: ViewerModel
) -> None:
    tool.put(model.layers["slide"], (100, 100, 200, 160))
    model.layers.selection.active = model.layers["slide"]
    # The middle of the box, in µm, so near that it fills the canvas; then from afar.
    model.scene.camera.center = (0, 90, 100)
    for zoom, grabbed in ((50.0, False), (1.0, True)):
        model.scene.camera.zoom = zoom
        mouse_press_callbacks(model, event("mouse_press", (90, 100)))
        assert model.scene.camera.mouse_pan is not grabbed
        mouse_move_callbacks(model, event("mouse_move", (100, 110), is_dragging=True))
        mouse_release_callbacks(model, event("mouse_release", (100, 110)))
        assert (region(tool) != (100, 100, 200, 160)) is grabbed


def test_the_mouse_outside_the_box_or_with_another_tool_moves_no_box(
    tool: BoxTool, model: ViewerModel
) -> None:
    tool.put(model.layers["slide"], (10, 20, 100, 80))
    for position, mode in (((140, 140), "pan_zoom"), ((25, 25), "select")):
        model.layers.selection.active = tool.layer
        tool.layer.mode = mode
        mouse_press_callbacks(model, event("mouse_press", position))
        mouse_move_callbacks(model, event("mouse_move", (100, 100), is_dragging=True))
        mouse_release_callbacks(model, event("mouse_release", (100, 100)))
        assert region(tool) == (10, 20, 100, 80)


def test_of_freely_drawn_boxes_the_last_one_counts(tool: BoxTool, model: ViewerModel) -> None:
    slide = model.layers["slide"]
    for left in (50.0, 150.0):
        heard = changes(tool)
        tool.draw(slide, 100)
        assert tool.layer.mode == "add_rectangle"
        tool.layer.add_rectangles(np.array([(20, left), (20, left + 70), (60, left + 70), (60, left)]))
        assert heard == [1] and not tool.placing
        assert len(tool.layer.data) == 1
        assert region(tool) == (left + 0.5, 20.5, 70, 40)


def test_moving_the_box_with_naparis_own_tools_is_noticed(tool: BoxTool, model: ViewerModel) -> None:
    tool.put(model.layers["slide"], (10, 20, 100, 80))
    heard = changes(tool)
    tool.layer.data = [tool.layer.data[0] + 5]
    assert heard
    assert region(tool) == (15, 25, 100, 80)


def test_removing_the_layer_ends_it(tool: BoxTool, model: ViewerModel) -> None:
    tool.place(model.layers["slide"], 100)
    model.layers.remove(LAYER)
    assert not tool.placing and tool.box() is None
    tool.put(model.layers["slide"], (10, 20, 30, 40))
    assert region(tool) == (10, 20, 30, 40)


def test_a_new_box_on_another_slide_lies_like_that(tool: BoxTool, model: ViewerModel) -> None:
    tool.put(model.layers["slide"], (10, 20, 100, 80))
    other = model.add_image(PIXELS, rgb=True, name="other", scale=(2, 2), rotate=20, translate=(900, 0))
    tool.put(other, (30, 40, 50, 60))
    found = tool.box()
    assert found is not None and found[0] is other
    assert region(tool) == (30, 40, 50, 60)


def test_a_box_that_another_slide_covers_stays_with_the_slide_it_was_drawn_on(
    tool: BoxTool, model: ViewerModel
) -> None:
    slide = model.layers["slide"]
    tool.put(slide, (10, 20, 100, 80))
    other = model.add_image(PIXELS, rgb=True, name="other", scale=(0.5, 0.5), units="um")
    slide.visible = False  # as it is when the slide of a hit is opened
    model.layers.selection.active = other
    found = tool.box()
    assert found is not None and found[0] is slide
    model.layers.move(model.layers.index(other), 0)
    found = tool.box()
    assert found is not None and found[0] is other
    model.layers.remove(slide)
    found = tool.box()
    assert found is not None and found[0] is other


def test_in_a_real_viewer_dragging_the_box_leaves_the_camera_alone(make_viewer: Callable[..., Any]) -> None:
    viewer = make_viewer(show=True)
    viewer.add_image(PIXELS, rgb=True, name="slide", scale=(0.5, 0.5), units="um")
    slide = viewer.layers["slide"].__wrapped__
    tool = BoxTool(viewer)
    tool.put(slide, (100, 100, 150, 100))
    viewer.layers.selection.active = viewer.layers["slide"]
    canvas = viewer.__wrapped__.window._qt_viewer.canvas
    before = viewer.scene.camera.center
    middle = np.asarray(canvas._scene_canvas.size) / 2
    vispy = canvas._scene_canvas.events
    press = vispy.mouse_press(pos=middle, modifiers=(), button=1)
    for step in (10, 20, 30):
        vispy.mouse_move(pos=middle + step, modifiers=(), button=1, press_event=press, last_event=press)
    vispy.mouse_release(pos=middle + 30, modifiers=(), button=1, press_event=press, last_event=press)
    x, y, width, height = region(tool)
    assert x > 101 and y > 101
    np.testing.assert_allclose((width, height), (150, 100), rtol=1e-5)
    assert viewer.scene.camera.center == before
    tool.forget()


@pytest.mark.parametrize("way", ["place", "draw"])
def test_escape_stops_placing_and_is_naparis_own_key_before_and_after(
    make_viewer: Callable[..., Any], qtbot: Any, way: str
) -> None:
    viewer = make_viewer(show=True)
    viewer.add_image(PIXELS, rgb=True, name="slide", scale=(0.5, 0.5), units="um")
    slide = viewer.layers["slide"].__wrapped__
    tool = BoxTool(viewer)
    tool.put(slide, (10, 20, 100, 100))
    before = dict(tool.layer.keymap)
    getattr(tool, way)(slide, 100)
    assert tool.placing
    qtbot.keyClick(viewer.__wrapped__.window._qt_window, Qt.Key.Key_Escape)
    assert not tool.placing
    assert region(tool) == (10, 20, 100, 100)
    assert tool.layer.mode == "pan_zoom"
    assert dict(tool.layer.keymap) == before
    tool.forget()
