"""Published checkpoints become bundles; nothing in a file is ever executed."""

from __future__ import annotations

import pickle
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.bundle.bundle import save_bundle
from napari_fish.encode.bundle.card import MOST_WIDTH, NEIGHBOUR, Card, TextureSpec
from napari_fish.encode.bundle.keys import CODEWORDS, semantic_order
from napari_fish.errors import EncoderError

if TYPE_CHECKING:
    from torch import Tensor

UNREADABLE = (
    pickle.UnpicklingError, RuntimeError, ValueError, EOFError, LookupError, OSError, TypeError, AttributeError,
    ArithmeticError, AssertionError, MemoryError,
)  # fmt: skip
"""What PyTorch raises of a file that it did not write."""
DENSENET_LICENCE = "DenseNet-121: BSD-3-Clause (torchvision)"
# The container of a residual block may have any name in a published file; its numbering may not.
_NAME = re.compile(r"(?:module\.)?(encoder|decoder)\.(\d+)\.(?:([A-Za-z_]\w*)\.)?((?:\d+\.)?[a-z_]+)$")


def _safe_globals() -> list[Any]:
    """Return the few harmless names that the published semantic codebook needs, and no more."""
    import _codecs
    from importlib import import_module

    try:
        multiarray = import_module("numpy._core.multiarray")
    except ImportError:  # NumPy 1
        multiarray = import_module("numpy.core.multiarray")
    return [
        (multiarray.scalar, "numpy.core.multiarray.scalar"),
        np.dtype,
        np.dtypes.Int64DType,
        _codecs.encode,
    ]


def _load(path: Path, allowed: list[Any]) -> Any:
    import torch

    if not path.is_file():
        raise EncoderError(f"{path}: no such file.")
    try:
        with torch.serialization.safe_globals(allowed):
            return torch.load(path, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise EncoderError(
            f"{path}: refused, because it is not a plain PyTorch checkpoint of numbers ({reason}). "
            "Nothing in it was run."
        ) from error


def read_vqvae(path: Path) -> dict[str, Tensor]:
    """Read a VQ-VAE in the published layout.

    Parameters
    ----------
    path : Path
        ``{"model": state_dict}`` or a bare state dict, names with or without ``module.``.

    Returns
    -------
    dict of str to Tensor
        A state dict of :class:`~napari_fish.encode.networks.vqvae.VQVAE`.
    """
    import torch

    from napari_fish.encode.networks.vqvae import VQVAE

    content = _load(path, [])
    state = content.get("model", content) if isinstance(content, Mapping) else None
    if not isinstance(state, Mapping) or not all(isinstance(v, torch.Tensor) for v in state.values()):
        raise EncoderError(f"{path}: there is no state dict of a VQ-VAE in this file.")
    if any(_is_larger_than_stored(tensor) for tensor in state.values()):
        raise EncoderError(f"{path}: refused, because it describes more numbers than are in the file.")
    renamed = {_our_name(str(name)): tensor.float() for name, tensor in state.items()}
    words = renamed.get("codebook.embedding.weight")
    if words is None or words.dim() != 2 or len(words) != CODEWORDS or not 1 <= words.shape[1] <= MOST_WIDTH:
        raise EncoderError(f"{path}: there is no codebook of {CODEWORDS} codewords in this file.")
    model = VQVAE(words.shape[1])
    counters = {k for k in model.state_dict() if k.endswith("num_batches_tracked")}
    try:
        missing, extra = model.load_state_dict(renamed, strict=False)
    except RuntimeError as error:
        raise EncoderError(f"{path}: the layers differ from the paper's VQ-VAE ({error}).") from error
    missing = sorted(set(missing) - counters)
    if missing or extra:
        first = ", ".join([*missing, *extra][:3])
        raise EncoderError(f"{path}: the layers differ from the paper's VQ-VAE ({first} …).")
    return {k: v for k, v in model.state_dict().items() if k not in counters}


def _is_larger_than_stored(tensor: Tensor) -> bool:
    """Whether to compute with a tensor would take more memory than the file: one number may stand for billions."""
    import torch

    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex():
        return True
    return tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes()


def _our_name(name: str) -> str:
    """Return our name of a published parameter; a residual block's container is called ``block``."""
    match = _NAME.match(name)
    if not match:
        return name.removeprefix("module.")
    part, layer, _container, rest = match.groups()
    return f"{part}.{layer}.block.{rest}" if "." in rest else f"{part}.{layer}.{rest}"


def read_semantic_order(path: Path) -> NDArray[np.uint8]:
    """Read a published mapping of codes to semantic codes.

    Parameters
    ----------
    path : Path
        A dict, a 1-D tensor or a list saved by PyTorch. A NumPy array is refused: reading one needs more
        names than the few that are allowed.

    Returns
    -------
    ndarray of uint8, shape (128,)
        ``order[old] = new``.
    """
    import torch

    content = _load(path, _safe_globals())
    try:
        if isinstance(content, Mapping):
            pairs = {int(old): int(new) for old, new in content.items()}
            values = [pairs.get(old, -1) for old in range(max(len(pairs), CODEWORDS))]
        elif isinstance(content, (torch.Tensor, list, tuple)):
            values = [int(v) for v in content]
        else:
            raise TypeError(f"a {type(content).__name__}")
    except (TypeError, ValueError, RuntimeError) as error:
        raise EncoderError(
            f"{path}: this is not a mapping of codes ({error}). Was it swapped with the model's file?"
        ) from error
    if sorted(values) != list(range(CODEWORDS)):
        raise EncoderError(f"{path}: this is not a permutation of the codes 0..{CODEWORDS - 1}.")
    return np.array(values, np.uint8)


def paper_card(
    width: int, order: Sequence[int] | NDArray[np.uint8], identity: str = "fish-paper", training: str = ""
) -> Card:
    """Return the card of the paper's pair of networks for a given VQ-VAE."""
    from napari_fish.encode.networks.densenet import DENSENET_SHA256, DENSENET_SOURCE

    return Card(
        id=identity,
        title="The paper's VQ-VAE and DenseNet-121",
        width=width,
        order=tuple(int(v) for v in order),
        texture=TextureSpec("densenet121", DENSENET_SOURCE, DENSENET_SHA256),
        barcode=NEIGHBOUR,
        barcode_length=1024,
        threshold=128,
        training=training,
        licence=f"that of the imported checkpoint; {DENSENET_LICENCE}",
    )


def import_checkpoint(
    model: Path,
    codebook: Path | None,
    out: Path,
    *,
    identity: str = "fish-paper",
    texture_weights: Path | None = None,
) -> Card:
    """Turn a published checkpoint into a bundle.

    Parameters
    ----------
    model : Path
        The VQ-VAE, such as ``model_9.pt``.
    codebook : Path or None
        The semantic order, such as ``codebook_semantic.pt``; None computes it from the codebook.
    out : Path
        The bundle to write.
    identity : str
        Its id.
    texture_weights : Path, optional
        torchvision's ``densenet121-a639ec97.pth``, for machines without internet; it is checked
        and kept in the bundle's folder.

    Returns
    -------
    Card
        The new bundle's card.
    """
    state = read_vqvae(model)
    words = state["codebook.embedding.weight"].numpy()
    order = read_semantic_order(codebook) if codebook else semantic_order(words)
    card = paper_card(words.shape[1], order, identity, f"imported from {model.name}; see its authors")
    if texture_weights is not None:
        from napari_fish.encode.networks.densenet import DENSENET_FILE, check_weights_file

        if out.suffix == ".safetensors":
            raise EncoderError(
                f"{out}: texture weights can only be kept in a folder; leave out '.safetensors'."
            )
        check_weights_file(texture_weights)
        out.mkdir(parents=True, exist_ok=True)
        if texture_weights.resolve() != (out / DENSENET_FILE).resolve():
            shutil.copyfile(texture_weights, out / DENSENET_FILE)
    return save_bundle(card, {f"vqvae.{k}": v for k, v in state.items()}, out)
