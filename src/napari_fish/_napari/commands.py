"""What the command palette, the menus and the shortcuts do."""

from __future__ import annotations

from typing import Any

from napari.viewer import Viewer

from napari_fish._napari.compare.compare import comparison_of
from napari_fish._napari.docks import show_widget


def search_widget(viewer: Any) -> Any:
    """Return the Search widget of a viewer, opening it if need be."""
    return show_widget(viewer, "Search")


def results_widget(viewer: Any) -> Any:
    """Return the Results widget of a viewer, opening it if need be; without an answer it says what to do."""
    return show_widget(viewer, "Results")


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


def compare_hits(viewer: Viewer) -> None:
    """Show the query and what was found side by side, at the same magnification."""
    results_widget(viewer).compare()


def clear_comparison(viewer: Viewer) -> None:
    """Leave the comparison: the viewer as it was before."""
    comparison_of(viewer).clear()


def jump_to_hit(viewer: Viewer) -> None:
    """Open the slide chosen in the results, and draw what matches on it and on the query."""
    results_widget(viewer).jump()


def refine_answer(viewer: Viewer) -> None:
    """Search again with the thumbs up and down that were given."""
    results_widget(viewer).refine()


def export_table(viewer: Viewer) -> None:
    """Write the answer as a table (CSV)."""
    results_widget(viewer).exporter.ask("csv")


def export_report(viewer: Viewer) -> None:
    """Write the answer as a report (HTML) with all pictures."""
    results_widget(viewer).exporter.ask("html")


def export_figure(viewer: Viewer) -> None:
    """Write query and best slides as a figure (PNG)."""
    results_widget(viewer).exporter.ask("png")


def build_database(viewer: Viewer) -> None:
    """Choose a folder of slides to build a database from."""
    show_widget(viewer, "Database").choose_slides()


def inspect_database(viewer: Viewer) -> None:
    """Show what is in the database that is open."""
    show_widget(viewer, "Database").show_page("Inspect")


def evaluate_database(viewer: Viewer) -> None:
    """Find out how well search works on the database that is open."""
    show_widget(viewer, "Evaluate").run()
