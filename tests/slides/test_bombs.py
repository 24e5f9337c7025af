"""Small files that would take all memory or never end are refused first."""

from __future__ import annotations

import bz2
import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import imagecodecs
import numcodecs
import numpy as np
import pytest
import tifffile
import zarr
from numpy.typing import NDArray

from napari_fish.errors import SlideError
from napari_fish.slides import open_slide
from napari_fish.slides.coded_size import coded_pixels
from napari_fish.slides.tiff_directories import why_endless
from tests.slides.conftest import FORMATS, edit_json, make_scene, write_ome_tiff, write_omezarr, write_tiff

GIGABYTE = 2**30
_LOOK = """
import resource, sys
import napari_fish.slides.openslide, napari_fish.slides.omezarr, napari_fish.slides.tiff, napari_fish.slides.image
from napari_fish.errors import SlideError
from napari_fish.slides import open_slide
import PIL.Image, imagecodecs
kept = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (kept + {room}, -1))
resource.setrlimit(resource.RLIMIT_CPU, (60, -1))
try:
    with open_slide(sys.argv[1]) as slide:
        slide.content_hash
        width, height = slide.dimensions
        slide.read_level(0, 0, 0, min(width, 256), min(height, 256))
except SlideError as error:
    print(error)
"""


def said_of(path: Path, room: int = GIGABYTE) -> str:
    """Return what is said of a slide by a process that has little memory left."""
    run = subprocess.run(
        [sys.executable, "-c", _LOOK.format(room=room), path],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


def directory(offset: int, following: int, *tags: tuple[int, int, int, int]) -> tuple[int, bytes]:
    """Return a directory of a classic TIFF and where it belongs."""
    body = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return offset, struct.pack("<H", len(tags)) + body + struct.pack("<I", following)


def write_directories(path: Path, *directories: tuple[int, bytes]) -> Path:
    data = bytearray(b"II*\0" + struct.pack("<I", 8)).ljust(1000, b"\0")
    for offset, body in directories:
        data[offset : offset + len(body)] = body
    path.write_bytes(bytes(data))
    return path


SIZE = ((256, 4, 1, 16), (257, 4, 1, 16))
CIRCLES = {
    "onto itself": (directory(8, 8, *SIZE),),
    "back to the first": (directory(8, 100, *SIZE), directory(100, 200, *SIZE), directory(200, 8, *SIZE)),
    "back to the second": (directory(8, 100, *SIZE), directory(100, 200, *SIZE), directory(200, 100, *SIZE)),
    "through a subdirectory": (directory(8, 0, *SIZE, (330, 4, 1, 100)), directory(100, 8, *SIZE)),
    "of subdirectories": (
        directory(8, 0, *SIZE, (330, 13, 1, 100)),
        directory(100, 0, *SIZE, (330, 4, 1, 8)),
    ),
}


@pytest.mark.parametrize("kind", CIRCLES)
def test_a_tiff_whose_directories_form_a_circle_is_refused(tmp_path: Path, kind: str) -> None:
    path = write_directories(tmp_path / "a.tif", *CIRCLES[kind])
    with pytest.raises(SlideError, match=r"a\.tif: its directories form a circle"):
        open_slide(path)


def test_the_circle_that_was_found_in_the_wild_is_refused(real_data: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(real_data / "repro" / "ifd-loop.tiff", tmp_path / "a.tiff"))
    with pytest.raises(SlideError, match="form a circle"):
        open_slide(path)


def test_a_directory_that_two_others_name_is_no_circle(tmp_path: Path) -> None:
    shared = directory(200, 0, *SIZE)
    path = write_directories(
        tmp_path / "a.tif", directory(8, 100, *SIZE, (330, 4, 1, 200)), directory(100, 200, *SIZE), shared
    )
    assert why_endless(path) == ""


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_directories_of_any_tiff_are_followed(tmp_path: Path, order: str, big: bool) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path, bigtiff=big, byteorder=order) as tiff:
        for _ in range(3):
            tiff.write(np.zeros((32, 32, 3), np.uint8), photometric="rgb", subifds=2, metadata=None)
            for _ in range(2):
                tiff.write(np.zeros((16, 16, 3), np.uint8), photometric="rgb", metadata=None)
    assert why_endless(path) == ""
    with tifffile.TiffFile(path) as tiff:
        first, inner = tiff.pages[0].offset, tiff.pages[2].pages[1].offset
    form = order + ("Q" if big else "I")
    count = struct.unpack_from(order + ("Q" if big else "H"), path.read_bytes(), inner)[0]
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, inner + (8 + 20 * count if big else 2 + 12 * count), first)
    path.write_bytes(bytes(data))
    assert "circle" in why_endless(path)


def test_a_chain_of_directories_that_only_seems_to_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    count = 101_000
    offsets = np.arange(14, 14 + 6 * count, 6, dtype="<u4")
    records = np.zeros(count, [("tags", "<u2"), ("next", "<u4")])
    records["next"] = offsets
    path.write_bytes(b"II*\0" + struct.pack("<I", 8) + records.tobytes())
    assert "more than 100000 images" in why_endless(path)


def with_tile(path: Path, tile: bytes, compression: int) -> Path:
    """Write a TIFF of 256 x 256 px whose only tile is what is given."""
    pixels = np.zeros((256, 256, 3), np.uint8)
    tifffile.imwrite(path, pixels, tile=(256, 256), photometric="rgb", compression="deflate", metadata=None)
    with tifffile.TiffFile(path) as tiff:
        tags = tiff.pages[0].tags
        places = {code: tags[code].valueoffset for code in (259, 324, 325)}
    data = bytearray(path.read_bytes())
    for code, value in ((324, len(data)), (325, len(tile))):
        struct.pack_into("<I", data, places[code], value)
    struct.pack_into("<H", data, places[259], compression)
    path.write_bytes(bytes(data) + tile)
    return path


def large_jpeg_2000() -> bytes:
    """Return a JPEG 2000 image of one tile that says it has 60,000 x 60,000 px."""
    tile = bytearray(imagecodecs.jpeg2k_encode(np.zeros((256, 256, 3), np.uint8), codecformat="j2k"))
    struct.pack_into(">II", tile, 8, 60_000, 60_000)
    struct.pack_into(">II", tile, 24, 60_000, 60_000)
    return bytes(tile)


def large_jpeg() -> bytes:
    tile = bytearray(imagecodecs.jpeg8_encode(np.zeros((256, 256, 3), np.uint8)))
    at = next(i for i in range(len(tile)) if tile[i : i + 2] in (b"\xff\xc0", b"\xff\xc2"))
    struct.pack_into(">HH", tile, at + 5, 60_000, 60_000)
    return bytes(tile)


@pytest.mark.parametrize(
    ("make", "compression"), [(large_jpeg_2000, 33005), (large_jpeg_2000, 34712), (large_jpeg, 7)]
)
def test_a_tile_that_says_it_is_huge_is_not_decoded(
    tmp_path: Path, make: Callable[[], bytes], compression: int
) -> None:
    said = said_of(with_tile(tmp_path / "a.tif", make(), compression))
    assert "a.tif" in said and "far larger than a tile" in said


@pytest.mark.parametrize("shape", [(100, 131), (64, 64), (256, 512), (1000, 1001)])
@pytest.mark.parametrize("codec", ["jpeg8", "jpeg2k", "png", "webp", "jpegxl", "jpegxr"])
def test_the_size_of_a_coded_image_is_read_from_its_header(codec: str, shape: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    coded = getattr(imagecodecs, f"{codec}_encode")(pixels)
    assert coded_pixels(coded) == shape[0] * shape[1]
    for end in range(300):
        assert coded_pixels(coded[:end]) >= 0, "of a part something is said, or nothing"


def write_described(path: Path, pixels: NDArray[np.uint8], description: str) -> None:
    """Write a TIFF that OpenSlide cannot read, so that what it says of itself counts."""
    options = {"photometric": "rgb"} if pixels.ndim == 3 else {}
    tifffile.imwrite(
        path,
        pixels,
        tile=(128, 128),
        compression="jpeg2000",
        description=description,
        metadata=None,
        **options,
    )


MANY = 10**9
OME = (
    '<OME><Image><Pixels DimensionOrder="XYCZT" SizeX="{x}" SizeY="256" SizeC="{c}" SizeZ="1" SizeT="{t}" Type="uint8">'
    '<Channel SamplesPerPixel="3"/><TiffData {data}/></Pixels></Image></OME>'
)


@pytest.mark.parametrize(
    "claim",
    [
        {"c": 3 * MANY},
        {"t": MANY, "data": f'FirstT="{MANY - 1}" IFD="0"'},
        {"data": f'PlaneCount="{MANY}"'},
        {"x": 256 * MANY},
    ],
)
def test_ome_xml_that_declares_a_milliard_planes_is_refused(tmp_path: Path, claim: dict[str, object]) -> None:
    text = OME.format(**({"x": 256, "c": 3, "t": 1, "data": 'IFD="0"'} | claim))
    path = tmp_path / "a.ome.tif"
    write_described(path, make_scene(256, 256), text)
    said = said_of(path)
    assert "a.ome.tif" in said and "OME-XML declares more planes" in said


def test_a_stack_that_imagej_calls_a_milliard_channels_is_refused(tmp_path: Path) -> None:
    text = f"ImageJ=1.11a\nimages={MANY}\nchannels={MANY}\nhyperstack=true\n"
    path = tmp_path / "a.tif"
    write_described(path, np.zeros((256, 256), np.uint8), text)
    assert f"{MANY} channels" in said_of(path)


def test_a_pipe_that_ome_xml_names_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "b.ome.tif")
    text = OME.format(x=256, c=3, t=2, data='IFD="0"').replace(
        "</Pixels>", '<TiffData FirstT="1"><UUID FileName="b.ome.tif">urn:uuid:1</UUID></TiffData></Pixels>'
    )
    path = tmp_path / "a.ome.tif"
    write_described(path, make_scene(256, 256), text)
    assert "b.ome.tif, which is no ordinary file" in said_of(path)


@pytest.mark.parametrize("name", ["jpeg 2000", "ome-tiff", "zipped ome-zarr", "png"])
def test_what_is_as_it_should_be_is_read_with_as_little_memory(tmp_path: Path, name: str) -> None:
    assert said_of(FORMATS[name](tmp_path, make_scene(300, 400))) == ""


def test_a_pyramid_in_subdirectories_is_no_circle(tmp_path: Path) -> None:
    for path in (
        write_ome_tiff(tmp_path / "a.ome.tif", make_scene()),
        write_tiff(tmp_path / "a.tif", make_scene()),
    ):
        assert why_endless(path) == ""


def unfolding(make: Any, size: int) -> bytes:
    """Compress so many zeros, a few at a time."""
    block = bytes(2**20)
    return b"".join(make.compress(block) for _ in range(size // len(block))) + make.flush()


@cache
def zeros_in(codec: str, size: int = 3 * 2**28) -> bytes:
    if codec == "zstd":
        # Frames in a row are one stream.
        return numcodecs.Zstd().encode(bytes(2**24)) * (size // 2**24)
    if codec == "blosc":
        chunk = bytearray(numcodecs.Blosc().encode(bytes(2**16)))
        struct.pack_into("<I", chunk, 4, size)
        return bytes(chunk)
    if codec == "lz4":
        return struct.pack("<I", size) + numcodecs.LZ4().encode(bytes(2**16))[4:]
    made = {
        "zlib": lambda: zlib.compressobj(1),
        "gzip": lambda: zlib.compressobj(1, zlib.DEFLATED, 31),
        "bz2": lambda: bz2.BZ2Compressor(1),
    }
    return unfolding(made[codec](), size if codec != "bz2" else 2**26)


def set_codec(array: Path, codec: str) -> None:
    """Let an array say that its chunks are compressed in some way."""
    if (array / ".zarray").exists():
        edit_json(array / ".zarray", lambda d: d.update(compressor={"id": codec}))
        return
    options = {"blosc": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "typesize": 1, "blocksize": 0}}
    how = {
        "name": codec,
        "configuration": options.get(codec, {"level": 1} | ({"checksum": False} if codec == "zstd" else {})),
    }
    edit_json(array / "zarr.json", lambda d: d.update(codecs=[{"name": "bytes"}, how]))


@pytest.mark.parametrize(
    ("version", "codec"),
    [*(("0.4", name) for name in ("zlib", "gzip", "zstd", "blosc", "lz4", "bz2")),
     *(("0.5", name) for name in ("gzip", "zstd", "blosc"))],
)  # fmt: skip
def test_a_chunk_that_unfolds_without_end_is_given_up(tmp_path: Path, version: str, codec: str) -> None:
    path = write_omezarr(tmp_path / "a.zarr", make_scene(100, 100), version, levels=1, axes="cyx")
    set_codec(path / "0", codec)
    (chunk, *others) = sorted(p for p in (path / "0").rglob("*") if p.is_file() and p.name[0].isdigit())
    for other in (chunk, *others):
        other.write_bytes(zeros_in(codec))
    said = said_of(path, GIGABYTE // 2)
    assert "a.zarr" in said
    assert "more than its array says" in said or "buffer is too small" in said


def test_a_sharded_chunk_that_unfolds_without_end_is_given_up(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    pixels = np.random.default_rng(0).integers(0, 256, (3, 128, 128), np.uint8)
    group.create_array(
        "0", data=pixels, chunks=(3, 64, 64), shards=(3, 128, 128), compressors=zarr.codecs.GzipCodec()
    )
    axes = [{"name": name, "type": kind} for name, kind in (("c", "channel"), ("y", "space"), ("x", "space"))]
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [{"path": "0"}]}]}
    with open_slide(tmp_path / "a.zarr") as slide:
        np.testing.assert_array_equal(slide.read_level(0, 0, 0, 128, 128), pixels.transpose(1, 2, 0))
    (shard,) = (p for p in (tmp_path / "a.zarr" / "0").rglob("0") if p.is_file())
    bomb = zeros_in("gzip")
    places = np.array([[0, len(bomb)]] * 4, "<u8").tobytes()
    shard.write_bytes(bomb + places + struct.pack("<I", crc32c(places)))
    assert "more than its array says" in said_of(tmp_path / "a.zarr", GIGABYTE // 2)


def crc32c(data: bytes) -> int:
    return int(np.frombuffer(numcodecs.CRC32C(location="end").encode(data)[-4:], "<u4")[0])


@pytest.mark.parametrize("name", ["0/0.0.0", ".zattrs"])
def test_a_part_of_a_zip_file_that_says_it_unfolds_to_gigabytes_is_not_read(
    tmp_path: Path, name: str
) -> None:
    folder = write_omezarr(tmp_path / "a.zarr", make_scene(100, 100), levels=1, axes="cyx")
    path = tmp_path / "b.zarr.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            archive.write(file, file.relative_to(folder).as_posix())
        archive.getinfo(name).file_size = 3 * 2**29
    said = said_of(path)
    assert f"{path}: {name} unfolds to" in said


@pytest.mark.parametrize("name", ["0/0.0.0", ".zattrs", "0/.zarray"])
def test_a_pipe_inside_a_zarr_is_refused_at_once(tmp_path: Path, name: str) -> None:
    path = write_omezarr(tmp_path / "a.zarr", make_scene(100, 100), levels=1, axes="cyx")
    (path / name).unlink()
    os.mkfifo(path / name)
    said = said_of(path)
    assert f"{path / name}: is no ordinary file" in said


def test_a_pipe_in_place_of_the_ome_xml_of_a_zarr_is_refused_at_once(tmp_path: Path) -> None:
    zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2).create_group("OME")
    write_omezarr(tmp_path / "a.zarr" / "0", make_scene(100, 100), levels=1)
    os.mkfifo(tmp_path / "a.zarr" / "OME" / "METADATA.ome.xml")
    assert "METADATA.ome.xml: is no ordinary file" in said_of(tmp_path / "a.zarr")


def test_whatever_is_wrong_with_a_zipped_zarr_its_content_is_told_or_the_file_is_named(
    tmp_path: Path,
) -> None:
    path = FORMATS["zipped ome-zarr"](tmp_path, make_scene(150, 150))
    whole = path.read_bytes()
    dice = random.Random(3)
    told = 0
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(20):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(bytes(data))
        try:
            with open_slide(path) as slide:
                assert slide.content_hash
                told += 1
        except SlideError as error:
            assert str(path) in str(error)
    assert told < 60
