"""Training of the artefact filters, from generated examples to plain numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import Cancelled, FishError
from napari_fish.mosaic.artefacts import SHRINK, Filter, shrunk
from napari_fish.mosaic.examples import PAINTERS, Mask, compressed, restained
from napari_fish.mosaic.measure import RGB, grey, local_patterns, pattern_histogram
from napari_fish.mosaic.reading import Progress, ShouldStop
from napari_fish.mosaic.tiles import TILE, tile_features

Floats = NDArray[np.float64]
TRAINING_SEED = 7001
"""Seed of the demo slides whose tissue is painted over; evaluate on any other."""
PATCH = 1024
MPP = 0.5
LEAST_TISSUE = 0.35
"""Share of a training patch that must be tissue."""
SAMPLES = ("ink", "ink", "fold", "fold", "dust", "edge", "blur")
"""Artefacts painted in turn over each clean patch."""
TILE_SHARE = {"ink": 0.3, "fold": 0.3, "dust": 0.2, "edge": 0.1}
"""Share of a tile that must be painted for it to be an example of an artefact."""
PATCH_SHARE = 0.15
"""The same for a whole patch."""
CLEAN_WEIGHT = 4.0
"""A clean example counts as much as this many painted ones: losing tissue is worse than keeping dirt."""
TILE_RANK = 2
"""A patch is as suspicious as its second most suspicious tile."""
CREDITS = (
    "synthetic demo slides of napari-fish (BSD-3-Clause)",
    "LC25000 (Borkowski et al. 2019, freely available)",
    "Osteosarcoma-Tumor-Assessment (TCIA, CC BY 3.0)",
    "TCGA-DU-6399 (TCGA open access)",
    "CMU-1-Small-Region (OpenSlide test data, CC0)",
)


@dataclass(frozen=True)
class Clean:
    """A patch of clean tissue of shape (rows, columns, 3) at ``mpp`` µm per px."""

    rgb: RGB
    mpp: float


def train_artefacts(
    output: str | Path,
    data: str | Path | None = None,
    *,
    slides: int = 24,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> dict[str, Any]:
    """Train the artefact filters and write them as JSON.

    Pen strokes, folds, dust, coverslip edges and defocus are painted over clean tissue of demo slides
    and, where there is a folder of real tissue, over that too. The same input gives the same numbers.

    Parameters
    ----------
    output : str or Path
        The JSON file to write.
    data : str or Path, optional
        Folder with real tissue: ``tissue/train/{lc25000,osteosarcoma}`` and ``slides``. The filters inside
        the package were trained with it.
    slides : int
        How many demo slides to render.
    progress : callable, optional
        Called with the work done and all the work.
    should_stop : callable, optional
        Asked after each patch.

    Returns
    -------
    dict
        What was written: ``filters`` and ``card``.
    """
    sources = list(_sources(None if data is None else Path(data), slides))
    examples = {name: _Examples() for name in ("tiles", "lbp")}
    number = 0
    for step, source in enumerate(sources):
        for clean in source():
            if should_stop is not None and should_stop():
                raise Cancelled
            _paint(clean, number, examples)
            number += 1
        if progress is not None:
            progress(step + 1, len(sources))
    filters = {name: e.fit(TILE_RANK if name == "tiles" else 0) for name, e in examples.items()}
    document = {
        "filters": {name: f.to_dict() for name, f in filters.items()},
        "card": {
            "clean patches": number,
            "examples": {name: e.counts() for name, e in examples.items()},
            "share dropped of the examples": {n: e.dropped(filters[n]) for n, e in examples.items()},
            "seed": TRAINING_SEED,
            "demo slides": slides,
            "tissue": list(CREDITS if data is not None else CREDITS[:1]),
        },
    }
    Path(output).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


class _Examples:
    """Rows of features and what they show."""

    def __init__(self) -> None:
        self.rows: list[Floats] = []
        self.shows: list[NDArray[np.bool_]] = []

    def add(self, rows: Floats, shows: NDArray[np.bool_]) -> None:
        self.rows.append(rows)
        self.shows.append(shows)

    def counts(self) -> dict[str, int]:
        shows = np.concatenate(self.shows)
        return {"artefact": int(shows.sum()), "clean": int((~shows).sum())}

    def fit(self, rank: int) -> Filter:
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        rows, shows = np.concatenate(self.rows), np.concatenate(self.shows)
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        # A pattern that never occurs must not weigh anything when it occurs later.
        spread[spread < 1e-9] = 1e9
        model = LogisticRegression(C=0.1, max_iter=5000)
        with threadpool_limits(1):
            model.fit((rows - mean) / spread, shows, sample_weight=np.where(shows, 1.0, CLEAN_WEIGHT))
        return Filter(mean, spread, model.coef_[0], float(model.intercept_[0]), rank)

    def dropped(self, trained: Filter) -> dict[str, float]:
        """Share of artefacts, and of clean examples, that the filter would drop."""
        shows = np.concatenate(self.shows)
        verdict = trained(np.concatenate(self.rows)) > 0.5
        return {
            "artefact": round(float(verdict[shows].mean()), 4),
            "clean": round(float(verdict[~shows].mean()), 4),
        }


def _paint(clean: Clean, number: int, examples: dict[str, _Examples]) -> None:
    """Add a clean patch and painted copies of it to the examples."""
    rng = np.random.default_rng([TRAINING_SEED, number])
    small = shrunk(clean.rgb, round(SHRINK * MPP / clean.mpp))
    for painted, where, name in _copies(small, SHRINK * MPP, rng):
        _add_small(painted, where, name, examples)


def _copies(rgb: RGB, mpp: float, rng: np.random.Generator) -> Iterator[tuple[RGB, Mask | None, str]]:
    """Yield a patch as it is, stained otherwise, and with each artefact; with where it was painted."""
    yield compressed(rgb), None, ""
    yield compressed(restained(rgb, rng)), None, ""
    for name in SAMPLES:
        tissue = restained(rgb, rng) if rng.random() < 0.5 else rgb
        painted, where = PAINTERS[name](tissue, mpp, rng)
        yield compressed(painted), where, name


def _add_small(rgb: RGB, where: Mask | None, name: str, examples: dict[str, _Examples]) -> None:
    image = grey(rgb)
    patterns = local_patterns(image)
    tiles = tile_features(rgb, image, patterns)
    if where is None:
        examples["tiles"].add(tiles, np.zeros(len(tiles), bool))
    elif name in TILE_SHARE:
        rows, columns = (n // TILE for n in rgb.shape[:2])
        cut = where[: rows * TILE, : columns * TILE].reshape(rows, TILE, columns, TILE)
        chosen = cut.mean(axis=(1, 3)).ravel() > TILE_SHARE[name]
        examples["tiles"].add(tiles[chosen], np.ones(int(chosen.sum()), bool))
    _add_patterns(patterns, where, examples["lbp"])


def _add_patterns(patterns: NDArray[np.uint8], where: Mask | None, examples: _Examples) -> None:
    if where is None or where.mean() > PATCH_SHARE:
        examples.add(pattern_histogram(patterns)[None], np.array([where is not None]))


def _sources(data: Path | None, slides: int) -> Iterator[Callable[[], Iterator[Clean]]]:
    """Yield functions that each yield clean patches, so that no more than one slide is in memory."""
    from napari_fish.slides.demo import demo_specs

    specs = demo_specs(seed=TRAINING_SEED, patients_per_diagnosis=-(-slides // 6), second_slides=0)
    for spec in specs[:slides]:
        yield partial(_from_demo, replace(spec, artefacts=(), mpp=MPP))
    if data is None:
        return
    for name in ("tissue/train/lc25000", "tissue/train/osteosarcoma", "slides"):
        if not (data / name).is_dir():
            raise FishError(f"{data}: has no folder {name}. Give the folder with the training data, or none.")
    yield partial(_from_images, sorted((data / "tissue/train/lc25000").glob("*/*"))[::2], MPP)
    yield partial(_from_images, sorted((data / "tissue/train/osteosarcoma").glob("*/*")), 2 * MPP)
    for name in ("tcga-du-6399.svs", "cmu-1-small-region.svs"):
        yield partial(_from_slide, data / "slides" / name)


def _from_demo(spec: Any) -> Iterator[Clean]:
    from napari_fish.slides.demo import render

    image = render(spec)
    size = round(PATCH * MPP / image.truth.um_per_px)
    for y in range(0, image.rgb.shape[0] - PATCH + 1, PATCH):
        for x in range(0, image.rgb.shape[1] - PATCH + 1, PATCH):
            row, column = (round(v * MPP / image.truth.um_per_px) for v in (y, x))
            if image.truth.tissue[row : row + size, column : column + size].mean() >= LEAST_TISSUE:
                yield Clean(image.rgb[y : y + PATCH, x : x + PATCH], MPP)


def _from_images(paths: list[Path], mpp: float) -> Iterator[Clean]:
    """Cut images into patches of 512 µm; smaller images count as they are."""
    from PIL import Image

    side = round(PATCH * MPP / mpp)
    for path in paths:
        with Image.open(path) as file:
            rgb = np.asarray(file.convert("RGB"))
        side_y, side_x = min(side, rgb.shape[0]), min(side, rgb.shape[1])
        for y in range(0, rgb.shape[0] - side_y + 1, side_y):
            for x in range(0, rgb.shape[1] - side_x + 1, side_x):
                yield Clean(rgb[y : y + side_y, x : x + side_x], mpp)


def _from_slide(path: Path) -> Iterator[Clean]:
    from napari_fish.mosaic.grid import patch_size, patches_on
    from napari_fish.mosaic.params import MosaicParams
    from napari_fish.mosaic.tissue import segment
    from napari_fish.slides import open_slide

    with open_slide(path) as slide:
        size = patch_size(slide.mpp or MPP, MosaicParams())
        for corners in patches_on(segment(slide), size):
            for x, y in corners.tolist():
                rgb = slide.read(x, y, PATCH, PATCH, MPP)
                if (rgb.min(axis=2) < 220).mean() >= LEAST_TISSUE:
                    yield Clean(rgb, MPP)
