"""Open any slide: look at what a file is, not at what it is called."""

from __future__ import annotations

import logging
from pathlib import Path

from napari_fish.errors import SlideError
from napari_fish.slides.base import PyramidSlide
from napari_fish.slides.formats import known_formats

log = logging.getLogger(__name__)

LARGEST_SIDE = 2**31 - 1
"""Pixels; beyond this a declared size is a damaged header."""
TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
IMAGE_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
ZIP_MAGIC = b"PK\x03\x04"


def open_slide(path: str | Path, mpp: float | None = None, series: int | None = None) -> PyramidSlide:
    """Open a slide of any supported format.

    Parameters
    ----------
    path : str or Path
        A file, an OME-Zarr folder, or a folder with the DICOM files of one slide.
    mpp : float, optional
        Micrometres per level-0 px, when you know better than the file.
    series : int, optional
        Which image of the file to open, as numbered in ``Slide.series``; the slide itself by default.

    Returns
    -------
    Slide
        Close it when done, or use it as a context manager.

    Raises
    ------
    SlideError
        When the file cannot be read as a slide; the message says why and what to do.
    """
    path = expanded(path)
    try:
        slide = _open(path, mpp, series)
    except PermissionError as error:
        raise SlideError(
            f"{path}: no permission to read it. Ask its owner, or change its permissions."
        ) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SlideError(
            f"{path}: there is no such file. Check its name and that its disk is there."
        ) from error
    except OSError as error:
        raise SlideError(f"{path}: cannot be read ({error}). Check the disk or the network.") from error
    if max(max(size) for size in slide.level_dimensions) > LARGEST_SIDE or min(slide.dimensions) < 1:
        slide.close()
        raise SlideError(
            f"{path}: declares {slide.dimensions} px, which is beyond reason; the file is damaged."
        )
    for note in slide.notes:
        log.info("%s: %s", path, note)
    return slide


def expanded(path: str | Path) -> Path:
    """Return a path with ``~`` resolved, as it is where that names nobody."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _open(path: Path, mpp: float | None, series: int | None) -> PyramidSlide:
    from napari_fish.slides.image import open_image
    from napari_fish.slides.omezarr import open_omezarr
    from napari_fish.slides.openslide import UnknownFormat, open_openslide

    if path.is_dir():
        return _open_folder(path, mpp, series)
    if path.exists() and not path.is_file():
        raise SlideError(f"{path}: this is neither a file nor a folder, so it cannot be a slide.")
    with path.open("rb") as file:
        start = file.read(16)
    if not start:
        raise SlideError(f"{path}: the file is empty. Copy it again from its source.")
    if path.suffix.lower() == ".mrxs":
        # Outwardly a JPEG, the slide's thumbnail: its pixels are in the folder beside it.
        if not path.with_suffix("").is_dir():
            raise SlideError(
                f"{path}: its folder {path.stem}, which holds the pixels, is missing. "
                "Copy the folder to the same place, under the same name."
            )
        return open_openslide(path, mpp, series)
    if start.startswith(ZIP_MAGIC):
        return open_omezarr(path, mpp, series)
    if start.startswith(IMAGE_MAGIC):
        return open_image(path, mpp, series)
    if start.startswith(TIFF_MAGIC):
        return _open_tiff_family(path, mpp, series)
    try:
        return open_openslide(path, mpp, series)
    except UnknownFormat as error:
        raise SlideError(
            f"{path}: this is not a slide in any known format, whatever its name says. "
            f"Known are {known_formats()}."
        ) from error


def _open_tiff_family(path: Path, mpp: float | None, series: int | None) -> PyramidSlide:
    """Open a TIFF with the library that knows it best, and with the other where that one refuses.

    OpenSlide knows the scanners' dialects. Of all other TIFFs tifffile sees more (OME-TIFF series, pyramids in
    SubIFDs, 16 bit, every compression) and decodes JPEG tiles in a fifth of the time.
    """
    import openslide

    from napari_fish.slides.openslide import GENERIC, open_openslide
    from napari_fish.slides.tiff import open_tiff
    from napari_fish.slides.tiff_check import why_damaged
    from napari_fish.slides.tiff_directories import why_endless

    problem = why_endless(path) or why_damaged(path)
    if problem:
        raise SlideError(f"{path}: {problem}")
    vendor = openslide.OpenSlide.detect_format(path)
    if vendor is None:
        return open_tiff(path, mpp, series)
    best, other = (open_tiff, open_openslide) if vendor in GENERIC else (open_openslide, open_tiff)
    try:
        return best(path, mpp, series)
    except SlideError as refused:
        try:
            return other(path, mpp, series)
        except SlideError:
            raise refused from None


def _open_folder(path: Path, mpp: float | None, series: int | None) -> PyramidSlide:
    """Open a folder: an OME-Zarr, or the DICOM files of one slide."""
    from napari_fish.slides.omezarr import is_zarr_folder, open_omezarr
    from napari_fish.slides.openslide import open_openslide

    if is_zarr_folder(path):
        return open_omezarr(path, mpp, series)
    refused: SlideError | None = None
    for instance in sorted(p for p in path.iterdir() if p.suffix.lower() == ".dcm"):
        try:
            return open_openslide(instance, mpp, series)
        except SlideError as error:
            refused = error
    if refused is not None:
        raise SlideError(f"{path}: none of its DICOM files is a slide ({refused}).")
    raise SlideError(f"{path}: this is a folder, but no OME-Zarr and no DICOM slide. Name a slide inside it.")
