"""Training: reproducible, and plain numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from napari_fish.errors import Cancelled, FishError
from napari_fish.mosaic.artefacts.beside import KINDS
from napari_fish.mosaic.artefacts.filters import read_filters
from napari_fish.mosaic.artefacts.trees import Trees, boosted
from napari_fish.mosaic.training import fitting
from napari_fish.mosaic.training import train as training
from napari_fish.mosaic.training.examples import Example, example_slide
from napari_fish.mosaic.training.fitting import Examples, tile_shows
from napari_fish.mosaic.training.hard_tissue import KINDS as HARD_KINDS
from napari_fish.mosaic.training.hard_tissue import HardTissue
from napari_fish.mosaic.training.train import Source, train_artefacts
from tests.mosaic.artefacts.test_measure import grain


@pytest.fixture
def little_tissue(monkeypatch: pytest.MonkeyPatch) -> None:
    def patches(seed: int) -> Iterator[list[Example]]:
        fields = [np.kron(grain(seed + i, side=128), np.ones((4, 4, 1), np.uint8)) for i in range(3)]
        for number in range(16):
            yield list(example_slide(fields, 0.5, np.random.default_rng([seed, number])))

    def sources(data: Path | None, slides: int) -> dict[str, Source]:
        return {"demo": lambda: patches(1), "brca": lambda: patches(5)}

    monkeypatch.setattr(training, "sources_in", sources)
    monkeypatch.setitem(fitting.TREES, "max_iter", 5)


def test_the_same_examples_give_the_same_plain_numbers(little_tissue: None, tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    for name in ("a.json", "b.json"):
        train_artefacts(tmp_path / name, progress=lambda *a: done.append(a))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert done == [(1, 2), (2, 2)] * 2
    card = json.loads((tmp_path / "a.json").read_text())["card"]
    assert card["slides"] == 32
    assert set(card["tiles"]) == set(KINDS)
    assert any("BRCA" in credit for credit in card["tissue"])
    assert read_filters(tmp_path / "a.json").tiles.kinds == KINDS


def test_plain_trees_say_what_the_trained_model_says() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 5)).astype(np.float32)
    shows = (rows[:, 0] > 0).astype(np.int64) + (rows[:, 1] * rows[:, 2] > 0)
    options = {"max_iter": 8, "max_leaf_nodes": 6}
    model = HistGradientBoostingClassifier(early_stopping=False, random_state=0, **options).fit(rows, shows)
    trees = boosted(rows, shows, ("a", "b", "c"), **options)
    assert trees(rows) == pytest.approx(model.predict_proba(rows), abs=2e-3)
    alone = HistGradientBoostingClassifier(early_stopping=False, random_state=0, **options).fit(
        rows, shows > 0
    )
    odds = boosted(rows, (shows > 0).astype(np.int64), ("a",), **options).odds(rows)
    assert odds[:, 0] == pytest.approx(alone.decision_function(rows), abs=2e-3)
    again = Trees.from_dict(json.loads(json.dumps(trees.to_dict())))
    assert np.array_equal(again(rows), trees(rows))


def test_a_kind_without_an_example_is_named() -> None:
    with pytest.raises(FishError, match=r"no example of blur"):
        boosted(np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1]), ("clean", "ink", "blur"))


def test_a_tile_is_an_example_of_what_covers_it_and_of_nothing_where_it_is_half_covered() -> None:
    where = np.zeros((256, 256), bool)
    where[:64, :64] = True
    where[:64, 64:70] = True
    shows = tile_shows(Example(grain(0), "dust", where))
    assert shows[:3].tolist() == [KINDS.index("debris"), -1, 0]
    assert (shows[2:] == 0).all()


def test_what_is_left_out_of_the_training_is_in_no_part_of_it() -> None:
    def some(group: int, seed: int) -> Examples:
        examples = Examples()
        for number in range(2):
            fields = [np.kron(grain(seed + i, side=128), np.ones((4, 4, 1), np.uint8)) for i in range(3)]
            examples.add(list(example_slide(fields, 0.5, np.random.default_rng([seed, number]))), group)
        return examples

    both, alone = some(0, 1), some(0, 1)
    both.extend(some(1, 9))
    kept = both.without(1)
    assert set(kept.groups) == {0}
    for name, values in vars(alone).items():
        assert all(np.array_equal(a, b) for a, b in zip(getattr(kept, name), values, strict=True)), name


@pytest.mark.parametrize("kind", HARD_KINDS)
def test_hard_tissue_grows_into_a_patch_and_leaves_the_rest(kind: str) -> None:
    rgb, rng = grain(3), np.random.default_rng(0)
    looks = (HardTissue.of_slide(rng) for _ in range(500))
    look = next(look for look in looks if look.kind == kind)
    shares = []
    for _ in range(6):
        grown = look(rgb, 2.0, rng)
        assert grown.shape == rgb.shape and grown.dtype == np.uint8
        shares.append((np.abs(grown.astype(int) - rgb).max(axis=2) > 12).mean())
    assert max(shares) > 0.2
    assert min(shares) < 0.9


def test_training_can_be_stopped(little_tissue: None, tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        train_artefacts(tmp_path / "a.json", should_stop=lambda: True)
    assert not (tmp_path / "a.json").exists()


def test_a_folder_without_tissue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FishError, match="tissue/train/amonuseg"):
        train_artefacts(tmp_path / "a.json", tmp_path, slides=0)


def test_the_shipped_filters_say_what_they_were_trained_on() -> None:
    card = json.loads((Path(training.__file__).parents[1] / "artefacts/artefacts.json").read_text())["card"]
    assert card["seed"] == training.TRAINING_SEED
    assert any("CC BY 3.0" in credit for credit in card["tissue"])
    assert len(card["tissue"]) == len(training.CREDITS)
    assert card["tiles"]["clean"] > 10_000
