"""How fast patches are read, against the bare library doing the same reads, and in how much memory.

Each backend reads 1024 px patches at 20x (0.5 µm/px) from random places of one file. The bare library
reads the same pixels of the same level and resamples them with the same kernel, turn by turn. The tifffile
backend's cache of decoded tiles, which its bare library has not, is off.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openslide
import tifffile
import zarr
from common import Row, in_turns, median_ratio, options, report, write_big_slide
from numpy.typing import NDArray
from PIL import Image

from napari_fish.slides import Slide, open_slide, tiff
from napari_fish.slides.resample import footprint, resample
from napari_fish.slides.tiff import open_tiff

RGB = NDArray[np.uint8]
Region = Callable[[int, int, int], RGB]
PATCH, TARGET, SOURCE = 1024, 0.5, 0.2457
STEP = TARGET / SOURCE
SIDE = 6000

PEAK = """
import re, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from napari_fish.slides import open_slide
from napari_fish.slides.tiff import open_tiff
from pathlib import Path
path, backend, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with (open_tiff if backend == "tifffile" else open_slide)(path) as slide, ThreadPoolExecutor(2) as pool:
    spots = np.random.default_rng(0).integers(0, slide.dimensions[0] - 4096, (count, 2)).tolist()
    assert all(patch.shape == (1024, 1024, 3) for patch in pool.map(lambda at: slide.read(*at, 1024, 1024, 0.5), spots))
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def bare(region: Region) -> Callable[[int, int], RGB]:
    """Return a patch reader over a library's own region reader."""

    def read(x: int, y: int) -> RGB:
        side = len(footprint(x, STEP, PATCH))
        return resample(region(x, y, side), (PATCH, PATCH), (0.0, 0.0), (STEP, STEP))

    return read


def with_openslide(path: Path) -> Region:
    handle = openslide.OpenSlide(path)
    return lambda x, y, side: np.asarray(handle.read_region((x, y), 0, (side, side)).convert("RGB"))


def with_tifffile(path: Path) -> Region:
    array = zarr.open(tifffile.imread(path, aszarr=True, level=0), mode="r")
    return lambda x, y, side: np.asarray(array[y : y + side, x : x + side])


def with_zarr(path: Path) -> Region:
    array = zarr.open(path / "0", mode="r")
    return lambda x, y, side: np.ascontiguousarray(
        array[0, :, 0, y : y + side, x : x + side].transpose(1, 2, 0)
    )


def with_pillow(path: Path) -> Region:
    pixels = np.asarray(Image.open(path).convert("RGB"))
    return lambda x, y, side: pixels[y : y + side, x : x + side]


def write_zarr(path: Path, pixels: RGB) -> Path:
    """Write an OME-Zarr in the layout of bioformats2raw."""
    group = zarr.open_group(path, mode="w", zarr_format=2)
    planes = pixels.transpose(2, 0, 1)[None, :, None]
    group.create_array("0", data=planes, chunks=(1, 1, 1, 1024, 1024))
    axes = [
        {"name": n, "type": "space", "unit": "micrometer"} if n in "zyx" else {"name": n} for n in "tczyx"
    ]
    scale = [{"type": "scale", "scale": [1, 1, 1, SOURCE, SOURCE]}]
    datasets = [{"path": "0", "coordinateTransformations": scale}]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": datasets}]
    return path


def speed(name: str, slide: Slide, region: Region, rounds: int) -> Row:
    """Compare one backend with its bare library."""
    spots = np.random.default_rng(1).integers(0, SIDE - 2200, (rounds, 2)).tolist()
    plain = bare(region)
    for x, y in spots[:3]:
        np.testing.assert_array_equal(slide.read(x, y, PATCH, PATCH, TARGET), plain(x, y))
    times = in_turns(
        {
            "ours": lambda turn: slide.read(*spots[turn], PATCH, PATCH, TARGET),
            "bare": lambda turn: plain(*spots[turn]),
        },
        rounds,
    )
    return {
        "backend": name,
        "reads/s": 1 / statistics.median(times["ours"]),
        "bare reads/s": 1 / statistics.median(times["bare"]),
        "time / bare": median_ratio(times["ours"], times["bare"]),
    }


def peak_memory(path: Path, backend: str, side: int, count: int) -> Row:
    """Measure the peak memory of a process that reads patches all over a huge slide."""
    command = [sys.executable, "-c", PEAK, str(path), backend, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {
        "backend": backend,
        "slide": f"{side} px squared",
        "patches": count,
        "peak MB": float(done.stdout),
    }


def main() -> None:
    chosen = options(__doc__)
    tiff.CACHE_BYTES = 0
    rounds = 10 if chosen.quick else 40
    folder = Path(tempfile.mkdtemp(prefix="napari-fish-read-"))
    try:
        jpeg = write_big_slide(folder / "a.tif", SIDE, SOURCE)
        with open_slide(jpeg) as slide:
            pixels = slide.read_level(0, 0, 0, SIDE, SIDE)
        deflate = folder / "b.tif"
        tifffile.imwrite(deflate, pixels, tile=(256, 256), compression="deflate", photometric="rgb")
        omezarr = write_zarr(folder / "c.zarr", pixels)
        image = folder / "d.png"
        Image.fromarray(pixels).save(image, compress_level=1)
        rows = [
            speed("openslide", open_slide(jpeg), with_openslide(jpeg), rounds),
            speed("tifffile (jpeg)", open_tiff(jpeg), with_tifffile(jpeg), rounds),
            speed("tifffile (deflate)", open_tiff(deflate, mpp=SOURCE), with_tifffile(deflate), rounds),
            speed("zarr", open_slide(omezarr), with_zarr(omezarr), rounds),
            speed("image", open_slide(image, mpp=SOURCE), with_pillow(image), rounds),
        ]
        side = 20_000 if chosen.quick else 100_000
        huge = write_big_slide(folder / "huge.tif", side, SOURCE)
        rows += [
            peak_memory(huge, backend, side, 20 if chosen.quick else 200)
            for backend in ("openslide", "tifffile")
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report(rows, chosen.json)


if __name__ == "__main__":
    main()
