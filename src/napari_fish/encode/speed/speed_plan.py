"""How to compute fast on this machine: tried once, remembered."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.bundle.card import Card
from napari_fish.encode.speed.remembered import one_at_a_time, remember, remembered

if TYPE_CHECKING:
    import torch
    from torch import nn

    from napari_fish.encode.networks.vqvae import VQVAE

log = logging.getLogger(__name__)
PLAN_VERSION = 3
MEMORY = "plans.json"
Bits = Callable[[NDArray[np.float32]], NDArray[np.bool_]]
# Half of the tolerance that is promised, 1 %: made-up tissue is not the user's.
MIN_SAME_CODES = 0.995
MAX_CHANGED_BITS = 0.005


@dataclass(frozen=True)
class Plan:
    """How an encoder computes.

    Attributes
    ----------
    channels_last : bool
        Memory layout of images.
    fused : bool
        Batch norms folded into convolutions, and convolutions joined with what follows them.
    dtype : str
        ``"float32"``, ``"bfloat16"`` or ``"float16"``; of the costly convolutions alone if ``fused``.
    compiled : bool
        Use ``torch.compile``.
    batch : int
        Patches computed at once.
    """

    channels_last: bool = False
    fused: bool = False
    dtype: str = "float32"
    compiled: bool = False
    batch: int = 1


TURNS = 3
"""How often the self-test times each plan; the best time counts."""
PLAIN = Plan()
"""Nothing clever: what all other plans are measured against."""


class Engine:
    """Both networks on a device, under a plan."""

    def __init__(self, model: VQVAE, texture: nn.Module, device: torch.device, plan: Plan) -> None:
        import copy

        import torch

        self.device, self.plan = device, plan
        self._dtype: torch.dtype = getattr(torch, plan.dtype)
        encoder: nn.Module = copy.deepcopy(model.encoder).eval()
        texture = copy.deepcopy(texture).eval()
        if plan.fused:
            from napari_fish.encode.speed.fused import fuse_encoder, fuse_texture

            half = None if plan.dtype == "float32" else self._dtype
            encoder, texture = fuse_encoder(model.encoder, half), fuse_texture(texture, half)
            self._dtype = torch.float32  # of images: the fused networks change type where they can afford it
        else:
            encoder, texture = encoder.to(self._dtype), texture.to(self._dtype)
        self._format = torch.channels_last if plan.channels_last else torch.contiguous_format
        self._encoder = encoder.to(device).to(memory_format=self._format)
        self._texture = texture.to(device).to(memory_format=self._format)
        self._codebook = copy.deepcopy(model.codebook).to(device)
        if plan.compiled:
            self._encoder.compile(dynamic=False)
            self._texture.compile(dynamic=False)

    def stack(self, patches: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Put patches together, where CUDA computes in pinned memory, which it reads without a copy."""
        if self.device.type != "cuda":
            return np.stack(patches)
        import torch

        room = torch.empty((len(patches), *patches[0].shape), dtype=torch.uint8, pin_memory=True)
        return np.stack(patches, out=room.numpy())

    def run(self, patches: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return raw codes, uint8 (n, h/16, w/16), and features, float32 (n, length)."""
        import torch

        with torch.inference_mode():
            # torch wants memory it may write to, even where it only reads
            pixels = torch.from_numpy(np.require(patches, requirements=["C", "W"]))
            if self.device.type == "cuda":
                pixels = pixels.pin_memory()  # as it is, if it is pinned
            pixels = pixels.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
            images = pixels.to(self._dtype, memory_format=self._format)
            features = self._texture(images).float()
            z = self._encoder(images.div_(127.5).sub_(1)).float()
            codes = self._codebook.nearest(z)
            return codes.to(torch.uint8).cpu().numpy(), features.cpu().numpy()

    def release_memory(self) -> None:
        """Give unused memory back to the device."""
        import torch

        if self.device.type in ("cuda", "mps", "xpu"):
            getattr(torch, self.device.type).empty_cache()


def candidate_plans(device: torch.device) -> list[Plan]:
    """Return the plans worth trying on a device, the safest first."""
    import torch

    if device.type != "cpu":
        half = Plan(channels_last=True, dtype="float16", batch=16)
        return [replace(half, dtype="float32", batch=8), half]
    plans = [PLAIN, Plan(channels_last=True), Plan(channels_last=True, fused=True)]
    has_bf16 = any(
        getattr(torch.cpu, name, lambda: False)()
        for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )
    if has_bf16:
        plans.append(Plan(channels_last=True, fused=True, dtype="bfloat16"))
    if os.environ.get("NAPARI_FISH_COMPILE") == "1" and shutil.which("c++"):
        plans.append(Plan(channels_last=True, compiled=True))
    return plans


def choose_plan(model: VQVAE, texture: nn.Module, device: torch.device, card: Card, bits: Bits) -> Plan:
    """Return the fastest plan that gives the same codes and bits, from memory or by a quick self-test.

    Parameters
    ----------
    model, texture : Module
        Both networks.
    device : torch.device
        Where they compute.
    card : Card
        Of the encoder.
    bits : callable
        Makes barcodes, bool (n, length), of features, float32 (n, features).
    """
    name = _machine(device, card)
    # Plans round differently: programs that encode for one database must not each choose their own.
    with one_at_a_time(MEMORY):
        with contextlib.suppress(KeyError, TypeError):
            return Plan(**remembered(MEMORY)[name])
        plan = self_test(model, texture, device, bits, card.size)
        if plan is None:
            return candidate_plans(device)[0]
        remember(MEMORY, name, asdict(plan))
    return plan


def self_test(
    model: VQVAE, texture: nn.Module, device: torch.device, bits: Bits, side: int = 1024
) -> Plan | None:
    """Try every candidate on made-up tissue, ``side`` px wide, and return the fastest that agrees with the first.

    Candidates take turns, so that a machine busy with something else slows all of them alike. None means
    that not even the first one works.
    """
    patch = _made_up_tissue(side)
    engines: list[Engine] = []
    for plan in candidate_plans(device):
        try:
            engine = Engine(model, texture, device, plan)
            codes, features = engine.run(patch)
        except Exception as error:  # noqa: BLE001 - compilers and drivers raise what they like
            log.info("plan %s does not work here: %s", plan, error)
            if not engines:
                return None  # the work itself will say what is wrong
            continue
        barcode = bits(features)
        if not engines:
            usual = codes, barcode
        same, drift = float(np.mean(codes == usual[0])), float(np.mean(barcode != usual[1]))
        log.info("plan %s: %.2f %% same codes, %.2f %% changed bits", plan, 100 * same, 100 * drift)
        if same >= MIN_SAME_CODES and drift <= MAX_CHANGED_BITS:
            engines.append(engine)
    turns = [[_seconds(engine, patch) for engine in engines] for _ in range(TURNS)]
    return engines[int(np.argmin(np.min(turns, axis=0)))].plan


def _seconds(engine: Engine, patch: NDArray[np.uint8]) -> float:
    start = time.perf_counter()
    engine.run(patch)
    return time.perf_counter() - start


def _made_up_tissue(side: int) -> NDArray[np.uint8]:
    """Return one patch, uint8 (1, side, side, 3), of pink ground with blurred dark spots."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(0)
    spots = gaussian_filter(rng.standard_normal((side, side)), 3) * 10
    grain = gaussian_filter(rng.standard_normal((side, side)), 1) * 3
    nuclei = 1 / (1 + np.exp(-4 * (spots - 1)))[..., None]
    picture = (1 - nuclei) * [225, 170, 205] + nuclei * [95, 60, 140] + 12 * grain[..., None]
    return picture.clip(0, 255).astype(np.uint8)[None]


def _machine(device: torch.device, card: Card) -> str:
    """Return a name under which a plan is remembered; not by threads, which differ from one worker to the next."""
    import torch

    title = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    facts = (
        PLAN_VERSION,
        card.sha256,
        str(device),
        title,
        platform.machine(),
        torch.__version__,
        candidate_plans(device),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:24]
