"""JSON that comes in, however it is nested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from napari_fish._napari import preferences
from napari_fish._napari.reader import recognise
from napari_fish.encode.speed import remembered as memory
from napari_fish.errors import FishError
from napari_fish.mosaic.artefacts.filters import read_filters
from napari_fish.search.output.writing import _part
from napari_fish.texts import parsed_json

DEEP = "[" * 100_000


@pytest.mark.parametrize("document", [DEEP, DEEP.encode(), '{"a":' * 100_000, "{", b"\xff", ""])
def test_json_that_cannot_be_read_is_a_value_error(document: str | bytes) -> None:
    with pytest.raises(ValueError):
        parsed_json(document)


def test_json_is_read_as_json() -> None:
    said = {"ü": [1, 2.5, None, {"a": []}]}
    assert parsed_json(json.dumps(said)) == parsed_json(json.dumps(said).encode()) == said


def test_small_files_nested_too_deeply_count_as_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep.json"
    path.write_text(DEEP)
    monkeypatch.setattr(memory, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(preferences, "_file", lambda: path)
    assert memory.remembered(path.name) == {}
    assert preferences._remembered() == {}
    assert recognise._json(path) == {}
    assert _part(DEEP) is None
    with pytest.raises(FishError, match=r"deep\.json: these are not trained artefact filters"):
        read_filters(path)
