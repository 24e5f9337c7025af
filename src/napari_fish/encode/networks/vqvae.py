"""The paper's VQ-VAE, at any width; parameters are named as in published checkpoints."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from napari_fish.encode.bundle.keys import CODEWORDS


class Residual(nn.Module):
    """``x + [BN ReLU Conv3x3 BN ReLU Conv1x1](x)``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return an array of the shape of ``x``."""
        result: Tensor = x + self.block(x)
        return result


class Codebook(nn.Module):
    """The codewords, and the nearest of them."""

    def __init__(self, codewords: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(codewords, width)
        nn.init.uniform_(self.embedding.weight, -1 / codewords, 1 / codewords)

    def nearest(self, z: Tensor) -> Tensor:
        """Return the index of the codeword at the least squared distance.

        Parameters
        ----------
        z : Tensor, shape (n, width, h, w)
            What the encoder gave.

        Returns
        -------
        Tensor of int64, shape (n, h, w)
            SplitBarcodes before semantic re-ordering.
        """
        words = self.embedding.weight
        flat = z.permute(0, 2, 3, 1).reshape(-1, words.shape[1])
        # |z - e|^2 without |z|^2, which is the same for every codeword
        scores = torch.addmm(words.pow(2).sum(1), flat, words.t(), alpha=-2)
        return scores.argmin(1).view(z.shape[0], z.shape[2], z.shape[3])

    def lookup(self, codes: Tensor) -> Tensor:
        """Return codewords, shape (n, width, h, w), for codes of shape (n, h, w)."""
        result: Tensor = self.embedding(codes)
        return result.permute(0, 3, 1, 2)


def _encoder(width: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (3, width, width):
        layers += [nn.Conv2d(channels, width, 4, 2, 1), nn.ReLU(), nn.BatchNorm2d(width)]
    return nn.Sequential(*layers, nn.Conv2d(width, width, 4, 2, 1), Residual(width), Residual(width))


def _decoder(width: int) -> nn.Sequential:
    layers: list[nn.Module] = [Residual(width), Residual(width), nn.ReLU(), nn.BatchNorm2d(width)]
    for _ in range(3):
        layers += [nn.ConvTranspose2d(width, width, 4, 2, 1), nn.ReLU(), nn.BatchNorm2d(width)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())


class VQVAE(nn.Module):
    """The whole network.

    Parameters
    ----------
    width : int
        Channels of every layer, and dimension of a codeword (the paper: 256).
    codewords : int
        Codewords in the codebook (the paper: 128).
    """

    def __init__(self, width: int = 256, codewords: int = CODEWORDS) -> None:
        super().__init__()
        self.width = width
        self.encoder = _encoder(width)
        self.codebook = Codebook(codewords, width)
        self.decoder = _decoder(width)

    def codes(self, images: Tensor) -> Tensor:
        """Return codes, int64 (n, h/16, w/16), of images (n, 3, h, w) in [-1, 1]."""
        return self.codebook.nearest(self.encoder(images))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Reconstruct.

        Parameters
        ----------
        images : Tensor, shape (n, 3, h, w)
            RGB scaled to [-1, 1]; h and w multiples of 16.

        Returns
        -------
        reconstruction : Tensor, shape (n, 3, h, w)
            In [-1, 1]; gradients pass straight through the quantisation.
        z : Tensor, shape (n, width, h/16, w/16)
            What the encoder gave.
        words : Tensor, shape (n, width, h/16, w/16)
            The nearest codewords.
        codes : Tensor of int64, shape (n, h/16, w/16)
            Their indices.
        """
        z = self.encoder(images)
        codes = self.codebook.nearest(z.detach())
        words = self.codebook.lookup(codes)
        reconstruction = self.decoder(z + (words - z).detach())
        return reconstruction, z, words, codes


def vqvae_loss(images: Tensor, reconstruction: Tensor, z: Tensor, words: Tensor, beta: float = 1.0) -> Tensor:
    """Return MSE + mean |sg(z) - e|^2 + beta * mean |z - sg(e)|^2, a scalar."""
    codebook = F.mse_loss(words, z.detach())
    commitment = F.mse_loss(z, words.detach())
    return F.mse_loss(reconstruction, images) + codebook + beta * commitment


def to_network_range(pixels: Tensor) -> Tensor:
    """Scale uint8 pixels (n, 3, h, w) to float32 in [-1, 1]."""
    return pixels.to(torch.float32).div_(127.5).sub_(1)
