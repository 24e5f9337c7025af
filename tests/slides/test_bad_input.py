"""Whatever is wrong with a file, its name and a remedy are said, and nothing large is allocated."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from napari_fish.errors import SlideError
from napari_fish.slides import find_slides, open_slide
from tests.slides.conftest import (
    FORMATS,
    edit_json,
    make_scene,
    write_dicom_header,
    write_ome_tiff,
    write_omezarr,
    write_tiff,
)


def refused(path: Path, why: str) -> None:
    """Opening fails with a message that names the file, says why and what to do."""
    with pytest.raises(SlideError, match=why) as caught:
        open_slide(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) > len(str(path)) + 30


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    refused(tmp_path / "no such slide.svs", "there is no such file")


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.svs"
    path.touch()
    refused(path, "empty")


def test_a_text_file_called_svs_is_no_slide(tmp_path: Path) -> None:
    path = tmp_path / "notes.svs"
    path.write_text("just some notes about a slide\n" * 40)
    refused(path, "not a slide in any known format")


def test_a_folder_is_no_slide(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    refused(tmp_path, "folder")


def test_a_zip_of_something_else_is_no_slide(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").touch()
    refused(Path(shutil.make_archive(str(tmp_path / "a"), "zip", tmp_path / "in")), "no OME-Zarr")


def test_a_mirax_slide_without_its_folder_names_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "case 7.mrxs"
    shutil.copy(write_image(tmp_path), path)
    path.write_bytes(b"\0" * 1000)
    refused(path, "folder case 7.*is missing")


def write_image(folder: Path) -> Path:
    return FORMATS["png"](folder, make_scene(50, 50))


def test_a_mirax_slide_is_never_taken_for_the_thumbnail_that_it_looks_like(tmp_path: Path) -> None:
    path = tmp_path / "a.mrxs"
    PIL.Image.fromarray(make_scene(50, 50)).save(path, format="JPEG")
    refused(path, "folder a, which holds the pixels, is missing")
    path.with_suffix("").mkdir()
    (path.with_suffix("") / "Slidedat.ini").write_text("[GENERAL]")
    refused(path, "damaged or incomplete|does not know this format")


def test_a_mislabelled_file_opens_as_what_it_is(tmp_path: Path, scene: NDArray[np.uint8]) -> None:
    path = FORMATS["png"](tmp_path, scene).rename(tmp_path / "really-a-png.svs")
    with open_slide(path) as slide:
        assert slide.backend == "image"
        np.testing.assert_array_equal(slide.read_level(0, 0, 0, 900, 700), scene)


def test_no_permission_is_said_plainly(tmp_path: Path, scene: NDArray[np.uint8]) -> None:
    path = write_tiff(tmp_path / "a.tif", scene)
    path.chmod(0)
    if os.geteuid() != 0:
        refused(path, "no permission")
        return
    # Root may read everything: ask somebody who may not.
    for folder in (tmp_path, *(p for p in tmp_path.parents if p.name.startswith("pytest-"))):
        folder.chmod(0o755)
    code = (
        "import os, sys; from napari_fish.slides import open_slide, opening; "
        "import napari_fish.slides.openslide, napari_fish.slides.omezarr, napari_fish.slides.tiff; "
        "os.setegid(65534); os.seteuid(65534); open_slide(sys.argv[1])"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert "no permission to read it" in run.stderr


@pytest.mark.parametrize("kept", [0.02, 0.4, 0.8, 0.99])
@pytest.mark.parametrize("name", [n for n in FORMATS if "zarr" not in n or "zipped" in n])
def test_a_truncated_file_is_refused_or_its_pixels_are(tmp_path: Path, name: str, kept: float) -> None:
    path = FORMATS[name](tmp_path, make_scene(300, 400))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(SlideError, match=r"truncated|damaged|incomplete|ends early") as caught:
        _look_at_everything(path)
    assert str(path) in str(caught.value)


def _look_at_everything(path: Path) -> None:
    with open_slide(path) as slide:
        for level, (width, height) in enumerate(slide.level_dimensions):
            slide.read_level(level, 0, 0, min(width, 2000), min(height, 2000))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6))
@pytest.mark.parametrize(
    "name", ["generic tiff", "ome-tiff", "jpeg 2000", "one strip", "zipped ome-zarr", "png"]
)
def test_flipped_bytes_end_in_pixels_or_a_clear_error(tmp_path: Path, name: str, seed: int) -> None:
    path = FORMATS[name](tmp_path, make_scene(200, 260))
    data = bytearray(path.read_bytes())
    dice = random.Random(seed)
    for _ in range(10):
        # Most of the harm is in the headers, at either end of the file.
        at = dice.choice(
            (dice.randrange(400), len(data) - 1 - dice.randrange(400), dice.randrange(len(data)))
        )
        data[at] ^= dice.randrange(1, 256)
    path.write_bytes(bytes(data))
    try:
        _look_at_everything(path)
    except SlideError as error:
        assert str(path) in str(error)


def test_a_tiny_tiff_that_declares_a_terapixel_allocates_nothing(tmp_path: Path) -> None:
    def tag(code: int, kind: int, value: int) -> bytes:
        return struct.pack("<HHII", code, kind, 1, value)

    side = 10**6
    for tile, compression in ((0, 1), (256, 1), (256, 7), (16_384, 1), (999_936, 7), (side, 1), (side, 7)):
        tags = [
            tag(256, 4, side),
            tag(257, 4, side),
            tag(258, 3, 8),
            tag(259, 3, compression),
            tag(262, 3, 1),
        ]
        tags += [tag(277, 3, 1)]
        if tile:
            tags += [tag(322, 4, tile), tag(323, 4, tile), tag(324, 4, 8), tag(325, 4, 8)]
        else:
            tags += [tag(273, 4, 8), tag(278, 4, side), tag(279, 4, 8)]
        body = b"II*\0" + struct.pack("<IH", 8, len(tags)) + b"".join(tags) + b"\0" * 4
        path = tmp_path / f"{tile}-{compression}.tif"
        path.write_bytes(body.ljust(152, b"\0"))
        tracemalloc.start()
        refused(path, "too large to read|damaged|truncated")
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
        tracemalloc.stop()


def test_a_zarr_that_declares_a_terapixel_chunk_is_refused(tmp_path: Path) -> None:
    path = write_omezarr(tmp_path / "a.zarr", make_scene(100, 100), levels=1)
    edit_json(
        path / "0" / ".zarray",
        lambda d: d.update(shape=[1, 3, 1, 10**6, 10**6], chunks=[1, 1, 1, 10**6, 10**6]),
    )
    refused(path, "chunks.*too large")


def test_a_zarr_that_lost_its_metadata_is_refused(tmp_path: Path) -> None:
    path = write_omezarr(tmp_path / "a.zarr", make_scene(100, 100))
    (path / "1" / ".zarray").write_text("{ not json")
    refused(path, "damaged or incomplete")
    other = write_omezarr(tmp_path / "b.zarr", make_scene(100, 100))
    edit_json(other / ".zattrs", lambda d: d.clear())
    refused(other, "no multiscale image")


def test_one_damaged_tile_does_not_take_the_rest_of_the_slide_along(
    tmp_path: Path, scene: NDArray[np.uint8]
) -> None:
    import tifffile

    for path in (
        write_tiff(tmp_path / "a.tif", scene, 1),
        write_ome_tiff(tmp_path / "a.ome.tif", scene, 1, compression="deflate"),
    ):
        with tifffile.TiffFile(path) as tiff:
            page = tiff.series[-1].pages[0]
            offset, count = page.dataoffsets[0], page.databytecounts[0]
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(b"\xff" * count)
        with open_slide(path) as slide:
            for _ in range(2):
                with pytest.raises(SlideError, match=r"cannot read level 0.*damaged"):
                    slide.read_level(0, 0, 0, 64, 64)
                np.testing.assert_array_equal(slide.read_level(0, 400, 400, 64, 64), scene[400:464, 400:464])


def test_a_folder_of_ten_thousand_files_is_listed_without_opening_them(tmp_path: Path) -> None:
    for i in range(10_000):
        (tmp_path / f"{i:05}.{'svs' if i % 100 == 0 else 'txt'}").touch()
    companion = tmp_path / "case"
    companion.mkdir()
    (companion / "Data0001.dat").touch()
    (companion / "preview.jpg").touch()
    (tmp_path / "case.mrxs").touch()
    write_omezarr(tmp_path / "sub" / "b.zarr", make_scene(64, 64), levels=1)
    (tmp_path / "dicom").mkdir()
    for i in range(3):
        write_dicom_header(tmp_path / "dicom" / f"{i}.dcm", "1.2.3")
    found = list(find_slides(tmp_path))
    assert len(found) == 100 + 3
    assert {p.name for p in found if p.suffix != ".svs"} == {"case.mrxs", "b.zarr", "dicom"}
    refused(tmp_path, "folder")


def test_links_that_lead_in_circles_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.svs").touch()
    for name in ("one", "two"):
        (tmp_path / "sub" / name).symlink_to(tmp_path, target_is_directory=True)
    assert [p.name for p in find_slides(tmp_path)] == ["a.svs"]


def test_a_folder_that_is_itself_a_slide_is_found(tmp_path: Path) -> None:
    path = write_omezarr(tmp_path / "a.zarr", make_scene(64, 64), levels=1)
    assert list(find_slides(path)) == [path]


def test_what_is_neither_file_nor_folder_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.svs")
    refused(tmp_path / "pipe.svs", "neither a file nor a folder")


def test_a_home_folder_of_nobody_is_no_such_file() -> None:
    with pytest.raises(SlideError, match="there is no such file"):
        open_slide("~nobody-of-this-name/a.svs")


def test_a_slide_that_has_gone_cannot_be_hashed_and_says_so(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", make_scene(100, 100))
    with open_slide(path) as slide:
        path.unlink()
        with pytest.raises(SlideError, match=r"a\.tif.*cannot be read any more"):
            _ = slide.content_hash


@pytest.mark.parametrize("photometric", ["cmyk", "ycbcr", "cielab"])
def test_colours_that_would_come_out_wrong_are_refused(tmp_path: Path, photometric: str) -> None:
    import tifffile

    samples = 4 if photometric == "cmyk" else 3
    pixels = np.zeros((100, 100, samples), np.uint8)
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, pixels, photometric="separated" if samples == 4 else photometric, rowsperstrip=100)
    refused(path, "its colours are stored as")
