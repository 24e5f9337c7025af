"""The paper's texture network: DenseNet-121 without its last ReLU, averaged over the patch."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch
from torch import Tensor, nn

from napari_fish.encode.bundle.device import keep_triton_out
from napari_fish.errors import EncoderError

DENSENET_SOURCE = "torchvision:DenseNet121_Weights.IMAGENET1K_V1"
DENSENET_SHA256 = "a639ec97"
DENSENET_FILE = f"densenet121-{DENSENET_SHA256}.pth"
# torchvision's own way of reading the names of its oldest DenseNet files
_OLD_NAMES = (("norm.1", "norm1"), ("norm.2", "norm2"), ("conv.1", "conv1"), ("conv.2", "conv2"))


class DenseNetTexture(nn.Module):
    """``features`` of DenseNet-121, batch norm included, ReLU not, averaged to 1024 numbers.

    Parameters
    ----------
    state : mapping of str to Tensor, optional
        Weights of torchvision's DenseNet-121; None leaves them random.
    """

    length = 1024
    mean: Tensor
    std: Tensor

    def __init__(self, state: dict[str, Tensor] | None = None) -> None:
        super().__init__()
        keep_triton_out()
        from torchvision.models import densenet121

        network = densenet121(weights=None)
        if state is not None:
            network.load_state_dict(state)
        self.features = network.features
        self.register_buffer(
            "mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1) * 255, persistent=False
        )
        self.register_buffer(
            "std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1) * 255, persistent=False
        )

    def forward(self, pixels: Tensor) -> Tensor:
        """Return features (n, 1024) of RGB pixels (n, 3, h, w), 0 to 255."""
        features: Tensor = self.features((pixels - self.mean) / self.std)
        return features.mean((2, 3))


def check_weights_file(path: Path) -> None:
    """Refuse a file that is not torchvision's DenseNet-121 for ImageNet."""
    if not path.is_file():
        raise EncoderError(f"{path}: no such file.")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if not digest.startswith(DENSENET_SHA256):
        raise EncoderError(
            f"{path}: this is not torchvision's {DENSENET_FILE} (SHA-256 begins with {digest[:8]}). Get it again."
        )


def find_weights(bundle_folder: Path | None) -> Path | None:
    """Return a local copy of the weights, or None.

    Looked for in the bundle's folder, in the folder that ``NAPARI_FISH_WEIGHTS`` names, and in
    torchvision's cache.
    """
    folders = [bundle_folder] if bundle_folder else []
    if "NAPARI_FISH_WEIGHTS" in os.environ:
        folders.append(Path(os.environ["NAPARI_FISH_WEIGHTS"]))
    folders.append(Path(torch.hub.get_dir()) / "checkpoints")
    return next((f / DENSENET_FILE for f in folders if (f / DENSENET_FILE).is_file()), None)


def imagenet_state(bundle_folder: Path | None = None) -> dict[str, Tensor]:
    """Return ImageNet weights: a local file if there is one, else torchvision's download."""
    local = find_weights(bundle_folder)
    if local is not None:
        check_weights_file(local)
        state = torch.load(local, map_location="cpu", weights_only=True)
        return {_new_name(k): v for k, v in state.items()}
    from torchvision.models import DenseNet121_Weights

    try:
        weights = DenseNet121_Weights.IMAGENET1K_V1.get_state_dict(
            progress=False, check_hash=True, weights_only=True
        )
    except (OSError, RuntimeError) as error:
        raise EncoderError(
            f"the DenseNet-121 weights of 'fish-paper' could not be downloaded ({error}). Without internet, "
            f"fetch {DENSENET_FILE} elsewhere and put it into the bundle's folder or into the folder that "
            "NAPARI_FISH_WEIGHTS names; or use 'fish-lite', which needs no download."
        ) from error
    return {_new_name(k): v for k, v in weights.items()}


def _new_name(name: str) -> str:
    if "denselayer" in name:
        for old, new in _OLD_NAMES:
            name = name.replace(f".{old}.", f".{new}.")
    return name
