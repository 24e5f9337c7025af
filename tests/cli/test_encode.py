"""Encoders on the command line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

from tests.cli.test_cli import run


class Payload:
    """What must never run."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (eval, (f"open({str(self.trace)!r}, 'w').close()",))


def test_the_encoder_in_the_box_is_listed_with_what_it_was_trained_on(capsys) -> None:
    code, out, _ = run(capsys, "encoders", "--json")
    lite = next(e for e in json.loads(out) if e["id"] == "fish-lite")
    assert (code, lite["origin"], lite["barcode_length"], lite["problem"]) == (0, "built-in", 1024, "")
    assert "BreaKHis" in lite["training"]
    assert "fish-lite" in run(capsys, "encoders")[1]


def test_a_malicious_checkpoint_is_refused_and_does_not_run(tmp_path: Path, capsys) -> None:
    model, trace = tmp_path / "model_9.pt", tmp_path / "was here"
    model.write_bytes(pickle.dumps({"model": Payload(trace)}))
    code, out, err = run(capsys, "import-checkpoint", model, "-o", tmp_path / "out")
    assert (code, out) == (1, "")
    assert str(model) in err
    assert not trace.exists()
    assert not (tmp_path / "out").exists()


def test_training_needs_slides_or_a_recipe(tmp_path: Path, capsys) -> None:
    code, _, err = run(capsys, "train", "-o", tmp_path / "out")
    assert code == 1
    assert "--recipe" in err


def test_a_small_encoder_is_trained_on_images_and_used(tmp_path: Path, capsys) -> None:
    from tests.slides.conftest import make_scene, write_image

    images = tmp_path / "images"
    images.mkdir()
    for i in range(4):
        write_image(images / f"{i}.png", make_scene(160 + i, 160))
    (images / "broken.png").write_bytes(b"rubbish")
    out = tmp_path / "mine"
    options = ("--mpp", 0.5, "--width", 8, "--crop", 64, "--steps", 2, "--device", "cpu")
    code, said, err = run(capsys, "train", images, "-o", out, *options)
    assert code == 0
    assert str(out) in said
    assert "step 2 of 2" in err
    assert err.count(f"left out: {images / 'broken.png'}") == 1
    assert json.loads((out / "card.json").read_text())["id"] == "mine"
