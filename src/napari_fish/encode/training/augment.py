"""What must not matter to an encoder: orientation, and how strongly a laboratory stains."""

from __future__ import annotations

import torch
from torch import Tensor

# Optical density of haematoxylin, eosin and residual in R, G, B (Ruifrok and Johnston 2001), unit length
_STAINS = ((0.650, 0.704, 0.286), (0.072, 0.990, 0.105), (0.268, 0.570, 0.776))


def turn(images: Tensor, generator: torch.Generator) -> Tensor:
    """Flip and rotate each image of (n, 3, s, s) by a multiple of 90°."""
    turned = []
    for image in images:
        quarter, mirror = torch.randint(0, 4, (2,), generator=generator).tolist()
        image = torch.rot90(image, quarter, (1, 2))
        turned.append(image.flip(2) if mirror % 2 else image)
    return torch.stack(turned)


def restain(images: Tensor, generator: torch.Generator, strength: float = 0.15) -> Tensor:
    """Change the amount and the background of each stain.

    Parameters
    ----------
    images : Tensor of uint8, shape (n, 3, h, w)
        RGB.
    generator : torch.Generator
        Source of chance.
    strength : float
        Stain amounts are multiplied by 1 ± ``strength`` and shifted by up to ``strength`` / 5 in
        optical density; the stains' hues turn slightly; brightness changes by up to a third of it.

    Returns
    -------
    Tensor of uint8, shape (n, 3, h, w)
        RGB.
    """
    n = len(images)

    def chance(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator) * 2 - 1

    stains = torch.tensor(_STAINS)
    density = -torch.log((images.float() + 1) / 256).permute(0, 2, 3, 1)
    amounts = density @ torch.linalg.inv(stains)
    amounts = amounts * (1 + strength * chance(n, 1, 1, 3)) + strength / 5 * chance(n, 1, 1, 3)
    hues = stains + strength / 3 * chance(n, 3, 3)
    hues = hues / hues.norm(dim=2, keepdim=True)
    light = 1 + strength / 3 * chance(n, 1, 1, 1)
    restained = torch.exp(-torch.einsum("nhws,nsc->nhwc", amounts, hues)) * 256 * light - 1
    return restained.clamp(0, 255).round().to(torch.uint8).permute(0, 3, 1, 2).contiguous()
