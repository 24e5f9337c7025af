"""Examples become filters: trees that judge tiles, trees that judge patches by them, and the limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from napari_fish.mosaic.artefacts.beside import GROWS, KINDS, beside_patches, beside_slide
from napari_fish.mosaic.artefacts.filters import Filter, Filters
from napari_fish.mosaic.artefacts.measure import grey, local_patterns, pattern_histogram
from napari_fish.mosaic.artefacts.tiles import TILE, TISSUE_SHARE, tile_features
from napari_fish.mosaic.artefacts.trees import Trees, boosted
from napari_fish.mosaic.training.examples import Example

Floats = NDArray[np.float64]
SEED = 7001
SHOWS = {"ink": "ink", "fold": "fold", "dust": "debris", "bubble": "debris", "edge": "debris", "blur": "blur"}
"""The kind that each painted artefact is an example of."""
TILE_SHARE = {"ink": 0.2, "fold": 0.2, "dust": 0.2, "bubble": 0.3, "edge": 0.3, "blur": 0.6}
"""Share of a tile that must be painted for it to be an example of an artefact."""
CLEAN_SHARE = 0.01
"""Share of a tile that may be painted for it to be an example of clean tissue; between the two it is neither."""
PATCH_SHARE = {"ink": 0.1, "fold": 0.1, "dust": 0.12, "bubble": 0.2, "edge": 0.2, "blur": 0.5}
"""Share of a patch that must be painted for it to be an example of an artefact; else a painted patch is neither."""
LBP_SHARE = 0.15
"""Share of a patch that must be painted for the paper's filter to learn it as an artefact."""
TREES = {
    "max_iter": 110,
    "max_leaf_nodes": 14,
    "learning_rate": 0.15,
    "min_samples_leaf": 100,
    "l2_regularization": 5.0,
    "max_features": 0.3,
    "max_bins": 64,
}
PATCH_TREES = {
    "max_iter": 80,
    "max_leaf_nodes": 6,
    "learning_rate": 0.1,
    "min_samples_leaf": 40,
    "l2_regularization": 5.0,
    "monotonic_cst": GROWS,
}
MOST_ROWS = 120_000
"""Tiles to train on, drawn from all of them, so that training ends within minutes."""
LOSS = {"normal": 0.018, "strict": 0.05}
"""Share of clean patches that a limit may lose among the examples, whose stains, scales and tissues are odder than a slide's."""


@dataclass
class Examples:
    """Rows of features and what they show, slide by slide, each slide of one group.

    Trees that judge patches, and the limits, are learnt from verdicts on groups that the trees of tiles did not see, as they will
    be asked about slides of laboratories that nobody has seen.
    """

    groups: list[int] = field(default_factory=list)
    rows: list[NDArray[np.float32]] = field(default_factory=list)
    tissue: list[Floats] = field(default_factory=list)
    shows: list[NDArray[np.int64]] = field(default_factory=list)
    verdicts: list[NDArray[np.int64]] = field(default_factory=list)
    patterns: list[Floats] = field(default_factory=list)
    painted: list[Floats] = field(default_factory=list)

    def add(self, patches: Sequence[Example], group: int) -> None:
        """Add the patches of one slide."""
        tiles, textures = [], []
        for patch in patches:
            image = grey(patch.rgb)
            patterns = local_patterns(image)
            tiles.append(tile_features(patch.rgb, image, patterns))
            textures.append(pattern_histogram(patterns))
        self.groups.append(group)
        self.patterns.append(np.stack(textures))
        self.painted.append(np.array([_painted(patch) for patch in patches]))
        self.rows.append(beside_slide(np.stack(tiles)).astype(np.float32))
        self.tissue.append(np.stack(tiles)[..., TISSUE_SHARE].mean(axis=1))
        self.shows.append(np.stack([tile_shows(patch) for patch in patches]))
        self.verdicts.append(np.array([_verdict(patch) for patch in patches]))

    def extend(self, others: Examples) -> None:
        """Add all examples of another collection."""
        for name, values in vars(others).items():
            getattr(self, name).extend(values)

    def without(self, group: int) -> Examples:
        """Return the examples of all other groups."""
        kept = [i for i, own in enumerate(self.groups) if own != group]
        return Examples(**{name: [values[i] for i in kept] for name, values in vars(self).items()})

    def counts(self) -> dict[str, int]:
        """Return how many tiles of each kind there are."""
        shows = np.concatenate(self.shows).ravel()
        return {kind: int((shows == number).sum()) for number, kind in enumerate(KINDS)}

    def fit(self) -> Filters:
        """Train all filters and choose the limits."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            patches, limits = self._judged_unseen()
            return Filters(self.fit_patterns(), self._fit_tiles(), patches, limits)

    def _fit_tiles(self) -> Trees:
        """Train the trees that judge tiles."""
        shows = np.concatenate(self.shows).ravel()
        known = np.nonzero(shows >= 0)[0]
        known = np.sort(np.random.default_rng(SEED).permutation(known)[:MOST_ROWS])
        rows = np.concatenate([slide.reshape(-1, slide.shape[-1]) for slide in self.rows])[known]
        return boosted(rows, shows[known], KINDS, **TREES)

    def _judged_unseen(self) -> tuple[Trees, dict[str, float]]:
        """Train the trees that judge patches, and choose the limits."""
        groups = np.repeat(self.groups, [len(v) for v in self.verdicts])
        verdicts = np.concatenate(self.verdicts)
        rows = self._patch_rows()
        odds = np.zeros(len(rows))
        for group in sorted(set(self.groups)):
            seen = (groups != group) & (verdicts >= 0)
            trees = boosted(rows[seen], verdicts[seen], ("artefact",), **PATCH_TREES)
            odds[groups == group] = trees.odds(rows[groups == group])[:, 0]
        clean = odds[verdicts == 0]
        limits = {name: round(float(np.quantile(clean, 1 - loss)), 3) for name, loss in LOSS.items()}
        known = verdicts >= 0
        return boosted(rows[known], verdicts[known], ("artefact",), **PATCH_TREES), limits

    def _patch_rows(self) -> Floats:
        """Describe all patches by what trees that never saw their group say of their tiles."""
        result: dict[int, Floats] = {}
        for group in sorted(set(self.groups)):
            trees = self.without(group)._fit_tiles()
            for i, own in enumerate(self.groups):
                if own == group:
                    rows = self.rows[i].astype(np.float64)
                    found = trees(rows.reshape(-1, rows.shape[-1])).reshape(*rows.shape[:2], len(KINDS))
                    result[i] = beside_patches(found, self.tissue[i])
        return np.concatenate([result[i] for i in range(len(self.groups))])

    def fit_patterns(self) -> Filter:
        """Train the paper's logistic regression on the texture of patches."""
        from sklearn.linear_model import LogisticRegression

        painted = np.concatenate(self.painted)
        known = (painted == 0) | (painted > LBP_SHARE)
        rows, shows = np.concatenate(self.patterns)[known], painted[known] > 0
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        # A pattern that never occurs must not weigh anything when it occurs later.
        spread[spread < 1e-9] = 1e9
        model = LogisticRegression(C=0.1, max_iter=5000)
        model.fit((rows - mean) / spread, shows)
        return Filter(mean, spread, model.coef_[0], float(model.intercept_[0]))


def tile_shows(patch: Example) -> NDArray[np.int64]:
    """Return what each tile of a patch shows, as a number of `KINDS`; -1 for a tile that is neither."""
    rows, columns = (n // TILE for n in patch.rgb.shape[:2])
    shows = np.zeros(rows * columns, np.int64)
    if patch.where is None:
        return shows
    cut = patch.where[: rows * TILE, : columns * TILE].reshape(rows, TILE, columns, TILE)
    share = cut.mean(axis=(1, 3)).ravel()
    shows[share >= CLEAN_SHARE] = -1
    shows[share >= TILE_SHARE[patch.kind]] = KINDS.index(SHOWS[patch.kind])
    return shows


def _painted(patch: Example) -> float:
    """Return the share of a patch that is painted."""
    return 0.0 if patch.where is None else float(patch.where.mean())


def _verdict(patch: Example) -> int:
    """Say whether a patch is an example of an artefact: 1, 0, or -1 where it is neither that nor clean."""
    if patch.where is None:
        return 0
    return 1 if _painted(patch) >= PATCH_SHARE[patch.kind] else -1
