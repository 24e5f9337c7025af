"""The two pictures of the paper: who is taken for whom, and how far apart diagnoses are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.evaluate.metrics import ABSENT, majority


def confusion_matrix(labels: ArrayLike, truth: ArrayLike, n_labels: int) -> NDArray[np.int64]:
    """Count queries by their own label and by the majority of their answer.

    Parameters
    ----------
    labels : int, shape (n_queries, k)
        Answers in rank order, see :mod:`~napari_fish.evaluate.metrics`.
    truth : int, shape (n_queries,)
        The queries' own labels.
    n_labels
        How many labels there are.

    Returns
    -------
    ndarray, shape (n_labels + 1, n_labels)
        Lines are what was predicted, columns the truth, as in the paper; the last line counts queries without any
        labelled hit.
    """
    said, own = majority(labels), np.asarray(truth, np.int64)
    table = np.zeros((n_labels + 1, n_labels), np.int64)
    np.add.at(table, (np.where(said < 0, n_labels, said), own), 1)
    return table


def hamming_matrix(
    labels: ArrayLike, distances: ArrayLike, truth: ArrayLike, n_labels: int, threshold: float
) -> NDArray[np.float64]:  # fmt: skip
    """Add up how far queries of each label are from the labels of their answers.

    Each hit adds its distance to its own label and "infinity" to every other, and the sums are divided by the number
    of queries: those of one site, where answers are kept within it. Infinity is one more than the threshold and than every distance that was returned, so that
    filled-in hits beyond the threshold keep it meaningful.

    Parameters
    ----------
    labels : int, shape (n_queries, k)
        Answers in rank order.
    distances : float, shape (n_queries, k)
        Hamming distance of each hit in bits.
    truth : int, shape (n_queries,)
        The queries' own labels.
    n_labels
        How many labels there are.
    threshold
        θ_h in bits.

    Returns
    -------
    ndarray, shape (n_labels, n_labels)
        Lines are the labels of hits, columns the truth; dark where small.
    """
    table, own = np.asarray(labels, np.int64), np.asarray(truth, np.int64)
    there = table != ABSENT
    far = np.asarray(distances, np.float64)
    infinity = max(float(threshold), float(far[there].max(initial=0.0))) + 1
    sums = np.zeros((n_labels, n_labels))
    np.add.at(sums.T, own, infinity * there.sum(axis=1, keepdims=True))
    query, place = np.nonzero(there & (table >= 0))
    np.add.at(sums, (table[query, place], own[query]), far[query, place] - infinity)
    return sums / max(1, len(own))
