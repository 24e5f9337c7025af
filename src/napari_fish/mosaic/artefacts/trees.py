"""Boosted decision trees as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import FishError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@numba.njit(nogil=True, cache=True)
def _summed(
    rows: Floats, base: Floats, roots: Ints, feature: Ints, value: Floats, right: Ints
) -> NDArray[np.float64]:
    """Send each row down every tree and add up the leaves; trees belong to the kinds in turn."""
    kinds = len(base)
    result = np.empty((len(rows), kinds))
    for i in range(len(rows)):
        result[i] = base
        for tree in range(len(roots)):
            node = roots[tree]
            while feature[node] >= 0:
                node = node + 1 if rows[i, feature[node]] <= value[node] else right[node]
            result[i, tree % kinds] += value[node]
    return result


@dataclass(frozen=True, eq=False)
class Trees:
    """Tells kinds of rows apart by the sum of many small decision trees.

    Attributes
    ----------
    kinds : tuple of str
        What a row may show.
    features : int
        Columns of a row.
    base : ndarray, shape (kinds,)
        Log odds before the first tree.
    roots : ndarray of int64, shape (trees,)
        First node of each tree; the trees belong to the kinds in turn.
    feature, value, right : ndarray, shape (nodes,)
        A node asks whether the feature is at most the value; if so the next node follows, else the node
        ``right``. A feature of -1 marks a leaf, which adds its value.
    """

    kinds: tuple[str, ...]
    features: int
    base: Floats
    roots: Ints
    feature: Ints
    value: Floats
    right: Ints

    def odds(self, rows: Floats) -> Floats:
        """Return the log odds of each kind, shape (rows, kinds), for rows of shape (rows, features)."""
        # As in training: a value that equals a threshold must not fall on its other side.
        rows = np.ascontiguousarray(rows, np.float32).astype(np.float64)
        return np.asarray(_summed(rows, self.base, self.roots, self.feature, self.value, self.right))

    def __call__(self, rows: Floats) -> Floats:
        """Return the probability of each kind, shape (rows, kinds), for rows of shape (rows, features)."""
        odds = self.odds(rows)
        shares = np.exp(odds - odds.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for JSON."""
        return {
            "kinds": list(self.kinds),
            "features": self.features,
            "base": self.base.tolist(),
            "roots": self.roots.tolist(),
            "feature": self.feature.tolist(),
            "value": self.value.tolist(),
            "right": self.right.tolist(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Trees:
        """Return the trees that :meth:`to_dict` wrote; what could lead astray is a ValueError."""
        base, value = (np.asarray(values[n], np.float64) for n in ("base", "value"))
        roots, feature, right = (np.asarray(values[n], np.int64) for n in ("roots", "feature", "right"))
        trees = cls(
            tuple(map(str, values["kinds"])), int(values["features"]), base, roots, feature, value, right
        )
        nodes = np.arange(len(feature))
        split = feature >= 0
        sound = (
            feature.ndim == 1
            and feature.shape == value.shape == right.shape
            and base.shape == (len(trees.kinds),)
            and roots.ndim == 1
            and len(roots) % len(trees.kinds) == 0
            and bool(np.isfinite(base).all() and np.isfinite(value).all())
            and bool((feature < trees.features).all())
            and bool(((roots >= 0) & (roots < len(feature))).all())
            # Every step leads forward and stays inside, so every walk ends.
            and bool((right[split] > nodes[split] + 1).all() and (right[split] < len(feature)).all())
        )
        if not sound:
            raise ValueError(
                "nodes of the trees must lead forward to nodes that are there, by finite numbers"
            )
        return trees


def boosted(
    rows: NDArray[np.floating[Any]], shows: NDArray[np.int64], kinds: tuple[str, ...], **options: Any
) -> Trees:
    """Train trees on rows of features that each show one of the kinds, given by its number; of one kind, whether they do."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    if missing := [kind for number, kind in enumerate(kinds) if not (shows == number).any()]:
        raise FishError(f"There is no example of {', '.join(missing)} to train with: more slides are needed.")
    model = HistGradientBoostingClassifier(early_stopping=False, random_state=0, **options)
    model.fit(rows, shows)
    roots: list[int] = []
    nodes: list[tuple[int, float, int]] = []

    def add(table: Any, number: int) -> None:
        node = table[number]
        if node["is_leaf"]:
            nodes.append((-1, float(f"{node['value']:.4g}"), 0))
            return
        here = len(nodes)
        nodes.append((int(node["feature_idx"]), 0.0, 0))
        add(table, node["left"])
        nodes[here] = (nodes[here][0], float(node["num_threshold"]), len(nodes))
        add(table, node["right"])

    for step in model._predictors:
        for tree in step:
            roots.append(len(nodes))
            add(tree.nodes, 0)
    feature, value, right = zip(*nodes, strict=True)
    base = np.asarray(np.round(np.ravel(model._baseline_prediction), 6), np.float64)
    return Trees(
        kinds=kinds,
        features=rows.shape[1],
        base=base,
        roots=np.array(roots),
        feature=np.array(feature),
        value=np.array(value),
        right=np.array(right),
    )
