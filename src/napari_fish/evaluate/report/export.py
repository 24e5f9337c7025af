"""An evaluation as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from napari_fish.evaluate.metrics import Score
from napari_fish.evaluate.values import Evaluation, WayScores


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return everything as plain values; the fields named first are promised to stay."""
    e = evaluation
    return {
        "n_queries": e.n_queries,
        "target": e.target,
        "level": e.level,
        "k": e.k,
        "modes": {way.name: _way(way) for way in e.ways},
        "index_bytes_per_mosaic": None if e.storage is None else e.storage.index_per_patch,
        "ablation": {way.name: _way(way) for way in e.ablation},
        "database": e.database,
        "queries": e.queries,
        "n_slides": e.n_slides,
        "n_patients": e.n_patients,
        "threshold": e.threshold,
        "labels": list(e.labels),
        "chance": e.chance,
        "within": e.within,
        "definition": asdict(e.definition),
        "storage": None if e.storage is None else asdict(e.storage),
        "speed": [asdict(row) for row in e.speed],
        "encode_ms": None if e.encode_ms is None else asdict(e.encode_ms),
        "notes": list(e.notes),
        "about": json.loads(json.dumps(dict(e.about), default=str)),
    }


def _way(way: WayScores) -> dict[str, Any]:
    scores = (
        "mmv", "mmv_macro", "map", "map_macro", "mmv_released", "mmv_released_macro", "map_released", "map_released_macro",
        "top1", "topk", "top1_macro", "topk_macro",
    )  # fmt: skip
    of_label = ("mmv", "map", "top1", "topk", "mmv_released", "map_released")
    return {
        "mode": way.mode,
        "ranking": way.ranking,
        "threshold": way.threshold,
        **{name: getattr(way, name).value for name in scores},
        "short": way.short,
        "why_short": dict(way.why_short),
        "filled": way.filled,
        "per_label": {
            label: {"n": one.n}
            | {name: getattr(one, name).value for name in of_label}
            | {f"{name}_ci": _ci(getattr(one, name)) for name in of_label}
            for label, one in way.per_label.items()
        },
        "latency_ms": None
        if way.latency is None
        else {"median": way.latency.median, "p95": way.latency.p95, "n": way.latency.n},
        "recall": None if way.recall is None else way.recall.recall,
        "recall_queries": None if way.recall is None else way.recall.queries,
        "ci": {name: _ci(getattr(way, name)) for name in scores},
        "matrices": [
            {
                "within": one.within,
                "n_queries": one.n,
                "labels": list(one.labels),
                "confusion": one.confusion.tolist(),
                "hamming": one.hamming.tolist(),
            }
            for one in way.matrices
        ],
    }


def _ci(score: Score) -> list[float] | None:
    return None if score.interval is None else list(score.interval)
