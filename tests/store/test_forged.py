"""A snapshot with the right checksums and the wrong content ends no search, and verify does not call it well."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_fish.search.params import Mode
from napari_fish.store.request import Request
from napari_fish.store.snapshot import files as snapshot_module
from napari_fish.store.snapshot.files import PartWriter, first_damaged, open_part, verify_part
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from tests.store.conformance import SLIDES, answers, answers_in_memory
from tests.store.forging import database_of

Arrays = dict[str, np.ndarray]
READING_CELLS_AND_KEYS: tuple[Mode, ...] = ("clustered", "guided")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return database_of(tmp_path / "a ü.fish", SLIDES[:4], later=SLIDES[4:6])


def forge(part: Path, change: Callable[[Arrays], object], **facts: Any) -> None:
    """Write a part anew with other arrays, all checksums right."""
    manifest = json.loads((part / "manifest.json").read_text(encoding="utf-8"))
    opened = open_part(part, manifest["files"])
    arrays = {name: array.copy() for name, array in opened.arrays.items()}
    change(arrays)
    generation = facts.pop("generation", opened.generation)
    with PartWriter(part, generation, {**opened.facts, **facts}) as writer:
        for name, array in arrays.items():
            writer.save(name, array)
    assert verify_part(part) == []


def _set(name: str, at: Any, value: object) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name][at] = value

    return change


def _as(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Arrays], None]:
    def forged(arrays: Arrays) -> None:
        arrays[name] = change(arrays[name])

    return forged


def _other_split(arrays: Arrays) -> None:
    arrays["head"] = np.hstack([arrays["head"], arrays["tail"][:, :1]])
    arrays["tail"] = arrays["tail"][:, 1:]


def _fewer_below_zero(arrays: Arrays) -> None:
    arrays["counts"][:2] += (-100, 100)


DANGEROUS = {
    "clusters that go back": _set("cell_starts", slice(1, -1), 2**31 - 1),
    "clusters from below zero on": _set("cell_starts", 0, -(2**20)),
    "centres of fewer words": _as("centres", lambda a: a[:, :1].copy()),
    "centres of more words": _as("centres", lambda a: np.hstack([a, a])),
    "fewer centres than clusters": _as("centres", lambda a: a[:1].copy()),
    "no centres": _as("centres", lambda a: a[:0].copy()),
    "fewer patches than none": _fewer_below_zero,
    "another split of barcodes": _other_split,
    "keys out of order": _as("keys", lambda a: a[::-1].copy()),
    "keys below zero": _set("keys", 0, -(2**40)),
    "keys beyond all keys": _set("keys", -1, 2**62),
    "offsets out of order": _set("offsets", slice(1, 9), 2**30),
    "a key without rows": _set("offsets", 2, 1),
    "slides out of order": _as("numbers", lambda a: a[::-1].copy()),
    "rows of slides that are not there": _set("slides", 0, 2**30),
    "rows that are not there, by slide": _set("by_slide", 0, -5),
    "rows that are not there, in clusters": _set("cell_rows", 3, 2**30),
    "halves that are not there": _set("place", 3, 2**30),
    "rows of another slide than counted": _set("slides", slice(None), 0),
    "farther than can be": _set("cell_far", 0, 65535),
    "one size": _as("sizes", lambda a: a[:1].copy()),
    "corners in one piece": _as("corners", lambda a: a[:, 0].copy()),
    "corners of another type": _as("corners", lambda a: a.astype(np.float64)),
    "numbers of another type": _as("numbers", lambda a: a.astype("S8")),
    "more rows than barcodes": _as("head", lambda a: a[:-1].copy()),
}


@pytest.mark.parametrize("change", DANGEROUS.values(), ids=DANGEROUS)
def test_arrays_that_do_not_fit_each_other_are_made_again_before_a_search_sees_them(
    folder: Path, change: Callable[[Arrays], None]
) -> None:
    for mode in READING_CELLS_AND_KEYS:
        forge(folder / "snapshot" / "main", change)
        with SnapshotStore(folder) as store:
            assert answers(store, mode) == answers_in_memory(SLIDES[:6], mode)
    forge(folder / "snapshot" / "main", change)
    with SnapshotStore(folder, writer=True) as store:
        (text,) = map(str, store.verify())
        assert "snapshot" in text and "made again" in text
        assert store.verify() == []


def _neighbours_swapped(arrays: Arrays) -> None:
    arrays["place"][[0, 1]] = arrays["place"][[1, 0]]


def _slides_mixed(arrays: Arrays) -> None:
    arrays["by_slide"][[0, -1]] = arrays["by_slide"][[-1, 0]]


def _a_row_twice(arrays: Arrays) -> None:
    arrays["by_slide"][0] = arrays["by_slide"][1]


def _nearer_than_it_is(arrays: Arrays) -> None:
    arrays["cell_far"][np.argmax(arrays["cell_far"])] -= 1


@pytest.mark.parametrize("change", [_neighbours_swapped, _slides_mixed, _a_row_twice, _nearer_than_it_is])
def test_what_gives_wrong_answers_only_is_found_and_mended_by_verify(
    folder: Path, change: Callable[[Arrays], None]
) -> None:
    forge(folder / "snapshot" / "main", change)
    with SnapshotStore(folder, writer=True) as store:
        (text,) = map(str, store.verify())
        assert "snapshot" in text and "made again" in text
        assert store.verify() == []
        assert answers(store, "clustered") == answers_in_memory(SLIDES[:6], "clustered")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (_set("keys", 0, -(2**40)), {}),
        (_set("keys", 0, 2**60), {}),
        (_as("barcodes", lambda a: a[:, :1].copy()), {}),
        (_as("boxes", lambda a: a[:, :3].copy()), {}),
        (_as("numbers", lambda a: a[:-1].copy()), {}),
        (_set("numbers", 0, 999), {}),
        (_as("slides", lambda a: a - 4), {}),
        (lambda arrays: None, {"after": "much"}),
        (lambda arrays: None, {"generation": 1}),
    ],
)
def test_a_delta_that_does_not_fit_is_read_from_the_truth_instead(
    folder: Path, change: Callable[[Arrays], None], facts: dict[str, Any]
) -> None:
    (delta,) = (folder / "snapshot").glob("delta-*")
    forge(delta, change, **facts)
    for mode in READING_CELLS_AND_KEYS:
        with SnapshotStore(folder) as store:
            assert answers(store, mode) == answers_in_memory(SLIDES[:6], mode)


def test_a_main_part_that_says_it_is_older_than_it_is_shows_no_slide_twice(folder: Path) -> None:
    with SnapshotStore(folder, writer=True) as store:
        store.compact()
    forge(folder / "snapshot" / "main", lambda arrays: None, generation=2)
    with SnapshotStore(folder) as store:
        assert len(store.slides) == 6
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")


@pytest.mark.parametrize("name", ["forged-cell-starts", "forged-centres"])
def test_the_forged_databases_that_ended_the_process_are_searched(
    real_data: Path, tmp_path: Path, name: str
) -> None:
    shutil.copytree(real_data / "repro" / f"{name}.fish", tmp_path / "x.fish", copy_function=shutil.copyfile)
    for path in (tmp_path / "x.fish").rglob("*"):
        path.chmod(0o755)
    (tmp_path / "x.fish").chmod(0o755)
    with SnapshotStore(tmp_path / "x.fish") as store:
        barcodes = store.encoded(store.rows_of([0]))[1]
        found = store.nearest(Request(barcodes, "clustered", k=5))
        assert all(near[0] == 0 for _, near in found)
    with SnapshotStore(tmp_path / "x.fish", writer=True) as store:
        assert store.verify() == []


MANIFESTS = (
    "[" * 100_000,
    "[]",
    "{}",
    '{"format": 3}',
    '{"format": 3, "generation": 1e400, "facts": {}, "files": {}}',
    '{"format": 3, "generation": 1, "facts": {}, "files": []}',
    '{"format": 3, "generation": 1, "facts": {}, "files": {"keys": {"dtype": "O"}}}',
    '{"format": 3, "generation": 1, "facts": {}, "files": {"keys": 7}}',
)


@pytest.mark.parametrize("text", MANIFESTS)
def test_a_manifest_that_says_nothing_is_named_by_verify(folder: Path, text: str) -> None:
    main = folder / "snapshot" / "main"
    try:
        said = json.loads(text)
        (said := dict(said))["checksum"] = snapshot_module._sum_of(said)
        text = json.dumps(said)
    except (ValueError, RecursionError):
        pass
    (main / "manifest.json").write_text(text)
    (wrong,) = verify_part(main)
    assert "no readable manifest" in wrong
    with SnapshotStore(folder) as store:
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_large_file_damaged_at_its_end_is_found_when_it_is_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "SMALL", 0)
    main = folder / "snapshot" / "main"
    _flip(main / "head.npy", -1)
    with SnapshotStore(folder) as store:
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")
    assert verify_part(main) == []


@pytest.fixture
def damaged_between_blocks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database of which a large file is damaged between the blocks that opening reads."""
    monkeypatch.setattr(snapshot_module, "SMALL", 0)
    # Two blocks of eight bytes, so that there is something between them in a small file, too.
    monkeypatch.setattr("napari_fish.store.snapshot.checksums.BLOCKS", 2)
    monkeypatch.setattr("napari_fish.store.snapshot.checksums.BLOCK", 8)
    with SnapshotStore(folder, writer=True) as store:
        store.compact()
    head = folder / "snapshot" / "main" / "head.npy"
    _flip(head, head.stat().st_size // 2)
    assert "head.npy" in first_damaged(open_part(head.parent, ["head", "tail"]).unread)
    return folder


def test_a_large_file_damaged_between_the_blocks_that_opening_reads_is_found_beside_the_first_searches(
    damaged_between_blocks: Path,
) -> None:
    with SnapshotStore(damaged_between_blocks) as store:
        store.read_through()
        assert store.refresh()
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")
        assert not store.refresh()
    assert verify_part(damaged_between_blocks / "snapshot" / "main") == []


def test_damage_that_is_found_beside_a_search_leaves_the_rows_of_that_search_what_they_are(
    damaged_between_blocks: Path,
) -> None:
    with closing(SqliteCatalogue.open(damaged_between_blocks)) as truth:
        # A snapshot made again lacks the slide that was removed, so that rows move up.
        truth.remove([SLIDES[0].record.slide])
    with SnapshotStore(damaged_between_blocks) as store:
        rows = store.rows_of([1, 5])
        before = store.regions(rows)
        store.read_through()
        assert store.regions(rows) == before
        assert len(store) > store.patches_per_slide.sum()
        assert store.refresh()
        assert len(store) == store.patches_per_slide.sum()
