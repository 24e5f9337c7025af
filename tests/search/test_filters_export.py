"""Filters and files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from napari_fish.errors import FishError
from napari_fish.search import Query, SearchParams, search
from napari_fish.search.filters import check_values, slide_mask
from napari_fish.search.output.export import to_geojson
from napari_fish.store import MemoryStore


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ([], 40),
        (["diagnosis=KIRC"], 10),
        (["Diagnosis = kirc "], 10),
        (["diagnosis=kirc", "diagnosis=KIRP"], 20),
        (["diagnosis!=kirc", "diagnosis!=KIRP"], 20),
        (["site!=pelvis", "diagnosis=PRAD"], 0),
        (["stain=pas"], 14),
        (["stain!=pas"], 26),
        (["diagnosis="], 0),
        (["diagnosis!="], 40),
        (["diagnosis=unheard of"], 0),
        (["patient=P3"], 2),
    ],
)
def test_filters_select_slides(store: MemoryStore, where: list[str], count: int) -> None:
    assert slide_mask(store.slides, where).sum() == count


@pytest.mark.parametrize("bad", ["diagnosis", "=KIRC", "", "diagnosis<3"])
def test_a_filter_that_cannot_be_read_is_refused_with_the_form(store: MemoryStore, bad: str) -> None:
    with pytest.raises(FishError, match="column=value"):
        slide_mask(store.slides, [bad])


def test_an_unknown_column_is_refused_with_those_there_are(store: MemoryStore) -> None:
    with pytest.raises(FishError, match=r"tumour.*there are: .*diagnosis.*stain"):
        slide_mask(store.slides, ["tumour=yes"])


@pytest.mark.parametrize("bad", ["diagnosis=KIRCC", "diagnosis!=kirk", "Diagnosis = KIR"])
def test_a_value_that_no_slide_has_is_refused_with_the_nearest_even_beside_one_that_some_have(
    store: MemoryStore, bad: str
) -> None:
    with pytest.raises(
        FishError, match=r"No slide has the diagnosis '\w+'; of 4 values the nearest are: KIR[CP], KIR[CP]"
    ):
        check_values(store.slides, ["diagnosis=KIRP", bad])
    check_values(store.slides, ["diagnosis=kirc", "diagnosis=", "stain!=pas", "slide!=s3"])


def test_results_are_saved_as_csv_json_and_geojson(store: MemoryStore, query: Query, tmp_path: Path) -> None:
    results = search(store, replace(query, name="schöne Probe"), SearchParams(k=3))
    frame = results.to_frame()
    assert list(frame["rank"]) == [1, 2, 3]

    lines = list(csv.DictReader(results.save(tmp_path / "a b.csv").open(encoding="utf-8")))
    assert [line["slide"] for line in lines] == [hit.slide for hit in results.hits]

    document = json.loads(results.save(tmp_path / "ö.json").read_text(encoding="utf-8"))
    assert {"query", "mode", "ranking", "k", "elapsed_ms", "threshold", "notes", "results"} <= set(document)
    assert {"read", "encode", "search", "rank"} <= set(document["elapsed_ms"])
    first = document["results"][0]
    assert {"rank", "slide", "patient", "diagnosis", "site", "distance", "percentile", "matches"} <= set(
        first
    )
    assert {"query_box", "hit_box", "distance"} <= set(first["matches"][0])
    assert document["query"] == "schöne Probe"

    shapes = json.loads(results.save(tmp_path / "a.geojson").read_text())["features"]
    assert len(shapes) == len({match.query_box for hit in results.hits for match in hit.matches})
    ring = shapes[0]["geometry"]["coordinates"][0]
    box = results.hits[0].matches[0].query_box
    assert ring[0] == ring[-1] == [box.x, box.y] and ring[2] == [box.x + box.width, box.y + box.height]
    theirs = to_geojson(results, results.hits[1].slide)["features"]
    assert len(theirs) == len({match.hit_box for match in results.hits[1].matches})

    with pytest.raises(FishError, match=r"\.csv"):
        results.save(tmp_path / "a.docx")
