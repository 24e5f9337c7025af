"""Latent codes come back as they were kept, or an error says that they do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from napari_fish.errors import DatabaseError
from napari_fish.store.latent_codes import FOLDER, has_codes, read_codes, save_codes
from napari_fish.store.snapshot.store import SnapshotStore
from tests.search.archives import commit
from tests.store.conformance import SLIDES
from tests.store.forging import create

CODES = np.random.default_rng(0).integers(0, 128, (12, 64, 64), np.uint8)


@pytest.fixture
def array(tmp_path: Path) -> Path:
    """Return where the codes of a slide lie."""
    save_codes(tmp_path, "ü/a.tif", CODES)
    (found,) = (path.parent for path in (tmp_path / FOLDER).glob("*/zarr.json"))
    return found


def _said(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def forge(array: Path) -> None:
        said = json.loads((array / "zarr.json").read_text())
        change(said)
        (array / "zarr.json").write_text(json.dumps(said))

    return forge


def _flip(array: Path) -> None:
    chunk = array / "c" / "0" / "0" / "0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)


def _bomb(array: Path) -> None:
    from imagecodecs import zstd_encode

    (array / "c" / "0" / "0" / "0").write_bytes(zstd_encode(bytes(1 << 30)))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a bit flipped": _flip,
    "more than there should be": _bomb,
    "chunk cut short": lambda array: (array / "c/0/0/0").write_bytes((array / "c/0/0/0").read_bytes()[:-9]),
    "chunk empty": lambda array: (array / "c/0/0/0").write_bytes(b""),
    "chunk missing": lambda array: (array / "c/0/0/0").unlink(),
    "description missing": lambda array: (array / "zarr.json").unlink(),
    "description cut short": lambda array: (array / "zarr.json").write_text('{"shape": ['),
    "description of nothing": lambda array: (array / "zarr.json").write_text("[]"),
    "description too deep": lambda array: (array / "zarr.json").write_text("[" * 60_000),
    "fewer of them": _said(lambda said: said.update(shape=[11, 64, 64])),
    "more than memory": _said(lambda said: said.update(shape=[2**40, 64, 64])),
    "other sides": _said(lambda said: said.update(shape=[12, 4096, 1])),
    "numbers with a sign": _said(lambda said: said.update(data_type="int8")),
    "other pieces": _said(lambda said: said["chunk_grid"]["configuration"].update(chunk_shape=[6, 64, 64])),
    "another codec": _said(lambda said: said.update(codecs=[{"name": "bytes"}])),
    "no attributes": _said(lambda said: said.update(attributes=None)),
}


def test_codes_come_back_and_zarr_reads_them_too(array: Path, tmp_path: Path) -> None:
    assert np.array_equal(read_codes(tmp_path, "ü/a.tif"), CODES)
    assert np.array_equal(np.asarray(zarr.open_array(array, mode="r")[...]), CODES)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_codes_are_an_error_that_names_the_slide_and_the_remedy(
    array: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    damage(array)
    with pytest.raises(DatabaseError, match=r"ü/a\.tif.*damaged.*delete codes\.zarr"):
        read_codes(tmp_path, "ü/a.tif")


def test_codes_of_nothing_and_codes_that_are_all_zero_come_back(tmp_path: Path) -> None:
    for n in (0, 3):
        save_codes(tmp_path, "a", np.zeros((n, 64, 64), np.uint8))
        assert read_codes(tmp_path, "a").shape == (n, 64, 64)


def test_codes_kept_without_a_digest_are_read(array: Path, tmp_path: Path) -> None:
    _said(lambda said: said["attributes"].pop("blake2b"))(array)
    assert np.array_equal(read_codes(tmp_path, "ü/a.tif"), CODES)


def test_verify_reads_the_codes(tmp_path: Path) -> None:
    folder = create(tmp_path / "x.fish")
    with SnapshotStore(folder, writer=True) as store:
        commit(store, SLIDES[0])
        name = SLIDES[0].record.slide
        save_codes(folder, name, CODES[: len(SLIDES[0].keys)])
        assert store.verify() == []
        save_codes(folder, name, CODES[:3])
        assert "codes of 3 patches" in store.verify()[0].text
        save_codes(folder, name, CODES)
        _flip(next((folder / FOLDER).glob("*/zarr.json")).parent)
        assert "damaged" in store.verify()[0].text


def test_codes_that_were_being_written_when_the_program_ended_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = np.ones((2, 64, 64), np.uint8)
    with monkeypatch.context() as killed:
        killed.setattr(zarr.Array, "__setitem__", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            save_codes(tmp_path, "a", codes)
    assert not has_codes(tmp_path, "a")
    save_codes(tmp_path, "a", codes)
    assert np.array_equal(read_codes(tmp_path, "a"), codes)
    assert not list((tmp_path / "codes.zarr").glob("*.part"))
