"""Boxes on the query slide, coloured by what each did for the answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from napari.layers import Shapes

from napari_fish._napari.layers.queries import drawn_corners
from napari_fish._napari.layers.query_layers import (
    DROPPED,
    EDGE,
    HIGH,
    LOW,
    colours,
    contributions,
    query_regions,
)
from napari_fish.search.values import Explanation, Hit, ListFate, Results, SlideHit
from napari_fish.store.records import Box

BOXES = (Box(0, 0, 100, 100), Box(100, 0, 100, 100), Box(0, 100, 100, 100), Box(0, 0, 0, 0))


def hit(rank: int, *regions: int) -> SlideHit:
    pairs = tuple(
        Hit(query_index=i, query_box=BOXES[i], hit_box=BOXES[0], row=0, distance=10) for i in regions
    )
    return SlideHit(rank=rank, slide=f"s{rank}", name=f"s{rank}", distance=10.0, matches=pairs)


def fate(index: int, kind: Any, entropy: float | None = 0.5) -> ListFate:
    return ListFate(
        query_index=index,
        length=7,
        entropy=entropy,
        mean_distance=3.0,
        vote="sarcoma",
        votes={"sarcoma": 1.0},
        fate=kind,
        reason="" if kind == "kept" else "far",
    )


@pytest.fixture
def results() -> Results:
    lists = (fate(0, "kept"), fate(1, "kept"), fate(2, "distance", None), fate(3, "kept"))
    hits = (hit(1, 0, 0, 0, 1), hit(2, 0))
    return Results(
        query="q",
        mode="exact",
        ranking="fish",
        k=5,
        threshold=100,
        hits=hits,
        explanation=Explanation("fish", lists),
        query_boxes=BOXES,
    )


def test_contributions_are_shares_of_the_matching_regions(results: Results) -> None:
    found = contributions(results)
    assert [one.contribution for one in found] == [0.875, 0.125, 0.0]
    assert [one.hits for one in found] == [2, 1, 0]
    assert sum(one.contribution for one in found) == 1


def test_mosaics_from_elsewhere_have_no_box(results: Results) -> None:
    assert [one.region for one in contributions(results)] == [0, 1, 2]


def test_the_most_helpful_is_brightest_and_what_was_dropped_is_grey(results: Results) -> None:
    table = colours(contributions(results))
    np.testing.assert_allclose(table[0, :3], HIGH)
    np.testing.assert_allclose(table[1, :3], LOW + (HIGH - LOW) / 7)
    np.testing.assert_allclose(table[2], DROPPED)


def test_the_layer_has_a_table_of_what_each_did(results: Results) -> None:
    corners, options = query_regions(results, drawn_corners)
    layer = Shapes(corners, shape_type="rectangle", **options)
    table = layer.features
    assert list(table["fate"]) == ["kept", "kept", "distance"]
    assert list(table["vote"]) == ["sarcoma"] * 3
    assert table["reason"][2] == "far"
    assert np.isnan(table["entropy"][2])
    outline = EDGE * 100 / 2
    low, high = (-0.5 + outline, 99.5 + outline), (99.5 - outline, 199.5 - outline)
    np.testing.assert_allclose([layer.data[1].min(axis=0), layer.data[1].max(axis=0)], [low, high])


def test_an_answer_without_hits_or_explanation_still_shows_the_regions() -> None:
    found = contributions(
        Results(query="q", mode="exact", ranking="none", k=5, threshold=100, hits=(), query_boxes=BOXES)
    )
    assert [one.contribution for one in found] == [0, 0, 0]
    assert np.isfinite(colours(found)).all()
    assert (
        query_regions(
            Results(query="q", mode="exact", ranking="none", k=5, threshold=100, hits=()), drawn_corners
        )[0]
        == []
    )
