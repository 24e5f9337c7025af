"""An evaluation as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    scores = {**way.scores, **{f"{name}_macro": score for name, score in way.macro.items()}}
    return {
        "mode": way.mode,
        "ranking": way.ranking,
        "threshold": way.threshold,
        **_values(scores),
        "short": way.short,
        "why_short": dict(way.why_short),
        "filled": way.filled,
        "per_label": {
            label: {"n": one.n}
            | _values(one.scores)
            | {f"{name}_ci": interval for name, interval in _intervals(one.scores).items()}
            for label, one in way.per_label.items()
        },
        "latency_ms": None
        if way.latency is None
        else {"median": way.latency.median, "p95": way.latency.p95, "n": way.latency.n},
        "recall": None if way.recall is None else way.recall.recall,
        "recall_queries": None if way.recall is None else way.recall.queries,
        "ci": _intervals(scores),
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


def _values(scores: Mapping[str, Score]) -> dict[str, float]:
    return {name: score.value for name, score in scores.items()}


def _intervals(scores: Mapping[str, Score]) -> dict[str, list[float] | None]:
    return {name: None if one.interval is None else list(one.interval) for name, one in scores.items()}
