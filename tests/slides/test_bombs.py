"""Small files that would take all memory or never end are refused first."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from napari_fish.errors import SlideError
from napari_fish.slides import open_slide
from napari_fish.slides.coded_size import coded_pixels
from napari_fish.slides.tiff_directories import why_endless

from .conftest import FORMATS, make_scene, write_ome_tiff, write_tiff

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
    "of subdirectories": (directory(8, 0, *SIZE, (330, 13, 1, 100)), directory(100, 0, *SIZE, (330, 4, 1, 8))),
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
        path, pixels, tile=(128, 128), compression="jpeg2000", description=description, metadata=None, **options
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
    for path in (write_ome_tiff(tmp_path / "a.ome.tif", make_scene()), write_tiff(tmp_path / "a.tif", make_scene())):
        assert why_endless(path) == ""
