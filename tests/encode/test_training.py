import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from napari_fish.encode.bundle.bundle import load_bundle
from napari_fish.encode.training.crops import Crops
from napari_fish.encode.training.params import VQTrainParams
from napari_fish.encode.training.recipe import Recipe, read_recipe, train_recipe, train_slides
from napari_fish.encode.training.sources import TissueSource, tissue_fields
from napari_fish.encode.training.texture_code import TextureTrainParams, learn_code, train_texture
from napari_fish.encode.training.vqvae import STATE_FILE, train_vqvae
from napari_fish.errors import Cancelled, EncoderError
from tests.encode.conftest import tissue
from tests.slides.conftest import write_dicom_header

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
    from napari_fish.encode.bundle.bundle import save_bundle

    save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "base")
    card = train_slides([folder], tmp_path / "own", texture="lite0", keys_from=tmp_path / "base")
    bundle = load_bundle(tmp_path / "own")
    assert card.barcode == "projection" and card.barcode_length == 1024
    assert bundle.tensors["texture.projection"].shape == (992, 1024)
    assert np.array_equal(bundle.card.order, tiny_bundle.card.order)


@pytest.fixture
def shuffled(tiny_bundle, tmp_path):
    """A bundle whose order no computation would give, at 1 µm/px."""
    from napari_fish.encode.bundle.bundle import save_bundle

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
    recipe = read_recipe(Path(__file__).parents[2] / "recipes" / "fish-lite.toml", real_data)
    for source in (*recipe.sources, *recipe.texture_sources):
        assert source.path.exists()
        assert "validation" not in source.path.parts and "crc" not in str(source.path)


def test_a_crop_that_the_network_cannot_halve_is_refused_at_the_door():
    with pytest.raises(EncoderError, match="multiple of 16"):
        VQTrainParams(crop=100)


def test_a_recipe_with_a_misspelt_setting_is_refused(tmp_path):
    (tmp_path / "r.toml").write_text('id = "x"\nsources = []\n[vqvae]\nwidht = 3\n')
    with pytest.raises(EncoderError, match="widht"):
        read_recipe(tmp_path / "r.toml")


def test_ctrl_c_leaves_a_state_from_which_training_ends_the_same(folder, tmp_path):
    import signal

    import torch

    params = replace(QUICK, steps=12, check_every=250)
    whole = train_vqvae([TissueSource(folder)], tmp_path / "whole", params)
    steps = []

    def press(number=None):
        steps.append(1)
        if len(steps) == 5:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train_vqvae([TissueSource(folder)], tmp_path / "parts", params, should_stop=press)
    assert signal.getsignal(signal.SIGINT) is before
    state = torch.load(tmp_path / "parts" / STATE_FILE, weights_only=True)
    assert 5 <= state["numbers"][0] < 12
    resumed = train_vqvae([TissueSource(folder)], tmp_path / "parts", params)
    for name, value in whole.state_dict().items():
        assert torch.allclose(value.float(), resumed.state_dict()[name].float(), atol=1e-5), name


def test_a_run_that_ends_in_an_error_between_steps_can_go_on(folder, tmp_path):
    import torch

    def full(report):
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        train_vqvae([TissueSource(folder)], tmp_path, replace(QUICK, check_every=7), progress=full)
    assert torch.load(tmp_path / STATE_FILE, weights_only=True)["numbers"][0] == 7


def test_a_short_run_is_kept_before_its_first_validation(folder, tmp_path):
    seen = []
    params = replace(QUICK, steps=20, check_every=250)
    state = tmp_path / STATE_FILE

    def look():
        seen.append(state.exists())

    train_vqvae([TissueSource(folder)], tmp_path, params, should_stop=look)
    assert seen[:2] == [False, True]


def test_a_run_does_not_go_on_with_other_slides(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for i, picture in enumerate(tissue(6, 128, seed=77)):
        Image.fromarray(picture).save(other / f"{i}.png")
    work, params = tmp_path / "work", replace(QUICK, steps=6)
    train_vqvae([TissueSource(folder)], work, params)
    for sources in ([TissueSource(other)], [TissueSource(folder, 0.25)], [TissueSource(folder)] * 2):
        with pytest.raises(EncoderError, match="other slides or images"):
            train_vqvae(sources, work, params)
    moved = Path(shutil.copytree(folder, tmp_path / "moved"))
    train_vqvae([TissueSource(moved)], work, params)


def test_a_stopped_recipe_writes_no_bundle(folder, tmp_path):
    with pytest.raises(Cancelled):
        train_slides([folder], tmp_path / "own", params=QUICK, should_stop=lambda: True)
    assert not (tmp_path / "own").exists()


@pytest.fixture
def with_broken(folder, tmp_path):
    where = Path(shutil.copytree(folder, tmp_path / "broken"))
    whole = (where / "3.png").read_bytes()
    (where / "3.png").write_bytes(whole[: len(whole) // 2])
    (where / "slide.svs").write_bytes(b"no slide")
    return where


def test_files_that_cannot_be_read_are_left_out_and_named(with_broken):
    named = []
    crops = Crops([TissueSource(with_broken)], 32, left_out=named.append)
    assert crops.n_files == 5 and crops.train(0, 40).shape == (40, 32, 32, 3)
    assert len(named) == 2 and "3.png" in named[0] and "slide.svs" in named[1]
    again = []
    fields = list(tissue_fields([TissueSource(with_broken)], per_slide=2, left_out=again.append))
    assert len(fields) == 5 and again == named


def test_if_no_file_can_be_read_the_reason_is_told(tmp_path):
    (tmp_path / "a.png").write_bytes(b"rubbish")
    with pytest.raises(EncoderError, match=r"nothing to train on.*a\.png: the image is damaged"):
        Crops([TissueSource(tmp_path)], 32)


def test_a_slide_of_many_files_is_one_slide_and_a_label_image_is_none(tmp_path, monkeypatch):
    from napari_fish.encode.training import sources

    for i in range(4):
        write_dicom_header(tmp_path / f"{i}.dcm", "1.2.3")
    assert sources.files_of(TissueSource(tmp_path)) == [tmp_path]

    class Label:
        kind, mpp, path = "label", 0.5, tmp_path

        def close(self):
            pass

    monkeypatch.setattr(sources, "open_slide", lambda path, mpp: Label())
    named = []
    assert list(tissue_fields([TissueSource(tmp_path)], per_slide=1, left_out=named.append)) == []
    assert "only a label image" in named[0]


def test_the_order_of_files_is_that_of_their_sorted_paths(tmp_path):
    from napari_fish.encode.training.sources import files_of

    for name in ("b/2_x.png", "b/10_x.jpg", "a.png", "a/z_x.jpeg", "a b/c_x.tif", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    everything = sorted(p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".txt")
    assert files_of(TissueSource(tmp_path)) == everything
    chosen = sorted(p for p in tmp_path.rglob("*_x*") if p.is_file())
    assert files_of(TissueSource(tmp_path, pattern="*_x*")) == chosen
