"""Training of the VQ-VAE: resumable, with dead codewords restarted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.bundle.device import keep_triton_out
from napari_fish.encode.training.crops import Crops
from napari_fish.encode.training.params import TrainReport, VQTrainParams
from napari_fish.encode.training.run_state import SOURCES, ResumableRun, cosine_rate, load_state, save_state
from napari_fish.encode.training.sources import LeftOut, TissueSource, sources_digest
from napari_fish.work import ShouldStop

if TYPE_CHECKING:
    import torch

    from napari_fish.encode.networks.vqvae import VQVAE

Progress = Callable[[TrainReport], None]

STATE_FILE = "training-state.pt"


def train_vqvae(
    sources: Sequence[TissueSource],
    folder: Path,
    params: VQTrainParams | None = None,
    *,
    device: str = "auto",
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
    left_out: LeftOut | None = None,
) -> VQVAE:
    """Train a VQ-VAE, going on where an interrupted run in the same folder left off.

    Parameters
    ----------
    sources : sequence of TissueSource
        Tissue to train on.
    folder : Path
        Where the state and the pictures of reconstructions are kept.
    params : VQTrainParams, optional
        How to train.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"`` or ``"xpu"``.
    progress : callable, optional
        Called with a :class:`TrainReport` every few steps.
    should_stop : callable, optional
        Asked after every step; training stops, and can be resumed, when it returns True. Ctrl-C is heard
        after the step as well, and leaves the state behind.
    left_out : callable, optional
        Hears of files that cannot be opened.

    Returns
    -------
    VQVAE
        The network with the least validation error, in evaluation mode, on the CPU.
    """
    keep_triton_out()
    run = _Run(sources, folder, params or VQTrainParams(), device, left_out)
    p = run.params
    run.go(progress, should_stop, check_every=p.check_every, patience=p.patience, report_every=25)
    return run.best()


class _Run(ResumableRun):
    """One training run and its state on disk."""

    def __init__(
        self,
        sources: Sequence[TissueSource],
        folder: Path,
        params: VQTrainParams,
        device: str,
        left_out: LeftOut | None,
    ) -> None:
        import torch

        from napari_fish.encode.bundle.device import pick_device
        from napari_fish.encode.networks.vqvae import VQVAE

        self.params, self.folder = params, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.crops = Crops(
            sources,
            params.crop,
            mpp=params.mpp,
            scale=params.scale,
            seed=params.seed,
            held_out=params.held_out,
            left_out=left_out,
        )
        self.settings = asdict(params) | {SOURCES: sources_digest(sources)}
        per_epoch = self.crops.n_files * params.crops_per_file // params.batch
        self.steps = params.steps or max(1, per_epoch * params.epochs)
        self.device = pick_device(device)
        torch.manual_seed(params.seed)
        self.model = VQVAE(params.width).to(self.device).to(memory_format=torch.channels_last)
        self.optimiser = torch.optim.Adam(self.model.parameters(), params.learning_rate)
        self.step, self.stale, self.best_error = 0, 0, float("inf")
        self.best_weights = {k: v.detach().cpu().clone() for k, v in self.model.state_dict().items()}
        n_words = self.model.codebook.embedding.num_embeddings
        self.usage = np.full(n_words, 1 / n_words)
        if (folder / STATE_FILE).exists():
            self._resume()

    def batches(self) -> Iterable[NDArray[np.uint8]]:
        """Yield crops."""
        return self.crops.batches(self.step, self.steps, self.params.batch)

    def best(self) -> VQVAE:
        """Return the best network so far."""
        model: VQVAE = self.model.cpu().eval()
        model.load_state_dict(self.best_weights)
        return model

    def _images(self, pixels: NDArray[np.uint8], augment: bool) -> torch.Tensor:
        import torch

        from napari_fish.encode.networks.vqvae import to_network_range
        from napari_fish.encode.training.augment import restain, turn

        images = torch.from_numpy(pixels).permute(0, 3, 1, 2)
        if augment:
            chance = torch.Generator().manual_seed(self.params.seed * 1_000_003 + self.step)
            if self.params.flips:
                images = turn(images, chance)
            if self.params.stain:
                images = restain(images, chance, self.params.stain)
        images = images.to(self.device, memory_format=torch.channels_last)
        return to_network_range(images)

    def learn(self, pixels: NDArray[np.uint8]) -> float:
        """Make one step."""
        import torch

        from napari_fish.encode.networks.vqvae import vqvae_loss

        self._set_rate()
        self.model.train()
        images = self._images(pixels, augment=True)
        if self.step == 0:
            self._start_codebook(images)
        reconstruction, z, words, codes = self.model(images)
        loss = vqvae_loss(images, reconstruction, z, words, self.params.beta)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.params.clip)
        self.optimiser.step()
        self._care_for_codebook(codes, z.detach())
        return float(loss.detach())

    def _care_for_codebook(self, codes: torch.Tensor, z: torch.Tensor) -> None:
        """Follow how often codewords are used, and restart those that are not."""
        window, words = self.params.restart_after, len(self.usage)
        if not window:
            return
        share = np.bincount(codes.cpu().numpy().ravel(), minlength=words) / codes.numel()
        self.usage += (share - self.usage) / window
        if self.step % window == window - 1 and self.step < 0.8 * self.steps:
            self._restart(np.flatnonzero(self.usage < 0.1 / words), z)

    def _set_rate(self) -> None:
        rate = self.params.learning_rate
        if self.params.decay:
            rate = cosine_rate(rate, self.step, self.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def _start_codebook(self, images: torch.Tensor) -> None:
        """Put the codewords where the encoder's first outputs lie, so that none starts dead."""
        import torch

        if not self.params.restart_after:
            return
        with torch.no_grad():
            self._restart(np.arange(len(self.usage)), self.model.encoder(images))

    def _restart(self, dead: NDArray[np.intp], z: torch.Tensor) -> None:
        """Move unused codewords onto vectors that the encoder gives now."""
        import torch

        if not len(dead):
            return
        with torch.no_grad():
            vectors = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
            chance = np.random.default_rng([self.params.seed, self.step, 7])
            # Vectors far from every codeword are those the codebook serves worst.
            gaps = torch.cdist(vectors, self.model.codebook.embedding.weight).min(1).values.cpu().numpy()
            odds = gaps.astype(np.float64) + 1e-9
            chosen = chance.choice(len(vectors), len(dead), p=odds / odds.sum())
            self.model.codebook.embedding.weight[torch.from_numpy(dead)] = vectors[torch.from_numpy(chosen)]
        self.usage[dead] = 1 / len(self.usage)

    def check(self, loss: float) -> TrainReport:
        """Measure on held-out tissue, and write a picture of what comes back."""
        import torch
        from PIL import Image

        self.model.eval()
        pixels = self.crops.validation(max(8, min(96, 2**22 // self.params.crop**2)))
        errors, seen, pairs = [], set(), []
        with torch.no_grad():
            for start in range(0, len(pixels), 8):
                images = self._images(pixels[start : start + 8], augment=False)
                reconstruction, _, _, codes = self.model(images)
                errors.append(float((reconstruction - images).pow(2).mean()))
                seen |= set(np.unique(codes.cpu().numpy()).tolist())
                if start == 0:
                    pairs = [images.cpu(), reconstruction.cpu()]
        error = float(np.mean(errors))
        self.stale = 0 if error < self.best_error else self.stale + 1
        if error < self.best_error:
            self.best_error = error
            self.best_weights = {k: v.detach().cpu().clone() for k, v in self.model.state_dict().items()}
        rows = [torch.cat(list(p), 2).add(1).mul(127.5).round().to(torch.uint8) for p in pairs]
        picture = self.folder / f"reconstruction-{self.step:06d}.png"
        Image.fromarray(torch.cat(rows, 1).permute(1, 2, 0).numpy()).save(picture)
        return TrainReport(
            step=self.step,
            steps=self.steps,
            loss=loss,
            validation=error,
            codes_used=len(seen),
            picture=picture,
        )

    def save(self) -> None:
        """Write the state."""
        import torch

        state: dict[str, Any] = {
            "model": self.model.state_dict(),
            "best": self.best_weights,
            "optimiser": self.optimiser.state_dict(),
            "numbers": [self.step, self.stale, self.best_error],
            "usage": torch.from_numpy(self.usage),
        }
        save_state(self.folder / STATE_FILE, self.settings, state)

    def _resume(self) -> None:
        state = load_state(self.folder / STATE_FILE, self.settings)
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.best_weights = state["best"]
        self.step, self.stale = int(state["numbers"][0]), int(state["numbers"][1])
        self.best_error = float(state["numbers"][2])
        self.usage = state["usage"].numpy()
