"""What the manifest promises is there, and opens as napari opens it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from npe2 import PluginManifest

MANIFEST = PluginManifest.from_distribution("napari-fish")
WIDGETS = [widget.display_name for widget in MANIFEST.contributions.widgets or ()]


@pytest.mark.parametrize("name", WIDGETS)
def test_a_widget_opens_from_the_plugins_menu(make_viewer: Callable[..., Any], name: str) -> None:
    viewer = make_viewer()
    dock, widget = viewer.window.add_plugin_dock_widget("napari-fish", name)
    assert widget.parent() is not None
    assert dock.windowTitle().startswith(name)


def test_every_command_of_the_manifest_can_be_imported() -> None:
    for command in MANIFEST.contributions.commands or ():
        module, _, attribute = str(command.python_name).partition(":")
        assert callable(getattr(__import__(module, fromlist=[attribute]), attribute)), command.id
