"""Training of the texture code: which directions of feature space tell tissue apart, without labels.

Several views of one field of tissue (another crop, another stain, turned) should get the same
barcode, views of different fields different ones. With the network fixed, this has a closed
solution: shrink the directions in which views of one field differ, keep those in which fields
differ, and turn the rest at random so that every bit carries as much as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.training.sources import LeftOut, TissueSource, tissue_fields
from napari_fish.errors import EncoderError
from napari_fish.work import ShouldStop, stop_if_asked

if TYPE_CHECKING:
    from napari_fish.encode.networks.lite_texture import LiteTexture

Floats = NDArray[np.float64]
Progress = Callable[[int], None]


@dataclass(frozen=True)
class TextureTrainParams:
    """How the texture code is learned.

    Attributes
    ----------
    blocks : tuple of int
        Blocks of EfficientNet-Lite0 that are read.
    input_px : int
        Side of the network's input in px.
    views : int
        Views of each field.
    area : float
        A view shows at least this share of its field.
    stain : float
        Strength of the stain augmentation.
    per_slide : int
        Fields of each slide.
    colour : float
        Weight of the colour histograms; that of each block is 1. 0 leaves them out.
    shrink : float
        Added to the variances between views, as a share of their mean, so that no direction is
        blown up.
    whiten : float
        How far differences between views are evened out: 0 not at all, 1 entirely.
    dimensions : int
        Directions kept.
    bits : int
        Length of the barcode.
    seed : int
        Fixes views and rotation.
    """

    blocks: tuple[int, ...] = (2, 4, 7, 10, 14)
    input_px: int = 256
    views: int = 6
    area: float = 0.35
    stain: float = 0.3
    per_slide: int = 100
    colour: float = 0.5
    shrink: float = 1.0
    whiten: float = 0.5
    dimensions: int = 256
    bits: int = 1024
    seed: int = 0


@dataclass(frozen=True)
class TextureCode:
    """The learned planes.

    Attributes
    ----------
    projection : ndarray of float32, shape (features, bits)
        Normals of the planes.
    thresholds : ndarray of float32, shape (bits,)
        Offsets.
    """

    projection: NDArray[np.float32]
    thresholds: NDArray[np.float32]


def view_features(
    sources: Sequence[TissueSource],
    params: TextureTrainParams,
    network: LiteTexture | None = None,
    *,
    mpp: float = 0.5,
    device: str = "auto",
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
    left_out: LeftOut | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Compute features of several views of every field.

    Parameters
    ----------
    sources : sequence of TissueSource
        Tissue to learn from.
    params : TextureTrainParams
        How.
    network : LiteTexture, optional
        What computes the features; EfficientNet-Lite0 as its package ships it by default.
    mpp : float
        µm per px of the fields of a slide; an image is a field as it is.
    device : str
        As in :func:`~napari_fish.encode.training.vqvae.train_vqvae`.
    progress : callable, optional
        Called with the number of fields done.
    should_stop : callable, optional
        Asked before every field.
    left_out : callable, optional
        Hears of files that cannot be opened.

    Returns
    -------
    features : ndarray of float32, shape (fields, views, length)
        Features of the views.
    source : ndarray of int, shape (fields,)
        Number of the source of each field.
    """
    import torch

    from napari_fish.encode.bundle.device import pick_device
    from napari_fish.encode.training.augment import restain, turn

    where = pick_device(device)
    network = (network or texture_network(params)).to(where)
    chance = torch.Generator().manual_seed(params.seed)
    rng = np.random.default_rng(params.seed)
    rows, owners = [], []
    fields = tissue_fields(sources, per_slide=params.per_slide, mpp=mpp, seed=params.seed, left_out=left_out)
    for owner, pixels in fields:
        stop_if_asked(should_stop, "training of the texture code was stopped.")
        views = np.stack(list(random_crops(pixels, params.views, params.input_px, (params.area, 1), rng)))
        images = turn(torch.from_numpy(views).permute(0, 3, 1, 2), chance)
        if params.stain:
            images = restain(images, chance, params.stain)
        with torch.inference_mode():
            pixels_there = images.float().to(where, memory_format=torch.channels_last)
            rows.append(network(pixels_there).cpu().numpy())
        owners.append(owner)
        if progress:
            progress(len(rows))
    if len(rows) < 2:
        raise EncoderError("learning a texture code needs at least two images or slides.")
    return np.stack(rows), np.array(owners)


def texture_network(params: TextureTrainParams) -> LiteTexture:
    """Return EfficientNet-Lite0 as its package ships it, read at the blocks that ``params`` names."""
    import torch

    from napari_fish.encode.networks.lite_texture import LiteTexture, packaged_lite0_weights

    network = LiteTexture(params.blocks, params.input_px, bool(params.colour))
    network.network.load_state_dict(packaged_lite0_weights("", len(network.network.blocks)))
    return network.eval().to(memory_format=torch.channels_last)


def random_crops(
    pixels: NDArray[np.uint8], count: int, side: int, area: tuple[float, float], rng: np.random.Generator
) -> Iterator[NDArray[np.uint8]]:
    """Yield crops that show some share of a field between the two of ``area``, resized to ``side`` px."""
    from PIL import Image

    field = Image.fromarray(pixels)
    for _ in range(count):
        share, stretch = np.sqrt(rng.uniform(*area)), np.exp(rng.uniform(-0.15, 0.15))
        width, height = min(1, share * stretch) * field.width, min(1, share / stretch) * field.height
        x, y = rng.uniform(0, field.width - width), rng.uniform(0, field.height - height)
        box = (x, y, x + width, y + height)
        yield np.asarray(field.resize((side, side), Image.Resampling.BICUBIC, box))


def learn_code(
    features: NDArray[np.float32],
    weights: Floats,
    groups: Sequence[tuple[int, float]],
    params: TextureTrainParams,
) -> TextureCode:
    """Learn the planes from features of views.

    Parameters
    ----------
    features : ndarray, shape (fields, views, length)
        Features of the views.
    weights : ndarray, shape (fields,)
        How much each field counts.
    groups : sequence of (int, float)
        Length and weight of each group of features; each group is scaled so that its size does
        not matter.
    params : TextureTrainParams
        How.
    """
    weights = weights / weights.sum()
    x = features.astype(np.float64)
    centre = weights @ x.mean(1)
    spread = np.sqrt(weights @ ((x - centre) ** 2).mean(1)) + 1e-3
    share = np.concatenate([np.full(length, weight / np.sqrt(length)) for length, weight in groups])
    gain = share / spread
    x = (x - centre) * gain
    fields = x.mean(1)
    middle = weights @ fields
    within = _scatter((x - fields[:, None]).reshape(-1, x.shape[2]), np.repeat(weights, x.shape[1]))
    within *= 1 / max(1, x.shape[1] - 1)
    between = _scatter(fields - middle, weights)
    values, vectors = np.linalg.eigh(within)
    values = np.maximum(values, 0) + params.shrink * np.trace(within) / len(within)
    evened = vectors * values ** (-params.whiten / 2)
    _, main = np.linalg.eigh(evened.T @ between @ evened)
    kept = evened @ main[:, ::-1][:, : params.dimensions]
    planes = gain[:, None] * (kept @ _rotations(kept.shape[1], params.bits, params.seed))
    # All planes pass through the mean field: a bit is as often 1 as 0, wherever the gallery lies.
    planes /= np.linalg.norm(planes, axis=0)
    return TextureCode(planes.astype(np.float32), ((centre + middle / gain) @ planes).astype(np.float32))


def _scatter(rows: Floats, weights: Floats) -> Floats:
    scaled = rows * np.sqrt(weights)[:, None]
    result: Floats = scaled.T @ scaled
    return result


def _rotations(dimensions: int, bits: int, seed: int) -> Floats:
    """Return random directions, (dimensions, bits), orthogonal within every ``dimensions`` of them."""
    rng = np.random.default_rng([seed, 1])
    turns = []
    for _ in range(-(-bits // dimensions)):
        q, r = np.linalg.qr(rng.standard_normal((dimensions, dimensions)))
        turns.append(q * np.sign(np.diag(r)))
    return np.concatenate(turns, 1)[:, :bits]


def train_texture(
    sources: Sequence[TissueSource],
    params: TextureTrainParams | None = None,
    network: LiteTexture | None = None,
    *,
    mpp: float = 0.5,
    device: str = "auto",
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
    left_out: LeftOut | None = None,
) -> TextureCode:
    """Learn the texture code of an encoder like ``fish-lite``; see :class:`TextureTrainParams`."""
    from napari_fish.encode.networks.lite_texture import COLOUR_BINS

    params = params or TextureTrainParams()
    network = network or texture_network(params)
    features, owners = view_features(
        sources,
        params,
        network,
        mpp=mpp,
        device=device,
        progress=progress,
        should_stop=should_stop,
        left_out=left_out,
    )
    counts = np.bincount(owners, minlength=len(sources))
    weights = np.array([sources[o].weight / counts[o] for o in owners])
    groups = [(length, 1.0) for length in network.depths]
    if params.colour:
        groups.append((3 * COLOUR_BINS, params.colour))
    return learn_code(features, weights, groups, params)
