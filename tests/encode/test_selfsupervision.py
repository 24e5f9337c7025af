"""Training of a texture network without labels."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from napari_fish.encode import load_bundle
from napari_fish.encode.encoder import Encoder
from napari_fish.encode.speed.speed_plan import PLAIN, Plan
from napari_fish.encode.training.params import SelfSupervision
from napari_fish.encode.training.recipe import read_recipe, train_recipe
from napari_fish.encode.training.self_supervision import STATE_FILE, contrastive_loss, train_network
from napari_fish.encode.training.sources import TissueSource
from napari_fish.encode.training.texture_code import TextureTrainParams
from napari_fish.errors import EncoderError
from tests.encode.conftest import tissue

TEXTURE = TextureTrainParams(blocks=(1, 2), input_px=64, views=3, bits=64, dimensions=16)
QUICK = SelfSupervision(
    network="scratch", first_block=0, steps=12, batch=6, crop=32, area=(0.2, 0.6), field_px=64,
    learning_rate=3e-3, held_out=0.3, check_every=4, patience=0,
)  # fmt: skip


def tinted(pictures):
    """Give each of a few pictures a colour of its own."""
    tints = [[20 * (i % 3), 15 * (i % 4), 10 * (i % 5)] for i in range(len(pictures))]
    return pictures // 2 + np.array(tints, np.uint8)[:, None, None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("tissue")
    for i, picture in enumerate(tinted(tissue(12, 96, seed=9))):
        Image.fromarray(picture).save(where / f"{i}.png")
    return where


def test_views_of_one_field_become_more_alike_than_views_of_others(folder, tmp_path):
    reports = []
    params = replace(QUICK, steps=40, check_every=20, stain=0.05)
    network = train_network([TissueSource(folder)], tmp_path, TEXTURE, params, progress=reports.append)
    assert [r.step for r in reports] == [10, 20, 30, 40]
    assert [r.validation is not None for r in reports] == [False, True, False, True]
    assert reports[-1].loss < 0.9 * reports[0].loss
    assert not network.training


def test_an_interrupted_training_ends_like_an_undisturbed_one(folder, tmp_path):
    import torch

    source, steps = [TissueSource(folder)], []
    whole = train_network(source, tmp_path / "whole", TEXTURE, QUICK)
    train_network(
        source, tmp_path / "parts", TEXTURE, QUICK, should_stop=lambda: len(steps) > 4 or steps.append(1)
    )
    resumed = train_network(source, tmp_path / "parts", TEXTURE, QUICK)
    for name, value in whole.state_dict().items():
        assert torch.allclose(value.float(), resumed.state_dict()[name].float(), atol=1e-5), name
    with pytest.raises(EncoderError, match="temperature"):
        train_network(source, tmp_path / "parts", TEXTURE, replace(QUICK, temperature=0.5))
    with pytest.raises(EncoderError, match="blocks"):
        train_network(source, tmp_path / "parts", replace(TEXTURE, blocks=(1,)), QUICK)
    with pytest.raises(EncoderError, match="other slides or images"):
        train_network([TissueSource(folder, weight=2.0)], tmp_path / "parts", TEXTURE, QUICK)


def test_a_damaged_state_says_what_to_do(folder, tmp_path):
    (tmp_path / STATE_FILE).write_bytes(b"rubbish")
    with pytest.raises(EncoderError, match="Delete it to start afresh"):
        train_network([TissueSource(folder)], tmp_path, TEXTURE, QUICK)


def test_early_blocks_stay_as_imagenet_made_them_and_later_ones_learn(folder, tmp_path):
    import torch

    from napari_fish.encode.training.texture_code import texture_network

    params = replace(QUICK, network="lite0", first_block=2, steps=2, check_every=1)
    before = texture_network(TEXTURE).network
    after = train_network([TissueSource(folder)], tmp_path, TEXTURE, params).network
    same = {
        name for name, value in before.state_dict().items() if torch.equal(value, after.state_dict()[name])
    }
    assert {name for name in before.state_dict() if name.startswith(("stem", "blocks.0", "blocks.1"))} == same


def test_training_stops_when_held_out_fields_no_longer_gain(folder, tmp_path):
    reports = []
    params = replace(QUICK, steps=100, check_every=1, patience=2, learning_rate=0.0)
    train_network([TissueSource(folder)], tmp_path, TEXTURE, params, progress=reports.append)
    assert reports[-1].step < 30


def test_the_loss_is_that_of_the_plain_formula():
    import torch

    vectors = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    unit = (vectors / vectors.norm(dim=1, keepdim=True)).double().numpy()
    terms = []
    for i in range(6):
        others = [np.exp(unit[i] @ unit[j] / 0.3) for j in range(6) if j != i]
        terms.append(-np.log(np.exp(unit[i] @ unit[(i + 3) % 6] / 0.3) / sum(others)))
    assert float(contrastive_loss(vectors, 0.3)) == pytest.approx(np.mean(terms), rel=1e-5)


@pytest.mark.parametrize("network", ["scratch", "lite0"])
def test_a_recipe_trains_the_network_and_the_bundle_carries_it(folder, tiny_bundle, tmp_path, network):
    from napari_fish.encode.bundle.bundle import save_bundle

    save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "base")
    text = f"""
id = "own"
[[sources]]
path = "{folder.as_posix()}"
credit = "made up"
[texture]
blocks = [1, 2]
input_px = 64
views = 3
bits = 64
dimensions = 16
[network]
network = "{network}"
first_block = 0
steps = 3
batch = 4
crop = 32
field_px = 64
check_every = 3
"""
    (tmp_path / "own.toml").write_text(text)
    recipe = read_recipe(tmp_path / "own.toml")
    card = train_recipe(recipe, tmp_path / "own", keys_from=tmp_path / "base")
    bundle = load_bundle(tmp_path / "own")
    assert card.texture.weights == "bundle" and card.texture.options["network"] == network
    assert any(name.startswith("texture.network.") for name in bundle.tensors)
    # Three steps make no good network: it need not tell any two patches apart, but must not call all the same.
    patches = tinted(tissue(6, seed=1))
    one, other = (Encoder(bundle, "cpu", plan).encode(patches) for plan in (PLAIN, Plan(True, True)))
    assert one.barcodes.shape == (6, 1) and len(np.unique(one.barcodes)) > 1
    assert np.array_equal(one.barcodes, other.barcodes)


def test_weights_that_do_not_fit_the_card_are_refused(tiny_bundle):
    spec = replace(tiny_bundle.card.texture, weights="bundle")
    broken = replace(tiny_bundle, card=tiny_bundle.card.renamed(texture=spec))
    with pytest.raises(EncoderError, match="texture: the weights do not fit"):
        Encoder(broken, "cpu", PLAIN)


@pytest.mark.parametrize("name", ["lite0-tuned", "scratch"])
def test_the_recipes_keep_away_from_validation_tissue(real_data, name):
    recipe = read_recipe(Path(__file__).parents[2] / "recipes" / f"{name}.toml", real_data)
    assert recipe.network is not None and recipe.texture is not None
    for source in (*recipe.sources, *recipe.texture_sources):
        assert source.path.exists()
        assert "validation" not in source.path.parts and "crc" not in str(source.path)
