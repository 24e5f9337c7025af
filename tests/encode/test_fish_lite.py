"""The encoder in the box."""

import socket

import numpy as np
import pytest
from PIL import Image

from napari_fish.encode import list_encoders, load_bundle, load_encoder, patch_from_image
from napari_fish.encode.bundle.barcode import unpack
from napari_fish.encode.speed.speed_plan import Plan

FUSED = Plan(channels_last=True, fused=True)


@pytest.fixture(scope="module")
def halves(real_data):
    """Left and right halves of validation images of four classes, as patches, two images a class."""
    patches = []
    for folder in sorted((real_data / "tissue" / "validation" / "lc25000").iterdir()):
        for path in sorted(folder.iterdir())[:2]:
            pixels = np.asarray(Image.open(path).convert("RGB"))
            patches += [patch_from_image(pixels[:384, :384]), patch_from_image(pixels[384:, 384:])]
    return np.stack(patches)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("fish-lite", "cpu", FUSED)


def test_it_is_built_in_and_small_enough_for_the_wheel():
    info = next(i for i in list_encoders() if i.id == "fish-lite")
    assert info.origin == "built-in" and not info.problem
    assert sum(f.stat().st_size for f in info.path.iterdir()) < 15e6


def test_its_card_says_truthfully_what_it_was_trained_on_and_how_good_it_is():
    card = load_bundle("fish-lite").card
    for name in ("BreaKHis", "LC25000", "oral", "osteosarcoma", "TCGA-DU-6399", "CMU-1"):
        assert name in card.training
    assert card.barcode_length == 1024 and card.threshold and card.licence
    assert {"lc25000", "breakhis b/m", "crc", "protocol"} <= set(card.quality)


def test_it_works_without_internet(monkeypatch):
    def unplugged(*args, **kwargs):
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", unplugged)
    white = np.full((1, 1024, 1024, 3), 245, np.uint8)
    assert load_encoder("fish-lite", "cpu", FUSED).encode(white).barcodes.shape == (1, 16)


def test_most_codes_are_in_use_on_validation_tissue(encoder, halves):
    codes = encoder.encode(halves, keep_codes=True).codes
    assert len(np.unique(codes)) >= 100


def test_two_halves_of_a_field_are_nearer_than_two_fields(encoder, halves):
    bits = unpack(encoder.encode(halves).barcodes, 1024).reshape(-1, 2, 1024)
    within = (bits[:, 0] != bits[:, 1]).sum(1)
    across = (bits[:, None, 0] != bits[None, :, 0]).sum(2)[~np.eye(len(bits), dtype=bool)]
    assert np.median(within) < np.quantile(across, 0.25)


def test_plain_and_fused_networks_give_the_same_codes_with_trained_weights(encoder, halves):
    plain = load_encoder("fish-lite", "cpu", Plan())
    one, other = plain.encode(halves[:3], True), encoder.encode(halves[:3], True)
    assert np.mean(one.codes == other.codes) > 0.999
    assert np.mean(unpack(one.barcodes, 1024) != unpack(other.barcodes, 1024)) < 0.005


def test_codes_do_not_depend_on_how_many_patches_come_at_once(encoder, halves):
    together = encoder.encode(halves[:4], True)
    for i in range(4):
        alone = encoder.encode(halves[i : i + 1], True)
        assert alone.keys[0] == together.keys[i] and np.array_equal(alone.barcodes[0], together.barcodes[i])
    large = load_encoder("fish-lite", "cpu", Plan(channels_last=True, fused=True, batch=4))
    batched = large.encode(halves[:4], True)
    assert np.mean(batched.codes == together.codes) > 0.999
    assert np.mean(unpack(batched.barcodes, 1024) != unpack(together.barcodes, 1024)) < 0.002


def test_half_precision_keeps_codes_and_leaves_barcodes_alone(encoder, halves):
    half = load_encoder("fish-lite", "cpu", Plan(channels_last=True, fused=True, dtype="bfloat16"))
    one, other = encoder.encode(halves[:3], True), half.encode(halves[:3], True)
    assert np.mean(one.codes == other.codes) > 0.99
    assert np.array_equal(one.barcodes, other.barcodes)
