"""Cards in order and under headings, and what is written on them; no Qt needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_fish._napari.results.gallery_order import (
    GROUPS,
    SORTS,
    Heading,
    arranged,
    described,
    regions_in_words,
)
from napari_fish.search import SlideHit
from napari_fish.search.verdict import closeness_in_short
from tests.search.made_results import answer, fate, hit

HITS = (
    hit(1, "PRAD", "p2", distance=30),
    hit(2, "kirc", "p1", distance=20),
    hit(3, "", "p2", distance=50),
    hit(4, "KIRC", "p3", distance=20),
)


def ranks(sort: str, group: str = "nothing") -> list[object]:
    return [one.rank if isinstance(one, SlideHit) else one.text for one in arranged(HITS[::-1], sort, group)]


def test_cards_are_sorted_and_what_is_not_known_comes_last() -> None:
    assert ranks("rank") == [1, 2, 3, 4]
    assert ranks("distance") == [2, 4, 1, 3]
    assert ranks("diagnosis") == [2, 4, 1, 3]
    assert ranks("patient") == [2, 1, 3, 4]


def test_groups_come_in_the_order_of_their_best_card() -> None:
    assert ranks("rank", "patient") == ["patient p2", 1, 3, "patient p1", 2, "patient p3", 4]
    assert ranks("distance", "patient") == ["patient p1", 2, "patient p3", 4, "patient p2", 1, 3]
    assert ranks("rank", "diagnosis") == ["PRAD", 1, "kirc", 2, 4, "diagnosis not known", 3]


def test_a_heading_counts_its_cards_and_has_a_colour_only_for_one_diagnosis() -> None:
    headings = [one for one in arranged(HITS, "rank", "patient") if isinstance(one, Heading)]
    assert [(one.count, one.diagnosis) for one in headings] == [(2, ""), (1, "kirc"), (1, "KIRC")]
    (first, *_) = arranged(HITS[1::2], "rank", "diagnosis")
    assert first == Heading("kirc", 2, "kirc")


@given(
    st.lists(st.tuples(st.sampled_from("abAB "), st.sampled_from("xyX "), st.integers(0, 5)), max_size=12),
    st.sampled_from(SORTS),
    st.sampled_from(GROUPS),
)
def test_no_card_is_lost_and_each_stands_under_its_own_heading(rows, sort, group) -> None:
    hits = [hit(i, d.strip(), p.strip(), distance=n) for i, (d, p, n) in enumerate(rows, 1)]
    lines = arranged(hits, sort, group)
    assert sorted(one.rank for one in lines if isinstance(one, SlideHit)) == [one.rank for one in hits]
    seen: list[str] = []
    for line in lines:
        if isinstance(line, Heading):
            seen.append(line.text)
        elif group != "nothing":
            assert getattr(line, group).casefold() in seen[-1].casefold()
    assert len({text.casefold() for text in seen}) == len(seen)
    assert sum(one.count for one in lines if isinstance(one, Heading)) == (len(hits) if seen else 0)


@pytest.mark.parametrize(
    ("percentile", "words"),
    [
        (None, "not calibrated"),
        (0.0, "closer than all"),
        (0.004, "closer than 99.99 %"),
        (80.0, "closer than only 20 %"),
        (99.5, "closer than < 1 %"),
        (100.0, "no closer than any"),
    ],
)
def test_a_percentile_fits_on_a_card(percentile: float | None, words: str) -> None:
    assert closeness_in_short(percentile) == words


def test_a_card_read_aloud_says_everything() -> None:
    results = answer(hit(1, "KIRC", "p7", regions=(0, 1)), fates=(fate(0), fate(1), fate(2)))
    said = described(results.hits[0], results)
    for words in ("1. slide 1.svs", "KIRC", "kidney · p7", "40 bits: closer than 99.99 %", "2 of 3 regions"):
        assert words in said
    single = answer(hit(1), fates=(fate(0),))
    assert regions_in_words(single.hits[0], single) == "1 of 1 region"
