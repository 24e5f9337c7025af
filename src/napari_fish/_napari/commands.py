"""What the command palette, the menus and the shortcuts do."""

from __future__ import annotations

from typing import Any

from napari.viewer import Viewer

from napari_fish._napari.docks import show_widget


def search_widget(viewer: Any) -> Any:
    """Return the Search widget of a viewer, opening it if need be."""
    return show_widget(viewer, "Search")


def open_database(viewer: Viewer) -> None:
    """Choose a database to search."""
    search_widget(viewer).picker.browse()


def search_this_slide(viewer: Viewer) -> None:
    """Search for slides similar to the one in the active layer."""
    search_widget(viewer).search_slide()


def search_this_box(viewer: Viewer) -> None:
    """Search for the box drawn on a slide."""
    search_widget(viewer).search_box()


def draw_a_box(viewer: Viewer) -> None:
    """Place or draw a box on the slide, to search for it."""
    search_widget(viewer).query.draw()


def search_clipboard(viewer: Viewer) -> None:
    """Search for the image on the clipboard."""
    search_widget(viewer).paste()


def search_file(viewer: Viewer) -> None:
    """Search for a slide or image on disk."""
    search_widget(viewer).choose_file()


def search_open_slides(viewer: Viewer) -> None:
    """Search for every slide that is open, one after the other."""
    search_widget(viewer).queue_layers()


def search_again(viewer: Viewer) -> None:
    """Search for the current query once more, with the parameters as shown."""
    search_widget(viewer).search_again()


def stop_searching(viewer: Viewer) -> None:
    """Stop the search that is going on."""
    search_widget(viewer).cancel()
