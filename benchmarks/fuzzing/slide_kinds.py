"""Slides as files, as zarr and as DICOM."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from .kind import REAL, Kind, changed_file


def _slides(folder: Path) -> Iterator[Path]:
    from tests.slides.conftest import FORMATS, make_scene

    for name, write in FORMATS.items():
        if "zarr" not in name:
            (folder / name).mkdir()
            yield write(folder / name, make_scene(300, 400))
    yield from (
        REAL / name
        for name in ("cmu-1-small-region.svs", "cmu-1-small-region.webp.tiff", "tma-spots.jpeg")
        if (REAL / name).exists()
    )


def _zarrs(folder: Path) -> Iterator[Path]:
    from tests.slides.conftest import FORMATS, make_scene

    for name, write in FORMATS.items():
        if "zarr" in name:
            (folder / name).mkdir()
            yield write(folder / name, make_scene(300, 400))


def _dicoms(folder: Path) -> Iterator[Path]:
    for found in REAL.glob("*.dicom"):
        yield Path(shutil.copytree(found, folder / found.name, copy_function=shutil.copyfile))


def _ask_slide(path: Path) -> None:
    from napari_fish.slides import open_slide

    with open_slide(path) as slide:
        slide.content_hash, slide.series, slide.properties, slide.notes  # noqa: B018
        slide.thumbnail(256)
        width, height = slide.dimensions
        slide.read_level(0, width // 2, height // 2, 256, 256)
        slide.read_level(len(slide.level_dimensions) - 1, 0, 0, 128, 128)
        if slide.mpp:
            slide.read(0, 0, 64, 64, 2 * slide.mpp)


KINDS = {
    "slides": Kind(_slides, changed_file, _ask_slide),
    "zarr": Kind(_zarrs, changed_file, _ask_slide),
    "dicom": Kind(_dicoms, changed_file, _ask_slide),
}
