"""Demo slides as examples: their own artefacts are known, and their clean tissue can be painted over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from napari_fish.mosaic.artefacts.filters import shrunk
from napari_fish.mosaic.artefacts.measure import RGB
from napari_fish.mosaic.training.examples import MPP, SIDE, Example
from napari_fish.mosaic.training.painting import Mask
from napari_fish.slides.demo import DemoImage, demo_specs, render

ARTEFACTS = (("ink",), ("fold",), ("blur",), (), ("ink", "fold"), ("blur", "dust"), ("bubble",))
"""Artefacts that the slides have in turn."""
LEAST_TISSUE = 0.35
"""Share of an example that must be tissue."""
CLEAN_SHARE = 0.003
"""A patch with less than this of any artefact is clean."""


def demo_slides(seed: int, count: int) -> Iterator[tuple[list[Example], list[RGB]]]:
    """Render demo slides; yield the patches of each, and its clean fields at 1 µm per px."""
    specs = demo_specs(seed=seed, patients_per_diagnosis=-(-count // 6), second_slides=0)
    for number, spec in enumerate(specs[:count]):
        image = render(replace(spec, artefacts=ARTEFACTS[number % len(ARTEFACTS)], mpp=MPP / 4))
        patches, fields = [], []
        small, half = shrunk(image.rgb, 4), shrunk(image.rgb, 2)
        top, left = np.random.default_rng([seed, number]).integers(0, 100, 2).tolist()
        for y in range(top, small.shape[0] - SIDE + 1, SIDE):
            for x in range(left, small.shape[1] - SIDE + 1, SIDE):
                tissue = _seen(image, "tissue", y, x)
                if tissue.mean() < LEAST_TISSUE:
                    continue
                rgb = np.ascontiguousarray(small[y : y + SIDE, x : x + SIDE])
                masks = {name: _seen(image, name, y, x) & tissue for name in image.spec.artefacts}
                kind = max(masks, key=lambda name: masks[name].mean(), default="")
                if not kind or masks[kind].mean() < CLEAN_SHARE:
                    patches.append(Example(rgb))
                    fields.append(half[2 * y : 2 * (y + SIDE), 2 * x : 2 * (x + SIDE)])
                else:
                    patches.append(Example(rgb, kind, masks[kind]))
        if patches:
            yield patches, fields


def _seen(image: DemoImage, name: str, y: int, x: int) -> Mask:
    """Return what is truly where in the patch whose corner is given in px at 5x."""
    truth: Mask = getattr(image.truth, name)
    step = MPP / image.truth.um_per_px
    rows, columns = (
        np.minimum(((np.arange(first, first + SIDE) + 0.5) * step).astype(np.int64), length - 1)
        for first, length in zip((y, x), truth.shape, strict=True)
    )
    return np.asarray(truth[np.ix_(rows, columns)])
