"""Answers become the lines of a table."""

from __future__ import annotations

import numpy as np

from napari_fish.database.protocol import Store
from napari_fish.evaluate.answers import Answers, Ints, Questions
from napari_fish.evaluate.matrices import confusion_matrix, hamming_matrix
from napari_fish.evaluate.metrics import (
    RELEASED,
    Resamples,
    any_right,
    average_precision,
    first_right,
    majority_right,
)
from napari_fish.evaluate.params import Way
from napari_fish.evaluate.values import LabelScores, Times, WayScores
from napari_fish.search.recall import Recall


def labels_of_slides(store: Store, target: str) -> Ints:
    """Return the label of each slide as answers are judged by."""
    return store.slides.codes(target)[0].astype(np.int64)


def score_way(
    way: Way,
    answers: Answers,
    questions: Questions,
    of_slide: Ints,
    k: int,
    threshold: int,
    resamples: Resamples,
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
    latency, recall
        Measured elsewhere.
    """
    labels, truth = answers.labels(of_slide, k), questions.truth
    mmv, mmv_macro, mmv_each = resamples.scores(majority_right(labels, truth))
    ap, ap_macro, ap_each = resamples.scores(average_precision(labels, truth))
    top1, top1_macro, top1_each = resamples.scores(first_right(labels, truth))
    topk, topk_macro, topk_each = resamples.scores(any_right(labels, truth))
    used, n = resamples.labels, len(questions.labels)
    confusion = confusion_matrix(labels, truth, n)[:, used]
    hamming = hamming_matrix(labels, answers.distances[:, :k], truth, n, threshold)
    # Labels that no query has share the last line with "none".
    others = np.setdiff1d(np.arange(n + 1), used)
    return WayScores(
        way.name,
        way.mode,
        way.ranking,
        mmv,
        mmv_macro,
        ap,
        ap_macro,
        resamples.scores(majority_right(labels, truth, RELEASED))[0],
        resamples.scores(average_precision(labels, truth, RELEASED))[0],
        top1,
        topk,
        top1_macro,
        topk_macro,
        float(answers.short(k).mean()),
        answers.why_short(k),
        float((answers.ranked < np.minimum(answers.found(k), k)).mean()),
        {
            questions.labels[label]: LabelScores(
                int((truth == label).sum()),
                mmv_each[label],
                ap_each[label],
                top1_each[label],
                topk_each[label],
            )
            for label in used.tolist()
        },
        np.vstack([confusion[used], confusion[others].sum(axis=0)]),
        hamming[np.ix_(used, used)],
        latency,
        recall,
    )
