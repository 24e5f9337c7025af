"""A build and a query show the encoder the same pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from napari_fish.building.encoding import encode_tasks
from napari_fish.building.slide_task import Desk, SlideEncoded, SlideTask
from napari_fish.database.questions import encode_question
from napari_fish.mosaic import preset
from napari_fish.slides import open_slide
from tests.slides.conftest import write_tiff
from tests.tiny import QuickEncoder, tissue

Pixels = NDArray[np.uint8]


class Watched(QuickEncoder):
    """An encoder that keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Pixels] = []

    def stack(self, patches: Sequence[Pixels]) -> Pixels:
        self.seen += patches
        return np.stack(patches)


@pytest.mark.parametrize("name", ["paper", "released"])
def test_patches_of_a_40x_slide_are_bicubic_and_black_outside_only_in_the_preset_released(
    tmp_path: Path, name: str
) -> None:
    rgb = np.tile(tissue("carcinoma", 0), (10, 11, 1))
    path = write_tiff(tmp_path / "a.tif", rgb, 2)
    chosen = preset(name)
    params = replace(chosen, artefacts="off", tissue=replace(chosen.tissue, min_tissue=1))
    built, asked = Watched(), Watched()
    (made,) = encode_tasks([SlideTask(0, path, params, 0.25)], built, Desk())
    assert isinstance(made, SlideEncoded)
    with open_slide(path, mpp=0.25) as slide:
        boxes = encode_question(slide, asked, box=None, mosaic=params).query.boxes
    np.testing.assert_array_equal(boxes, made.boxes)
    np.testing.assert_array_equal(np.stack(asked.seen), np.stack(built.seen))
    whole = Image.fromarray(rgb)
    published = [
        np.asarray(whole.crop((x, y, x + w, y + h)).resize((1024, 1024), Image.Resampling.BICUBIC))
        for x, y, w, h in boxes.tolist()
    ]
    assert (boxes[:, 2:] == 2048).all() and (boxes[:, :2] + 2048 > whole.size).any()
    assert np.array_equal(np.stack(built.seen), np.stack(published)) == (name == "released")
