"""Training: reproducible, and plain numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from napari_fish.errors import Cancelled, FishError
from napari_fish.mosaic import training
from napari_fish.mosaic.artefacts import read_filters
from napari_fish.mosaic.training import Clean, train_artefacts

from .test_measure import grain


@pytest.fixture
def little_tissue(monkeypatch: pytest.MonkeyPatch) -> None:
    def patches() -> Iterator[Clean]:
        for seed in range(3):
            yield Clean(np.kron(grain(seed, side=128), np.ones((4, 4, 1), np.uint8)), 0.5)

    def sources(data: Path | None, slides: int) -> list[Callable[[], Iterator[Clean]]]:
        return [patches] * slides

    monkeypatch.setattr(training, "_sources", sources)


def test_the_same_examples_give_the_same_plain_numbers(little_tissue: None, tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    for name in ("a.json", "b.json"):
        train_artefacts(tmp_path / name, slides=2, progress=lambda *a: done.append(a))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert done == [(1, 2), (2, 2)] * 2
    card = json.loads((tmp_path / "a.json").read_text())["card"]
    assert card["clean patches"] == 6
    assert card["examples"]["lbp"]["clean"] == 12
    assert set(read_filters(tmp_path / "a.json")) == {"tiles", "lbp"}


def test_the_trained_filter_tells_its_examples_apart(little_tissue: None, tmp_path: Path) -> None:
    card = train_artefacts(tmp_path / "a.json", slides=2)["card"]
    dropped = card["share dropped of the examples"]["tiles"]
    assert dropped["artefact"] > 0.6
    assert dropped["clean"] < 0.1


def test_training_can_be_stopped(little_tissue: None, tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        train_artefacts(tmp_path / "a.json", should_stop=lambda: True)
    assert not (tmp_path / "a.json").exists()


def test_a_folder_without_tissue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FishError, match="lc25000"):
        train_artefacts(tmp_path / "a.json", tmp_path, slides=0)


def test_the_shipped_filters_say_what_they_were_trained_on() -> None:
    card = json.loads((Path(training.__file__).parent / "artefacts.json").read_text())["card"]
    assert card["seed"] == training.TRAINING_SEED
    assert any("CC BY 3.0" in credit for credit in card["tissue"])
    assert card["examples"]["tiles"]["artefact"] >= 101
