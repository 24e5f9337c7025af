"""Answers become the lines of a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from napari_fish.evaluate.asking.answers import Answers, Ints, Questions
from napari_fish.evaluate.matrices import confusion_matrix, hamming_matrix
from napari_fish.evaluate.metrics import PAPER, RELEASED, Definition, Resamples, Score, measured
from napari_fish.evaluate.params import Way
from napari_fish.evaluate.values import LabelScores, Matrices, Times, WayScores
from napari_fish.search.recall import Recall
from napari_fish.store.protocol import Store


def labels_of_slides(store: Store, target: str) -> Ints:
    """Return the label of each slide as answers are judged by."""
    return store.slides.numbered(target)[0].astype(np.int64)


def score_way(
    way: Way,
    answers: Answers,
    *,
    questions: Questions,
    of_slide: Ints,
    k: int,
    threshold: int,
    resamples: Resamples,
    definition: Definition = PAPER,
    released: Definition = RELEASED,
    latency: Times | None = None,
    recall: Recall | None = None,
) -> WayScores:
    """Judge the answers of one way at a given k.

    Parameters
    ----------
    way
        How they were found.
    answers, questions
        What was found and asked.
    of_slide : int64, shape (n_slides,)
        Label of each slide.
    k
        Slides looked at.
    threshold
        θ_h in bits.
    resamples
        Bootstrap of the questions.
    definition
        What counts as right.
    released
        What the published program counts as right, which is told besides.
    latency, recall
        Measured elsewhere.
    """
    labels, truth = answers.labels(of_slide, k), questions.truth
    scores, macro, each = dict[str, Score](), dict[str, Score](), dict[str, Mapping[int, Score]]()
    for name, values in measured(labels, truth, definition, released).items():
        scores[name], macro[name], each[name] = resamples.scores(values)
    return WayScores(
        name=way.name,
        mode=way.mode,
        ranking=way.ranking,
        threshold=threshold,
        scores=scores,
        macro=macro,
        short=float(answers.short(k).mean()),
        why_short=answers.why_short(k),
        filled=float((answers.ranked < np.minimum(answers.found(k), k)).mean()),
        per_label={
            questions.labels[label]: LabelScores(
                int((truth == label).sum()), {name: of_label[label] for name, of_label in each.items()}
            )
            for label in resamples.labels.tolist()
        },
        matrices=tuple(
            _matrices(value, labels[at], answers.distances[at, :k], questions.take(at.tolist()), threshold)
            for value, at in _groups(questions)
        ),
        latency=latency,
        recall=recall,
    )


def chance_level(questions: Questions) -> float:
    """Return the macro-averaged share that is right by guessing among the labels of queries answered from the same slides."""
    share = np.zeros(len(questions))
    for _, at in _groups(questions):
        share[at] = 1 / len(np.unique(questions.truth[at]))
    labels = np.unique(questions.truth)
    return (
        float(np.mean([share[questions.truth == label].mean() for label in labels])) if len(labels) else 0.0
    )


def _groups(questions: Questions) -> list[tuple[str, Ints]]:
    """Return the queries answered from the same slides, by the value they share."""
    members: dict[str, list[int]] = {}
    for i, within in enumerate(questions.within):
        members.setdefault(within.casefold(), []).append(i)
    return [(questions.within[at[0]].partition("=")[2], np.array(at, np.int64)) for at in members.values()]


def _matrices(
    value: str, labels: Ints, distances: NDArray[np.float64], questions: Questions, threshold: int
) -> Matrices:
    used, n = np.unique(questions.truth), len(questions.labels)
    confusion = confusion_matrix(labels, questions.truth, n)[:, used]
    hamming = hamming_matrix(labels, distances, questions.truth, n, threshold)
    # Labels that no query has share the last line with "none".
    others = np.setdiff1d(np.arange(n + 1), used)
    return Matrices(
        value,
        len(questions),
        tuple(questions.labels[label] for label in used.tolist()),
        np.vstack([confusion[used], confusion[others].sum(axis=0)]),
        hamming[np.ix_(used, used)],
    )
