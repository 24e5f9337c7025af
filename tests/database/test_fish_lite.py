"""The whole way with the encoder in the box."""

from __future__ import annotations

from pathlib import Path

import pytest

import napari_fish as fish
from napari_fish.slides.demo import DIAGNOSES, demo_specs, write_demo
from tests.slides.conftest import write_image
from tests.tiny import tissue


def test_images_are_built_and_searched_with_the_default_encoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAPARI_FISH_CACHE", str(tmp_path / "cache"))
    for kind in ("lymphoma", "normal"):
        (tmp_path / "p" / kind).mkdir(parents=True)
        write_image(tmp_path / "p" / kind / "1.png", tissue(kind, 1))
    query = write_image(tmp_path / "q.png", tissue("lymphoma", 2))
    with fish.build(tmp_path / "p", tmp_path / "x.fish", patches=True, device="cpu") as database:
        assert (database.store.catalogue.encoder, database.store.words) == ("fish-lite", 16)
        near, far = database.search(query).hits
    assert (near.diagnosis, far.diagnosis) == ("lymphoma", "normal") and near.distance < far.distance


def test_four_of_five_slides_found_share_the_diagnosis_of_a_demo_slide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAPARI_FISH_CACHE", str(tmp_path / "cache"))
    specs = demo_specs(6, second_slides=0, width_um=1000, height_um=1000, diagnoses=DIAGNOSES[:2])
    write_demo(tmp_path / "slides", specs)
    labels = tmp_path / "slides" / "labels.csv"
    with fish.build(tmp_path / "slides", tmp_path / "x.fish", labels, device="cpu") as database:
        asked = [database.ask(f"id:{spec.name}") for spec in specs]
        answers = database.answer(asked)
    same = [
        sum(hit.diagnosis == spec.diagnosis for hit in answer.hits)
        for spec, answer in zip(specs, answers, strict=True)
    ]
    assert len(same) == 12 and all(len(answer) == 5 for answer in answers)
    assert sum(same) / len(same) >= 4, same
