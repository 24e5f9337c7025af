"""A small texture network to be trained on tissue from nothing."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

WIDTHS = (24, 48, 96, 192)
"""Channels of its stages; each stage halves the side."""


class _Stage(nn.Module):
    """A convolution that halves the side, and a residual one."""

    def __init__(self, cin: int, cout: int) -> None:
        super().__init__()
        self.down = nn.Conv2d(cin, cout, 4, 2, 1, bias=False)
        self.down_norm = nn.BatchNorm2d(cout)
        self.more = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.more_norm = nn.BatchNorm2d(cout)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.down_norm(self.down(x)))
        return x + F.relu(self.more_norm(self.more(x)))


class ScratchNet(nn.Module):
    """Plain stages of convolutions, read at several depths.

    Parameters
    ----------
    blocks : sequence of int
        Numbers (0 to 3) of the stages whose output is returned; later stages are left out.
    """

    def __init__(self, blocks: Sequence[int]) -> None:
        super().__init__()
        if (
            not blocks
            or list(blocks) != sorted(set(blocks))
            or not 0 <= blocks[0] <= blocks[-1] < len(WIDTHS)
        ):
            raise ValueError(f"blocks must be increasing numbers from 0 to 3, not {list(blocks)}")
        self.taps = frozenset(blocks)
        sides = (3, *WIDTHS)
        self.blocks = nn.ModuleList(_Stage(sides[i], sides[i + 1]) for i in range(blocks[-1] + 1))

    def forward(self, images: Tensor) -> list[Tensor]:
        """Return the outputs of the chosen stages for RGB images (n, 3, h, w), 0 to 255."""
        x, outputs = (images - 127.0) / 128.0, []
        for i, stage in enumerate(self.blocks):
            x = stage(x)
            if i in self.taps:
                outputs.append(x)
        return outputs
