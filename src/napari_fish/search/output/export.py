"""Answers as tables and files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_fish.errors import FishError
from napari_fish.search.output.figure import save_figure
from napari_fish.search.output.page import to_html
from napari_fish.search.values import Hit, Results, SlideHit
from napari_fish.search.verdict import closer_than, matched_regions
from napari_fish.store.records import Box
from napari_fish.texts import cell

_FIELDS = (
    "rank",
    "slide",
    "name",
    "patient",
    "diagnosis",
    "site",
    "distance",
    "percentile",
    "entropy",
    "filled",
)
_COLUMNS = (*_FIELDS, "closer_than_percent", "n_matches", "n_regions", "query_box", "hit_box")


def _line(hit: SlideHit, results: Results) -> dict[str, Any]:
    best = hit.matches[0] if hit.matches else None
    line = {name: getattr(hit, name) for name in _FIELDS}
    line["closer_than_percent"] = closer_than(hit.percentile)
    line["n_matches"], line["n_regions"] = matched_regions(hit, results)
    line["query_box"] = ",".join(map(str, best.query_box)) if best and not best.liked else ""
    line["hit_box"] = ",".join(map(str, best.hit_box)) if best else ""
    return line


def to_frame(results: Results) -> Any:
    """Return a pandas table, one row a slide, with the numbers that cards show; boxes are those of the nearest match.

    ``percentile`` is the percentage of random pairs at most as far apart, ``closer_than_percent`` of those that are
    farther; ``n_matches`` of the query's ``n_regions`` match the slide within the threshold.
    """
    import pandas as pd

    return pd.DataFrame([_line(hit, results) for hit in results.hits], columns=list(_COLUMNS))


def to_csv(results: Results, *, query: bool = False) -> str:
    """Return a table as comma-separated text, one line a slide, on request with the query in front."""
    text = io.StringIO()
    columns = ("query", *_COLUMNS) if query else _COLUMNS
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for hit in results.hits:
        line = {"query": results.query, **_line(hit, results)}
        writer.writerow({name: cell(value) for name, value in line.items()})
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
        "notes": [str(note) for note in results.notes],
        "results": [
            {
                **{name: getattr(hit, name) for name in _FIELDS},
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
                {name: value for name, value in vars(fate).items() if name != "liked" or value}
                | {"votes": dict(fate.votes)}
                for fate in explanation.lists
            ],
        },
    }


def to_geojson(results: Results, slide: str | None = None) -> dict[str, Any]:
    """Return matching regions, each once, as annotations that QuPath reads.

    A region that matches several slides is named after the first of them in the answer; ``matches`` names all.

    Parameters
    ----------
    results
        The answer.
    slide
        A slide of the answer, to get the regions in *its* pixels; None for the regions of the query.
    """
    known = results.pictures
    size = None if known is None else known.query_size() if slide is None else known.hit_size(slide)
    found: dict[Box, list[tuple[SlideHit, Hit]]] = {}
    for hit, match in _pairs(results, slide):
        if box := _on_slide(match.query_box if slide is None else match.hit_box, size):
            found.setdefault(box, []).append((hit, match))
    return {
        "type": "FeatureCollection",
        "features": [_feature(results.query, box, pairs) for box, pairs in found.items()],
    }


def _pairs(results: Results, slide: str | None) -> Iterator[tuple[SlideHit, Hit]]:
    for hit in results.hits:
        if slide in (None, hit.slide):
            # A region that was approved lies on another slide and has no place in the query.
            yield from ((hit, match) for match in hit.matches if slide is not None or not match.liked)


def _on_slide(box: Box, size: tuple[int, int] | None) -> Box | None:
    """Return the part of a box that lies on its slide, as far as the size of that is known; None for nothing."""
    left, top, right, bottom = max(0, box.x), max(0, box.y), box.x + box.width, box.y + box.height
    if size is not None:
        right, bottom = min(right, size[0]), min(bottom, size[1])
    return Box(left, top, right - left, bottom - top) if right > left and bottom > top else None


def _feature(query: str, box: Box, pairs: list[tuple[SlideHit, Hit]]) -> dict[str, Any]:
    x, y, right, bottom = box.x, box.y, box.x + box.width, box.y + box.height
    ring = [[x, y], [right, y], [right, bottom], [x, bottom], [x, y]]
    hit, match = pairs[0]
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {
            "objectType": "annotation",
            "name": f"{hit.rank}. {hit.name or hit.slide} ({match.distance})",
            "classification": {"name": hit.diagnosis or "match"},
            "measurements": {"rank": hit.rank, "distance": match.distance, "matches": len(pairs)},
            "slide": hit.slide,
            "query": query,
            "matches": [
                {"rank": hit.rank, "slide": hit.slide, "distance": match.distance} for hit, match in pairs
            ],
        },
    }


@dataclass(frozen=True)
class Format:
    """What an answer can be written as.

    Attributes
    ----------
    title, tip
        What it is called in a menu, and what it is good for.
    text
        Makes what is in the file of an answer, the name of its database and, where regions of a slide of the answer are
        wanted instead of the query's, that slide; None for pictures.
    """

    title: str
    tip: str
    text: Callable[[Results, str, str | None], str] | None = None


FORMATS = {
    ".csv": Format("Table (CSV)", "One line a slide, for a spreadsheet.", lambda results, *_: to_csv(results)),
    ".html": Format(
        "Report (HTML)", "One page with all pictures, to mail or print.",
        lambda results, database, _: to_html(results, database=database),
    ),
    ".png": Format("Figure (PNG)", "The query and the best slides with what matches, for a talk."),
    ".pdf": Format("Figure (PDF)", "The same for a paper."),
    ".json": Format(
        "Everything (JSON)", "For programs.",
        lambda results, *_: json.dumps(to_json(results), indent=2, ensure_ascii=False) + "\n",
    ),
    ".geojson": Format(
        "Query's regions (GeoJSON)", "Annotations on the query slide, for QuPath.",
        lambda results, _, slide: json.dumps(to_geojson(results, slide), ensure_ascii=False) + "\n",
    ),
}  # fmt: skip
"""By the ending of the file."""


def save(results: Results, path: Path, *, database: str = "", slide: str | None = None) -> Path:
    """Write an answer; the format follows from the ending. See :class:`Format` for the rest."""
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        *most, last = FORMATS
        raise FishError(
            f"{path}: cannot write {path.suffix or 'a file without ending'}; use {', '.join(most)} or {last}."
        )
    try:
        if form.text is None:
            return save_figure(results, path)
        # A file name that is not valid Unicode must not cost the whole answer.
        path.write_text(form.text(results, database, slide), encoding="utf-8", errors="replace")
    except OSError as error:
        raise FishError(
            f"{path}: cannot be written ({error.strerror or error}). Choose another place."
        ) from error
    return path
