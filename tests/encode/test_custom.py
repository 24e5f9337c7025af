import numpy as np
import pytest

from napari_fish.encode.bundle import load_bundle, save_bundle
from napari_fish.encode.card import TextureSpec
from napari_fish.encode.encoder import Encoder
from napari_fish.encode.plan import PLAIN
from napari_fish.encode.texture import register_texture
from napari_fish.errors import EncoderError

from .conftest import tissue


@pytest.fixture
def base(tiny_bundle, tmp_path):
    save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "base")
    return tmp_path / "base"


def test_a_torchvision_backbone_gives_a_barcode_as_long_as_its_features(base, tiny_bundle, tmp_path):
    import torch
    from safetensors.torch import save_file

    from napari_fish.encode.custom import TorchvisionTexture, make_custom_bundle

    torch.manual_seed(0)
    plain = TorchvisionTexture("resnet18", pretrained=False, input_px=64)
    save_file(plain.network.state_dict(), tmp_path / "mine.safetensors")
    card = make_custom_bundle(
        "resnet18", tmp_path / "custom", library="torchvision", weights=tmp_path / "mine.safetensors", input_px=64,
        keys_from=base,
    )  # fmt: skip
    assert card.barcode_length == 512 and card.texture.weights_sha256
    encoder = Encoder(load_bundle(tmp_path / "custom"), "cpu", PLAIN)
    patches = tissue(1)
    encoded = encoder.encode(patches)
    assert encoded.barcodes.shape == (1, 8)
    assert np.array_equal(encoded.keys, Encoder(tiny_bundle, "cpu", PLAIN).encode(patches).keys)
    with torch.inference_mode():
        expected = plain.eval()(torch.from_numpy(patches).permute(0, 3, 1, 2).float()).numpy()
    assert np.allclose(encoder.features(patches), expected, atol=1e-4)


def test_a_timm_backbone_works_by_its_name(base, tmp_path):
    pytest.importorskip("timm", reason="TIMM MISSING: pip install 'napari-fish[timm]'")
    from napari_fish.encode.custom import make_custom_bundle

    card = make_custom_bundle("resnet10t", tmp_path / "c", pretrained=False, input_px=64, keys_from=base)
    assert card.barcode_length == 512 and card.id == "resnet10t"
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

    from napari_fish.encode.densenet import imagenet_state

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))

    def offline(*args, **kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", offline)
    with pytest.raises(EncoderError, match="NAPARI_FISH_WEIGHTS"):
        imagenet_state()
    monkeypatch.setenv("NAPARI_FISH_WEIGHTS", str(tmp_path))
    (tmp_path / "densenet121-a639ec97.pth").write_bytes(b"wrong")
    with pytest.raises(EncoderError, match="SHA-256"):
        imagenet_state()
