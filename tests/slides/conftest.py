"""One scene, written in every format."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pydicom
import pytest
import tifffile
import zarr
from numpy.typing import NDArray
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, VLWholeSlideMicroscopyImageStorage

RGB = NDArray[np.uint8]
MPP = 0.5
SHAPE = (700, 900)


def make_scene(height: int = SHAPE[0], width: int = SHAPE[1]) -> RGB:
    """Paint smooth colours that differ everywhere, with a few sharp discs."""
    y, x = np.mgrid[:height, :width]
    scene = np.stack(
        [128 + 100 * np.sin(x / 37), 128 + 100 * np.cos(y / 29), 60 + 120 * (x + y) / (height + width)],
        axis=2,
    )
    for cy, cx, radius in ((100, 150, 20), (400, 620, 31), (600, 90, 13)):
        scene[(y - cy) ** 2 + (x - cx) ** 2 < radius**2] = (240, 30, 200)
    return scene.astype(np.uint8)


def shrink(image: NDArray[np.generic], factor: int) -> NDArray[np.generic]:
    """Average whole blocks of pixels."""
    rows, columns = image.shape[0] // factor, image.shape[1] // factor
    blocks = image[: rows * factor, : columns * factor].reshape(rows, factor, columns, factor, -1)
    return np.round(blocks.mean((1, 3))).astype(image.dtype).reshape(rows, columns, *image.shape[2:])


def write_tiff(path: Path, image: NDArray[np.generic], levels: int = 3, **options: object) -> Path:
    """Write a tiled pyramid in pages, as scanners and vips do."""
    settings: dict[str, object] = {
        "tile": (128, 128),
        "compression": "deflate",
        "photometric": "rgb",
        "resolution": (1e4 / MPP, 1e4 / MPP),
        "resolutionunit": "CENTIMETER",
        "metadata": None,
    } | options
    with tifffile.TiffWriter(path) as tiff:
        for level in range(levels):
            tiff.write(
                image if level == 0 else shrink(image, 2**level), subfiletype=int(level > 0), **settings
            )
    return path


def write_ome_tiff(path: Path, image: RGB, levels: int = 3, **options: object) -> Path:
    """Write an OME-TIFF with its pyramid in SubIFDs and a label beside it."""
    settings: dict[str, object] = {"tile": (128, 128), "compression": "lzw"} | options
    with tifffile.TiffWriter(path, ome=True) as tiff:
        label = np.full((40, 60, 3), 7, np.uint8)
        tiff.write(label, photometric="rgb", metadata={"axes": "YXS", "Name": "label image"})
        tiff.write(
            image,
            subifds=levels - 1,
            metadata={"axes": "YXS", "Name": "scan", "PhysicalSizeX": MPP, "PhysicalSizeY": MPP},
            photometric="rgb",
            **settings,
        )
        for level in range(1, levels):
            tiff.write(shrink(image, 2**level), subfiletype=1, photometric="rgb", **settings)
    return path


def write_omezarr(path: Path, image: RGB, version: str = "0.4", levels: int = 3, axes: str = "tczyx") -> Path:
    """Write an OME-Zarr of version 0.4 (zarr v2) or 0.5 (zarr v3)."""
    group = zarr.open_group(path, mode="w", zarr_format=2 if version == "0.4" else 3)
    spatial = {"x", "y", "z"}
    datasets = []
    for level in range(levels):
        pixels = shrink(image, 2**level) if level else image
        order = [a for a in axes if a in "yxc"]
        data = pixels.transpose([list("yxc").index(a) for a in order])
        data = data.reshape([data.shape[order.index(a)] if a in order else 1 for a in axes])
        chunks = tuple(128 if a in "yx" else 1 for a in axes)
        array = group.create_array(str(level), shape=data.shape, chunks=chunks, dtype=data.dtype)
        array[...] = data
        scale = [MPP * 2**level if a in "yx" else 1.0 for a in axes]
        datasets.append(
            {"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
        )
    about = {
        "name": "scan",
        "axes": [
            {
                "name": a,
                "type": "space" if a in spatial else {"c": "channel", "t": "time"}[a],
                **({"unit": "micrometer"} if a in spatial else {}),
            }
            for a in axes
        ],
        "datasets": datasets,
    }
    if version == "0.4":
        group.attrs["multiscales"] = [about | {"version": version}]
    else:
        group.attrs["ome"] = {"version": version, "multiscales": [about]}
    return path


def zipped(folder: Path) -> Path:
    """Zip a folder, its content at the top of the archive."""
    return Path(shutil.make_archive(str(folder), "zip", folder))


def write_image(path: Path, image: RGB) -> Path:
    """Write a PNG."""
    Image.fromarray(image).save(path)
    return path


def write_dicom_header(path: Path, series: str, referenced: Sequence[str] = (), **options: object) -> Path:
    """Write a DICOM file without pixels that may refer to other series before it names its own."""
    header = Dataset()
    header.file_meta = FileMetaDataset()
    header.file_meta.TransferSyntaxUID = options.get("syntax", ExplicitVRLittleEndian)
    header.file_meta.MediaStorageSOPClassUID = header.SOPClassUID = VLWholeSlideMicroscopyImageStorage
    header.file_meta.MediaStorageSOPInstanceUID = header.SOPInstanceUID = f"{series}.1"
    refer_to(header, referenced)
    header["ReferencedSeriesSequence"].is_undefined_length = bool(options.get("undefined_length"))
    header.SeriesInstanceUID = series
    pydicom.dcmwrite(path, header, enforce_file_format=True)
    return path


def refer_to(header: Dataset, series: Sequence[str]) -> None:
    """Let a DICOM header refer to other series."""
    others = [Dataset() for _ in series]
    for other, uid in zip(others, series, strict=True):
        other.SeriesInstanceUID = uid
    header.ReferencedSeriesSequence = others


FORMATS: dict[str, Callable[[Path, RGB], Path]] = {
    "generic tiff": lambda d, i: write_tiff(d / "a.tif", i),
    "bigtiff lzw": lambda d, i: write_tiff(d / "a.svs", i, compression="lzw"),
    "planar tiff": lambda d, i: write_tiff(d / "a.tif", np.moveaxis(i, 2, 0), 1, planarconfig="separate"),
    "strips": lambda d, i: write_tiff(d / "a.tif", i, 1, tile=None, rowsperstrip=50),
    "one strip": lambda d, i: write_tiff(d / "a.tif", i, 1, tile=None, rowsperstrip=10_000),
    "uncompressed": lambda d, i: write_tiff(d / "a.tif", i, 1, tile=None, compression=None),
    "jpeg 2000": lambda d, i: write_tiff(d / "a.tif", i, compression="jpeg2000"),
    "16 bit": lambda d, i: write_tiff(d / "a.tif", i.astype(np.uint16) * 257),
    "ome-tiff": lambda d, i: write_ome_tiff(d / "a.ome.tif", i),
    "ome-zarr 0.4": lambda d, i: write_omezarr(d / "a.ome.zarr", i, "0.4"),
    "ome-zarr 0.5": lambda d, i: write_omezarr(d / "a.ome.zarr", i, "0.5", axes="cyx"),
    "ome-zarr 0.5 yxc": lambda d, i: write_omezarr(d / "a.ome.zarr", i, "0.5", axes="yxc"),
    "zipped ome-zarr": lambda d, i: zipped(write_omezarr(d / "a.ome.zarr", i, "0.4")),
    "png": lambda d, i: write_image(d / "a.png", i),
}


@pytest.fixture(scope="session")
def scene() -> RGB:
    """The image that is written in every format."""
    return make_scene()


@pytest.fixture(scope="session", params=FORMATS, ids=lambda name: name.replace(" ", "-"))
def any_format(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, scene: RGB) -> Path:
    """The scene in one format after another."""
    return FORMATS[request.param](tmp_path_factory.mktemp("slides"), scene)


def edit_json(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change a JSON file in place."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
