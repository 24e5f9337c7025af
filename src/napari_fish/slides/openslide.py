"""Slides read by OpenSlide: svs, ndpi, mrxs, scn, vms, bif, svslide, DICOM and many TIFFs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openslide

from napari_fish.errors import SlideError
from napari_fish.slides.base import PyramidSlide
from napari_fish.slides.dicom import dicom_series, files_of_series
from napari_fish.slides.finding import parts_of_vms
from napari_fish.slides.formats import HAMAMATSU
from napari_fish.slides.identity import hash_files
from napari_fish.slides.image import ArraySlide
from napari_fish.slides.mpp import Mpp, decide_mpp
from napari_fish.slides.protocol import RGB, SeriesInfo
from napari_fish.slides.resample import over_white
from napari_fish.slides.series import choose_series, kind_of

# Properties whose µm come from TIFF resolution tags rather than from the scanner.
GENERIC = {"generic-tiff"}


class UnknownFormat(SlideError):
    """OpenSlide does not know this kind of file."""


class OpenSlideSlide(PyramidSlide):
    """A slide behind OpenSlide."""

    backend = "openslide"

    def __init__(self, path: Path, handle: Any, mpp: Mpp, series: tuple[SeriesInfo, ...]) -> None:
        properties = dict(handle.properties)
        super().__init__(
            path,
            tuple(handle.level_dimensions),
            mpp,
            objective_power=_number(properties, openslide.PROPERTY_NAME_OBJECTIVE_POWER),
            properties=properties,
            series=series,
        )
        self._handle = handle
        self._reopening = threading.Lock()

    def _decode(self, level: int, x: int, y: int, width: int, height: int) -> RGB:
        handle = self._handle
        scale = handle.level_downsamples[level]
        try:
            image = handle.read_region((round(x * scale), round(y * scale)), level, (width, height))
        except openslide.OpenSlideError:
            self._reopen(handle)
            raise
        return over_white(np.asarray(image))

    def _reopen(self, broken: Any) -> None:
        """Replace a handle that met a damaged tile: OpenSlide refuses all later reads from it."""
        with self._reopening:
            if self._handle is broken and not self._closed:
                # The old handle stays open: another thread may still be reading from it.
                self._handle = openslide.OpenSlide(self.path)

    def _release(self) -> None:
        self._handle.close()

    def _hash(self) -> str:
        return hash_files(slide_files(self.path, self.properties))


def open_openslide(path: Path, mpp: float | None = None, series: int | None = None) -> PyramidSlide:
    """Open a slide, or one of the images beside it, with OpenSlide."""
    for part in (path, *_beside(path)):
        # OpenSlide would open a pipe, and wait for ever.
        if part.exists() and not (part.is_file() or part.is_dir()):
            raise SlideError(
                f"{path}: {part.name} is no ordinary file. Move it away, or copy the slide again."
            )
    try:
        handle = openslide.OpenSlide(path)
    except openslide.OpenSlideUnsupportedFormatError as error:
        raise UnknownFormat(f"{path}: OpenSlide does not know this format.") from error
    except openslide.OpenSlideError as error:
        raise SlideError(f"{path}: {error}. The file is damaged or incomplete; copy it again.") from error
    try:
        width, height = handle.dimensions
        infos = [SeriesInfo(0, path.name, "slide", width, height)]
        for index, name in enumerate(sorted(handle.associated_images), start=1):
            size = (
                handle.properties.get(f"openslide.associated.{name}.{side}") for side in ("width", "height")
            )
            infos.append(SeriesInfo(index, name, _associated_kind(name), *(int(s or 0) for s in size)))
        chosen = choose_series(path, infos, series)
        if chosen.index == 0:
            return OpenSlideSlide(path, handle, _mpp(path, handle.properties, mpp), tuple(infos))
        with handle:
            return ArraySlide(
                path,
                over_white(np.asarray(handle.associated_images[chosen.name])),
                decide_mpp(path, user=mpp),
                files=slide_files(path, handle.properties),
                properties=dict(handle.properties),
                series=tuple(infos),
                series_index=chosen.index,
            )
    except BaseException:
        handle.close()
        raise


def _beside(path: Path) -> Iterable[Path]:
    """Return what OpenSlide may open besides a file."""
    suffix = path.suffix.lower()
    if suffix == ".mrxs" and path.with_suffix("").is_dir():
        return path.with_suffix("").iterdir()
    if suffix in HAMAMATSU:
        return [path.parent / name for name in parts_of_vms(path)]
    return path.parent.iterdir() if dicom_series(path) is not None else ()


def slide_files(path: Path, properties: Mapping[str, str]) -> list[Path]:
    """Return all files that make up a slide."""
    vendor = properties.get(openslide.PROPERTY_NAME_VENDOR)
    if vendor == "mirax":
        parts = path.with_suffix("").iterdir()
        return [path, *sorted(p for p in parts if p.suffix.lower() in (".dat", ".ini"))]
    if vendor == "dicom":
        return files_of_series(path)
    if vendor == "hamamatsu" and path.suffix.lower() in HAMAMATSU:
        names = {v for k, v in properties.items() if k.startswith("hamamatsu.") and k.endswith("File")}
        names |= {v for k, v in properties.items() if k.startswith("hamamatsu.ImageFile")}
        return [path, *sorted(path.parent / n for n in names if (path.parent / n).is_file())]
    return [path]


def _associated_kind(name: str) -> str:
    """Return the kind of an associated image: never a slide, whatever its name."""
    kind = kind_of(name)
    return "macro" if kind == "slide" else kind


def _mpp(path: Path, properties: Mapping[str, str], user: float | None) -> Mpp:
    """Apply the mpp rule to OpenSlide's properties."""
    stated = [
        _number(properties, openslide.PROPERTY_NAME_MPP_X),
        _number(properties, openslide.PROPERTY_NAME_MPP_Y),
    ]
    generic = properties.get(openslide.PROPERTY_NAME_VENDOR) in GENERIC
    return decide_mpp(
        path,
        user=user,
        file=[] if generic else stated,
        objective=_number(properties, openslide.PROPERTY_NAME_OBJECTIVE_POWER),
        resolution=stated if generic else [],
    )


def _number(properties: Mapping[str, str], name: str) -> float | None:
    """Return a property as a number, or None when it is missing or no number."""
    try:
        return float(properties[name])
    except (KeyError, ValueError):
        return None
