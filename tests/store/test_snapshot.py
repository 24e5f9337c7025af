"""Parts of a snapshot are whole, current and checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from napari_fish.index import GuidedIndex, Segment
from napari_fish.store.snapshot import files as snapshot
from napari_fish.store.snapshot.files import PartWriter, SnapshotError, first_damaged, open_part, verify_part

COLUMNS = ("keys", "offsets", "barcodes", "slides")
ARRAYS = {
    "keys": np.arange(0, 5000, 5),
    "offsets": np.arange(1001, dtype=np.int32),
    "barcodes": np.random.default_rng(0).integers(0, 2**64, (1000, 16), np.uint64),
    "slides": np.arange(1000, dtype=np.int32) // 10,
}


def write_part(folder: Path, arrays: dict[str, np.ndarray], generation: int) -> None:
    with PartWriter(folder, generation, {"after": 2}) as writer:
        for name, array in arrays.items():
            if name == "barcodes":
                writer.new(name, array.shape, array.dtype)[...] = array
            else:
                writer.save(name, array)


@pytest.fixture
def part(tmp_path: Path) -> Path:
    write_part(tmp_path / "snapshot ü" / "main", ARRAYS, generation=3)
    return tmp_path / "snapshot ü" / "main"


def test_what_was_written_is_mapped_and_searched_in_place(part: Path) -> None:
    opened = open_part(part, ARRAYS)
    assert (opened.generation, opened.facts) == (3, {"after": 2})
    arrays = opened.arrays
    assert {name: a.tobytes() for name, a in arrays.items()} == {n: a.tobytes() for n, a in ARRAYS.items()}
    segment = Segment(*(arrays[name] for name in COLUMNS))
    head = segment.codes.head
    assert isinstance(head.base, np.memmap | np.ndarray) and not head.flags.owndata
    found = GuidedIndex(segment).search([2500], ARRAYS["barcodes"][500])
    assert found.rows.tolist() == [500]
    assert verify_part(part) == []


def test_arrays_without_rows_come_back(tmp_path: Path) -> None:
    empty = Segment.empty(4)
    columns = (empty.keys, empty.offsets, empty.codes.head, empty.slides)
    write_part(tmp_path / "delta", dict(zip(COLUMNS, columns, strict=True)), 1)
    opened = open_part(tmp_path / "delta", COLUMNS).arrays
    assert len(Segment(*(opened[name] for name in COLUMNS))) == 0


def test_scratch_leaves_nothing_behind(tmp_path: Path) -> None:
    with PartWriter(tmp_path / "main", 1) as writer:
        scratch = writer.scratch((1000, 3), np.uint64)
        scratch[:] = 7
        assert scratch.shape == (1000, 3) and (scratch == 7).all()
        writer.save("keys", scratch[:, 0])
    assert {path.name for path in (tmp_path / "main").iterdir()} == {"keys.npy", "manifest.json"}
    assert writer.scratch((0, 3), np.uint64).shape == (0, 3)


def _shorten(part: Path) -> None:
    path = part / "barcodes.npy"
    path.write_bytes(path.read_bytes()[:-1])


def _remove(part: Path) -> None:
    (part / "slides.npy").unlink()


def _spoil_manifest(part: Path) -> None:
    (part / "manifest.json").write_text('{"format": 1')


def _newer_format(part: Path) -> None:
    manifest = json.loads((part / "manifest.json").read_text())
    (part / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))


def _escape(part: Path) -> None:
    manifest = json.loads((part / "manifest.json").read_text())
    manifest["files"]["../../other"] = {"size": 1, "checksum": 0}
    (part / "manifest.json").write_text(json.dumps(manifest))


def _another_number(part: Path) -> None:
    path = part / "manifest.json"
    path.write_text(path.read_text().replace('"generation": 3', '"generation": 2'))


@pytest.mark.parametrize(
    "damage", [_shorten, _remove, _spoil_manifest, _newer_format, _escape, _another_number]
)
def test_a_damaged_part_is_refused_and_found_by_verify(part: Path, damage: Callable[[Path], None]) -> None:
    damage(part)
    with pytest.raises(SnapshotError):
        open_part(part, ARRAYS)
    assert verify_part(part)


def test_a_flipped_bit_is_found_when_a_small_file_is_opened_and_by_verify(
    part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = part / "barcodes.npy"
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match="not what was written"):
        open_part(part, ARRAYS)
    monkeypatch.setattr(snapshot, "SMALL", 0)
    # Between the blocks that are read of a large file.
    assert "not what was written" in first_damaged(open_part(part, ARRAYS).unread)
    assert "not what was written" in verify_part(part)[0]
    content[5000] ^= 1
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match="not what was written"):
        open_part(part, ARRAYS)


def test_a_part_left_half_written_by_a_crash_does_no_harm(part: Path) -> None:
    half = part.with_name("main.new")
    half.mkdir()
    (half / "keys.npy").write_bytes(b"half")
    mapped = open_part(part, ARRAYS).arrays["keys"]
    write_part(part, ARRAYS | {"keys": ARRAYS["keys"] + 1}, 4)
    assert open_part(part, ARRAYS).arrays["keys"][0] == 1 and mapped[0] == 0, (
        "readers of the old part keep it"
    )
    assert not half.exists() and not part.with_name("main.old").exists()
