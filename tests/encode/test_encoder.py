import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from napari_fish.encode.bundle.barcode import unpack
from napari_fish.encode.bundle.bundle import cache_folder
from napari_fish.encode.encoder import Encoder, patch_from_image
from napari_fish.encode.speed import speed_plan as plans
from napari_fish.encode.speed.speed_plan import PLAIN, Engine, Plan
from napari_fish.errors import EncoderError
from tests.encode.conftest import lively_vqvae, tissue
from tests.encode.reference import plain_barcode, plain_key

FUSED = Plan(channels_last=True, fused=True)


@pytest.fixture(scope="module")
def patches():
    return tissue(3, seed=4)


@pytest.fixture(scope="module")
def encoder(tiny_bundle):
    return Encoder(tiny_bundle, "cpu", PLAIN)


def test_an_encoder_agrees_bit_for_bit_with_the_plain_reference(encoder, patches):
    encoded = encoder.encode(patches, keep_codes=True)
    features = encoder.features(patches)
    assert encoded.keys.tolist() == [plain_key(codes) for codes in encoded.codes]
    assert encoded.barcodes.tolist() == [plain_barcode(row) for row in features]
    assert encoded.keys.dtype == encoded.barcodes.dtype == np.uint64
    assert len(set(encoded.keys.tolist())) == 3 and len(np.unique(encoded.codes)) > 20


def test_codes_are_in_semantic_order(tiny_bundle, encoder, patches):
    import torch

    from napari_fish.encode.networks.vqvae import to_network_range

    model = lively_vqvae()
    with torch.inference_mode():
        raw = model.codes(to_network_range(torch.from_numpy(patches[:1]).permute(0, 3, 1, 2)))[0].numpy()
    semantic = np.array(tiny_bundle.card.order)[raw]
    # Not to the last code: another order of summation may tip a vector half-way between two codewords.
    assert np.mean(encoder.encode(patches[:1], keep_codes=True).codes[0] == semantic) > 0.999


def test_codes_do_not_depend_on_batch_size_on_the_cpu(tiny_bundle, encoder, patches):
    together = encoder.encode(patches)
    alone = [encoder.encode(patch[None]) for patch in patches]
    assert np.array_equal(together.keys, np.concatenate([a.keys for a in alone]))
    assert np.array_equal(together.barcodes, np.concatenate([a.barcodes for a in alone]))
    large = Encoder(tiny_bundle, "cpu", Plan(batch=3)).encode(patches, keep_codes=True)
    assert np.mean(large.codes == encoder.encode(patches, keep_codes=True).codes) > 0.999


def test_the_fused_networks_compute_what_the_plain_ones_do(tiny_bundle, encoder, patches):
    plain, fused = encoder.encode(patches, True), Encoder(tiny_bundle, "cpu", FUSED).encode(patches, True)
    assert np.mean(plain.codes == fused.codes) > 0.999
    length = tiny_bundle.card.barcode_length
    assert np.mean(unpack(plain.barcodes, length) != unpack(fused.barcodes, length)) < 0.01


def test_half_precision_where_it_is_cheap_changes_next_to_nothing(tiny_bundle, encoder, patches):
    half = Encoder(tiny_bundle, "cpu", Plan(channels_last=True, fused=True, dtype="bfloat16"))
    plain, quick = encoder.encode(patches[:1], True), half.encode(patches[:1], True)
    # Random weights: a trained network changes fewer codes still.
    assert 0.97 < np.mean(plain.codes == quick.codes) < 1, "all the same would mean that nothing was halved"
    assert np.array_equal(plain.barcodes, quick.barcodes), "the small texture network stays as it is"


@pytest.mark.parametrize("joined", [True, False])
def test_folding_is_exact_up_to_the_very_edge(monkeypatch, joined):
    import torch

    from napari_fish.encode.speed import fused

    if not joined:
        monkeypatch.setattr(fused, "_pointwise", lambda: None)
    model = lively_vqvae(8, seed=3)
    quick = fused.fuse_encoder(model.encoder)
    assert isinstance(quick, fused.FusedEncoder)
    image = torch.rand(1, 3, 64, 96) * 2 - 1
    with torch.inference_mode():
        assert torch.allclose(quick(image), model.encoder(image), atol=2e-4)


def test_a_channel_that_cannot_be_folded_keeps_the_plain_network():
    import torch

    from napari_fish.encode.speed.fused import FusedEncoder, fuse_encoder

    model = lively_vqvae()
    model.encoder[2].weight.data[3] = 0
    quick = fuse_encoder(model.encoder)
    assert not isinstance(quick, FusedEncoder)
    image = torch.rand(1, 3, 32, 32)
    with torch.inference_mode():
        assert torch.equal(quick(image), model.encoder(image))


def test_a_fused_dense_layer_computes_what_torchvision_does():
    import torch

    from napari_fish.encode.networks.densenet import DenseNetTexture
    from napari_fish.encode.speed.fused import fuse_texture

    torch.manual_seed(0)
    plain = DenseNetTexture().eval()
    pixels = torch.rand(1, 3, 96, 96) * 255
    with torch.inference_mode():
        features, quick = plain(pixels), fuse_texture(plain)(pixels)
        assert torch.allclose(quick, features, atol=1e-4)
        standard = (pixels / 255 - torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)) / torch.tensor(
            [0.229, 0.224, 0.225]
        ).view(1, 3, 1, 1)
        assert torch.allclose(plain.features(standard).mean((2, 3)), features, atol=1e-4)
        half = fuse_texture(plain, torch.bfloat16)(pixels)
        assert half.dtype == torch.float32 and not torch.equal(half, quick)
        assert float((half - features).abs().max()) < 0.02 * float(features.std())
    assert (features < 0).any(), "there is no ReLU at the end"


def test_running_out_of_memory_halves_the_batch_and_goes_on(tiny_bundle, encoder, patches, monkeypatch):
    import torch

    sizes = []
    run = Engine.run

    def short_of_memory(self, some):
        sizes.append(len(some))
        if len(some) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return run(self, some)

    hungry = Encoder(tiny_bundle, "cpu", Plan(batch=4))
    monkeypatch.setattr(Engine, "run", short_of_memory)
    encoded = hungry.encode(patches)
    assert sizes == [3, 2, 1, 1, 1] and hungry.batch == 1
    assert np.array_equal(encoded.keys, encoder.encode(patches).keys)


@pytest.mark.parametrize(
    "text",
    [
        "MPS backend out of memory (MPS allocated: 17 GB)",
        "[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: not enough memory: you tried to allocate 2 bytes",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
        "DefaultCPUAllocator: can't allocate memory",
    ],
)
def test_lack_of_memory_is_recognised_in_the_words_of_every_device(tiny_bundle, text):
    encoder = Encoder(tiny_bundle, "cpu", Plan(batch=4))
    encoder._shrink_batch(RuntimeError(text))
    assert encoder.batch == 2


def test_half_precision_in_batches_as_on_a_gpu_changes_little(tiny_bundle, encoder, patches):
    half = Encoder(tiny_bundle, "cpu", Plan(channels_last=True, dtype="float16", batch=2))
    plain, quick = encoder.encode(patches, True), half.encode(half.stack(list(patches)), True)
    # Random weights: a trained network changes fewer codes still.
    assert 0.9 < np.mean(plain.codes == quick.codes) < 1
    length = tiny_bundle.card.barcode_length
    assert np.mean(unpack(plain.barcodes, length) != unpack(quick.barcodes, length)) < 0.02


def test_too_little_memory_for_one_patch_is_a_clear_error(tiny_bundle, patches, monkeypatch):
    def never(self, some):
        raise MemoryError

    small = Encoder(tiny_bundle, "cpu", PLAIN)
    monkeypatch.setattr(Engine, "run", never)
    with pytest.raises(EncoderError, match="too little memory"):
        small.encode(patches)


def test_other_faults_of_the_device_are_not_taken_for_lack_of_memory(tiny_bundle, patches, monkeypatch):
    def broken(self, some):
        raise RuntimeError("device-side assert")

    encoder = Encoder(tiny_bundle, "cpu", Plan(batch=4))
    monkeypatch.setattr(Engine, "run", broken)
    with pytest.raises(RuntimeError, match="device-side assert"):
        encoder.encode(patches)
    assert encoder.batch == 4


def test_the_self_test_picks_a_plan_that_agrees_and_remembers_it(tiny_bundle, monkeypatch):
    trials = []
    real = plans.self_test

    def counted(model, texture, device, bits, side):
        trials.append(side)
        return real(model, texture, device, bits, 256)

    monkeypatch.setattr(plans, "self_test", counted)
    first = Encoder(tiny_bundle, "cpu").plan
    assert Encoder(tiny_bundle, "cpu").plan == first and trials == [tiny_bundle.card.size]
    (cache_folder() / plans.MEMORY).write_text("rubbish")
    Encoder(tiny_bundle, "cpu")
    assert len(trials) == 2
    monkeypatch.setattr(plans, "candidate_plans", lambda device: [PLAIN])
    assert Encoder(tiny_bundle, "cpu").plan == PLAIN and len(trials) == 3, "other plans, another test"


def test_programs_that_start_at_once_compute_alike(tiny_bundle, monkeypatch):
    choices = iter([PLAIN, FUSED])

    def slow(*arguments):
        time.sleep(0.2)
        return next(choices)

    monkeypatch.setattr(plans, "self_test", slow)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: Encoder(tiny_bundle, "cpu").plan, range(2))
    assert first == second == PLAIN


@pytest.fixture
def tried(tiny_bundle, monkeypatch):
    """The self-test with a plan of one's own making after the plain one."""
    import torch

    from napari_fish.encode.networks.registry import make_texture

    texture = make_texture(tiny_bundle.card, tiny_bundle.tensors, None)
    run = Engine.run

    def choose(change, bits=lambda features: features > 1):
        monkeypatch.setattr(plans, "candidate_plans", lambda device: [PLAIN, FUSED])
        monkeypatch.setattr(
            Engine, "run", lambda self, some: change(*run(self, some)) if self.plan.fused else run(self, some)
        )
        monkeypatch.setattr(plans, "_seconds", lambda engine, patch: 1.0 - engine.plan.fused)
        return plans.self_test(lively_vqvae(), texture, torch.device("cpu"), bits, side=256)

    return choose


def test_a_plan_that_changes_codes_or_bits_is_never_chosen(tried):
    assert tried(lambda codes, features: (codes, features)).fused
    assert not tried(lambda codes, features: (codes * 0, features)).fused
    assert not tried(lambda codes, features: (codes, -features)).fused


def test_plans_are_judged_by_the_bits_of_the_encoder(tried):
    def turned_round(codes, features):
        return codes, features[:, ::-1]

    assert tried(turned_round, bits=lambda features: features.sum(1, keepdims=True) > 0).fused
    assert not tried(turned_round, bits=lambda features: features > features.mean()).fused


def test_a_plan_that_fails_in_its_own_way_is_passed_over(tried):
    def broken(codes, features):
        raise SyntaxError("the compiler's own error")

    assert tried(broken) == PLAIN


def test_where_not_even_the_plain_plan_works_nothing_is_remembered(tiny_bundle, monkeypatch):
    def broken(self, some):
        raise RuntimeError("no such operator")

    monkeypatch.setattr(Engine, "run", broken)
    assert Encoder(tiny_bundle, "cpu").plan == PLAIN
    assert not (cache_folder() / plans.MEMORY).exists()


def test_wrongly_shaped_patches_are_refused(encoder):
    with pytest.raises(ValueError, match=r"\(n, 1024, 1024, 3\)"):
        encoder.encode(np.zeros((1, 512, 512, 3), np.uint8))
    assert len(encoder.encode(np.zeros((0, 1024, 1024, 3), np.uint8))) == 0


def test_a_barcode_of_another_length_than_the_card_says_is_refused(tiny_bundle, patches):
    card = tiny_bundle.card.renamed(barcode_length=100)
    short = Encoder(type(tiny_bundle)(card, tiny_bundle.tensors), "cpu", PLAIN)
    with pytest.raises(EncoderError, match="gives 144 bits, its card says 100"):
        short.encode(patches[:1])


def test_planes_that_do_not_fit_the_card_are_refused(tiny_bundle, patches):
    import torch

    def planes(features, bits, thresholds):
        card = tiny_bundle.card.renamed(barcode="projection", barcode_length=64)
        more = {
            "texture.projection": torch.ones(features, bits),
            "texture.thresholds": torch.zeros(thresholds),
        }
        return Encoder(type(tiny_bundle)(card, {**tiny_bundle.tensors, **more}), "cpu", PLAIN)

    assert planes(144, 64, 64).encode(patches[:1]).barcodes.shape == (1, 1)
    with pytest.raises(EncoderError, match="no planes for 64 bits"):
        planes(144, 32, 64)
    with pytest.raises(EncoderError, match="gives 144 features, its planes want 100"):
        planes(100, 64, 64).encode(patches[:1])


def test_weights_of_another_shape_are_refused(tiny_bundle):
    name = "vqvae.codebook.embedding.weight"
    tensors = {**tiny_bundle.tensors, name: tiny_bundle.tensors[name][:, :4]}
    with pytest.raises(EncoderError, match=r"no codebook of width 8 in its weights"):
        Encoder(type(tiny_bundle)(tiny_bundle.card, tensors), "cpu", PLAIN)


def test_densenet_weights_in_a_bundle_must_be_all_there(tiny_bundle):
    import torch

    from napari_fish.encode.bundle.card import TextureSpec
    from napari_fish.encode.networks.densenet import DenseNetTexture
    from napari_fish.encode.networks.registry import make_texture

    torch.manual_seed(1)
    plain = DenseNetTexture()
    mine = {f"texture.{k}": v for k, v in plain.state_dict().items()}
    card = tiny_bundle.card.renamed(texture=TextureSpec("densenet121"), barcode_length=1024)
    loaded = make_texture(card, mine, None).state_dict()
    assert all(torch.equal(loaded[k], v) for k, v in plain.state_dict().items())
    del mine["texture.features.conv0.weight"]
    with pytest.raises(EncoderError, match=r"features\.conv0\.weight is missing"):
        make_texture(card, mine, None)


def test_a_card_with_patches_that_give_no_key_is_refused(tiny_bundle):
    with pytest.raises(EncoderError, match="1024 px, not 512"):
        tiny_bundle.card.renamed(size=512)


def test_an_unknown_or_absent_device_is_a_clear_error(tiny_bundle):
    with pytest.raises(EncoderError, match="unknown device 'gpu'"):
        Encoder(tiny_bundle, "gpu")
    from napari_fish.encode.bundle.device import available_devices

    if "cuda" not in available_devices():
        with pytest.raises(EncoderError, match="no usable 'cuda' device"):
            Encoder(tiny_bundle, "cuda")


def test_an_image_of_any_shape_becomes_a_patch():
    image = np.zeros((230, 350, 3), np.uint8)
    image[:, 175:] = 200
    patch = patch_from_image(image)
    assert patch.shape == (1024, 1024, 3)
    assert patch[:, :500].max() == 0 and patch[:, 524:].min() == 200
