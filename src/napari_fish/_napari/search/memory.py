"""What the Search widget remembers between sessions: how to search, not what for.

Filters and the exclusion of the same patient always start afresh: forgotten ones would distort answers unseen.
"""

from __future__ import annotations

from dataclasses import replace

from napari_fish._napari.preferences import remember, remembered
from napari_fish._napari.search.params import ParamsPanel
from napari_fish._napari.search.query import QueryPanel

KEY = "search"


def keep(params: ParamsPanel, query: QueryPanel) -> None:
    """Remember how the user likes to search."""
    shown = params.params()
    known = {"k": shown.k, "mode": shown.mode, "ranking": shown.ranking}
    remember(KEY, known | {"live": query.live.isChecked(), "free": query.box_size.currentIndex() == 1})


def recall(params: ParamsPanel, query: QueryPanel) -> None:
    """Show what was remembered, where it still makes sense."""
    known = remembered(KEY, {})
    try:
        wanted = {name: known[name] for name in ("k", "mode", "ranking")}
        params.show_params(replace(params.params(), **wanted))
        query.live.setChecked(bool(known["live"]))
        query.box_size.setCurrentIndex(int(known["free"]))
    except (LookupError, TypeError, ValueError):
        return
