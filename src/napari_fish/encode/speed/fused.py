"""The same networks with less memory traffic: batch norms folded, convolutions joined with ReLU.

With ``half``, the convolutions that cost most compute in that type, where a processor is built for it;
whatever is cheap or touchy (first and last layers, batch norms, sums over a patch) stays in float32.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from napari_fish.encode.networks.densenet import DenseNetTexture
from napari_fish.encode.networks.efficientnet_lite import _Conv

_TINY = 1e-4


def _pointwise() -> Any:
    """Return oneDNN's convolution with an activation behind it, or None where PyTorch lacks it."""
    try:
        return torch.ops.mkldnn._convolution_pointwise.default
    except AttributeError:
        return None


def _joinable(dtype: torch.dtype) -> bool:
    """Whether this processor's joined convolutions take a type."""
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype == torch.float32


class JoinedConv(nn.Module):
    """A convolution and the activation after it, in one pass over memory where that is possible.

    Parameters
    ----------
    conv : nn.Conv2d
        The convolution.
    activation : str
        ``"relu"``, ``"relu6"`` or ``"none"``.
    padding : int, optional
        Instead of the convolution's own.
    half : torch.dtype, optional
        Type that it computes in and returns, instead of float32; it takes any.
    """

    def __init__(
        self,
        conv: nn.Conv2d,
        activation: str,
        padding: int | None = None,
        half: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(conv.weight.detach().clone(), requires_grad=False)
        bias = conv.bias.detach().clone() if conv.bias is not None else torch.zeros(conv.out_channels)
        self.bias = nn.Parameter(bias, requires_grad=False)
        self.stride, self.groups = int(conv.stride[0]), conv.groups
        self.padding = int(conv.padding[0]) if padding is None else padding
        self.activation = activation
        self._joined = _pointwise() if _joinable(half or torch.float32) else None
        if half is not None:
            self.to(half)

    def forward(self, x: Tensor) -> Tensor:
        """Return the activated convolution of ``x``."""
        pad, stride = [self.padding] * 2, [self.stride] * 2
        x = x.to(self.weight.dtype)
        if self._joined is not None and x.device.type == "cpu":
            name, numbers = {"relu": ("relu", []), "relu6": ("hardtanh", [0.0, 6.0]), "none": ("none", [])}[
                self.activation
            ]
            result: Tensor = self._joined(
                x, self.weight, self.bias, pad, stride, [1, 1], self.groups, name, numbers, ""
            )
            return result
        y = F.conv2d(x, self.weight, self.bias, stride, pad, 1, self.groups)
        if self.activation == "relu":
            return F.relu_(y)
        return F.relu6(y, inplace=True) if self.activation == "relu6" else y


def fold_before(norm: nn.BatchNorm2d, conv: nn.Conv2d) -> tuple[nn.Conv2d, Tensor] | None:
    """Fold a batch norm into the convolution after it.

    Returns
    -------
    conv : nn.Conv2d
        To be applied to what the batch norm would have been given.
    zero : Tensor, shape (channels,)
        The value that the batch norm turns into 0: what to pad with. Folding is impossible, and
        None is returned, when some channel has no such value.
    """
    scale, shift = _affine(norm)
    if bool((scale.abs() < _TINY).any()):
        return None
    folded = copy.deepcopy(conv)
    weight = conv.weight.detach()
    folded.weight = nn.Parameter(weight * scale.view(1, -1, 1, 1))
    bias = conv.bias.detach() if conv.bias is not None else torch.zeros(len(weight))
    folded.bias = nn.Parameter(bias + torch.einsum("oikl,i->o", weight, shift))
    return folded, -shift / scale


def fold_after(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> nn.Conv2d:
    """Fold a batch norm into the convolution before it."""
    scale, shift = _affine(norm)
    folded = copy.deepcopy(conv)
    bias = conv.bias.detach() if conv.bias is not None else torch.zeros(conv.out_channels)
    folded.weight = nn.Parameter(conv.weight.detach() * scale.view(-1, 1, 1, 1))
    folded.bias = nn.Parameter(bias * scale + shift)
    return folded.eval()


def _affine(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Return the scale and shift that a batch norm is when it no longer learns."""
    assert norm.running_var is not None and norm.running_mean is not None
    scale = norm.weight.detach().double() / torch.sqrt(norm.running_var.double() + norm.eps)
    shift = norm.bias.detach().double() - norm.running_mean.double() * scale
    return scale.float(), shift.float()


class _FusedResidual(nn.Module):
    """A residual block whose second batch norm is folded away."""

    def __init__(self, block: nn.Sequential) -> None:
        super().__init__()
        norm, _, wide, second, _, narrow = block
        self.norm = copy.deepcopy(norm)
        self.wide = JoinedConv(fold_after(wide, second), "relu")  # type: ignore[arg-type]
        self.narrow = JoinedConv(narrow, "none")  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.narrow(self.wide(F.relu_(self.norm(x))))
        return y.add_(x)


class FusedEncoder(nn.Module):
    """The VQ-VAE's encoder; each batch norm sits in the convolution after it.

    The folded batch norm no longer turns padding into the right value by itself, so every stage
    computes a rim of one extra pixel, which is then overwritten with the value that stands for 0.
    """

    def __init__(self, stages: list[JoinedConv], rims: list[Tensor], rest: list[nn.Module]) -> None:
        super().__init__()
        self.stages, self.rest = nn.ModuleList(stages), nn.Sequential(*rest)
        self.n_rims = len(rims)
        for i, rim in enumerate(rims):
            self.register_buffer(f"rim{i}", rim.view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Return what the plain encoder returns, (n, width, h/16, w/16)."""
        x = images
        for i, stage in enumerate(self.stages):
            x = stage(x)
            if i < self.n_rims:
                rim: Tensor = getattr(self, f"rim{i}")
                x[:, :, :1, :] = rim
                x[:, :, -1:, :] = rim
                x[:, :, :, :1] = rim
                x[:, :, :, -1:] = rim
        result: Tensor = self.rest(x)
        return result


def fuse_encoder(encoder: nn.Sequential, half: torch.dtype | None = None) -> nn.Module:
    """Return a faster equal of the VQ-VAE's encoder, or a copy where folding is impossible."""
    layers = list(copy.deepcopy(encoder).eval())
    convs: list[nn.Conv2d] = [layers[0]]  # type: ignore[list-item]
    rims: list[Tensor] = []
    for i in (2, 5, 8):
        folded = fold_before(layers[i], layers[i + 1])  # type: ignore[arg-type]
        if folded is None:
            return copy.deepcopy(encoder).eval()
        convs.append(folded[0])
        rims.append(folded[1])
    # Padding that makes the rim: 1 + 2 on the image itself, 2 where the input already has a rim of 1.
    paddings = (3, 2, 2, 0)
    # The second and third hold five sixths of the work. The first sees pixels, which bfloat16 blurs.
    types = (None, half, half, None)
    stages = [
        JoinedConv(conv, "relu" if i < 3 else "none", paddings[i], types[i]) for i, conv in enumerate(convs)
    ]
    rest: list[nn.Module] = [_FusedResidual(layer.block) for layer in layers[10:]]  # type: ignore[arg-type]
    return FusedEncoder(stages, rims, rest).eval()


class _FusedLiteConv(nn.Module):
    """A convolution of EfficientNet-Lite0 joined with its ReLU6."""

    def __init__(self, conv: _Conv) -> None:
        super().__init__()
        self.uneven = conv.uneven
        self.joined = JoinedConv(conv.conv, "relu6" if conv.active else "none")

    def forward(self, x: Tensor) -> Tensor:
        if self.uneven:
            x = F.pad(x, (*self.uneven, *self.uneven))
        y: Tensor = self.joined(x)
        return y


def fuse_texture(texture: nn.Module, half: torch.dtype | None = None) -> nn.Module:
    """Return a copy of a texture network with whatever can be joined, joined.

    DenseNet-121 alone makes use of ``half``: EfficientNet-Lite0 is small beside its VQ-VAE.
    """
    texture = copy.deepcopy(texture).eval()
    if isinstance(texture, DenseNetTexture):
        fuse_densenet(texture.features, half)
    else:
        _join_lite_convs(texture)
    return texture


def _join_lite_convs(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, _Conv):
            setattr(module, name, _FusedLiteConv(child))
        else:
            _join_lite_convs(child)


def fuse_densenet(features: nn.Sequential, half: torch.dtype | None = None) -> None:
    """Join, fold and reorder the layers of torchvision's DenseNet in place."""
    from torchvision.models.densenet import _DenseLayer, _Transition

    features.conv0 = JoinedConv(fold_after(features.conv0, features.norm0), "relu")  # type: ignore[arg-type]
    features.norm0, features.relu0 = nn.Identity(), nn.Identity()
    for name, child in list(features.named_children()):
        if isinstance(child, _Transition):
            setattr(features, name, _FusedTransition(child, half))
        for inner, layer in list(child.named_children()):
            if isinstance(layer, _DenseLayer):
                setattr(child, inner, _FusedDenseLayer(layer, half))
    features.norm5 = nn.Sequential(_Float(), features.norm5)  # type: ignore[arg-type]


class _Float(nn.Module):
    """Back to float32."""

    def forward(self, x: Tensor) -> Tensor:
        return x.float()


class _FusedTransition(nn.Module):
    """Between two dense blocks: averaging four pixels first leaves a quarter of them to the convolution."""

    def __init__(self, layer: Any, half: torch.dtype | None) -> None:
        super().__init__()
        self.norm, self.pool = layer.norm, layer.pool
        self.narrow = JoinedConv(layer.conv, "none", half=half)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.narrow(self.pool(F.relu_(self.norm(x))))
        return y


class _FusedDenseLayer(nn.Module):
    """A dense layer: the first batch norm stays (it sees a concatenation), the second is folded."""

    def __init__(self, layer: Any, half: torch.dtype | None) -> None:
        super().__init__()
        self.norm = layer.norm1
        self.narrow = JoinedConv(fold_after(layer.conv1, layer.norm2), "relu", half=half)
        self.wide = JoinedConv(layer.conv2, "none", half=half)

    def forward(self, inputs: Tensor | list[Tensor]) -> Tensor:
        x = torch.cat(inputs, 1) if isinstance(inputs, list) else inputs
        y: Tensor = self.wide(self.narrow(F.relu_(self.norm(x))))
        return y
