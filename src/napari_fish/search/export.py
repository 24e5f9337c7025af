"""Answers as tables and files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from napari_fish.database.records import Box
from napari_fish.errors import FishError
from napari_fish.search.figure import save_figure
from napari_fish.search.report import to_html
from napari_fish.search.values import Hit, Results, SlideHit

_COLUMNS = (
    "rank", "slide", "name", "patient", "diagnosis", "site", "distance", "percentile", "entropy", "filled",
    "n_matches", "query_box", "hit_box",
)  # fmt: skip


def _line(hit: SlideHit) -> dict[str, Any]:
    best = hit.matches[0] if hit.matches else None
    line = {name: getattr(hit, name) for name in _COLUMNS[:-3]}
    line["n_matches"] = len(hit.matches)
    line["query_box"] = ",".join(map(str, best.query_box)) if best and not best.liked else ""
    line["hit_box"] = ",".join(map(str, best.hit_box)) if best else ""
    return line


def to_frame(results: Results) -> Any:
    """Return a pandas table, one row a slide; boxes are those of the nearest match."""
    import pandas as pd

    return pd.DataFrame([_line(hit) for hit in results.hits], columns=list(_COLUMNS))


def to_csv(results: Results, *, query: bool = False) -> str:
    """Return a table as comma-separated text, one line a slide, on request with the query in front."""
    text = io.StringIO()
    columns = ("query", *_COLUMNS) if query else _COLUMNS
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows({"query": results.query, **_line(hit)} for hit in results.hits)
    return text.getvalue()


def _match_json(match: Hit) -> dict[str, Any]:
    return {
        "query_index": match.query_index,
        "query_box": None if match.liked else list(match.query_box),
        "hit_box": list(match.hit_box),
        "distance": match.distance,
        "percentile": match.percentile,
        **({"liked": match.liked} if match.liked else {}),
    }


def to_json(results: Results) -> dict[str, Any]:
    """Return everything as plain values; the fields named in the interface stay."""
    explanation = results.explanation
    return {
        "query": results.query,
        "mode": results.mode,
        "ranking": results.ranking,
        "k": results.k,
        "elapsed_ms": {"read": 0.0, "encode": 0.0, "search": 0.0, "rank": 0.0} | dict(results.elapsed_ms),
        "threshold": results.threshold,
        "notes": list(results.notes),
        "results": [
            {
                **{name: getattr(hit, name) for name in _COLUMNS[:-3]},
                "matches": [_match_json(match) for match in hit.matches],
            }
            for hit in results.hits
        ],
        "explanation": {
            "ranking": explanation.ranking,
            "prediction": explanation.prediction,
            "hit_threshold": explanation.hit_threshold,
            "skipped_steps": list(explanation.skipped_steps),
            "lists": [
                {
                    "query_index": fate.query_index,
                    "length": fate.length,
                    "entropy": fate.entropy,
                    "mean_distance": fate.mean_distance,
                    "vote": fate.vote,
                    "votes": dict(fate.votes),
                    "fate": fate.fate,
                    "reason": fate.reason,
                    **({"liked": fate.liked} if fate.liked else {}),
                }
                for fate in explanation.lists
            ],
        },
    }


def to_geojson(results: Results, slide: str | None = None) -> dict[str, Any]:
    """Return matching regions as annotations that QuPath reads.

    Parameters
    ----------
    results
        The answer.
    slide
        A slide of the answer, to get the regions in *its* pixels; None for the regions of the query.
    """
    features = []
    for hit in results.hits:
        if slide is not None and hit.slide != slide:
            continue
        for match in hit.matches:
            if slide is None and match.liked:
                continue  # a region of another slide has no place in the query
            box = match.query_box if slide is None else match.hit_box
            features.append(_feature(results.query, box, hit, match))
    return {"type": "FeatureCollection", "features": features}


def _feature(query: str, box: Box, hit: SlideHit, match: Hit) -> dict[str, Any]:
    x, y, right, bottom = box.x, box.y, box.x + box.width, box.y + box.height
    ring = [[x, y], [right, y], [right, bottom], [x, bottom], [x, y]]
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {
            "objectType": "annotation",
            "name": f"{hit.rank}. {hit.name or hit.slide} ({match.distance})",
            "classification": {"name": hit.diagnosis or "match"},
            "measurements": {"rank": hit.rank, "distance": match.distance},
            "slide": hit.slide,
            "query": query,
        },
    }


def save(results: Results, path: Path) -> Path:
    """Write an answer; the format follows from the ending."""
    ending = path.suffix.lower()
    if ending == ".csv":
        text = to_csv(results)
    elif ending == ".json":
        text = json.dumps(to_json(results), indent=2, ensure_ascii=False) + "\n"
    elif ending == ".geojson":
        text = json.dumps(to_geojson(results), ensure_ascii=False) + "\n"
    elif ending == ".html":
        text = to_html(results)
    elif ending in (".png", ".pdf"):
        return save_figure(results, path)
    else:
        raise FishError(
            f"{path}: cannot write {ending or 'a file without ending'}; "
            "use .csv, .json, .geojson, .html, .png or .pdf."
        )
    # A file name that is not valid Unicode must not cost the whole answer.
    path.write_text(text, encoding="utf-8", errors="replace")
    return path
