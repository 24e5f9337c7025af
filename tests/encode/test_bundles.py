import json
import subprocess
import sys

import pytest

from napari_fish.encode.bundle import bundle as bundles
from napari_fish.encode.bundle.bundle import (
    cache_folder,
    check_same_encoder,
    list_encoders,
    load_bundle,
    save_bundle,
)
from napari_fish.errors import EncoderError


def test_a_folder_and_a_single_file_are_the_same_encoder(tiny_bundle, tmp_path):
    import torch

    folder = save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "a folder")
    single = save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "ein Fläschchen.safetensors")
    assert folder == single == tiny_bundle.card
    for path in ("a folder", "ein Fläschchen.safetensors"):
        again = load_bundle(tmp_path / path)
        assert again.card == tiny_bundle.card
        assert all(torch.equal(again.tensors[k], v) for k, v in tiny_bundle.tensors.items())


def test_the_hash_follows_what_changes_codes_and_nothing_else(tiny_bundle):
    card, tensors = tiny_bundle.card, tiny_bundle.tensors
    same = card.renamed(id="other", title="other", threshold=7, training="x", licence="y", quality={"a": 1})
    assert bundles.content_hash(same, tensors) == card.sha256
    for change in ({"mpp": 0.25}, {"barcode_length": 100}, {"order": card.order[::-1]}):
        assert bundles.content_hash(card.renamed(**change), tensors) != card.sha256
    name = "vqvae.encoder.0.bias"
    assert bundles.content_hash(card, {**tensors, name: tensors[name] + 1e-6}) != card.sha256


def test_an_edited_bundle_is_refused(tiny_bundle, tmp_path):
    save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "b")
    card = json.loads((tmp_path / "b" / "card.json").read_text())
    card["mpp"] = 0.25
    (tmp_path / "b" / "card.json").write_text(json.dumps(card))
    with pytest.raises(EncoderError, match="damaged or was edited"):
        load_bundle(tmp_path / "b")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1, "order": 3}', '{"format": "new"}'])
def test_rubbish_in_place_of_a_card_is_a_clear_error(tmp_path, text):
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(EncoderError, match="not an encoder's card"):
        load_bundle(tmp_path)


def test_a_card_from_a_newer_version_says_so(tmp_path):
    (tmp_path / "card.json").write_text('{"format": 99}')
    with pytest.raises(EncoderError, match="newer napari-fish"):
        load_bundle(tmp_path)


@pytest.mark.parametrize("name", ["b", "b.safetensors"])
def test_a_card_may_be_told_its_quality_but_not_become_another_encoder(tiny_bundle, tmp_path, name):
    save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / name)
    bundles.describe_bundle(tmp_path / name, threshold=99, quality={"crc": 0.7})
    card = load_bundle(tmp_path / name).card
    assert card.threshold == 99 and card.quality == {"crc": 0.7} and card.sha256 == tiny_bundle.card.sha256
    with pytest.raises(EncoderError, match="another encoder"):
        bundles.describe_bundle(tmp_path / name, mpp=1.0)


def test_truncated_weights_are_a_clear_error(tiny_bundle, tmp_path):
    save_bundle(tiny_bundle.card, tiny_bundle.tensors, tmp_path / "b")
    weights = tmp_path / "b" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(EncoderError, match="cannot be read"):
        load_bundle(tmp_path / "b")


def test_built_in_and_cached_encoders_are_listed_and_found_by_id(tiny_bundle):
    save_bundle(tiny_bundle.card, tiny_bundle.tensors, cache_folder() / "encoders" / "mine")
    broken = cache_folder() / "encoders" / "broken"
    broken.mkdir()
    (broken / "card.json").write_text("{}")
    listed = {info.id: info for info in list_encoders()}
    assert listed["tiny"].origin == "cached" and listed["tiny"].sha256 == tiny_bundle.card.sha256
    assert "not an encoder's card" in listed["broken"].problem
    assert load_bundle("tiny").card == tiny_bundle.card


def test_what_is_broken_is_listed_as_such_and_disables_nothing_else(tiny_bundle, monkeypatch):
    save_bundle(tiny_bundle.card, tiny_bundle.tensors, cache_folder() / "encoders" / "mine")
    (cache_folder() / "encoders" / "odd").mkdir()
    (cache_folder() / "encoders" / "odd" / "card.json").write_bytes(b'{"id": "\xff\xfe"}')

    class Broken:
        name = "theirs"

        def load(self):
            raise ImportError("no module named theirs")

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Broken()])
    listed = {info.id: info for info in list_encoders()}
    assert "no module named theirs" in listed["theirs"].problem and listed["theirs"].origin == "installed"
    assert "card cannot be read" in listed["odd"].problem
    assert not listed["fish-lite"].problem and load_bundle("tiny").card == tiny_bundle.card


def test_an_unknown_encoder_names_the_known_ones(tiny_bundle):
    save_bundle(tiny_bundle.card, tiny_bundle.tensors, cache_folder() / "encoders" / "mine")
    with pytest.raises(EncoderError, match=r"no encoder 'fish-deluxe'.*tiny"):
        load_bundle("fish-deluxe")


def test_a_database_of_another_encoder_is_refused(tiny_bundle):
    check_same_encoder("tiny", tiny_bundle.card.sha256, tiny_bundle.card, "a.fish")
    with pytest.raises(EncoderError, match=r"a\.fish was built with encoder 'fish-paper' \(abc"):
        check_same_encoder("fish-paper", "abc", tiny_bundle.card, "a.fish")


def test_importing_the_room_imports_no_torch():
    code = "import sys, napari_fish.encode as e; e.list_encoders(); assert 'torch' not in sys.modules; print('quick')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "quick", done.stderr
