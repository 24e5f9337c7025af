"""Queries with what was found, right and wrong ones, for the eye."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from napari_fish.evaluate.asking.answers import Answers, Ints, Questions
from napari_fish.evaluate.metrics import PAPER, Definition, majority_right
from napari_fish.evaluate.values import Example
from napari_fish.store.protocol import Store
from napari_fish.store.records import Box

Picture = Callable[[str, Box], bytes | None]
"""Returns the JPEG of a region, given slide and box."""
EACH = 4


def choose_examples(
    store: Store,
    source: Store,
    questions: Questions,
    answers: Answers,
    *,
    of_slide: Ints,
    k: int,
    pictures: tuple[Picture, Picture],
    seed: int = 0,
    definition: Definition = PAPER,
) -> tuple[Example, ...]:
    """Choose right and wrong answers at random, of as many labels as possible.

    Parameters
    ----------
    store, source
        The database that was searched, and the one the queries come from.
    questions, answers
        What was asked and found.
    of_slide : int64, shape (n_slides,)
        Label of each slide.
    k
        Slides shown of each answer.
    pictures
        Pictures of the queries' database and of the searched one.
    seed
        The same seed chooses the same.
    definition
        What counts as right.
    """
    right = majority_right(answers.labels(of_slide, k), questions.truth, definition)
    order = np.random.default_rng(seed).permutation(len(questions))
    chosen: list[int] = []
    for wanted in (True, False):
        chosen += _one_of_each(order[right[order] == wanted], questions.truth)

    def example(i: int) -> Example:
        row = int(questions.rows[i])
        rows = source.patch_rows(int(questions.slides[i])) if row < 0 else np.array([row])
        (where,) = source.regions(rows[[max(int(answers.asked[i, 0]), 0)]])
        hits = []
        for j in range(int(answers.found(k)[i])):
            number, row = int(answers.slides[i, j]), int(answers.rows[i, j])
            record, label, picture = store.slides[number], int(of_slide[number]), None
            if row >= 0:
                (place,) = store.regions(np.array([row]))
                picture = pictures[1](record.slide, place.box)
            named = questions.labels[label] if label >= 0 else ""
            hits.append((record.name or record.slide, named, float(answers.distances[i, j]), picture))
        mine = pictures[0](source.slides[where.slide].slide, where.box)
        own = questions.labels[int(questions.truth[i])]
        return Example(questions.names[i], own, bool(right[i]), mine, tuple(hits))

    return tuple(map(example, chosen))


def _one_of_each(order: Ints, truth: Ints) -> Sequence[int]:
    """Take the first of each label, then the second of each, and so on."""
    seen: dict[int, int] = {}
    turns = []
    for place, i in enumerate(order.tolist()):
        label = int(truth[i])
        turns.append((seen.get(label, 0), place, i))
        seen[label] = seen.get(label, 0) + 1
    return [i for _, _, i in sorted(turns)[:EACH]]
