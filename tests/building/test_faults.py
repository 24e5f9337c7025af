"""Kills, full disks, damage, two writers: nothing finished is lost, and a second run mends the rest."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from napari_fish.building.build import build
from napari_fish.database.care import import_labels, remove_slides
from napari_fish.errors import DatabaseError
from napari_fish.store.snapshot.files import PartWriter
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from napari_fish.store.sqlite.pictures import Thumbnails
from tests.tiny import DOOM, PATCHES, write_slide

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.skipif(os.name != "posix", reason="signals, limits and mounts of POSIX"),
]
ROOT = Path(__file__).parents[2]


def command_line(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start the command line, with the quick encoder, in a process of its own."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.tiny", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | environment | {"PYTHONPATH": paths},
    )  # fmt: skip


def digests(database: Path) -> dict[str, bytes]:
    """Return a digest of each slide and its patches, by id."""
    truth = SqliteCatalogue.open(database)
    try:
        assert truth.integrity() == []
        names = {number: record.slide for number, record in truth.slides()}
        return {names[number]: digest for number, digest in truth.slide_digests().items()}
    finally:
        truth.close()


@pytest.fixture(scope="module")
def whole(tiny_home: Path) -> dict[str, bytes]:
    return digests(tiny_home / "a b.fish")


def test_five_kills_at_random_lose_no_finished_slide_and_the_next_run_ends_the_same(
    tiny_home: Path, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    slides, database = tiny_home / "Schnitte ü", tmp_path / "x.fish"
    arguments = ("build", slides, "-o", database, "--labels", slides / "labels.csv", "--store-codes")
    dice = np.random.default_rng()
    kept = 0
    for _ in range(5):
        doom = f"{dice.integers(0, 4)}:{dice.uniform(0, 0.1):.4f}"
        process = command_line(*arguments, **{DOOM: doom})
        process.communicate(timeout=120)
        assert process.returncode in (-signal.SIGKILL, 0), doom
        found = digests(database) if (database / "fish.sqlite").exists() else {}
        assert found.items() <= whole.items(), doom
        assert len(found) >= kept, doom
        kept = len(found)
    assert build(slides, database, slides / "labels.csv").slides == 9
    assert digests(database) == whole
    with SnapshotStore(database, writer=True) as store:
        assert store.verify() == []


def test_an_interrupt_ends_with_130_keeps_what_is_finished_and_says_nothing_ugly(
    tiny_home: Path, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    database = tmp_path / "x.fish"
    process = command_line("build", tiny_home / "Schnitte ü", "-o", database)
    deadline = time.monotonic() + 60
    while not (database / "fish.sqlite").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err and "run it again to go on" in err
    assert len(digests(database)) <= 9
    assert not (database / "fish.sqlite-wal").exists()


def test_the_second_of_two_builders_gets_a_clear_message(home: Path) -> None:
    with SnapshotStore(home / "a b.fish", writer=True):
        process = command_line("build", home / "Schnitte ü", "-o", home / "a b.fish")
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert "another program is writing to this database; wait for it or stop it" in err
    assert "Traceback" not in err


@contextmanager
def mounted(folder: Path, *how: str) -> Iterator[Path]:
    """Mount something on a folder, where that is allowed."""
    folder.mkdir(exist_ok=True)
    if (
        os.geteuid()
        or subprocess.run(["mount", *how, str(folder)], check=False, capture_output=True).returncode
    ):
        pytest.skip("MOUNTS ARE NOT ALLOWED HERE: this fault was not tried")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_a_clear_error_and_nothing_finished_is_lost(
    tiny_home: Path, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    slides = tiny_home / "Schnitte ü"
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=400k", "tmpfs") as small:
        with pytest.raises(DatabaseError, match="the disk is full; make room and run again"):
            build(slides, small / "x.fish", slides / "labels.csv")
        found = digests(small / "x.fish")
        assert found.items() < whole.items() and found
        with SnapshotStore(small / "x.fish") as store:
            assert int(store.slides.alive.sum()) == len(found), "what there is can be searched from memory"
        subprocess.run(["mount", "-o", "remount,size=50m", str(small)], check=True)
        build(slides, small / "x.fish", slides / "labels.csv")
        assert digests(small / "x.fish") == whole


def test_a_snapshot_that_does_not_fit_on_the_disk_is_kept_in_memory(home: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=220k", "tmpfs") as small:
        (small / "x.fish").mkdir()
        shutil.copy(home / "a b.fish" / "fish.sqlite", small / "x.fish" / "fish.sqlite")
        room = os.statvfs(small)
        (small / "filler").write_bytes(bytes(room.f_bavail * room.f_bsize - 8192))
        with SnapshotStore(small / "x.fish") as store:
            assert len(store) == PATCHES
        assert not (small / "x.fish" / "snapshot" / "main").exists()


@pytest.mark.parametrize("scratch", [False, True])
def test_room_for_a_mapped_array_is_taken_before_it_is_filled(tmp_path: Path, scratch: bool) -> None:
    with (
        mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=400k", "tmpfs") as small,
        pytest.raises(OSError, match="No space left"),
        PartWriter(small / "main", 1) as writer,
    ):
        # Filling a hole in a file would end the process.
        if scratch:
            writer.scratch((10_000, 16), np.uint64)
        else:
            writer.new("head", (10_000, 16), np.uint64)


def test_a_limit_on_the_size_of_files_is_a_clear_error_too(tiny_home: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.fish"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (110_000, before[1]))
    try:
        with pytest.raises(DatabaseError, match=r"x\.fish.*(full|quota).*finished slides are kept"):
            build(tiny_home / "Schnitte ü", database)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    kept = len(digests(database))
    assert 0 < kept < 9
    assert build(tiny_home / "Schnitte ü", database).counts == {"unchanged": kept, "added": 9 - kept}


def test_a_database_on_a_read_only_disk_is_searched_and_refuses_changes_in_words(home: Path) -> None:
    database = home / "a b.fish"
    shutil.rmtree(database / "snapshot")
    with mounted(database, "--bind", str(database)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(database)], check=True)
        with SnapshotStore(database) as store:
            assert len(store) == PATCHES and store.verify() == []
        with pytest.raises(DatabaseError, match=r"a b\.fish: cannot be written to"):
            build(home / "Schnitte ü", database)
        with pytest.raises(DatabaseError, match="cannot be written to"):
            remove_slides(database, ["P00-0 ü"])


def test_damaged_pages_of_sqlite_are_named_with_the_remedy(home: Path) -> None:
    path = home / "a b.fish" / "fish.sqlite"
    content = bytearray(path.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 64] = b"\xa5" * 64
    path.write_bytes(content)
    for attempt in (
        lambda: build(home / "Schnitte ü", home / "a b.fish"),
        lambda: import_labels(home / "a b.fish", home / "Schnitte ü" / "labels.csv"),
        lambda: SnapshotStore(home / "a b.fish").digest(),
    ):
        with pytest.raises(DatabaseError, match=r"fish\.sqlite is damaged.*restore it from a copy, or build"):
            attempt()


def test_a_bit_that_flipped_in_a_barcode_is_found_by_verify(home: Path) -> None:
    database = home / "a b.fish"
    connection = sqlite3.connect(database / "fish.sqlite")
    (barcode,) = connection.execute("SELECT barcode FROM mosaics").fetchone()
    connection.execute(
        "UPDATE mosaics SET barcode = ? WHERE barcode = ?", (bytes([barcode[0] ^ 1]) + barcode[1:], barcode)
    )
    connection.commit()
    connection.close()
    with SnapshotStore(database, writer=True) as store:
        assert "does not agree with the snapshot" in store.verify()[0].text


def test_a_snapshot_of_another_time_or_another_database_is_never_used(home: Path, tmp_path: Path) -> None:
    slides, database = home / "Schnitte ü", home / "a b.fish"
    shutil.copy(database / "fish.sqlite", tmp_path / "backup")
    write_slide(slides / "one.tif", "normal", 50)
    build(slides, database)
    shutil.copy(tmp_path / "backup", database / "fish.sqlite")
    (slides / "one.tif").unlink()
    write_slide(slides / "two.tif", "lymphoma", 51)
    build(slides, database)
    with SnapshotStore(database) as store:
        assert store.verify() == []
        assert store.slides.number("two.tif") is not None and store.slides.number("one.tif") is None
    other = tmp_path / "other.fish"
    build(slides, other)
    shutil.copy(database / "fish.sqlite", other / "fish.sqlite")
    with SnapshotStore(other) as store:
        assert store.verify() == []


def test_damaged_thumbnails_are_made_anew_and_cost_nothing_but_pictures(home: Path) -> None:
    slides, database = home / "Schnitte ü", home / "a b.fish"
    path = database / "thumbnails.sqlite"
    content = bytearray(path.read_bytes())
    content[8192:-4096] = b"\xa5" * (len(content) - 12288)
    path.write_bytes(content)
    kept = Thumbnails.open_to_read(database)
    assert kept is not None and kept.overview("carcinoma/P00-0 ü.tif") is None
    kept.close()
    write_slide(slides / "new.tif", "normal", 50)
    assert build(slides, database).counts == {"unchanged": 9, "added": 1}
    kept = Thumbnails.open_to_read(database)
    assert kept is not None and kept.overview("new.tif")
