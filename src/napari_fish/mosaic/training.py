"""Training of the artefact filters, from generated examples to plain numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import Cancelled, FishError
from napari_fish.mosaic.artefacts import KINDS, Filter
from napari_fish.mosaic.beside import beside_slide
from napari_fish.mosaic.demo_examples import demo_slides
from napari_fish.mosaic.examples import FIELD_MPP, Example, example_slide
from napari_fish.mosaic.measure import grey, local_patterns, pattern_histogram
from napari_fish.mosaic.reading import Progress, ShouldStop
from napari_fish.mosaic.tiles import TILE, tile_features
from napari_fish.mosaic.trees import Trees, boosted

Floats = NDArray[np.float64]
TRAINING_SEED = 7001
"""Seed of the demo slides whose tissue is painted over; evaluate on any other."""
SLIDES_A_SET = 80
"""How many slides are made of the images of each set of real tissue."""
SHOWS = {"ink": "ink", "fold": "fold", "dust": "debris", "bubble": "debris", "edge": "debris", "blur": "blur"}
"""The kind that each painted artefact is an example of."""
TILE_SHARE = {"ink": 0.2, "fold": 0.2, "dust": 0.2, "bubble": 0.3, "edge": 0.3, "blur": 0.6}
"""Share of a tile that must be painted for it to be an example of an artefact."""
CLEAN_SHARE = 0.01
"""Share of a tile that may be painted for it to be an example of clean tissue; between the two it is neither."""
PATCH_SHARE = 0.15
"""Share of a patch that must be painted for the paper's filter to learn it as an artefact."""
TREES = {
    "max_iter": 70,
    "max_leaf_nodes": 12,
    "learning_rate": 0.15,
    "min_samples_leaf": 60,
    "l2_regularization": 5.0,
    "max_features": 0.3,
    "max_bins": 64,
}
MOST_ROWS = 150_000
"""Tiles to train on, drawn from all of them, so that training ends within minutes."""
CREDITS: dict[str, str] = {
    "demo": "synthetic demo slides of napari-fish (BSD-3-Clause)",
    "amonuseg": "AMoNuSeg (MIT)",
    "brca": "BRCA-M2C (BSD-3-Clause), of TCGA (open access)",
    "breakhis": "BreakHis (Spanhol et al. 2016, CC BY 4.0)",
    "brecahad": "BreCaHAD (CC BY 4.0)",
    "camelyon": "CAMELYON (CC0)",
    "ebhi": "EBHI-Seg (CC BY 4.0)",
    "lc25000": "LC25000 (Borkowski et al. 2019, freely available)",
    "lunghist": "LungHist700 (CC BY 4.0)",
    "ocdc": "OCDC (CC BY 4.0)",
    "oral": "oral squamous cell carcinoma images (CC0)",
    "osteosarcoma": "Osteosarcoma-Tumor-Assessment (TCIA, CC BY 3.0)",
    "tnbc": "TNBC nuclei (CC BY 4.0)",
}
"""Where the tissue comes from; sets that are not listed here are not trained on."""

Source = Callable[[], Iterator[Sequence[Example]]]


def train_artefacts(
    output: str | Path,
    data: str | Path | None = None,
    *,
    slides: int = 42,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> dict[str, Any]:
    """Train the artefact filters and write them as JSON.

    Slides are made of clean tissue, stained and scaled in many ways; ink, folds, dust, bubbles, coverslip
    edges and defocus are painted over some patches. The same input gives the same numbers.

    Parameters
    ----------
    output : str or Path
        The JSON file to write.
    data : str or Path, optional
        Folder with real tissue: ``tissue/train/SET/CLASS/IMAGE``, for the sets in `CREDITS`. The filters
        inside the package were trained with it.
    slides : int
        How many demo slides to render.
    progress : callable, optional
        Called with the work done and all the work.
    should_stop : callable, optional
        Asked after each slide.

    Returns
    -------
    dict
        What was written: ``filters`` and ``card``.
    """
    sources = _sources(None if data is None else Path(data), slides)
    examples = Examples()
    for step, source in enumerate(sources.values()):
        for patches in source():
            if should_stop is not None and should_stop():
                raise Cancelled
            examples.add(patches)
        if progress is not None:
            progress(step + 1, len(sources))
    tiles, lbp = examples.fit_trees(), examples.fit_patterns()
    document = {
        "filters": {"lbp": lbp.to_dict(), "tiles": tiles.to_dict()},
        "card": {
            "slides": examples.slides,
            "patches": len(examples.patterns),
            "tiles": examples.counts(),
            "seed": TRAINING_SEED,
            "demo slides": slides,
            "tissue": [CREDITS[name] for name in sources],
        },
    }
    Path(output).write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    return document


@dataclass
class Examples:
    """Rows of features and what they show: -1 for what is neither clean nor an artefact."""

    slides: int = 0
    rows: list[NDArray[np.float32]] = field(default_factory=list)
    shows: list[NDArray[np.int64]] = field(default_factory=list)
    patterns: list[Floats] = field(default_factory=list)
    painted: list[float] = field(default_factory=list)

    def add(self, patches: Sequence[Example]) -> None:
        """Add the patches of one slide."""
        tiles = []
        for patch in patches:
            image = grey(patch.rgb)
            patterns = local_patterns(image)
            tiles.append(tile_features(patch.rgb, image, patterns))
            self.patterns.append(pattern_histogram(patterns))
            self.painted.append(0.0 if patch.where is None else float(patch.where.mean()))
        self.rows.append(beside_slide(np.stack(tiles)).astype(np.float32))
        self.shows.append(np.stack([tile_shows(patch) for patch in patches]))
        self.slides += 1

    def counts(self) -> dict[str, int]:
        """Return how many tiles of each kind there are."""
        shows = np.concatenate(self.shows).ravel()
        return {kind: int((shows == number).sum()) for number, kind in enumerate(KINDS)}

    def fit_trees(self) -> Trees:
        """Train the trees that judge tiles."""
        from threadpoolctl import threadpool_limits

        shows = np.concatenate(self.shows).ravel()
        known = np.nonzero(shows >= 0)[0]
        known = np.sort(np.random.default_rng(TRAINING_SEED).permutation(known)[:MOST_ROWS])
        rows = np.concatenate([slide.reshape(-1, slide.shape[-1]) for slide in self.rows])[known]
        with threadpool_limits(1):
            return boosted(rows, shows[known], KINDS, **TREES)

    def fit_patterns(self) -> Filter:
        """Train the paper's logistic regression on the texture of patches."""
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        painted = np.array(self.painted)
        known = (painted == 0) | (painted > PATCH_SHARE)
        rows, shows = np.stack(self.patterns)[known], painted[known] > 0
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        # A pattern that never occurs must not weigh anything when it occurs later.
        spread[spread < 1e-9] = 1e9
        model = LogisticRegression(C=0.1, max_iter=5000)
        with threadpool_limits(1):
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


def _sources(data: Path | None, slides: int) -> dict[str, Source]:
    """Return functions that each yield slides, so that no more than one set of tissue is in memory."""
    sources: dict[str, Source] = {"demo": partial(_from_demo, slides)}
    if data is None:
        return sources
    for name in list(CREDITS)[1:]:
        images = sorted((data / "tissue/train" / name).glob("*/*"))
        if not images:
            raise FishError(
                f"{data}: has no images in tissue/train/{name}. Give the folder with the training data, or none."
            )
        sources[name] = partial(_from_images, name, images)
    return sources


def _from_demo(slides: int) -> Iterator[Sequence[Example]]:
    fields = []
    for patches, clean in demo_slides(TRAINING_SEED, slides):
        yield patches
        fields += clean
    for number in range(slides if fields else 0):
        yield list(example_slide(fields, 1.0, np.random.default_rng([TRAINING_SEED, number])))


def _from_images(name: str, images: list[Path]) -> Iterator[Sequence[Example]]:
    seed = [TRAINING_SEED, *name.encode()]
    for number in range(SLIDES_A_SET):
        rng = np.random.default_rng([*seed, number])
        yield list(example_slide(images, FIELD_MPP.get(name, 0.5), rng))
