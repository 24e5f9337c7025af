"""Anybody's backbone as texture encoder: timm's and torchvision's, by name."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from napari_fish.encode.bundle import DEFAULT_ENCODER, load_bundle, save_bundle
from napari_fish.encode.card import NEIGHBOUR, Card, TextureSpec
from napari_fish.encode.device import keep_triton_out
from napari_fish.errors import EncoderError


class _Backbone(nn.Module):
    """A network that turns a resized, standardised patch into features."""

    network: nn.Module
    length: int
    mean: Tensor
    std: Tensor

    def __init__(self, input_px: int, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.input_px = input_px
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1) * 255, persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1) * 255, persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Return features (n, length) of RGB pixels (n, 3, size, size), 0 to 255."""
        side = (self.input_px, self.input_px)
        if pixels.shape[-2:] != side:
            pixels = F.interpolate(pixels, side, mode="bilinear", antialias=True)
        features: Tensor = self.network((pixels - self.mean) / self.std)
        return features.flatten(1)

    def _measure(self) -> int:
        """Return how many features there are."""
        with torch.inference_mode():
            self.network.eval()
            features = self.network(torch.zeros(1, 3, self.input_px, self.input_px))
        return int(features.flatten(1).shape[1])


class TimmTexture(_Backbone):
    """A backbone of timm, without its classifier.

    Parameters
    ----------
    name : str
        timm's name, or ``hf-hub:OWNER/NAME`` where there is internet.
    weights : str
        A local safetensors file; empty uses timm's own weights (a download).
    pretrained : bool
        False leaves the weights random, for tests.
    input_px : int
        Side of the input; 0 is what the backbone was trained with.
    """

    def __init__(self, name: str, weights: str = "", pretrained: bool = True, input_px: int = 0) -> None:
        keep_triton_out()
        try:
            import timm
        except ImportError as error:
            raise EncoderError(
                "this encoder needs timm. Install it: pip install 'napari-fish[timm]'"
            ) from error
        try:
            network = timm.create_model(name, pretrained=pretrained and not weights, num_classes=0)
        except Exception as error:  # timm raises whatever its many parts raise
            raise EncoderError(
                f"timm cannot make {name!r} ({error}). Check the name, the internet connection and, for a gated "
                "model, your access; or pass a local safetensors file."
            ) from error
        config = timm.data.resolve_model_data_config(network)
        super().__init__(input_px or int(config["input_size"][-1]), config["mean"], config["std"])
        if weights:
            _load_safetensors(network, Path(weights))
        self.network = network
        self.length = self._measure()


class TorchvisionTexture(_Backbone):
    """A classifier of torchvision, without its last layer.

    Parameters
    ----------
    name : str
        torchvision's name, such as ``"resnet50"``.
    weights : str
        A local safetensors file; empty uses torchvision's default weights (a download).
    pretrained : bool
        False leaves the weights random, for tests.
    input_px : int
        Side of the input.
    """

    def __init__(self, name: str, weights: str = "", pretrained: bool = True, input_px: int = 224) -> None:
        keep_triton_out()
        from torchvision import models

        super().__init__(input_px, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
        try:
            network = models.get_model(name, weights="DEFAULT" if pretrained and not weights else None)
        except (ValueError, OSError, RuntimeError) as error:
            raise EncoderError(f"torchvision cannot make {name!r}: {error}.") from error
        if weights:
            _load_safetensors(network, Path(weights))
        head = next((h for h in ("fc", "classifier", "heads", "head") if hasattr(network, h)), None)
        if head is None:
            raise EncoderError(
                f"torchvision's {name!r} has no classifier to take off; choose another backbone."
            )
        setattr(network, head, nn.Identity())
        self.network = network
        self.length = self._measure()


def _load_safetensors(network: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        state = load_file(path)
    except (SafetensorError, OSError) as error:
        raise EncoderError(f"{path}: not a safetensors file ({error}).") from error
    missing, _ = network.load_state_dict(state, strict=False)
    heads = ("fc.", "classifier.", "head.", "heads.")
    lacking = [
        name for name in missing if not name.startswith(heads) and not name.endswith("num_batches_tracked")
    ]
    if lacking:
        raise EncoderError(f"{path}: weights of another network ({lacking[0]} … is missing).")


def make_custom_bundle(
    name: str,
    out: Path,
    *,
    library: str = "timm",
    identity: str = "",
    weights: Path | None = None,
    pretrained: bool = True,
    input_px: int = 0,
    keys_from: str | Path = DEFAULT_ENCODER,
) -> Card:
    """Make a bundle whose texture comes from a backbone of timm or torchvision.

    Parameters
    ----------
    name : str
        The library's name of the backbone.
    out : Path
        The bundle to write.
    library : str
        ``"timm"`` or ``"torchvision"``.
    identity : str
        Id of the bundle; empty derives it from ``name``.
    weights : Path, optional
        Local safetensors file; its hash enters the bundle's.
    pretrained : bool
        False leaves the weights random, for tests.
    input_px : int
        Side of the backbone's input; 0 is its own.
    keys_from : str or Path
        Bundle whose VQ-VAE gives the keys.

    Returns
    -------
    Card
        The barcode is the paper's, one bit a feature.
    """
    if library not in ("timm", "torchvision"):
        raise EncoderError(f"unknown library {library!r}; choose timm or torchvision.")
    options: dict[str, object] = {"name": name, "pretrained": pretrained}
    if weights is not None:
        options["weights"] = str(weights.resolve())
    if input_px:
        options["input_px"] = input_px
    kind = TimmTexture if library == "timm" else TorchvisionTexture
    length = kind(**options).length  # type: ignore[arg-type]
    base = load_bundle(keys_from)
    card = Card(
        id=identity or name.split("/")[-1].replace(":", "-"),
        title=f"{name} ({library}) with the keys of {base.card.id}",
        width=base.card.width,
        order=base.card.order,
        texture=TextureSpec(library, f"{library}:{name}", _file_hash(weights), options),
        barcode=NEIGHBOUR,
        barcode_length=length,
        mpp=base.card.mpp,
        size=base.card.size,
        training=f"texture: see {name}; keys: {base.card.training}",
        licence=f"texture: that of {name}; keys: {base.card.licence}",
    )
    tensors = {k: v for k, v in base.tensors.items() if k.startswith("vqvae.")}
    return save_bundle(card, tensors, out)


def _file_hash(path: Path | None) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest() if path else ""
