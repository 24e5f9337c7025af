"""Judging hits: the query always counts, what was liked is no evidence for itself, nothing else changes."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_fish.names import Mode, Ranking
from napari_fish.search import Feedback, Query, SearchParams, search
from napari_fish.search.output.export import to_geojson
from napari_fish.search.verdict import matched_regions, tally
from napari_fish.store import EncodedSlide, MemoryStore, SlideRecord


def test_a_judgement_changes_the_answer_and_can_be_undone(store: MemoryStore, query: Query) -> None:
    params = SearchParams(mode="exact", ranking="label-free", k=6)
    before = search(store, query, params)
    feedback = Feedback().judge(before.hits[4], True).judge(before.hits[0], False)
    judged = feedback.apply(store, query)
    assert len(judged) > len(query)
    after = search(store, judged, replace(params, where=feedback.where))
    assert before.hits[0].slide not in {hit.slide for hit in after.hits}
    ranks = {hit.slide: hit.rank for hit in after.hits}
    assert ranks[before.hits[4].slide] <= 4, "the place left free"

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


def test_a_judgement_never_changes_the_query_s_own_barcodes(store: MemoryStore, query: Query) -> None:
    hits = search(store, query, SearchParams(mode="exact")).hits
    judged = Feedback().judge(hits[0], True).judge(hits[1], True).judge(hits[2], False).apply(store, query)
    assert np.array_equal(judged.barcodes[: judged.own], query.barcodes) and judged.own == len(query)
    match = hits[0].matches[0]
    only = Feedback().judge(replace(hits[0], matches=(match,)), True).apply(store, query)
    assert only.weights is not None and only.weights[match.query_index] == 2.0
    assert (only.weights[: only.own] == 1.0).sum() == len(query) - 1
    assert only.weights[only.own :].sum() == pytest.approx(0.75 * only.weights[: only.own].sum())


def one_patch(query: Query) -> Query:
    """A box of one patch, as users draw it."""
    return replace(query, keys=query.keys[:1], barcodes=query.barcodes[:1], boxes=query.boxes[:1])


@pytest.mark.parametrize("mode", ["exact", "clustered", "guided", "released", "auto"])
@pytest.mark.parametrize("ranking", ["auto", "fish", "released", "label-free"])
def test_an_approved_hit_never_matches_itself_and_the_query_s_own_regions_always_count(
    store: MemoryStore, query: Query, mode: Mode, ranking: Ranking
) -> None:
    params = SearchParams(mode=mode, ranking=ranking, k=8, threshold=60, fill=True)
    for asked in (query, one_patch(query)):
        before = search(store, asked, params)
        liked = before.hits[2]
        feedback = Feedback().judge(liked, True)
        after = search(store, feedback.apply(store, asked), params)
        assert after.ranking == before.ranking
        found = {hit.slide: hit for hit in after.hits}
        assert liked.slide in found, "it is near the query, whoever liked it"
        assert not any(match.liked == liked.slide for match in found[liked.slide].matches)
        lists = after.explanation.lists
        assert [fate.liked for fate in lists] == [""] * len(asked) + [liked.slide] * len(feedback.added)
        # What is dropped of the query's own regions is what is dropped without a judgement, and never all.
        own = [fate.fate for fate in lists if not fate.liked]
        assert own == [fate.fate for fate in before.explanation.lists] and "kept" in own
        assert tally(after).total <= max(len(asked), len(after.hits))
        assert all(matched_regions(hit, after)[1] == len(asked) for hit in after.hits)


def test_what_is_like_an_approved_hit_comes_nearer_and_the_query_stays() -> None:
    """Two slides are equally far from the query; the one that resembles the approved slide goes first."""
    query_code, other = np.zeros(16, np.uint64), np.zeros(16, np.uint64)
    other[0] = 2**20 - 1  # 20 bits from the query
    liked = other.copy()
    liked[1] = 1
    unlike, like = np.zeros((2, 16), np.uint64)
    unlike[8], like[:2] = 2**23 - 1, (2**20 - 1, 7)
    far = np.full(16, 2**64 - 1, np.uint64)
    codes = {"unlike": unlike, "like": like, "liked": liked, "far": far}
    made = MemoryStore(
        16,
        (
            EncodedSlide(
                SlideRecord(name, patient=name), np.array([5]), code[None], np.array([[1, 2, 9, 9]], np.int32)
            )
            for name, code in codes.items()
        ),
    )
    query = Query("box", np.array([5]), query_code[None], np.array([[0, 0, 9, 9]], np.int32))
    params = SearchParams(mode="exact", k=4, threshold=40, fill=True)
    before = search(made, query, params)
    assert [hit.slide for hit in before.hits] == ["liked", "unlike", "like", "far"]
    after = search(made, Feedback().judge(before.hits[0], True).apply(made, query), params)
    assert [hit.slide for hit in after.hits] == ["liked", "like", "unlike", "far"]
    assert [hit.distance for hit in after.hits] == [21, 23, 23, 1024], (
        "told is how far they are from the query"
    )


def test_what_is_exported_after_a_judgement_holds_no_empty_boxes(
    store: MemoryStore, query: Query, tmp_path: Path
) -> None:
    params, asked = SearchParams(mode="exact", k=8, matches=50), one_patch(query)
    hits = search(store, asked, params).hits
    feedback = Feedback().judge(hits[0], True).judge(hits[1], True)
    results = search(store, feedback.apply(store, asked), params)
    assert any(match.liked for hit in results.hits for match in hit.matches)
    for shape in to_geojson(results)["features"]:
        ring = np.array(shape["geometry"]["coordinates"][0])
        assert (np.ptp(ring, axis=0) > 0).all()
    document = json.loads(results.save(tmp_path / "a.json").read_text(encoding="utf-8"))
    for match in (m for one in document["results"] for m in one["matches"]):
        assert (match["query_box"] is None) == ("liked" in match)
        assert match["query_box"] is None or match["query_box"][2] > 0
    for line in csv.DictReader(results.save(tmp_path / "a.csv").open(encoding="utf-8")):
        assert not line["query_box"].endswith(",0,0")
    own_first = [[bool(match.liked) for match in hit.matches] for hit in results.hits]
    assert own_first == [sorted(liked) for liked in own_first]
