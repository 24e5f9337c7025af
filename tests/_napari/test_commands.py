"""Commands of the palette and the menus, and shortcuts that take none of napari's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from app_model.types import KeyBinding
from napari.components import ViewerModel
from napari.layers import Image, Labels, Points, Shapes
from napari.utils.key_bindings import coerce_keybinding
from napari.utils.shortcuts import default_shortcuts
from npe2 import PluginManager
from qtpy.QtWidgets import QFileDialog, QLabel

from napari_fish._napari import commands, preferences
from napari_fish._napari.docks import show_widget
from napari_fish._napari.shortcuts import SHORTCUTS, bind_shortcuts, with_shortcut

OURS = (
    "search_this_slide",
    "search_this_box",
    "draw_a_box",
    "search_clipboard",
    "search_file",
    "search_open_slides",
    "search_again",
    "stop_searching",
    "open_database",
    "compare_hits",
    "clear_comparison",
    "jump_to_hit",
    "refine_answer",
    "export_table",
    "export_report",
    "export_figure",
    "build_database",
    "inspect_database",
    "evaluate_database",
)


def manifest() -> Any:
    return PluginManager.instance().get_manifest("napari-fish")


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_in_the_palette_and_is_a_function(name: str) -> None:
    found = {command.id: command for command in manifest().contributions.commands}
    command = found[f"napari-fish.{name}"]
    assert command.python_name == f"napari_fish._napari.commands:{name}"
    assert getattr(commands, name).__annotations__ == {"viewer": "Viewer", "return": "None"}


def test_menus_offer_only_commands_there_are() -> None:
    contributions = manifest().contributions
    known = {command.id for command in contributions.commands}
    places = {menu: [item.command for item in items] for menu, items in contributions.menus.items()}
    assert set(places) >= {"napari/file/io_utilities", "napari/layers/visualize", "napari/layers/annotate"}
    assert known.issuperset(name for names in places.values() for name in names)
    assert "napari-fish.draw_a_box" in places["napari/layers/annotate"]


def test_shortcuts_are_none_of_naparis() -> None:
    ours = {coerce_keybinding(key) for key in SHORTCUTS.values()}
    assert len(ours) == len(SHORTCUTS)
    theirs: set[KeyBinding] = {key for keys in default_shortcuts.values() for key in keys}
    for kind in (ViewerModel, Image, Labels, Points, Shapes):
        theirs |= {coerce_keybinding(key) for key in kind.class_keymap}
    assert not ours & theirs


def test_shortcuts_are_none_of_naparis_menus(make_viewer: Callable[..., Any]) -> None:
    from napari._app_model import get_app_model

    make_viewer()
    taken = {rule.keybinding for rule in get_app_model().keybindings}
    assert taken
    assert not {coerce_keybinding(key) for key in SHORTCUTS.values()} & taken


def test_a_key_that_is_taken_is_left_alone(model: ViewerModel) -> None:
    def mine(viewer: Any) -> None: ...

    key = SHORTCUTS["draw_a_box"]
    model.bind_key(key, mine)
    bind_shortcuts(model)
    bind_shortcuts(model)
    assert model.keymap[coerce_keybinding(key)] is mine
    assert len(model.keymap) == len(SHORTCUTS)


def test_tooltips_name_the_key() -> None:
    assert with_shortcut("Draw.", "draw_a_box").endswith("+Shift+B)")
    assert with_shortcut("Draw.", "") == "Draw."


def test_commands_open_the_widget_and_use_it(
    make_viewer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(preferences, "_file", lambda: tmp_path / "remembered.json")
    viewer = make_viewer()
    viewer.add_image(np.zeros((60, 80, 3), np.uint8), rgb=True, name="slide")
    commands.draw_a_box(viewer)
    widget = commands.search_widget(viewer)
    assert widget.query.box.placing
    commands.draw_a_box(viewer)
    assert not widget.query.box.placing
    commands.search_this_box(viewer)
    assert "no box" in widget.status.state.text()
    commands.search_this_slide(viewer)
    assert "Open a database first" in widget.status.state.text()
    assert commands.search_widget(viewer) is widget


def test_commands_for_results_without_an_answer_open_the_widget_that_says_what_to_do(
    make_viewer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(preferences, "_file", lambda: tmp_path / "remembered.json")
    viewer = make_viewer()
    for name in ("clear_comparison", "compare_hits", "jump_to_hit", "refine_answer", "export_report"):
        getattr(commands, name)(viewer)
    assert "No database is open" in commands.results_widget(viewer).gallery.message
    commands.evaluate_database(viewer)
    assert (
        "Open a database first" in show_widget(viewer, "Evaluate").findChild(QLabel, "evaluate.state").text()
    )
    commands.inspect_database(viewer)
    assert show_widget(viewer, "Database").tabs.currentIndex() == 1
    asked: list[bool] = []
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: asked.append(True) or "")
    commands.build_database(viewer)
    assert asked
    assert show_widget(viewer, "Database").tabs.currentIndex() == 0
