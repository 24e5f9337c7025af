import numpy as np
import pytest

from napari_fish.encode.bundle.bundle import load_bundle, save_bundle
from napari_fish.encode.bundle.card import TextureSpec
from napari_fish.encode.encoder import Encoder
from napari_fish.encode.networks.registry import register_texture
from napari_fish.encode.speed.speed_plan import PLAIN
from napari_fish.errors import EncoderError
from tests.encode.conftest import tissue


@pytest.fixture
def base(tiny_bundle, tmp_path):
    save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "base")
    return tmp_path / "base"


def test_a_torchvision_backbone_gives_a_barcode_as_long_as_its_features(base, tiny_bundle, tmp_path):
    import torch
    from safetensors.torch import save_file
    from torchvision.models import resnet18

    from napari_fish.encode.networks.backbones import Backbone, make_custom_bundle

    torch.manual_seed(0)
    plain = resnet18().eval()
    save_file(plain.state_dict(), tmp_path / "mine.safetensors")
    card = make_custom_bundle(
        "resnet18", tmp_path / "custom", library="torchvision", weights=tmp_path / "mine.safetensors", input_px=64,
        keys_from=base,
    )  # fmt: skip
    (tmp_path / "mine.safetensors").unlink()
    assert card.barcode_length == 512 and card.texture.weights == "bundle"
    assert str(tmp_path) not in card.to_json(), "a bundle may be moved and mailed"
    encoder = Encoder(load_bundle(tmp_path / "custom"), "cpu", PLAIN)
    patches = tissue(1)
    encoded = encoder.encode(patches)
    assert encoded.barcodes.shape == (1, 8)
    assert np.array_equal(encoded.keys, Encoder(tiny_bundle, "cpu", PLAIN).encode(patches).keys)
    plain.fc = torch.nn.Identity()
    backbone = Backbone(plain, 64, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    with torch.inference_mode():
        expected = backbone(torch.from_numpy(patches).permute(0, 3, 1, 2).float()).numpy()
    assert np.allclose(encoder.features(patches), expected, atol=1e-4)


@pytest.fixture
def timm_bundle(base, tmp_path):
    pytest.importorskip("timm", reason="TIMM MISSING: pip install 'napari-fish[timm]'")
    from napari_fish.encode.networks.backbones import make_custom_bundle

    make_custom_bundle("resnet10t", tmp_path / "c", pretrained=False, input_px=64, keys_from=base)
    return tmp_path / "c"


def test_a_timm_bundle_carries_its_weights_and_encodes_without_asking_anybody(timm_bundle, monkeypatch):
    import torch

    monkeypatch.setattr(torch.hub, "download_url_to_file", lambda *a, **k: pytest.fail("a download"))
    first, again = (Encoder(load_bundle(timm_bundle), "cpu", PLAIN) for _ in range(2))
    patches = tissue(2)
    encoded = first.encode(patches)
    assert first.card.barcode_length == 512 and first.card.id == "resnet10t"
    assert np.array_equal(encoded.barcodes, again.encode(patches).barcodes)
    assert not np.array_equal(encoded.barcodes[0], encoded.barcodes[1])


def test_a_changed_weight_of_a_backbone_is_refused(timm_bundle):
    from safetensors.torch import load_file, save_file

    weights = timm_bundle / "weights.safetensors"
    tensors = load_file(weights)
    name = next(name for name in tensors if name.startswith("texture."))
    tensors[name].view(-1)[0] += 1e-3
    save_file(tensors, weights)
    with pytest.raises(EncoderError, match="damaged or was edited"):
        load_bundle(timm_bundle)


def test_weights_of_another_backbone_are_refused_by_name(base, timm_bundle, tmp_path):
    from safetensors.torch import save_file
    from torchvision.models import resnet18

    from napari_fish.encode.networks.backbones import make_custom_bundle

    save_file(resnet18().state_dict(), tmp_path / "other.safetensors")
    with pytest.raises(EncoderError, match=r"other\.safetensors: the weights do not fit"):
        make_custom_bundle(
            "resnet10t", tmp_path / "d", weights=tmp_path / "other.safetensors", keys_from=base
        )
    bundle = load_bundle(timm_bundle)
    kept = {k: v for k, v in bundle.tensors.items() if not k.endswith("conv1.0.weight")}
    with pytest.raises(EncoderError, match=r"conv1\.0\.weight is missing"):
        Encoder(type(bundle)(bundle.card, kept), "cpu", PLAIN)


def test_a_model_of_hugging_face_is_kept_under_the_name_of_its_architecture(base, tmp_path, monkeypatch):
    timm = pytest.importorskip("timm", reason="TIMM MISSING: pip install 'napari-fish[timm]'")
    from napari_fish.encode.networks.backbones import make_custom_bundle

    found = (
        {"mean": (0.7, 0.6, 0.7), "std": (0.2, 0.2, 0.2), "input_size": (3, 64, 64)},
        "resnet10t",
        {"global_pool": "avgmax"},
    )
    monkeypatch.setattr(timm.models, "load_model_config_from_hf", lambda name: found)
    card = make_custom_bundle("hf-hub:Some/Model", tmp_path / "c", pretrained=False, keys_from=base)
    assert card.texture.options == {
        "name": "resnet10t", "arguments": {"global_pool": "avgmax"}, "input_px": 64,
        "mean": [0.7, 0.6, 0.7], "std": [0.2, 0.2, 0.2],
    }  # fmt: skip
    monkeypatch.setattr(timm.models, "load_model_config_from_hf", lambda name: pytest.fail("asked again"))
    assert len(Encoder(load_bundle(tmp_path / "c"), "cpu", PLAIN).encode(tissue(1))) == 1


def test_a_backbone_nobody_knows_is_named(base, tmp_path):
    pytest.importorskip("timm", reason="TIMM MISSING: pip install 'napari-fish[timm]'")
    from napari_fish.encode.networks.backbones import make_custom_bundle

    with pytest.raises(EncoderError, match="no-such-backbone"):
        make_custom_bundle("no-such-backbone", tmp_path / "d", pretrained=False, keys_from=base)


def test_a_small_registered_class_is_enough_for_an_own_texture_network(tiny_bundle):
    import torch

    class MeanColour(torch.nn.Module):
        def forward(self, pixels):
            return pixels.mean((2, 3))

    register_texture("mean-colour")(lambda card, tensors, path: MeanColour())
    card = tiny_bundle.card.renamed(texture=TextureSpec("mean-colour", "none"), barcode_length=3)
    bundle = type(tiny_bundle)(card, tiny_bundle.tensors)
    patch = np.zeros((1, 1024, 1024, 3), np.uint8)
    patch[..., 0], patch[..., 1], patch[..., 2] = 10, 30, 20
    assert Encoder(bundle, "cpu", PLAIN).encode(patch).barcodes.tolist() == [[0b010]]


def test_a_texture_network_nobody_registered_is_named(tiny_bundle):
    card = tiny_bundle.card.renamed(texture=TextureSpec("from-mars"))
    with pytest.raises(EncoderError, match="'from-mars', which is not registered"):
        Encoder(type(tiny_bundle)(card, tiny_bundle.tensors), "cpu", PLAIN)


def test_densenet_weights_that_cannot_be_had_name_the_way_out(tiny_bundle, monkeypatch, tmp_path):
    import torch

    from napari_fish.encode.networks.densenet import imagenet_state

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))

    asked = {}

    def offline(*args, **kwargs):
        asked.update(kwargs)
        raise OSError("no route to host")

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", offline)
    with pytest.raises(EncoderError, match="NAPARI_FISH_WEIGHTS"):
        imagenet_state()
    assert asked["weights_only"] is True and asked["check_hash"] is True
    monkeypatch.setenv("NAPARI_FISH_WEIGHTS", str(tmp_path))
    (tmp_path / "densenet121-a639ec97.pth").write_bytes(b"wrong")
    with pytest.raises(EncoderError, match="SHA-256"):
        imagenet_state()
