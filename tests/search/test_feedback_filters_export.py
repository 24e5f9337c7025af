"""Feedback, filters and files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_fish.database import MemoryStore
from napari_fish.errors import FishError
from napari_fish.search import Feedback, Query, SearchParams, search
from napari_fish.search.export import to_geojson
from napari_fish.search.filters import slide_mask


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


def test_feedback_moves_the_query_and_can_be_undone(store: MemoryStore, query: Query) -> None:
    params = SearchParams(mode="exact", ranking="label-free", k=6)
    before = search(store, query, params)
    feedback = Feedback().judge(before.hits[4], True).judge(before.hits[0], False)
    moved = feedback.apply(store, query)
    assert len(moved) > len(query)
    after = search(store, moved, replace(params, where=feedback.where))
    assert before.hits[0].slide not in {hit.slide for hit in after.hits}
    ranks = {hit.slide: hit.rank for hit in after.hits}
    assert ranks[before.hits[4].slide] < 4, "one less would be the place left free"

    undone = feedback.undo().undo()
    assert undone.apply(store, query) is query and undone.where == ()
    assert search(store, undone.apply(store, query), params).hits == before.hits


def test_the_order_of_judgements_does_not_matter_but_the_latest_counts(
    store: MemoryStore, query: Query
) -> None:
    hits = search(store, query, SearchParams(mode="exact")).hits
    one = Feedback().judge(hits[0], True).judge(hits[1], False).judge(hits[2], True)
    two = Feedback().judge(hits[2], False).judge(hits[1], False).judge(hits[2], True).judge(hits[0], True)
    a, b = one.apply(store, query), two.apply(store, query)
    assert np.array_equal(a.barcodes, b.barcodes)
    assert a.weights is not None and b.weights is not None and np.array_equal(a.weights, b.weights)


def test_bits_move_towards_what_was_relevant(store: MemoryStore, query: Query) -> None:
    hit = search(store, query, SearchParams(mode="exact")).hits[0]
    match = hit.matches[0]
    target = store.encoded([match.row])[1]
    only = replace(hit, matches=(match,))
    away = Feedback().judge(only, False).apply(store, query)
    i = match.query_index

    def distance(q: Query) -> int:
        return int(np.bitwise_count(q.barcodes[i] ^ target).sum())

    # The query's own bits weigh more than one judgement's: weights change first, bits only by agreement.
    assert distance(away) >= distance(query)
    strong = Feedback(params=replace(Feedback().params, towards=4.0)).judge(only, True).apply(store, query)
    assert distance(strong) == 0
    assert strong.weights is not None and strong.weights[i] == 2.0


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
