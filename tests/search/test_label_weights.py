"""Label weights are those of the slides that a search may return, and work with any number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from napari_fish.encode.bundle.barcode import pack
from napari_fish.names import Mode
from napari_fish.search import Query, SearchParams, search
from napari_fish.store import EncodedSlide, MemoryStore, SlideRecord

WORDS = 16


def archive(labels: Sequence[tuple[str, str]]) -> MemoryStore:
    """Slides of one patch, the i-th i+1 bits from zero: the order of labels is that of every list."""
    codes = pack(np.arange(64 * WORDS) <= np.arange(len(labels))[:, None])
    return MemoryStore(
        WORDS,
        (
            EncodedSlide(
                SlideRecord(f"s{i:03d}", patient=f"p{i}", site=site, diagnosis=label),
                np.array([7]),
                codes[i : i + 1],
                np.array([[0, 0, 9, 9]], np.int32),
            )
            for i, (label, site) in enumerate(labels)
        ),
    )


QUERY = Query("q", np.zeros(2, np.int64), np.zeros((2, WORDS), np.uint64), np.ones((2, 4), np.int32))
# One of A, then four of B within one site: rare A has a fifth of the weight of what there is, B is the majority.
SITE = [("A", "kidney"), *[("B", "kidney")] * 4]
PARAMS = SearchParams(mode="exact", ranking="fish-weighted", threshold=100, weight_sum=None)


def elsewhere(n: int) -> list[tuple[str, str]]:
    return [(f"other {i}", "elsewhere") for i in range(n)]


def votes(store: MemoryStore, params: SearchParams) -> dict[str, float]:
    return dict(search(store, QUERY, params).explanation.lists[0].votes)


@pytest.mark.parametrize("mode", ["exact", "guided"])
def test_slides_that_a_filter_leaves_out_have_no_say_in_the_weights(mode: Mode) -> None:
    params = replace(PARAMS, mode=mode, where=("site=kidney",))
    alone, among = votes(archive(SITE), params), votes(archive([*SITE, *elsewhere(40)]), params)
    assert among == alone
    assert alone["A"] > 1, "it is weighed at all"


def test_slides_of_the_query_s_own_patient_have_no_say_in_the_weights() -> None:
    params = replace(PARAMS, where=())
    own = replace(QUERY, slide="s000", patient="p0")
    asked = search(archive([*SITE]), own, params).explanation.lists[0].votes
    assert (
        asked == votes(archive(SITE[1:]), params) == {"B": pytest.approx(3.3 * (1 + 1 / 2 + 1 / 3 + 1 / 4))}
    )


@pytest.mark.parametrize("labels", [2, 5, 29, 56])
def test_the_majority_outvotes_the_first_hit_with_any_number_of_labels(labels: int) -> None:
    # B at the places 2 to 10, as common as every other label: 1/2 + 1/3 + … + 1/10 outweighs the 1 of A.
    made = [("A", ""), *[("B", "")] * 9, *[("A", "")] * 8]
    others = [(f"other {i}", "") for i in range(labels - 2) for _ in range(9)]
    near = replace(PARAMS, threshold=10)  # the list ends before the others
    fate = search(archive([*made, *others]), QUERY, near).explanation.lists[0]
    assert fate.length == 10 and fate.vote == "B"
    assert fate.votes["A"] == pytest.approx(3.3), "whatever the number of labels"


def test_the_paper_s_modes_keep_its_sum_and_say_where_that_weighs_nothing() -> None:
    many = archive([*SITE, *elsewhere(40)])
    assert SearchParams(mode="guided").label_weight_sum(29) == 10
    assert SearchParams(mode="guided", target="Site").label_weight_sum(13) == 30
    assert SearchParams().label_weight_sum(29) == pytest.approx(95.7)
    assert SearchParams(weight_sum=7.0).label_weight_sum(29) == 7
    told = search(many, QUERY, replace(PARAMS, mode="guided")).explanation.skipped_steps
    assert any("sum of 10 over 42 labels" in step for step in told)
    assert not search(many, QUERY, PARAMS).explanation.skipped_steps
