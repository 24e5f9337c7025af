"""A slide is known again wherever it goes."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

from napari_fish.slides import open_slide
from napari_fish.slides.identity import hash_files
from tests.slides.conftest import write_omezarr, write_tiff, zipped


def content_hash(path: Path) -> str:
    with open_slide(path, mpp=0.5) as slide:
        return slide.content_hash


def test_every_format_is_known_again_after_a_move_and_a_rename(any_format: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / f"nëw name{''.join(any_format.suffixes)}"
    moved.parent.mkdir()
    copy = shutil.copytree if any_format.is_dir() else shutil.copy
    copy(any_format, moved)
    assert content_hash(moved) == content_hash(any_format)
    assert content_hash(moved).startswith("fish1-")


def test_another_image_has_another_hash(tmp_path: Path, scene: NDArray[np.uint8]) -> None:
    changed = scene.copy()
    changed[300:310, 300:310] = 0
    hashes = {
        content_hash(write(tmp_path / f"{i}{suffix}", image))
        for write, suffix in ((write_tiff, ".tif"), (write_omezarr, ".zarr"))
        for i, image in enumerate((scene, changed))
    }
    assert len(hashes) == 4


@pytest.mark.parametrize("sharded", [False, True])
def test_tissue_beside_an_empty_margin_counts_in_the_hash_of_a_zarr(tmp_path: Path, sharded: bool) -> None:
    hashes = set()
    for seed in range(3):
        image = np.full((1024, 1024, 3), 255, np.uint8)
        image[:, 128:] = np.random.default_rng(seed).integers(0, 256, (1024, 896, 3))
        group = zarr.open_group(tmp_path / f"{seed}.zarr", mode="w", zarr_format=3)
        shards = (3, 256, 256) if sharded else None
        planes = image.transpose(2, 0, 1)
        group.create_array("0", data=planes, chunks=(1, 64, 64), shards=shards)
        axes = [
            {"name": "c", "type": "channel"},
            {"name": "y", "type": "space"},
            {"name": "x", "type": "space"},
        ]
        group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [{"path": "0"}]}]}
        hashes.add(content_hash(tmp_path / f"{seed}.zarr"))
    assert len(hashes) == 3


def test_a_zipped_zarr_is_the_same_slide_as_its_folder(tmp_path: Path, scene: NDArray[np.uint8]) -> None:
    folder = write_omezarr(tmp_path / "a.zarr", scene)
    inside = tmp_path / "inside.zip"
    with zipfile.ZipFile(inside, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, f"a.zarr/{file.relative_to(folder)}")
    assert content_hash(zipped(folder)) == content_hash(folder)
    with open_slide(inside) as slide:
        np.testing.assert_array_equal(slide.read_level(0, 0, 0, 900, 700), scene)


def test_only_samples_of_a_huge_file_are_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.bin"
    with huge.open("wb") as file:
        file.write(b"head")
        file.seek(20 * 2**30)
        file.write(b"tail")
    first = hash_files([huge])
    with huge.open("r+b") as file:
        file.seek(-4, 2)
        file.write(b"TAIL")
    assert hash_files([huge]) != first


def test_the_order_and_names_of_the_files_do_not_matter_but_all_of_them_count(tmp_path: Path) -> None:
    one, two, three = (tmp_path / n for n in ("1", "2", "3"))
    one.write_bytes(b"a" * 1000)
    two.write_bytes(b"b" * 1000)
    three.write_bytes(b"c" * 1000)
    assert hash_files([one, two]) == hash_files([two, one])
    assert len({hash_files([one]), hash_files([one, two]), hash_files([one, two, three])}) == 3
