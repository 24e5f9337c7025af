"""The slides composed from real tissue keep images and patients apart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from napari_fish.slides import open_slide

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_no_image_and_no_patient_is_in_two_slides(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from pseudo_slides import recipes

    made = list(recipes(6, None))
    images = Counter(image for recipe in made for image in recipe.images)
    patients = Counter(recipe.patient for recipe in made)
    assert len(made) > 150
    assert max(images.values()) == 1
    assert max(patients.values()) == 1
    for recipe in made:
        assert {image.parent.name for image in recipe.images} == {recipe.diagnosis}
        if recipe.group == "breakhis":
            assert {image.name.split("_")[0] for image in recipe.images} == {recipe.patient}
        splits = {"train" if "crc_gallery" in image.parts else image.parts[-4] for image in recipe.images}
        assert splits == {recipe.split}


def test_a_pseudo_slide_shows_its_images_to_scale(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from pseudo_slides import BLOCK, MARGIN, block, recipes, write_slide

    recipe = next(recipe for recipe in recipes(6, 1) if recipe.group == "breakhis")
    write_slide(recipe, tmp_path / "slide.tif")
    with open_slide(tmp_path / "slide.tif") as slide:
        assert slide.mpp == pytest.approx(0.5, rel=1e-3)
        first = slide.read(MARGIN, MARGIN, BLOCK, BLOCK, 0.5)
    expected = block(recipe.images[0], 0.25)
    assert np.abs(first.astype(int) - expected).mean() < 6
