"""What is said of an answer: votes, certainty, and whether anything is near."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from napari_fish.search import Feedback, Query, SearchParams, search
from napari_fish.search.output.colours import DARK, LIGHT, UNKNOWN_LIGHT, Colours, labels_in
from napari_fish.search.verdict import bar_of, certainty_in_words, matched_regions, notes_of, tally
from napari_fish.store import MemoryStore
from napari_fish.texts import Note
from tests.search.made_results import answer, fate, hit


def test_regions_that_counted_vote_and_those_dropped_do_not() -> None:
    fates = (fate(0), fate(1), fate(2, "PRAD"), fate(3, "PRAD", kind="distance"), fate(4, "", kind="empty"))
    votes = tally(answer(hit(1), fates=fates))
    assert votes.voters == "regions" and votes.total == 3
    assert [(vote.label, vote.count) for vote in votes.votes] == [("KIRC", 2), ("PRAD", 1)]
    assert sum(vote.share for vote in votes.votes) == pytest.approx(1)


def test_a_vote_is_certain_when_the_neighbours_agree_and_uncertain_when_they_do_not() -> None:
    fates = (fate(0), fate(1, "PRAD", 1.0, KIRC=1.0, PRAD=1.0), fate(2, "BLCA", 0.5, KIRC=0.1, BLCA=1.0))
    certainties = {vote.label: vote.certainty for vote in tally(answer(hit(1), fates=fates)).votes}
    assert certainties["KIRC"] == 1.0
    assert certainties["PRAD"] == pytest.approx(1 - 1 / np.log2(3))
    assert certainties["KIRC"] > certainties["BLCA"] > certainties["PRAD"]  # type: ignore[operator]
    words = [certainty_in_words(value) for value in (1.0, 0.6, 0.2, None)]
    assert words == ["certain", "fairly certain", "uncertain", ""]


def test_without_labels_in_the_ranking_the_slides_found_vote() -> None:
    votes = tally(answer(hit(1, "PRAD"), hit(2, "KIRC"), hit(3, "KIRC"), hit(4, "")))
    assert votes.voters == "slides"
    assert [(vote.label, vote.count, vote.certainty) for vote in votes.votes] == [
        ("KIRC", 2, None), ("PRAD", 1, None), ("", 1, None)
    ]  # fmt: skip


def test_nothing_is_said_of_an_answer_that_is_near_and_whole() -> None:
    assert notes_of(answer(hit(1), hit(2, distance=200, percentile=30.0))) == []


def test_hits_that_chance_would_have_found_are_called_nothing_similar() -> None:
    far = answer(
        hit(1, distance=250, percentile=95.6),
        hit(2, distance=255, percentile=97.0),
        notes=(Note("filled", "filled"),),
    )
    assert list(map(str, notes_of(far))) == [
        "All hits are farther than 95 % of random pairs: nothing similar in this database.", "filled"
    ]  # fmt: skip


def test_a_note_that_nothing_is_similar_agrees_with_the_cards_below_it() -> None:
    note, *_ = map(
        str, notes_of(answer(hit(1, distance=230, percentile=6.0), hit(2, distance=255, percentile=7.0)))
    )
    assert note == (
        "Nothing similar in this database: the nearest region is merely closer than 94.0 % of random pairs: "
        "1 in 17 of them is as close."
    )
    assert "farther" not in note


def test_hits_beyond_the_threshold_but_better_than_chance_are_called_nearest_but_not_near() -> None:
    (note,) = map(str, notes_of(answer(hit(1, distance=61, percentile=0.4))))
    assert "none of them is near" in note and "60 bits" in note
    assert notes_of(answer(hit(1, distance=60, percentile=0.4))) == []


def test_how_far_cannot_be_said_in_percent_without_a_calibration() -> None:
    (note,) = map(str, notes_of(answer(hit(1, distance=250, percentile=None))))
    assert "%" not in note and "threshold" in note


def test_an_empty_answer_says_so_before_it_says_why() -> None:
    assert list(map(str, notes_of(answer(notes=(Note("short", "the filters leave only 0."),))))) == [
        "No slide was found.",
        "the filters leave only 0.",
    ]


def test_only_pairs_within_the_threshold_count_as_matching_regions() -> None:
    results = answer(hit(1, regions=(0, 2)), fates=(fate(0), fate(1), fate(2)))
    assert matched_regions(results.hits[0], results) == (2, 3)
    assert matched_regions(hit(2, distance=61, regions=(0, 1, 2), filled=True), results) == (0, 3)


def test_the_longest_bar_still_fits_and_the_threshold_has_its_place() -> None:
    results = answer(hit(1, distance=0), hit(2, distance=120))
    (none, mark), (most, _) = bar_of(0, results), bar_of(120, results)
    assert none == 0 and 0.9 < most < 1 and mark == pytest.approx(most / 2)
    assert bar_of(10_000, results)[0] == 1


def test_a_diagnosis_has_one_colour_in_every_answer_of_a_database(store: MemoryStore, query: Query) -> None:
    whole = search(store, query, SearchParams(k=20))
    part = search(store, query, SearchParams(k=3, where=("diagnosis=PRAD",), target="site"))
    assert whole.labels == ("BLCA", "KIRC", "KIRP", "PRAD")
    assert part.labels == (*whole.labels, "kidney", "pelvis")
    one, other = Colours.of_answers([whole]), Colours.of_answers([part])
    assert [one.of(label) for label in whole.labels] == [other.of(label) for label in whole.labels]
    assert len({one.of(label) for label in whole.labels}) == 4
    assert one.of("kirc") == one.of("KIRC") != one.of("unheard of") == one.of("") == UNKNOWN_LIGHT


def test_sixteen_diagnoses_have_sixteen_colours() -> None:
    assert len(set(LIGHT)) == len(set(DARK)) == 16
    colours = Colours(labels_in(f"label {i:02d}" for i in range(17)))
    assert colours.number("label 15") == 15 and colours.number("label 16") == 0


def test_regions_that_join_a_query_are_named_in_their_order(store: MemoryStore, query: Query) -> None:
    hits = search(store, query, SearchParams(k=4)).hits
    feedback = Feedback().judge(hits[2], True).judge(hits[0], True).judge(hits[1], False)
    grown = feedback.apply(store, query)
    assert len(feedback.added) == len(grown) - len(query) > 0
    places = {
        (store.slides[record.slide].slide, record.box): record.row
        for record in store.regions(range(len(store)))
    }
    rows = [places[one] for one in feedback.added]
    assert np.array_equal(store.encoded(rows)[1], grown.barcodes[len(query) :])
    assert {slide for slide, _ in feedback.added} == {hits[0].slide, hits[2].slide}


def test_what_was_said_of_a_slide_can_be_taken_back(store: MemoryStore, query: Query) -> None:
    hits = search(store, query, SearchParams(k=3)).hits
    said = Feedback().judge(hits[0], True).judge(hits[1], False).judge(hits[0], False)
    assert said.withdraw(hits[0].slide) == Feedback().judge(hits[1], False)
    assert replace(said.withdraw(hits[1].slide).withdraw(hits[0].slide)) == Feedback()
