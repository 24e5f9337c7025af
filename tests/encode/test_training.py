from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from napari_fish.encode.bundle import load_bundle
from napari_fish.encode.recipe import Recipe, read_recipe, train_recipe, train_slides
from napari_fish.encode.sources import Crops, TissueSource
from napari_fish.encode.train import STATE_FILE, train_vqvae
from napari_fish.encode.trainparams import VQTrainParams
from napari_fish.encode.traintexture import TextureTrainParams, learn_code, train_texture
from napari_fish.errors import EncoderError

from .conftest import tissue

QUICK = VQTrainParams(
    width=8, crop=32, batch=4, steps=24, check_every=6, restart_after=4, scale=(0.8, 1.25), stain=0.2,
    flips=True, decay=True, patience=0, held_out=0.3,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("tissue")
    for i, picture in enumerate(tissue(6, 128, seed=9)):
        Image.fromarray(picture).save(where / f"{i}.png")
    return where


def test_training_lowers_the_error_and_writes_reconstructions(folder, tmp_path):
    reports = []
    model = train_vqvae([TissueSource(folder)], tmp_path, replace(QUICK, steps=60), progress=reports.append)
    checks = [r for r in reports if r.validation is not None]
    assert checks[-1].validation < checks[0].validation
    assert checks[-1].picture.exists() and 1 < checks[-1].codes_used <= 128
    assert not model.training


def test_an_interrupted_training_ends_like_an_undisturbed_one(folder, tmp_path):
    import torch

    whole = train_vqvae([TissueSource(folder)], tmp_path / "whole", QUICK)
    steps = []
    train_vqvae(
        [TissueSource(folder)],
        tmp_path / "parts",
        QUICK,
        should_stop=lambda: len(steps) > 9 or steps.append(1),
    )
    resumed = train_vqvae([TissueSource(folder)], tmp_path / "parts", QUICK)
    for name, value in whole.state_dict().items():
        assert torch.allclose(value.float(), resumed.state_dict()[name].float(), atol=1e-5), name


def test_resuming_with_other_settings_is_refused(folder, tmp_path):
    train_vqvae([TissueSource(folder)], tmp_path, replace(QUICK, steps=6))
    assert (tmp_path / STATE_FILE).exists()
    with pytest.raises(EncoderError, match="beta"):
        train_vqvae([TissueSource(folder)], tmp_path, replace(QUICK, beta=0.25))


def test_dead_codewords_are_put_back_to_use(folder, tmp_path):
    used = {}
    for restart in (0, 4):
        reports = []
        params = replace(QUICK, steps=40, check_every=40, restart_after=restart, seed=2)
        train_vqvae([TissueSource(folder)], tmp_path / str(restart), params, progress=reports.append)
        used[restart] = reports[-1].codes_used
    assert used[4] > used[0]


def test_training_stops_early_when_nothing_improves(folder, tmp_path):
    reports = []
    params = replace(QUICK, steps=400, check_every=2, patience=2, learning_rate=0.0)
    train_vqvae([TissueSource(folder)], tmp_path, params, progress=reports.append)
    assert reports[-1].step < 40


def test_a_crop_depends_on_its_number_alone(folder):
    crops = Crops([TissueSource(folder, 0.25)], 32, scale=(0.8, 1.25), seed=5)
    assert np.array_equal(crops.train(3, 2), crops.train(0, 5)[3:])
    batches = list(crops.batches(1, 4, 2))
    assert np.array_equal(np.concatenate(batches), crops.train(2, 6))


def test_nothing_to_train_on_is_a_clear_error(tmp_path):
    with pytest.raises(EncoderError, match="nothing to train on"):
        Crops([TissueSource(tmp_path)], 32)
    with pytest.raises(EncoderError, match="no such file or folder"):
        Crops([TissueSource(tmp_path / "absent")], 32)


def test_the_texture_code_ignores_what_differs_between_views():
    rng = np.random.default_rng(0)
    content, nuisance = rng.standard_normal((80, 1, 6)), 4 * rng.standard_normal((80, 5, 6))
    views = np.concatenate([np.repeat(content, 5, 1), nuisance], 2) + 0.05 * rng.standard_normal((80, 5, 12))
    params = TextureTrainParams(bits=256, dimensions=12, shrink=0.05, whiten=1.0)
    code = learn_code(views.astype(np.float32), np.ones(80), [(12, 1.0)], params)
    bits = views @ code.projection >= code.thresholds
    same = np.mean(bits[:, 0] != bits[:, 1])
    other = np.mean(bits[:-1, 0] != bits[1:, 0])
    assert same < 0.2
    assert 0.4 < other < 0.6
    assert 0.4 < bits.mean() < 0.6


def test_own_images_train_a_texture_code_on_the_keys_of_another_bundle(folder, tiny_bundle, tmp_path):
    from napari_fish.encode.bundle import save_bundle

    save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "base")
    card = train_slides([folder], tmp_path / "own", texture="lite0", keys_from=tmp_path / "base")
    bundle = load_bundle(tmp_path / "own")
    assert card.barcode == "projection" and card.barcode_length == 1024
    assert bundle.tensors["texture.projection"].shape == (992, 1024)
    assert np.array_equal(bundle.card.order, tiny_bundle.card.order)


@pytest.fixture
def shuffled(tiny_bundle, tmp_path):
    """A bundle whose order no computation would give, at 1 µm/px."""
    from napari_fish.encode.bundle import save_bundle

    order = tuple(np.random.default_rng(3).permutation(128).tolist())
    card = tiny_bundle.card.renamed(order=order, mpp=1.0, training="made-up slides", licence="CC0")
    return save_bundle(card, tiny_bundle.tensors, tmp_path / "base"), tmp_path / "base"


@pytest.mark.parametrize("texture", ["lite0", "densenet121"])
def test_keys_that_are_taken_over_stay_what_they_were(folder, shuffled, tmp_path, texture):
    base, where = shuffled
    card = train_slides([folder], tmp_path / "own", texture=texture, keys_from=where)
    assert (card.order, card.mpp, card.width) == (base.order, 1.0, base.width)
    assert "made-up slides" in card.training and "CC0" in card.licence
    tensors = load_bundle(tmp_path / "own").tensors
    kept = [k for k in load_bundle(where).tensors if k.startswith("vqvae.")]
    assert kept and all(np.array_equal(tensors[k], load_bundle(where).tensors[k]) for k in kept)


def test_a_recipe_for_the_papers_texture_keeps_its_scale_title_and_licence(folder, tmp_path):
    source = (TissueSource(folder),)
    params = replace(QUICK, steps=1, mpp=1.0)
    recipe = Recipe("mine", "of my own", "MIT", "my tissue", source, source, params, None)
    card = train_recipe(recipe, tmp_path / "own")
    assert (card.title, card.mpp, card.training) == ("of my own", 1.0, "my tissue")
    assert card.licence.startswith("MIT; DenseNet-121")


def test_the_same_seed_gives_the_same_texture_code(folder):
    params = TextureTrainParams(blocks=(1,), input_px=64, views=3, bits=64, dimensions=16)
    first, second = (train_texture([TissueSource(folder)], params) for _ in range(2))
    assert np.array_equal(first.projection, second.projection)


def test_the_recipe_of_fish_lite_keeps_away_from_validation_tissue(real_data):
    from pathlib import Path

    recipe = read_recipe(Path(__file__).parents[2] / "recipes" / "fish-lite.toml", real_data)
    for source in (*recipe.sources, *recipe.texture_sources):
        assert source.path.exists()
        assert "validation" not in source.path.parts and "crc" not in str(source.path)


def test_a_recipe_with_a_misspelt_setting_is_refused(tmp_path):
    (tmp_path / "r.toml").write_text('id = "x"\nsources = []\n[vqvae]\nwidht = 3\n')
    with pytest.raises(EncoderError, match="widht"):
        read_recipe(tmp_path / "r.toml")
