"""Anybody's backbone as texture encoder: timm's and torchvision's, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from napari_fish.encode.bundle.bundle import DEFAULT_ENCODER, load_bundle, save_bundle
from napari_fish.encode.bundle.card import NEIGHBOUR, Card, TextureSpec
from napari_fish.encode.bundle.device import keep_triton_out
from napari_fish.encode.networks.registry import fit_weights
from napari_fish.errors import EncoderError

_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_HEADS = ("fc", "classifier", "heads", "head")


class Backbone(nn.Module):
    """A network that turns a resized, standardised patch into features.

    Parameters
    ----------
    network : Module
        Standardised RGB (n, 3, input_px, input_px) in, features (n, …) out.
    input_px : int
        Side of its input.
    mean, std : sequence of float
        What standardises red, green and blue, 0 to 1.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, network: nn.Module, input_px: int, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        super().__init__()
        self.network, self.input_px = network, input_px
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1) * 255, persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1) * 255, persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Return features (n, length) of RGB pixels (n, 3, size, size), 0 to 255."""
        side = (self.input_px, self.input_px)
        if pixels.shape[-2:] != side:
            pixels = F.interpolate(pixels, side, mode="bilinear", antialias=True)
        features: Tensor = self.network((pixels - self.mean) / self.std)
        return features.flatten(1)


def bundled_backbone(card: Card, tensors: Mapping[str, Tensor]) -> Backbone:
    """Return the backbone of a bundle, of which nothing but the library's code is not in the bundle."""
    options, whose = card.texture.options, f"encoder {card.id!r}"
    try:
        name, arguments = str(options["name"]), dict(options.get("arguments", {}))
        scale = int(options["input_px"]), options["mean"], options["std"]
    except (KeyError, TypeError, ValueError) as error:
        raise EncoderError(
            f"{whose}: its card does not describe the backbone ({error}). Make it again."
        ) from error
    network = _timm(name, arguments) if card.texture.kind == "timm" else _torchvision(name)
    backbone = Backbone(network, *scale)
    fit_weights(backbone, {k: v for k, v in tensors.items() if k.startswith("network.")}, whose)
    return backbone


def _timm(
    name: str, arguments: Mapping[str, Any], pretrained: bool = False, config: Mapping[str, Any] | None = None
) -> nn.Module:
    """Return a backbone of timm without its classifier."""
    keep_triton_out()
    try:
        import timm
    except ImportError as error:
        raise EncoderError("this encoder needs timm. Install it: pip install 'napari-fish[timm]'") from error
    try:
        network: nn.Module = timm.create_model(
            name, pretrained=pretrained, pretrained_cfg=config, **{**arguments, "num_classes": 0}
        )
    except Exception as error:  # timm raises whatever its many parts raise
        raise EncoderError(
            f"timm cannot make {name!r} ({error}). Check the name, the internet connection and, for a gated "
            "model, your access; or pass a local safetensors file."
        ) from error
    return network


def _timm_architecture(name: str) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """Return a backbone's name in timm, its arguments and its configuration, asking Hugging Face where it must."""
    source, colon, model = name.partition(":")
    if not colon:
        return name, {}, None
    if source != "hf-hub":
        raise EncoderError(
            f"{name!r}: give timm's own name or hf-hub:OWNER/NAME; a local file goes into weights=."
        )
    try:
        import timm

        config, architecture, arguments = timm.models.load_model_config_from_hf(model)
    except Exception as error:  # whatever timm and the hub raise
        raise EncoderError(
            f"{name}: cannot be had from Hugging Face ({error}). Check the name, the internet connection and, for a "
            "gated model, your access."
        ) from error
    return architecture, dict(arguments or {}), config


def _torchvision(name: str, pretrained: bool = False) -> nn.Module:
    """Return a classifier of torchvision without its last layer."""
    keep_triton_out()
    from torchvision import models

    try:
        network: nn.Module = models.get_model(name, weights="DEFAULT" if pretrained else None)
    except (ValueError, OSError, RuntimeError) as error:
        raise EncoderError(f"torchvision cannot make {name!r}: {error}.") from error
    head = next((h for h in _HEADS if hasattr(network, h)), None)
    if head is None:
        raise EncoderError(f"torchvision's {name!r} has no classifier to take off; choose another backbone.")
    setattr(network, head, nn.Identity())
    return network


def _file_weights(path: Path) -> dict[str, Tensor]:
    """Return the weights in a safetensors file, without those of a classifier."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        state = load_file(path)
    except (SafetensorError, OSError) as error:
        raise EncoderError(f"{path}: not a safetensors file ({error}).") from error
    return {k: v for k, v in state.items() if k.split(".")[0] not in _HEADS}


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
        The library's name of the backbone; for timm also ``hf-hub:OWNER/NAME``.
    out : Path
        The bundle to write. The backbone's weights travel in it, so that its hash covers them and it
        works without internet.
    library : str
        ``"timm"`` or ``"torchvision"``.
    identity : str
        Id of the bundle; empty derives it from ``name``.
    weights : Path, optional
        Local safetensors file with the backbone's weights; by default the library's own (a download).
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
    download = pretrained and weights is None
    options: dict[str, Any] = {"name": name}
    if library == "timm":
        architecture, arguments, config = _timm_architecture(name)
        network = _timm(architecture, arguments, download, config)
        import timm

        seen = timm.data.resolve_model_data_config(network)
        side, mean, std = int(seen["input_size"][-1]), seen["mean"], seen["std"]
        options = {"name": architecture, "arguments": arguments}
    else:
        network, side, (mean, std) = _torchvision(name, download), 224, _IMAGENET
    options |= {"input_px": input_px or side, "mean": list(mean), "std": list(std)}
    if weights is not None:
        fit_weights(network, _file_weights(weights), str(weights))
    backbone = Backbone(network, options["input_px"], mean, std).eval()
    with torch.inference_mode():
        length = backbone(torch.zeros(1, 3, options["input_px"], options["input_px"])).shape[1]
    base = load_bundle(keys_from)
    card = Card(
        id=identity or name.split("/")[-1].replace(":", "-"),
        title=f"{name} ({library}) with the keys of {base.card.id}",
        width=base.card.width,
        order=base.card.order,
        texture=TextureSpec(library, options=options),
        barcode=NEIGHBOUR,
        barcode_length=length,
        mpp=base.card.mpp,
        size=base.card.size,
        training=f"texture: see {name}; keys: {base.card.training}",
        licence=f"texture: that of {name}; keys: {base.card.licence}",
    )
    tensors = {k: v for k, v in base.tensors.items() if k.startswith("vqvae.")}
    return save_bundle(card, tensors | {f"texture.{k}": v for k, v in backbone.state_dict().items()}, out)
