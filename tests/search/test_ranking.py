"""Ranking as array code agrees with the paper's pseudo-code, and its decisions hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_fish.index import NeighbourLists
from napari_fish.search.labelfree import rank_without_labels
from napari_fish.search.ranking import VARIANTS, Ranked, Variant, label_weights, rank_slides
from tests.search import reference

N_SLIDES = 12
hit_lists = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, N_SLIDES - 1)), max_size=9).map(
        lambda hits: sorted(hits, key=lambda hit: hit[0])
    ),
    max_size=12,
)
labels = st.lists(st.integers(-1, 3), min_size=N_SLIDES, max_size=N_SLIDES)


def lists_of(results: list[reference.Hits]) -> NeighbourLists:
    offsets = np.cumsum([0, *map(len, results)]).astype(np.int64)
    flat = [hit for hits in results for hit in hits]
    distances = np.array([d for d, _ in flat], np.int32)
    slides = np.array([s for _, s in flat], np.int32)
    return NeighbourLists(offsets, np.arange(len(flat)), distances, slides=slides)


def rank(
    results: list[reference.Hits], of_slide: list[int], variant: Variant, threshold: float = 20
) -> Ranked:
    hits = lists_of(results)
    codes = np.array(of_slide, np.int32)
    n = int(codes.max(initial=-1)) + 1
    weights = label_weights(np.bincount(codes[codes >= 0], minlength=n), 10)
    return rank_slides(hits, codes, weights, variant, threshold)


@pytest.mark.parametrize("name", list(VARIANTS))
@settings(max_examples=120, deadline=None)
@given(results=hit_lists, of_slide=labels)
def test_ranking_agrees_with_the_pseudo_code(
    name: str, results: list[reference.Hits], of_slide: list[int]
) -> None:
    variant = VARIANTS[name]
    ranked = rank(results, of_slide, variant)
    known = [one for one in of_slide if one >= 0]
    d_inv = {str(one): 1 / known.count(one) for one in set(known)}
    scale = 10 / sum(d_inv.values()) if d_inv else 0
    # Labels that no slide has still count as labels that are possible.
    every = {str(i): d_inv.get(str(i), 0.0) * scale for i in range(max(of_slide) + 1)}
    expected = reference.ranking(
        results,
        {slide: str(one) for slide, one in enumerate(of_slide) if one >= 0},
        every,
        20,
        weighted=variant.weighted,
        cleaned=variant.clean,
        by_prediction=variant.by_prediction,
        released=variant.released,
    )
    got = zip(ranked.entropies.tolist(), ranked.distances.tolist(), ranked.slides.tolist(), strict=True)
    assert list(got) == expected


def test_rare_labels_weigh_more() -> None:
    weights = label_weights(np.array([1, 3, 0]), 10)
    assert weights.tolist() == [7.5, 2.5, 0.0]


def test_cleaning_that_would_leave_nothing_is_skipped_and_said_so() -> None:
    lengths = [1] * 30 + [2, 3]
    ranked = rank([[(5, s % 4)] * n for s, n in enumerate(lengths)], [0] * N_SLIDES, VARIANTS["fish"])
    assert len(ranked.slides) == 4
    assert "unusual length" in ranked.skipped[0]
    assert not any(why == "length" for why, _ in ranked.dropped.values())


def test_lists_of_equal_length_and_distance_all_stay() -> None:
    ranked = rank([[(7, i)] for i in range(6)], [0] * N_SLIDES, VARIANTS["fish"])
    assert ranked.slides.tolist() == [0, 1, 2, 3, 4, 5] and not ranked.dropped


def test_a_far_list_is_dropped_for_its_distance() -> None:
    ranked = rank([[(5, 0)], [(5, 1)], [(25, 2)]], [0] * N_SLIDES, VARIANTS["fish"])
    assert ranked.slides.tolist() == [0, 1]
    assert ranked.dropped[2][0] == "distance" and "25.0" in ranked.dropped[2][1]


def test_a_certain_list_that_disagrees_is_dropped_for_its_vote() -> None:
    results: list[reference.Hits] = [[(5, 0)], [(5, 1)], [(5, 2)]]
    ranked = rank(results, [0, 0, 1] + [-1] * (N_SLIDES - 3), VARIANTS["fish-clean"])
    assert set(ranked.slides.tolist()) == {0, 1, 2}
    ranked = rank(results, [1, 1, 0] + [-1] * (N_SLIDES - 3), VARIANTS["fish"])
    # The rare label of one list outweighs the common one of two: 6.67 against 2 * 3.33 is a tie, first seen wins.
    assert ranked.dropped[2][0] == "vote" and ranked.slides.tolist() == [0, 1]


def test_equal_entropy_puts_the_nearer_hit_first() -> None:
    ranked = rank([[(9, 0)], [(3, 1)]], [0] * N_SLIDES, VARIANTS["fish-naive"])
    assert ranked.slides.tolist() == [1, 0]


def test_a_slide_seen_first_in_a_removed_list_is_lost_only_in_the_released_program() -> None:
    of_slide = [0, 0, 0, 1] + [-1] * (N_SLIDES - 4)
    # Two lists for label 0; one, as certain, for label 1 that also leads slide 5 (unlabelled) into the answer.
    results: list[reference.Hits] = [
        [(5, 3), (5, 5)],
        [(5, 0), (5, 5)],
        [(5, 1)],
        [(5, 2)],
        [(5, 0)],
        [(5, 1)],
    ]
    paper, released = rank(results, of_slide, VARIANTS["fish"]), rank(results, of_slide, VARIANTS["released"])
    assert 0 in paper.dropped and 0 in released.dropped
    assert 5 in paper.slides and 5 not in released.slides


def test_unlabelled_hits_keep_their_position_and_vote_for_nothing() -> None:
    ranked = rank([[(1, 5), (2, 0), (3, 1)]], [0, 1] + [-1] * (N_SLIDES - 2), VARIANTS["fish-weighted"])
    # Weights are 5 and 5: 5/2 for the second place, 5/3 for the third.
    assert ranked.votes.counts[0].tolist() == pytest.approx([2.5, 5 / 3])


@settings(max_examples=60, deadline=None)
@given(results=hit_lists)
def test_ranking_without_labels_is_the_median_of_minima(results: list[reference.Hits]) -> None:
    hits = lists_of(results)
    order, medians, _ = rank_without_labels(hits, missing=31)
    used = [dict(reversed([(slide, d) for d, slide in one])) for one in results]
    expected = {
        slide: float(np.median([one.get(slide, 31) for one in used]))
        for slide in {s for one in used for s in one}
    }
    assert dict(zip(order.tolist(), medians.tolist(), strict=True)) == expected
    assert medians.tolist() == sorted(medians.tolist())


def test_a_mosaic_that_counts_more_moves_the_median() -> None:
    hits = lists_of([[(1, 0), (9, 1)], [(1, 1), (9, 0)], [(1, 1), (9, 0)]])
    assert rank_without_labels(hits, 31)[0].tolist() == [1, 0]
    assert rank_without_labels(hits, 31, np.array([4.0, 1.0, 1.0]))[0].tolist() == [0, 1]
