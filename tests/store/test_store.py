"""A database in a folder does what every database does, and its snapshot is whole, current, or made again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from napari_fish.search.params import Mode
from napari_fish.store.snapshot import files as snapshot_module
from napari_fish.store.snapshot import store as store_module
from napari_fish.store.snapshot.store import SnapshotStore
from tests.search.archives import commit
from tests.store.conformance import SLIDES, CatalogueTests, answers, answers_in_memory
from tests.store.forging import create


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = create(tmp_path / "a ü.fish")
    with SnapshotStore(made, writer=True) as store:
        commit(store, *SLIDES[:6])
    return made


class TestSnapshotStore(CatalogueTests):
    def create(self, place: Path) -> None:
        create(place)

    def open(self, place: Path, *, writer: bool = False) -> SnapshotStore:
        return SnapshotStore(place, writer=writer)


def test_slides_added_one_by_one_leave_few_deltas(folder: Path) -> None:
    with SnapshotStore(folder, writer=True) as store:
        for _ in range(5):
            commit(store, *SLIDES)
        assert len(list((folder / "snapshot").glob("delta-*"))) <= 5
        store.settle()
        assert [path.name for path in (folder / "snapshot").iterdir()] == ["main"]


def test_a_large_delta_is_compacted_and_a_small_one_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SnapshotStore(folder, writer=True) as store:
        store.compact()
        store.catalogue.commit(SLIDES[6])
        store.settle()
        assert len(list((folder / "snapshot").glob("delta-*"))) == 1
        monkeypatch.setattr(store_module, "COMPACT_AT", 20)
        store.catalogue.commit(SLIDES[7])
        store.settle()
        assert [path.name for path in (folder / "snapshot").iterdir()] == ["main"]
        assert answers(store, "exact") == answers_in_memory(SLIDES, "exact")


def _spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def _shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("main/keys.npy", _shorten),
        ("main/keys.npy", Path.unlink),
        ("main/manifest.json", _shorten),
        ("delta-*/barcodes.npy", _spoil),
        ("delta-*/keys.npy", Path.unlink),
    ],
)
def test_a_damaged_snapshot_is_made_again(folder: Path, pattern: str, damage: Callable[[Path], None]) -> None:
    for path in (folder / "snapshot").glob(pattern):
        damage(path)
    with SnapshotStore(folder) as store:
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")


def test_reading_through_reads_every_array_unless_memory_is_too_small(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SnapshotStore(folder, writer=True) as store:
        store.compact()
        main = folder / "snapshot" / "main"
        assert snapshot_module.read_through(main) == sum(f.stat().st_size for f in main.glob("*.npy")) > 0
        assert snapshot_module.read_through(main, lambda: True) == 0
        monkeypatch.setattr(snapshot_module, "_memory", lambda: 1000)
        assert snapshot_module.read_through(main) == 0
        shutil.rmtree(main)
        store.read_through()


def test_a_snapshot_of_another_format_is_made_again_and_is_no_damage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "FORMAT", snapshot_module.FORMAT - 1)
    with SnapshotStore(folder, writer=True) as store:
        store.compact()
    monkeypatch.undo()
    with SnapshotStore(folder, writer=True) as store:
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")
        assert store.verify() == []
    manifest = json.loads((folder / "snapshot" / "main" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["format"] == snapshot_module.FORMAT


SMALL_FILES = (
    "cell_starts.npy",
    "centres.npy",
    "counts.npy",
    "manifest.json",
    "numbers.npy",
    "sizes.npy",
)
LARGE_FILES = tuple(
    f"{name}.npy"
    for name in (
        "by_slide",
        "cell_far",
        "cell_rows",
        "corners",
        "head",
        "keys",
        "offsets",
        "place",
        "slides",
        "tail",
    )
)


@pytest.mark.parametrize(
    ("name", "small"),
    [(name, snapshot_module.SMALL) for name in (*SMALL_FILES, *LARGE_FILES)]
    + [(name, 0) for name in LARGE_FILES],
)
def test_no_damage_to_a_file_of_the_right_size_ends_a_search(
    folder: Path, name: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SnapshotStore(folder, writer=True) as store:
        store.compact()
    file = folder / "snapshot" / "main" / name
    whole = file.read_bytes()
    monkeypatch.setattr(snapshot_module, "SMALL", small)
    modes: tuple[Mode, ...] = ("exact", "clustered", "guided")
    for start, mode in zip((21, len(whole) // 2, len(whole) - 40), modes, strict=True):
        damaged = bytearray(whole)
        damaged[start : start + 40] = b"\x7f\xff\xff\xfe" * 10
        file.write_bytes(damaged)
        with SnapshotStore(folder) as store:
            found = answers(store, mode)
        # A large file may give other distances until it is verified, a small one never.
        assert small == 0 or found == answers_in_memory(SLIDES[:6], mode)
    with SnapshotStore(folder, writer=True) as store:
        store.verify()
        assert store.verify() == []
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")


def test_damage_that_opening_cannot_see_is_found_and_mended_by_verify(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "SMALL", 0)
    with SnapshotStore(folder, writer=True) as store:
        store.compact()
    _spoil(folder / "snapshot" / "main" / "head.npy")
    with SnapshotStore(folder, writer=True) as store:
        (text,) = map(str, store.verify())
        assert "head" in text and "made again" in text
        assert store.verify() == []
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")


def test_a_snapshot_of_a_later_state_is_not_believed(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "fish.sqlite", tmp_path / "backup")
    with SnapshotStore(folder, writer=True) as store:
        commit(store, SLIDES[7])
        store.compact()
    shutil.copy(tmp_path / "backup", folder / "fish.sqlite")
    with SnapshotStore(folder) as store:
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")


def test_a_folder_that_cannot_be_written_to_is_searched_even_without_a_snapshot(folder: Path) -> None:
    shutil.rmtree(folder / "snapshot")
    (folder / "write.lock").unlink()
    names = sorted(path.name for path in folder.iterdir())
    folder.chmod(0o500)
    (folder / "fish.sqlite").chmod(0o400)
    try:
        with SnapshotStore(folder) as store:
            assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")
    finally:
        folder.chmod(0o700)
    # An administrator may write anywhere.
    assert (
        sorted(path.name for path in folder.iterdir() if path.name not in ("snapshot", "write.lock")) == names
    )
