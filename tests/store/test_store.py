"""A database in a folder answers like one in memory, whatever happened to it before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_fish.errors import DatabaseError
from napari_fish.index import ClusterParams
from napari_fish.search import Query, SearchParams, search
from napari_fish.search.calibrate import calibrate
from napari_fish.search.params import MODES, Mode
from napari_fish.store import EncodedSlide, MemoryStore, Store
from napari_fish.store.snapshot import files as snapshot_module
from napari_fish.store.snapshot import store as store_module
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from tests.search.archives import demo_slides

SLIDES = list(demo_slides(np.random.default_rng(2), n=8, patches=12))


def create(folder: Path) -> Path:
    SqliteCatalogue.create(folder, words=4, encoder="fish-lite", weights_hash="abc").close()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = create(tmp_path / "a ü.fish")
    with SnapshotStore(made, writer=True) as store:
        for slide in SLIDES[:6]:
            store.commit(slide)
    return made


def answers(store: Store, mode: Mode) -> list[tuple[object, ...]]:
    """Ask for each slide that was ever there; rows have other numbers in every store, all else is the same."""
    found = []
    for slide in SLIDES[:4]:
        query = Query(slide.record.name, slide.keys, slide.barcodes, slide.boxes, slide.record.slide)
        params = SearchParams(mode=mode, threshold=70, k=8, where=("site!=brain",), fill=True)
        for hit in search(store, query, params).hits:
            regions = sorted((m.query_index, m.hit_box, m.distance) for m in hit.matches)
            found.append((slide.record.slide, hit.rank, hit.slide, hit.distance, hit.diagnosis, regions))
    return found


def answers_in_memory(slides: list[EncodedSlide], mode: Mode) -> list[tuple[object, ...]]:
    store = MemoryStore(4, slides)
    store.train_clusters(ClusterParams())
    return answers(store, mode)


ACTION = st.tuples(
    st.sampled_from(["commit", "remove", "shorter", "compact", "reopen", "settle"]), st.integers(0, 7)
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTION, max_size=14), mode=st.sampled_from(["exact", "guided", "released"]))
def test_any_history_gives_the_answers_of_the_slides_that_are_left(
    tmp_path: Path, actions: list[tuple[str, int]], mode: Mode
) -> None:
    shutil.rmtree(tmp_path / "x.fish", ignore_errors=True)
    folder = create(tmp_path / "x.fish")
    store = SnapshotStore(folder, writer=True)
    left: dict[str, EncodedSlide] = {}
    for action, i in [*actions, ("commit", 0), ("commit", 5)]:
        slide = SLIDES[i]
        if action == "shorter":
            slide = replace(slide, keys=slide.keys[3:], barcodes=slide.barcodes[3:], boxes=slide.boxes[3:])
        if action in ("commit", "shorter"):
            store.commit(slide)
            left.pop(slide.record.slide, None)
            left[slide.record.slide] = slide
        elif action == "remove" and slide.record.slide in left:
            store.remove(slide.record.slide)
            del left[slide.record.slide]
        elif action == "compact":
            store.compact()
        elif action == "settle":
            store.settle()
        elif action == "reopen":
            store.close()
            store = SnapshotStore(folder, writer=True)
    with store:
        assert store.digest() == MemoryStore(4, left.values()).digest()
        assert answers(store, mode) == answers_in_memory(list(left.values()), mode)
        assert store.patches_per_slide.sum() == sum(len(s.keys) for s in left.values())
        assert store.verify() == []
    with SnapshotStore(folder) as reader:
        assert answers(reader, mode) == answers_in_memory(list(left.values()), mode)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_answers_from_files_as_from_memory(folder: Path, mode: Mode) -> None:
    with SnapshotStore(folder) as store:
        assert len(store) == 72
        assert answers(store, mode) == answers_in_memory(SLIDES[:6], mode)


def test_slides_added_one_by_one_leave_few_deltas(folder: Path) -> None:
    with SnapshotStore(folder, writer=True) as store:
        for _ in range(5):
            for slide in SLIDES:
                store.commit(slide)
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
        store.commit(SLIDES[7])
        store.compact()
    shutil.copy(tmp_path / "backup", folder / "fish.sqlite")
    with SnapshotStore(folder) as store:
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")


def test_a_reader_sees_what_a_writer_adds_when_it_looks_again(folder: Path) -> None:
    with SnapshotStore(folder) as reader, SnapshotStore(folder, writer=True) as writer:
        assert not reader.refresh()
        writer.commit(SLIDES[6])
        writer.remove("s1")
        assert len(reader) == 72
        assert reader.refresh()
        assert answers(reader, "exact") == answers_in_memory([SLIDES[0], *SLIDES[2:7]], "exact")
        assert reader.slides.number("s1") is None


def test_there_is_one_writer_at_a_time(folder: Path) -> None:
    with SnapshotStore(folder, writer=True), pytest.raises(DatabaseError, match="another program is writing"):
        SnapshotStore(folder, writer=True)
    SnapshotStore(folder, writer=True).close()


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


def test_columns_and_calibration_come_from_the_truth(folder: Path) -> None:
    with SnapshotStore(folder, writer=True) as store:
        store.calibration = calibrate(store, pairs=500)
        store.compact()
        store.remove("s0")
        codes, values = store.slides.numbered("STAIN")
        assert values == ["H&E", "PAS"] and codes[0] == -1 and (codes[1:] >= 0).all()
        assert store.slides.columns == ["slide", "name", "patient", "site", "diagnosis", "stain"]
        assert [record.slide for record in store.slides] == ["", "s1", "s2", "s3", "s4", "s5"]
    with SnapshotStore(folder) as store:
        assert store.calibration is not None and store.calibration.histogram.sum() == 500
