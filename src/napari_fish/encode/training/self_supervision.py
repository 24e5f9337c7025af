"""Training of a texture network by self-supervision: two views of one field should look alike.

Two crops of each field, restained, turned and mirrored, go through the network; a small head on top
learns to tell which crops belong together (the contrastive loss of SimCLR, Chen et al. 2020). The head
is then thrown away. No label is seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.bundle.device import keep_triton_out
from napari_fish.encode.training.params import SelfSupervision, TrainReport
from napari_fish.encode.training.run_state import SOURCES, ResumableRun, cosine_rate, load_state, save_state
from napari_fish.encode.training.sources import LeftOut, TissueSource, sources_digest, tissue_fields
from napari_fish.encode.training.texture_code import TextureTrainParams, random_crops
from napari_fish.errors import EncoderError
from napari_fish.work import ShouldStop

if TYPE_CHECKING:
    from torch import Tensor, nn

    from napari_fish.encode.networks.lite_texture import LiteTexture

STATE_FILE = "texture-state.pt"
_REPORT_EVERY = 10


def train_network(
    sources: Sequence[TissueSource],
    folder: Path,
    texture: TextureTrainParams,
    params: SelfSupervision | None = None,
    *,
    mpp: float = 0.5,
    device: str = "auto",
    progress: Callable[[TrainReport], None] | None = None,
    should_stop: ShouldStop | None = None,
    left_out: LeftOut | None = None,
) -> LiteTexture:
    """Train a texture network, going on where an interrupted run in the same folder left off.

    Parameters
    ----------
    sources : sequence of TissueSource
        Tissue to train on.
    folder : Path
        Where the state is kept.
    texture : TextureTrainParams
        Which blocks are read, and how many fields a slide gives.
    params : SelfSupervision, optional
        How to train.
    mpp : float
        µm per px of the fields of a slide; an image is a field as it is.
    device : str
        As in :func:`~napari_fish.encode.training.vqvae.train_vqvae`.
    progress : callable, optional
        Called with a :class:`TrainReport` every few steps; its ``validation`` is the contrastive loss
        on held-out fields.
    should_stop : callable, optional
        Asked after every step; training stops, and can be resumed, when it returns True. Ctrl-C is heard
        after the step as well, and leaves the state behind.
    left_out : callable, optional
        Hears of files that cannot be opened.

    Returns
    -------
    LiteTexture
        The network with the least loss on held-out fields, in evaluation mode, on the CPU.
    """
    keep_triton_out()
    run = _Run(sources, folder, texture, params or SelfSupervision(), mpp, device, left_out)
    p = run.params
    run.go(progress, should_stop, check_every=p.check_every, patience=p.patience, report_every=_REPORT_EVERY)
    return run.best()


class _Run(ResumableRun):
    """One training run and its state on disk."""

    def __init__(
        self,
        sources: Sequence[TissueSource],
        folder: Path,
        texture: TextureTrainParams,
        params: SelfSupervision,
        mpp: float,
        device: str,
        left_out: LeftOut | None,
    ) -> None:
        import torch

        from napari_fish.encode.bundle.device import pick_device

        self.params, self.state_file, self.steps = params, folder / STATE_FILE, params.steps
        about = {"blocks": texture.blocks, "per_slide": texture.per_slide, "mpp": mpp}
        self.settings = asdict(params) | about | {SOURCES: sources_digest(sources)}
        folder.mkdir(parents=True, exist_ok=True)
        fields = tissue_fields(
            sources, per_slide=texture.per_slide, mpp=mpp, seed=params.seed, left_out=left_out
        )
        self._keep_fields(sources, fields)
        torch.manual_seed(params.seed)
        self.device = pick_device(device)
        self.network = _start(texture, params).to(self.device)
        self.head = _head(sum(self.network.depths), params.head).to(self.device)
        for block in self._frozen():
            block.requires_grad_(False)
        learning = [p for p in self.network.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(
            [{"params": learning}, {"params": list(self.head.parameters())}],
            params.learning_rate,
            weight_decay=params.weight_decay,
        )
        self.step, self.stale, self.best_loss = 0, 0, float("inf")
        self.best_weights = _copy(self.network)
        if self.state_file.exists():
            self._resume()

    def _keep_fields(
        self, sources: Sequence[TissueSource], found: Iterable[tuple[int, NDArray[np.uint8]]]
    ) -> None:
        """Decode every field once, small enough for all of them to stay in memory."""
        from PIL import Image

        p, side = self.params, (self.params.field_px, self.params.field_px)
        fields: list[list[NDArray[np.uint8]]] = [[] for _ in sources]
        self.held: list[NDArray[np.uint8]] = []
        rng = np.random.default_rng([p.seed, 2])
        for owner, pixels in found:
            small = np.asarray(Image.fromarray(pixels).resize(side, Image.Resampling.BICUBIC))
            (self.held if rng.random() < p.held_out else fields[owner]).append(small)
        self.fields = [group for group in fields if group]
        weights = np.array([s.weight for s, group in zip(sources, fields, strict=True) if group])
        if sum(map(len, self.fields)) < 2:
            raise EncoderError("self-supervision needs at least two images or slides.")
        self.odds = np.concatenate(
            [np.full(len(g), w / len(g)) for g, w in zip(self.fields, weights, strict=True)]
        )
        self.odds /= self.odds.sum()
        self.pool = [field for group in self.fields for field in group]

    def _frozen(self) -> list[nn.Module]:
        network = self.network.network
        stem = [network.stem] if hasattr(network, "stem") and self.params.first_block > 0 else []
        return [*stem, *network.blocks[: self.params.first_block]]

    def batches(self) -> Iterable[None]:
        """Leave it to each step to draw its fields."""
        return itertools.repeat(None, max(0, self.steps - self.step))

    def best(self) -> LiteTexture:
        """Return the best network so far."""
        self.network.load_state_dict(self.best_weights)
        return self.network.cpu().eval()

    def _views(self, fields: Sequence[NDArray[np.uint8]], number: int) -> Tensor:
        """Return two views of every field, (2 n, 3, crop, crop): the first of each, then the second."""
        import torch

        from napari_fish.encode.training.augment import restain, turn

        p = self.params
        rng = np.random.default_rng([p.seed, 3, number])
        pairs = [list(random_crops(field, 2, p.crop, p.area, rng)) for field in fields]
        pixels = np.stack([pair[i] for i in (0, 1) for pair in pairs])
        chance = torch.Generator().manual_seed(p.seed * 1_000_003 + number)
        images = turn(torch.from_numpy(pixels).permute(0, 3, 1, 2), chance)
        if p.stain:
            images = restain(images, chance, p.stain)
        return images.float().to(self.device, memory_format=torch.channels_last)

    def _loss(self, images: Tensor) -> Tensor:
        import torch

        from napari_fish.encode.networks.lite_texture import statistics

        features = torch.cat([statistics(output) for output in self.network.network(images)], 1)
        return contrastive_loss(self.head(features), self.params.temperature)

    def learn(self, batch: None) -> float:
        """Make one step."""
        import torch

        p = self.params
        for group in self.optimiser.param_groups:
            group["lr"] = cosine_rate(p.learning_rate, self.step, p.steps)
        # The head starts from nothing and may learn faster than a network that already sees.
        self.optimiser.param_groups[1]["lr"] *= 3
        self.network.train()
        self.head.train()
        for block in self._frozen():
            block.eval()
        rng = np.random.default_rng([p.seed, 1, self.step])
        count = min(p.batch, len(self.pool))
        chosen = rng.choice(len(self.pool), count, replace=False, p=self.odds)
        loss = self._loss(self._views([self.pool[i] for i in chosen], self.step))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        return float(loss.detach())

    def check(self, loss: float) -> TrainReport:
        """Measure the loss on fields never trained on, always the same views of them."""
        import torch

        self.network.eval()
        self.head.eval()
        fields = self.held if len(self.held) > 1 else self.pool
        size = min(self.params.batch, len(fields))
        losses = []
        with torch.no_grad():
            for start in range(0, len(fields) - size + 1, size):
                losses.append(float(self._loss(self._views(fields[start : start + size], 2**30 + start))))
        held = float(np.mean(losses))
        self.stale = 0 if held < self.best_loss else self.stale + 1
        if held < self.best_loss:
            self.best_loss, self.best_weights = held, _copy(self.network)
        return TrainReport(self.step, self.steps, loss, held)

    def save(self) -> None:
        """Write the state."""
        state = {
            "network": self.network.state_dict(),
            "head": self.head.state_dict(),
            "best": self.best_weights,
            "optimiser": self.optimiser.state_dict(),
            "numbers": [self.step, self.stale, self.best_loss],
        }
        save_state(self.state_file, self.settings, state)

    def _resume(self) -> None:
        state = load_state(self.state_file, self.settings)
        self.network.load_state_dict(state["network"])
        self.head.load_state_dict(state["head"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.best_weights = state["best"]
        self.step, self.stale = int(state["numbers"][0]), int(state["numbers"][1])
        self.best_loss = float(state["numbers"][2])


def contrastive_loss(vectors: Tensor, temperature: float) -> Tensor:
    """Return how badly each vector's partner stands out among all others.

    Parameters
    ----------
    vectors : Tensor, shape (2 n, d)
        The first view of every field, then the second in the same order.
    temperature : float
        The smaller, the more the nearest others count.
    """
    import torch
    from torch.nn import functional as F

    unit = F.normalize(vectors, dim=1)
    near = unit @ unit.T / temperature
    near = near.masked_fill(torch.eye(len(unit), dtype=torch.bool, device=unit.device), float("-inf"))
    half = len(unit) // 2
    partner = torch.arange(len(unit), device=unit.device).roll(half)
    return F.cross_entropy(near, partner)


def _start(texture: TextureTrainParams, params: SelfSupervision) -> LiteTexture:
    import torch

    from napari_fish.encode.networks.lite_texture import LiteTexture, packaged_lite0_weights

    network = LiteTexture(texture.blocks, texture.input_px, bool(texture.colour), params.network)
    if params.network == "lite0":
        network.network.load_state_dict(packaged_lite0_weights("", len(network.network.blocks)))
    return network.to(memory_format=torch.channels_last)


def _head(features: int, length: int) -> nn.Module:
    """Return a head: features made comparable, one hidden layer."""
    from torch import nn

    hidden = 2 * length
    return nn.Sequential(
        nn.BatchNorm1d(features, affine=False),
        nn.Linear(features, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, length),
    )


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in network.state_dict().items()}
