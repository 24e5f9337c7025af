"""The measures, by hand and against the same written plainly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_fish.evaluate.matrices import confusion_matrix, hamming_matrix
from napari_fish.evaluate.metrics import (
    Definition,
    Resamples,
    any_right,
    average_precision,
    first_right,
    majority,
    majority_right,
)
from tests.evaluate import reference

A, B, C, NONE, GONE = 0, 1, 2, -1, -2


def test_the_majority_of_five_is_the_most_frequent_label() -> None:
    assert majority([[A, B, B, C, B], [C, A, A, C, C]]).tolist() == [B, C]


def test_a_tie_goes_to_the_label_seen_first() -> None:
    assert majority([[A, B, B, A, C], [B, A, A, B, C], [C, B, A, NONE, NONE]]).tolist() == [A, B, C]


def test_hits_without_a_label_do_not_vote_even_when_they_are_many() -> None:
    assert majority([[NONE, NONE, NONE, NONE, B], [NONE] * 5, [GONE] * 5]).tolist() == [B, -1, -1]


def test_a_short_answer_needs_more_than_half_rounded_up_in_the_paper_and_that_many_in_the_program() -> None:
    answers = [[A, A, A, GONE, GONE], [A, A, A, A, GONE], [A, A, GONE, GONE, GONE], [GONE] * 5]
    truth = [A, A, A, A]
    assert majority_right(answers, truth).tolist() == [False, True, False, False]
    assert majority_right(answers, truth, Definition(short=">=")).tolist() == [True, True, False, False]


def test_a_short_list_of_patches_is_never_right_in_the_program() -> None:
    answers = [[A, A, A, A, GONE], [A, A, A, B, C], [GONE] * 5]
    assert majority_right(answers, [A, A, A], Definition(short="wrong")).tolist() == [False, True, False]


def test_a_full_answer_is_judged_by_majority_whatever_the_rule_for_short_ones() -> None:
    answers = [[A, A, B, C, NONE], [B, A, A, B, C]]
    for short in (">", ">="):
        assert majority_right(answers, [A, A], Definition(short=short)).tolist() == [True, False]


def test_average_precision_by_hand() -> None:
    # Right at 1, 3 and 4: (1/1 + 2/3 + 3/4) / 3 = 0.80555…, and / 5 in the published program.
    answers = [[A, B, A, A, B], [B, B, B, B, A], [B] * 5, [A, GONE, GONE, GONE, GONE]]
    truth = [A, A, A, A]
    assert average_precision(answers, truth) == pytest.approx([29 / 36, 0.2, 0.0, 1.0])
    fixed = average_precision(answers, truth, Definition("fixed"))
    assert fixed == pytest.approx([29 / 60, 0.04, 0.0, 0.2])


def test_one_relevant_slide_in_the_first_place_is_enough_for_full_precision_but_not_for_the_majority() -> (
    None
):
    answers = [[A, B, B, B, B]]
    assert average_precision(answers, [A])[0] == 1.0
    assert not majority_right(answers, [A])[0]


def test_top_one_and_top_k_accuracy() -> None:
    answers = [[A, B, B], [B, B, A], [B, C, GONE]]
    assert first_right(answers, [A, A, A]).tolist() == [True, False, False]
    assert any_right(answers, [A, A, A]).tolist() == [True, True, False]


answers_of_queries = st.integers(1, 7).flatmap(
    lambda k: st.lists(
        st.tuples(
            st.lists(st.integers(-1, 3), max_size=k).map(lambda found: found + [GONE] * (k - len(found))),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=12,
    )
)


@given(answers_of_queries)
def test_all_measures_agree_with_the_same_written_plainly(queries: list[tuple[list[int], int]]) -> None:
    answers, truth = [answer for answer, _ in queries], [own for _, own in queries]
    k = len(answers[0])
    for short in (">", ">="):
        expected = [reference.majority_right(a, t, k, short) for a, t in queries]
        assert majority_right(answers, truth, Definition(short=short)).tolist() == expected
    for divisor in ("relevant", "fixed"):
        expected_ap = [reference.average_precision(a, t, k, divisor) for a, t in queries]
        assert average_precision(answers, truth, Definition(divisor)) == pytest.approx(expected_ap)
    assert confusion_matrix(answers, truth, 4).tolist() == reference.confusion(answers, truth, 4)


@given(answers_of_queries, st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_the_hamming_matrix_agrees_with_the_same_written_plainly(
    queries: list[tuple[list[int], int]], threshold: int, seed: int
) -> None:
    answers, truth = [answer for answer, _ in queries], [own for _, own in queries]
    far = np.random.default_rng(seed).integers(0, 300, np.shape(answers)).astype(float)
    far[np.array(answers) == GONE] = np.nan
    expected = reference.hamming(answers, far.tolist(), truth, 4, threshold)
    assert hamming_matrix(answers, far, truth, 4, threshold) == pytest.approx(np.array(expected))


def test_the_hamming_matrix_by_hand() -> None:
    # Infinity is 101: hits are nearer than the threshold of 100. One query of A with hits of A and B.
    table = hamming_matrix([[A, B]], [[10.0, 20.0]], [A], 2, 100)
    assert table.tolist() == [[10 + 101, 0], [101 + 20, 0]]
    # A filled-in hit beyond the threshold raises it.
    assert hamming_matrix([[A, B]], [[10.0, 150.0]], [A], 2, 100).tolist() == [[10 + 151, 0], [151 + 150, 0]]


def test_macro_averages_count_rare_labels_as_much_as_common_ones() -> None:
    truth, values = [A] * 9 + [B], [1.0] * 9 + [0.0]
    overall, macro, each = Resamples(truth, range(10)).scores(values)
    assert (overall.value, macro.value) == (0.9, 0.5)
    assert (each[A].value, each[B].value) == (1.0, 0.0)


def test_intervals_hold_the_value_and_are_wider_when_queries_share_patients() -> None:
    dice = np.random.default_rng(0)
    per_patient = dice.random(40) < 0.6
    values = np.repeat(per_patient, 10)
    truth = np.zeros(400, int)
    alone, _, _ = Resamples(truth, np.arange(400)).scores(values)
    together, _, _ = Resamples(truth, np.repeat(np.arange(40), 10)).scores(values)
    assert alone.value == together.value
    assert alone.interval is not None and together.interval is not None
    assert together.interval[0] <= together.value <= together.interval[1]
    assert np.diff(together.interval)[0] > 2 * np.diff(alone.interval)[0]


def test_macro_intervals_do_not_lose_rare_labels() -> None:
    # Two patients of a rare label that is never right, and forty of a common one that always is: whoever is drawn,
    # both labels are there, and the macro mean is a half.
    truth, values = [A] * 40 + [B] * 2, [1.0] * 40 + [0.0] * 2
    overall, macro, each = Resamples(truth, range(42)).scores(values)
    assert macro.interval == (0.5, 0.5)
    assert each[B].interval == (0.0, 0.0)
    assert overall.interval is not None and overall.interval[0] < overall.value < overall.interval[1]


def test_a_label_of_one_patient_has_no_interval() -> None:
    truth, patients, values = [A] * 6 + [B] * 3, [0, 1, 2, 3, 4, 5, 6, 6, 6], [1, 0, 1, 1, 0, 1, 1, 0, 1]
    _, macro, each = Resamples(truth, patients).scores(values)
    assert each[A].interval is not None and each[B].interval is None
    assert macro.interval is not None
    assert str(each[B]) == "0.667"
    overall, macro, _ = Resamples([A, A], [0, 0]).scores([1, 0])
    assert overall.interval is macro.interval is None


def test_a_patient_with_two_labels_is_drawn_within_each() -> None:
    _, macro, each = Resamples([A, B, A, B], [0, 0, 1, 1]).scores([1, 0, 0, 1])
    assert each[A].interval == each[B].interval == (0.0, 1.0)
    assert macro.value == 0.5


def test_the_same_seed_gives_the_same_interval() -> None:
    truth, values = [A, A, B, B, C], [1, 0, 1, 1, 0]
    first, again = (Resamples(truth, range(5), seed=3).scores(values) for _ in range(2))
    assert first == again
