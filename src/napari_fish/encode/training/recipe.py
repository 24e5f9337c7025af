"""A recipe in, a bundle out: both halves of an encoder trained and put together."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from napari_fish.encode.bundle.bundle import load_bundle
from napari_fish.encode.bundle.card import Card
from napari_fish.encode.training.assemble import assemble
from napari_fish.encode.training.params import SelfSupervision, TrainReport, VQTrainParams
from napari_fish.encode.training.self_supervision import train_network
from napari_fish.encode.training.sources import LeftOut, TissueSource
from napari_fish.encode.training.texture_code import TextureTrainParams, train_texture
from napari_fish.encode.training.vqvae import train_vqvae
from napari_fish.errors import EncoderError
from napari_fish.work import ShouldStop, stop_if_asked

P = TypeVar("P")


@dataclass(frozen=True)
class Recipe:
    """How an encoder is made.

    Attributes
    ----------
    id, title, licence, training : str
        For the card.
    sources : tuple of TissueSource
        For the VQ-VAE.
    texture_sources : tuple of TissueSource
        For the texture code.
    vqvae : VQTrainParams
        How the VQ-VAE is trained.
    texture : TextureTrainParams or None
        How the texture code is learned; None keeps the paper's DenseNet-121 and barcode.
    network : SelfSupervision or None
        How the texture network itself is trained; None takes EfficientNet-Lite0 as it is.
    """

    id: str
    title: str
    licence: str
    training: str
    sources: tuple[TissueSource, ...]
    texture_sources: tuple[TissueSource, ...]
    vqvae: VQTrainParams
    texture: TextureTrainParams | None
    network: SelfSupervision | None = None


def read_recipe(path: Path, data: Path | None = None) -> Recipe:
    """Read a recipe.

    Parameters
    ----------
    path : Path
        A TOML file; see ``recipes/fish-lite.toml``.
    data : Path, optional
        Folder that the sources' paths start from; the recipe's own folder by default.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        root = data or path.parent
        everything = values["sources"]
        chosen: dict[str, tuple[TissueSource, ...]] = {}
        for use in ("vqvae", "texture"):
            chosen[use] = tuple(
                TissueSource(root / s["path"], s.get("mpp"), s.get("pattern", "*"), float(s.get("weight", 1)))
                for s in everything
                if use in s.get("use", ("vqvae", "texture"))
            )
        credit = "; ".join(dict.fromkeys(s["credit"] for s in everything if "credit" in s))
        return Recipe(
            id=values["id"],
            title=values.get("title", values["id"]),
            licence=values.get("licence", ""),
            training=credit,
            sources=chosen["vqvae"],
            texture_sources=chosen["texture"],
            vqvae=_params(VQTrainParams, values.get("vqvae", {})),
            texture=_params(TextureTrainParams, values["texture"]) if "texture" in values else None,
            network=_params(SelfSupervision, values["network"]) if "network" in values else None,
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise EncoderError(f"{path}: this is not a recipe for an encoder ({error}).") from error


def _params(kind: type[P], values: dict[str, Any]) -> P:
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"unknown setting {', '.join(unknown)}")
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def train_recipe(
    recipe: Recipe,
    out: Path,
    *,
    work: Path | None = None,
    keys_from: str | Path | None = None,
    device: str = "auto",
    progress: Callable[[TrainReport], None] | None = None,
    texture_progress: Callable[[int], None] | None = None,
    should_stop: ShouldStop | None = None,
    left_out: LeftOut | None = None,
) -> Card:
    """Train what a recipe says and write the bundle.

    Parameters
    ----------
    recipe : Recipe
        From :func:`read_recipe`.
    out : Path
        The bundle to write.
    work : Path, optional
        Where state and pictures are kept, so that an interrupted run can go on; ``OUT-training``
        by default.
    keys_from : str or Path, optional
        Bundle whose VQ-VAE is taken over instead of trained.
    device : str
        As in :func:`~napari_fish.encode.training.vqvae.train_vqvae`.
    progress, texture_progress, should_stop, left_out : callable, optional
        As in the training functions; stopped, it ends with :class:`~napari_fish.errors.Cancelled`.

    Returns
    -------
    Card
        The new bundle's card.
    """
    folder = work or out.with_name(out.stem + "-training")
    base: Card | None = None
    if keys_from is not None:
        bundle = load_bundle(keys_from)
        base, vqvae = bundle.card, {k: v for k, v in bundle.tensors.items() if k.startswith("vqvae.")}
    else:
        model = train_vqvae(
            recipe.sources,
            folder,
            recipe.vqvae,
            device=device,
            progress=progress,
            should_stop=should_stop,
            left_out=left_out,
        )
        stop_if_asked(should_stop, "training was stopped.")
        vqvae = {f"vqvae.{k}": v for k, v in model.state_dict().items() if v.dim()}
    if recipe.texture is None:
        return assemble(recipe, vqvae, None, out, base=base)
    sources, learned = recipe.texture_sources, recipe.texture
    mpp = base.mpp if base else recipe.vqvae.mpp
    network = None
    if recipe.network is not None:
        network = train_network(
            sources,
            folder,
            learned,
            recipe.network,
            mpp=mpp,
            device=device,
            progress=progress,
            should_stop=should_stop,
            left_out=left_out,
        )
        network = network.half().float()  # the code must fit the weights as they are shipped
    code = train_texture(
        sources,
        learned,
        network,
        mpp=mpp,
        device=device,
        progress=texture_progress,
        should_stop=should_stop,
        left_out=left_out,
    )
    return assemble(recipe, vqvae, code, out, network, base)


def train_slides(
    slides: Sequence[Path],
    out: Path,
    *,
    mpp: float | None = None,
    params: VQTrainParams | None = None,
    texture: str = "densenet121",
    keys_from: str | Path | None = None,
    identity: str = "",
    device: str = "auto",
    progress: Callable[[TrainReport], None] | None = None,
    texture_progress: Callable[[int], None] | None = None,
    should_stop: ShouldStop | None = None,
    left_out: LeftOut | None = None,
) -> Card:
    """Train an encoder on the user's own slides.

    Parameters
    ----------
    slides : sequence of Path
        Files and folders of slides, or of images.
    out : Path
        The bundle to write.
    mpp : float, optional
        µm per px where the files do not say it.
    params : VQTrainParams, optional
        How the VQ-VAE is trained; the paper's settings by default.
    texture : str
        ``"densenet121"`` keeps the paper's texture; ``"lite0"`` learns a code as ``fish-lite`` has.
    keys_from : str or Path, optional
        Bundle whose VQ-VAE is taken over, so that only the texture code is learned.
    identity : str
        Id of the bundle; the name of ``out`` by default.
    device, progress, texture_progress, should_stop, left_out
        As in :func:`train_recipe`.
    """
    if texture not in ("densenet121", "lite0"):
        raise EncoderError(f"unknown texture {texture!r}; choose densenet121 or lite0.")
    sources = tuple(TissueSource(Path(path), mpp) for path in slides)
    learn = TextureTrainParams() if texture == "lite0" else None
    name, own = identity or out.stem, "the user's own slides"
    settings = params or VQTrainParams()
    recipe = Recipe(
        id=name,
        title=f"trained on {own}",
        licence="",
        training=own,
        sources=sources,
        texture_sources=sources,
        vqvae=settings,
        texture=learn,
    )
    return train_recipe(
        recipe,
        out,
        keys_from=keys_from,
        device=device,
        progress=progress,
        texture_progress=texture_progress,
        should_stop=should_stop,
        left_out=left_out,
    )
