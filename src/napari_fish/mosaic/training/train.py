"""Training of the artefact filters, from generated examples to plain numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from napari_fish.errors import FishError
from napari_fish.mosaic.training.demo_examples import demo_slides
from napari_fish.mosaic.training.examples import FIELD_MPP, Example, example_slide
from napari_fish.mosaic.training.fitting import SEED, Examples
from napari_fish.work import Progress, ShouldStop, stop_if_asked

TRAINING_SEED = SEED
"""Seed of the demo slides whose tissue is painted over; evaluate on any other."""
SLIDES_A_SET = 110
"""How many slides are made of the images of each set of real tissue."""
GROUPS = 4
"""Into so many groups the sets are divided; demo slides belong to all in turn."""
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
    slides: int = 126,
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
    sources = sources_in(None if data is None else Path(data), slides)
    examples = Examples()
    for number, (name, source) in enumerate(sources.items()):
        examples.extend(examples_of(name, source, number, should_stop))
        if progress is not None:
            progress(number + 1, len(sources))
    document = {
        "filters": examples.fit().to_dict(),
        "card": {
            "slides": len(examples.groups),
            "patches": sum(map(len, examples.verdicts)),
            "tiles": examples.counts(),
            "seed": TRAINING_SEED,
            "demo slides": slides,
            "tissue": [CREDITS[name] for name in sources],
        },
    }
    Path(output).write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    return document


def examples_of(name: str, source: Source, number: int, should_stop: ShouldStop | None = None) -> Examples:
    """Return the examples of one set of tissue, by its number among the sets."""
    examples = Examples()
    for count, patches in enumerate(source()):
        stop_if_asked(should_stop)
        if patches:
            examples.add(patches, (count if name == "demo" else number) % GROUPS)
    return examples


def sources_in(data: Path | None, slides: int = 126) -> dict[str, Source]:
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
