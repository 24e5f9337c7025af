import os
import pickle

import numpy as np
import pytest

from napari_fish.encode.bundle.bundle import load_bundle
from napari_fish.encode.bundle.keys import semantic_order
from napari_fish.encode.importing import import_checkpoint, read_semantic_order, read_vqvae
from napari_fish.errors import EncoderError
from tests.encode.conftest import lively_vqvae, tissue
from tests.encode.reference import plain_codes


@pytest.mark.parametrize("prefix", ["module.", ""])
@pytest.mark.parametrize("container", ["block", "resblock"])
def test_a_published_checkpoint_gives_the_codes_of_the_plain_model(tmp_path, prefix, container):
    import torch

    from napari_fish.encode.networks.vqvae import VQVAE, to_network_range

    plain = lively_vqvae()
    state = {prefix + k.replace(".block.", f".{container}."): v for k, v in plain.state_dict().items()}
    torch.save({"model": state}, tmp_path / "model_9.pt")
    card = import_checkpoint(tmp_path / "model_9.pt", None, tmp_path / "bundle")
    bundle = load_bundle(tmp_path / "bundle")
    assert bundle.card == card
    assert card.order == tuple(
        int(v) for v in semantic_order(plain.codebook.embedding.weight.detach().numpy())
    )
    imported = VQVAE(8).eval()
    imported.load_state_dict({k.removeprefix("vqvae."): v for k, v in bundle.tensors.items()}, strict=False)
    images = to_network_range(torch.from_numpy(tissue(1, 64)).permute(0, 3, 1, 2))
    with torch.no_grad():
        expected = plain_codes(plain, images[0])
        assert torch.equal(imported.codes(images)[0], expected)
    assert len(np.unique(expected)) > 3


def test_the_published_layout_has_the_layers_the_method_lists():
    from napari_fish.encode.networks.vqvae import VQVAE

    shapes = {k: tuple(v.shape) for k, v in VQVAE(256).state_dict().items()}
    assert shapes["encoder.0.weight"] == (256, 3, 4, 4)
    assert shapes["encoder.9.weight"] == (256, 256, 4, 4)
    assert shapes["encoder.11.block.5.weight"] == (256, 256, 1, 1)
    assert shapes["codebook.embedding.weight"] == (128, 256)
    assert shapes["decoder.13.weight"] == (256, 3, 4, 4)


def test_the_authors_own_codebook_file_is_read(real_data):
    order = read_semantic_order(real_data / "published" / "codebook_semantic.pt")
    assert sorted(order.tolist()) == list(range(128))
    assert int(order[38]) == 0 and int(order[24]) == 1


@pytest.mark.parametrize("kind", ["dict", "tensor", "list"])
def test_a_semantic_order_may_be_a_dict_a_tensor_or_a_list(tmp_path, kind):
    import torch

    order = np.random.default_rng(0).permutation(128)
    content = {
        "dict": {int(old): int(new) for old, new in enumerate(order)},
        "tensor": torch.from_numpy(order),
        "list": torch.from_numpy(order).tolist(),
    }[kind]
    torch.save(content, tmp_path / "order.pt")
    assert read_semantic_order(tmp_path / "order.pt").tolist() == order.tolist()


def test_an_array_would_need_more_names_than_are_allowed(tmp_path):
    import torch

    torch.save(np.arange(128), tmp_path / "order.pt")
    with pytest.raises(EncoderError, match="refused"):
        read_semantic_order(tmp_path / "order.pt")


def test_swapped_files_and_tables_are_clear_errors(tmp_path):
    import torch

    torch.save({"model": lively_vqvae().state_dict()}, tmp_path / "model_9.pt")
    torch.save(torch.zeros(128, 2), tmp_path / "table.pt")
    torch.save(torch.arange(128), tmp_path / "codebook_semantic.pt")
    for name in ("model_9.pt", "table.pt"):
        with pytest.raises(EncoderError, match="not a mapping of codes"):
            read_semantic_order(tmp_path / name)
    with pytest.raises(EncoderError, match="no state dict"):
        import_checkpoint(tmp_path / "codebook_semantic.pt", tmp_path / "model_9.pt", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_order_that_is_no_permutation_is_refused(tmp_path):
    import torch

    torch.save(torch.zeros(128, dtype=torch.int64), tmp_path / "order.pt")
    with pytest.raises(EncoderError, match="permutation"):
        read_semantic_order(tmp_path / "order.pt")


class Malice:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (self.target,)


@pytest.mark.parametrize("writer", ["torch", "pickle"])
@pytest.mark.parametrize("reader", [read_vqvae, read_semantic_order])
def test_a_malicious_pickle_is_refused_and_its_payload_does_not_run(tmp_path, writer, reader):
    import torch

    target, file = tmp_path / "payload-ran", tmp_path / "model_9.pt"
    content = {"model": Malice(str(target))}
    if writer == "torch":
        torch.save(content, file)
    else:
        file.write_bytes(pickle.dumps(content))
    with pytest.raises(EncoderError, match=r"model_9\.pt: refused"):
        reader(file)
    assert not target.exists()
    pickle.loads(pickle.dumps(content))
    assert target.exists(), "the payload would have run, had it been unpickled"


@pytest.mark.parametrize("content", [b"", b"rubbish", b"PK\x03\x04 half a zip", b"\x80\x02}q\x00."])
@pytest.mark.parametrize("reader", [read_vqvae, read_semantic_order])
def test_rubbish_in_place_of_a_checkpoint_is_a_clear_error(tmp_path, content, reader):
    (tmp_path / "model_9.pt").write_bytes(content)
    with pytest.raises(EncoderError, match=r"model_9\.pt"):
        reader(tmp_path / "model_9.pt")


def test_names_allowed_for_the_codebook_are_not_allowed_for_the_model(tmp_path):
    import torch

    torch.save({"model": {"x": np.int64(3)}}, tmp_path / "model_9.pt")
    with pytest.raises(EncoderError, match="refused"):
        read_vqvae(tmp_path / "model_9.pt")


def test_a_checkpoint_of_another_network_is_refused_by_name(tmp_path):
    import torch

    state = lively_vqvae().state_dict()
    del state["encoder.3.weight"]
    torch.save({"model": state}, tmp_path / "model.pt")
    with pytest.raises(EncoderError, match=r"encoder\.3\.weight"):
        read_vqvae(tmp_path / "model.pt")


def test_wrong_texture_weights_are_refused_before_anything_is_written(tmp_path):
    import torch

    torch.save({"model": lively_vqvae().state_dict()}, tmp_path / "m.pt")
    (tmp_path / "densenet121-a639ec97.pth").write_bytes(b"not the weights")
    with pytest.raises(EncoderError, match="SHA-256"):
        import_checkpoint(
            tmp_path / "m.pt", None, tmp_path / "out", texture_weights=tmp_path / "densenet121-a639ec97.pth"
        )
    assert not (tmp_path / "out").exists()
