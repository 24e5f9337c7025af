"""OME-Zarr 0.4 and 0.5, in a folder or a zip file."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from napari_fish.errors import SlideError
from napari_fish.slides.base import PyramidSlide
from napari_fish.slides.identity import combine, digest
from napari_fish.slides.mpp import Mpp, decide_mpp
from napari_fish.slides.ome import OmeImage, micrometres, read_ome
from napari_fish.slides.pixels import MAX_BLOCK_BYTES, guess_bits, to_rgb, why_not_rgb
from napari_fish.slides.protocol import RGB, SeriesInfo
from napari_fish.slides.series import choose_series, kind_of
from napari_fish.slides.zarr_bounds import bounded
from napari_fish.slides.zarr_files import METADATA, CheckedFolder, CheckedZip, ZarrFiles, spread

HASHED_CHUNKS = 48
"""Chunks of each level that go into the content hash."""


@dataclass(frozen=True)
class Multiscale:
    """One image of an OME-Zarr: its arrays, largest first, and what is said about it."""

    path: str
    name: str
    arrays: tuple[Any, ...]
    axes: str
    mpp: tuple[float | None, float | None]
    objective_power: float | None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in px."""
        return self.size_of(self.arrays[0])

    def size_of(self, array: Any) -> tuple[int, int]:
        """Width and height of one level in px."""
        return int(array.shape[self.axes.index("x")]), int(array.shape[self.axes.index("y")])

    @property
    def channels(self) -> int:
        """Samples a pixel."""
        return int(self.arrays[0].shape[self.axes.index("c")]) if "c" in self.axes else 1


class OmeZarrSlide(PyramidSlide):
    """A slide in an OME-Zarr."""

    backend = "zarr"

    def __init__(self, path: Path, store: Any, image: Multiscale, mpp: Mpp, **about: Any) -> None:
        super().__init__(
            path,
            tuple(image.size_of(a) for a in image.arrays),
            mpp,
            **about,
        )
        self._store = store
        self._image = image
        last = len(image.arrays) - 1
        eight = image.arrays[0].dtype == np.uint8
        self._bits = 8 if eight else guess_bits(partial(self._samples, last), *self.level_dimensions[last])

    def _decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        return to_rgb(self._samples(level, x, y, width, height), self._bits)

    def _samples(self, level: int, x: int, y: int, width: int, height: int) -> NDArray[Any]:
        """Return a region's stored samples, shape (height, width, samples)."""
        where = {"y": slice(y, y + height), "x": slice(x, x + width), "c": slice(None)}
        axes = self._image.axes
        pixels = np.asarray(self._image.arrays[level][tuple(where.get(a, 0) for a in axes)])
        kept = [a for a in axes if a in where]
        if "c" not in kept:
            kept, pixels = [*kept, "c"], pixels[..., None]
        return pixels.transpose([kept.index(a) for a in "yxc"])

    def _release(self) -> None:
        self._store.close()

    def _hash(self) -> str:
        """Hash sizes and a sample of each level's chunks: the same for a folder and its zip."""
        parts = []
        with ZarrFiles(self.path) as files:
            for level, array in enumerate(self._image.arrays):
                # What is stored as one file: a shard where there are shards, else a chunk.
                stored = getattr(array, "shards", None) or array.chunks
                counts = [-(-n // c) for n, c in zip(array.shape, stored, strict=True)]
                shape = repr((level, array.shape, str(array.dtype), stored)).encode()
                keys = (array.metadata.encode_chunk_key(at) for at in spread(counts, HASHED_CHUNKS))
                parts.append(digest(shape, *(files.edges(f"{array.path}/{key}") for key in keys)))
        return combine(parts)


def is_zarr_folder(path: Path) -> bool:
    """Whether a folder is the root of a zarr hierarchy."""
    return any((path / name).is_file() for name in METADATA)


def open_omezarr(path: Path, mpp: float | None = None, series: int | None = None) -> OmeZarrSlide:
    """Open an OME-Zarr folder or zip file."""
    try:
        store: Any
        if path.is_dir():
            store, root = CheckedFolder(path, read_only=True), ""
        else:
            store, root = CheckedZip(path, mode="r"), _root_in_zip(path)
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise SlideError(f"{path}: this is no OME-Zarr, or it is damaged ({error}).") from error
    try:
        return _open_image(path, store, root, mpp, series)
    except SlideError:
        store.close()
        raise
    except Exception as error:
        store.close()
        raise SlideError(
            f"{path}: this OME-Zarr is damaged or incomplete ({type(error).__name__}: {error}); copy it again."
        ) from error


def _root_in_zip(path: Path) -> str:
    """Return the folder inside a zip file that holds the hierarchy: the top, or one folder down."""
    with zipfile.ZipFile(path) as archive:
        found = [PurePosixPath(n).parent for n in archive.namelist() if PurePosixPath(n).name in METADATA]
    if not found:
        raise SlideError(f"{path}: this zip file holds no OME-Zarr.")
    root = min(found, key=lambda p: len(p.parts))
    return "" if str(root) == "." else str(root)


def _open_image(path: Path, store: Any, root: str, user: float | None, wanted: int | None) -> OmeZarrSlide:
    group = zarr.open_group(store, path=root, mode="r")
    images = list(_images(path, group))
    infos = tuple(SeriesInfo(i, m.name, kind_of(m.name), *m.size) for i, m in enumerate(images))
    chosen = choose_series(path, infos, wanted)
    image = images[chosen.index]
    for array in image.arrays:
        why = why_not_rgb(image.channels, array.dtype)
        if why:
            raise SlideError(f"{path}: cannot be read as a slide: {why}.")
        if math.prod(array.chunks) * array.dtype.itemsize > MAX_BLOCK_BYTES:
            raise SlideError(
                f"{path}: its chunks of {array.chunks} px are too large to read; store smaller ones."
            )
        try:
            bounded(array)
        except SlideError as error:
            raise SlideError(f"{path}: {error}") from error
    # Labels and macro images are not taken through the objective.
    objective = image.objective_power if chosen.kind == "slide" else None
    more = [a for a, n in zip(image.axes, image.arrays[0].shape, strict=True) if a in "tz" and n > 1]
    return OmeZarrSlide(
        path,
        store,
        image,
        decide_mpp(path, user=user, file=image.mpp, objective=objective),
        objective_power=objective,
        properties={f"ome-zarr.{k}": str(v)[:10_000] for k, v in group.attrs.items()},
        series=infos,
        series_index=chosen.index,
        notes=(f"holds a stack over {' and '.join(more)}; its first plane is shown",) if more else (),
    )


def _images(path: Path, group: Any) -> Iterator[Multiscale]:
    """Yield the images in a hierarchy: its own, or those of the bioformats2raw layout."""
    about = _ome_attributes(group)
    if "plate" in about or "well" in about:
        raise SlideError(f"{path}: this OME-Zarr is a plate; open one of the images inside it.")
    if "multiscales" in about:
        yield _multiscale(group, about, None)
        return
    names = [n for n in sorted(group.group_keys(), key=lambda n: (len(n), n)) if n != "OME"]
    described: tuple[OmeImage, ...] = ()
    if "OME" in group:
        names = _ome_attributes(group["OME"]).get("series", names)
        with ZarrFiles(path) as files:
            xml = files.read(f"{group.path}/OME/METADATA.ome.xml")
        described = read_ome(xml.decode("utf-8", "replace"))
    found = False
    for index, name in enumerate(names):
        attributes = _ome_attributes(group[name])
        if "multiscales" in attributes:
            found = True
            yield _multiscale(group[name], attributes, described[index] if index < len(described) else None)
    if not found:
        raise SlideError(f"{path}: there is no multiscale image in this zarr, so it is no OME-Zarr.")


def _multiscale(group: Any, about: dict[str, Any], described: OmeImage | None) -> Multiscale:
    """Read one image's levels, axes and scale."""
    image = about["multiscales"][0]
    axes = "".join((a["name"] if isinstance(a, dict) else a)[0] for a in image.get("axes", "tczyx")).lower()
    units = {a["name"][0]: a.get("unit", "") for a in image.get("axes", ()) if isinstance(a, dict)}
    scales = [
        t["scale"]
        for owner in (image["datasets"][0], image)
        for t in owner.get("coordinateTransformations", ())
        if t["type"] == "scale"
    ]
    mpp = []
    for axis in "xy":
        at = axes.index(axis)
        value = float(np.prod([s[at] for s in scales])) if scales else None
        mpp.append(None if value is None or not units.get(axis) else micrometres(value, units[axis]))
    if described and not any(mpp):
        mpp = list(described.mpp)
    arrays = sorted((group[d["path"]] for d in image["datasets"]), key=lambda a: -a.size)
    name = (described.name if described else "") or image.get("name") or group.basename or "image"
    return Multiscale(
        path=group.path,
        name=name,
        arrays=tuple(arrays),
        axes=axes,
        mpp=(mpp[0], mpp[1]),
        objective_power=described.objective_power if described else None,
    )


def _ome_attributes(group: Any) -> dict[str, Any]:
    """Return a group's OME attributes: under ``ome`` since 0.5, at the top before."""
    attributes = dict(group.attrs)
    return dict(attributes.get("ome", attributes))
