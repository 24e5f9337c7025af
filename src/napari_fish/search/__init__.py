"""What is similar: neighbours, ranking, explanation, feedback, filters, export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from napari_fish.later import loaded_from

if TYPE_CHECKING:
    from napari_fish.search.engine import search, search_many
    from napari_fish.search.feedback import Feedback
    from napari_fish.search.output.page import to_html
    from napari_fish.search.output.pictures import Pictures
    from napari_fish.search.params import SearchParams
    from napari_fish.search.recall import measure_recall
    from napari_fish.search.values import Explanation, Hit, ListFate, Query, Results, SlideHit

__all__ = [
    "Explanation",
    "Feedback",
    "Hit",
    "ListFate",
    "Pictures",
    "Query",
    "Results",
    "SearchParams",
    "SlideHit",
    "measure_recall",
    "search",
    "search_many",
    "to_html",
]

__getattr__ = loaded_from(
    __name__, "params", "values", "feedback", "engine", "recall", "output.page", "output.pictures"
)
