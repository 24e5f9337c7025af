"""What is fuzzed begins sound, and all that is to be made of it can be made: a run would find nothing otherwise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NAMES = (
    "slides", "zarr", "dicom", "snapshots", "sqlite", "codes", "cards", "checkpoints", "masks", "labels"
)  # fmt: skip


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Any:
    """All kinds of files there are."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    from fuzzing.kinds import KINDS

    return KINDS


def test_every_kind_is_tried_here(kinds: Any) -> None:
    assert tuple(kinds) == NAMES


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes among files")
@pytest.mark.filterwarnings("ignore")  # of arrays that are changed beyond their type
@pytest.mark.parametrize("name", NAMES)
def test_sound_files_are_taken_and_can_be_changed(kinds: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "sound").mkdir()
    sound = list(kinds[name].make(tmp_path / "sound"))
    if not sound:
        pytest.skip("REAL DATA MISSING: ../shared/data is not beside this checkout")
    for number in range(3 * len(sound)):
        source = sound[number % len(sound)]
        target = tmp_path / str(number) / source.name
        target.parent.mkdir()
        kinds[name].change(source, target, np.random.default_rng(number))
    for source in sound:
        kinds[name].ask(source)
