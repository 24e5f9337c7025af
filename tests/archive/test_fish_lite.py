"""The whole way with the encoder in the box."""

from __future__ import annotations

from pathlib import Path

import pytest

import napari_fish as fish
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
        assert (database.store.truth.encoder, database.store.words) == ("fish-lite", 16)
        near, far = database.search(query).hits
    assert (near.diagnosis, far.diagnosis) == ("lymphoma", "normal") and near.distance < far.distance
