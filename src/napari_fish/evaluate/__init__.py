"""How good it is: metrics, experiments, reports with figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from napari_fish.later import loaded_from

if TYPE_CHECKING:
    from napari_fish.evaluate.params import EvaluateParams
    from napari_fish.evaluate.report.export import to_json
    from napari_fish.evaluate.report.page import to_html, write_report
    from napari_fish.evaluate.run import evaluate
    from napari_fish.evaluate.values import Evaluation

__all__ = ["EvaluateParams", "Evaluation", "evaluate", "to_html", "to_json", "write_report"]

__getattr__ = loaded_from(__name__, "params", "values", "run", "report.export", "report.page")
