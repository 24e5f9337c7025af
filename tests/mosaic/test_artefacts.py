"""The shipped filters, on slides they were not trained on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_fish.errors import FishError
from napari_fish.mosaic import make_mosaic, preset
from napari_fish.mosaic.artefacts import read_filters, shrunk
from napari_fish.mosaic.evaluation import Score, evaluate_demo, score
from napari_fish.mosaic.examples import PAINTERS
from napari_fish.mosaic.training import TRAINING_SEED
from napari_fish.slides.demo import DemoSpec, write_glass

from .test_measure import grain


@pytest.mark.parametrize("name", ["tiles", "lbp"])
def test_the_shipped_filters_are_plain_numbers(name: str) -> None:
    trained = read_filters()[name]
    assert len(trained.weights) == (64 if name == "tiles" else 128)
    assert np.isfinite(trained.weights).all()


def test_a_damaged_filter_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"filters": {"tiles": {"mean": [1], "spread": [0], "weights": [1]}}}))
    with pytest.raises(FishError, match="train-artefacts"):
        read_filters(path)


@pytest.mark.parametrize("name", PAINTERS)
def test_painted_artefacts_leave_the_rest_of_the_patch_alone(name: str) -> None:
    rgb = grain(5)
    painted, where = PAINTERS[name](rgb, 2.0, np.random.default_rng(3))
    assert painted.shape == rgb.shape
    assert where.any()
    assert (painted[where] != rgb[where]).any(axis=1).mean() > 0.5
    if name in ("ink", "fold", "dust"):
        from scipy import ndimage

        far = ~ndimage.binary_dilation(where, iterations=8)
        far &= ndimage.binary_erosion(np.ones_like(far), iterations=8)
        assert np.abs(painted[far].astype(int) - rgb[far]).max(initial=0) <= 1 or name == "fold"


def test_shrinking_averages_blocks() -> None:
    rgb = np.arange(4 * 8 * 3, dtype=np.uint8).reshape(4, 8, 3)
    wanted = np.floor(rgb.reshape(1, 4, 2, 4, 3).mean((1, 3)) + 0.5)
    assert np.array_equal(shrunk(rgb, 4), wanted)


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Score:
    folder = tmp_path_factory.mktemp("demo")
    # Seeds whose truth has the most patches of each kind; what the filters say of them played no part.
    specs = [
        DemoSpec("ink", "Q1", "colon", "adenocarcinoma", 20, 2048, 1536, 0.5, ("ink",)),
        DemoSpec("fold", "Q2", "breast", "solid carcinoma", 22, 2048, 1536, 0.5, ("fold",)),
        DemoSpec("blur", "Q3", "colon", "mucinous carcinoma", 27, 2048, 1536, 0.5, ("blur",)),
        DemoSpec("clean", "Q4", "soft tissue", "sarcoma", 14, 1536, 1536, 0.5),
    ]
    assert TRAINING_SEED not in {spec.seed for spec in specs}
    return score(evaluate_demo(spec, folder) for spec in specs)


def test_tissue_is_found_on_slides_with_other_seeds(scores: Score) -> None:
    assert scores.tissue_iou >= 0.9


def test_ink_folds_and_blur_are_dropped(scores: Score) -> None:
    assert set(scores.dropped_by_kind) == {"ink", "fold", "blur"}
    assert scores.artefact_patches >= 8
    assert scores.artefacts_dropped >= 0.95


def test_clean_tissue_is_kept(scores: Score) -> None:
    assert scores.clean_patches >= 12
    assert scores.clean_dropped <= 0.03


def test_a_glass_slide_has_no_tissue(tmp_path: Path) -> None:
    from napari_fish.errors import NoTissue
    from napari_fish.slides import open_slide

    with open_slide(write_glass(tmp_path / "glass.tif")) as slide, pytest.raises(NoTissue, match="blank"):
        make_mosaic(slide, replace(preset()))
