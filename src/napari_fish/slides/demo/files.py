"""Demo slides on disk: pyramidal tiled JPEG TIFFs and their table of labels."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import numpy.typing as npt

from napari_fish.slides.demo.specs import GLASS, DemoSpec, demo_specs
from napari_fish.work import Progress, ShouldStop

Pixels = npt.NDArray[np.uint8]

_TILE_PX = 256
_SMALLEST_PX = 512


def write_demo_slide(spec: DemoSpec, path: str | os.PathLike[str]) -> Path:
    """Render a slide and write it as a pyramidal TIFF.

    The file has 256 px JPEG tiles (quality 85), one page per level, each half the size of the one
    before, and its pixel size in the resolution tags. It appears under its name only when complete.

    Parameters
    ----------
    spec
        The slide.
    path
        Where to write, usually ``….tif``; an existing file is replaced.

    Returns
    -------
    Path
        The file.
    """
    from napari_fish.slides.demo.image import render

    path = Path(path)
    write_pyramid(render(spec).rgb, spec, path)
    return path


def write_glass(
    path: str | os.PathLike[str],
    width_um: float = 1024.0,
    height_um: float = 1024.0,
    mpp: float = 0.5,
    seed: int = 0,
    artefacts: tuple[str, ...] = (),
) -> Path:
    """Write a slide with no tissue on it, only glass (and artefacts, if asked for)."""
    path = Path(path)
    spec = DemoSpec(
        name=path.stem,
        patient="nobody",
        site="none",
        diagnosis=GLASS,
        seed=seed,
        width_um=width_um,
        height_um=height_um,
        mpp=mpp,
        artefacts=artefacts,
    )
    return write_demo_slide(spec, path)


def write_demo(
    folder: str | os.PathLike[str],
    specs: Iterable[DemoSpec] | None = None,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[Path]:
    """Write demo slides and their ``labels.csv`` into a folder; slides already there are kept.

    Parameters
    ----------
    folder
        Made if it does not exist.
    specs
        The slides; by default the standard set, `demo_specs`.
    progress
        Called with the number of finished slides and of all slides.
    should_stop
        Asked before each slide; when it says yes, the slides finished so far are returned.

    Returns
    -------
    list of Path
        The slides that are complete, in the order of ``specs``.
    """
    folder = Path(folder)
    wanted = tuple(demo_specs() if specs is None else specs)
    folder.mkdir(parents=True, exist_ok=True)
    _write_labels(folder / "labels.csv", wanted)
    paths = [folder / f"{spec.name}.tif" for spec in wanted]
    done = {path for spec, path in zip(wanted, paths, strict=True) if _is_written(path, spec)}
    todo = [(spec, path) for spec, path in zip(wanted, paths, strict=True) if path not in done]
    if progress is not None:
        progress(len(done), len(wanted))
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        queue = iter(todo)
        running: set[Future[Path]] = set()
        while True:
            while len(running) < 2 and not (should_stop is not None and should_stop()):
                following = next(queue, None)
                if following is None:
                    break
                running.add(pool.submit(write_demo_slide, *following))
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            done |= {future.result() for future in finished}
            if progress is not None:
                progress(len(done), len(wanted))
    return [path for path in paths if path in done]


def description(spec: DemoSpec) -> str:
    """Return the text in a demo slide's ImageDescription: it names the demo and everything asked for."""
    return f"napari-fish demo slide (synthetic, not a patient) v1 {spec!r}"


def _write_labels(path: Path, specs: tuple[DemoSpec, ...]) -> None:
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["slide", "patient", "site", "diagnosis"])
    writer.writerows([f"{spec.name}.tif", spec.patient, spec.site, spec.diagnosis] for spec in specs)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(table.getvalue(), encoding="utf-8")
    os.replace(temporary, path)


def _is_written(path: Path, spec: DemoSpec) -> bool:
    """Tell whether the file is this very slide; files appear only when complete, so that is enough."""
    import tifffile

    if not path.is_file():
        return False
    try:
        with tifffile.TiffFile(path) as tiff:
            return tiff.pages.first.description == description(spec)
    except (tifffile.TiffFileError, OSError, IndexError, ValueError):
        return False


def _levels(rgb: Pixels) -> Iterator[Pixels]:
    """Yield the picture and its halves by area averaging, until the longer side is small.

    An odd last row or column is dropped, as scanners do.
    """
    from napari_fish.slides.demo.kernels import halve

    yield rgb
    while max(rgb.shape[:2]) > _SMALLEST_PX and min(rgb.shape[:2]) > 1:
        smaller = np.empty((rgb.shape[0] // 2, rgb.shape[1] // 2, 3), np.uint8)
        halve(rgb, smaller)
        rgb = smaller
        yield rgb


def write_pyramid(rgb: Pixels, spec: DemoSpec, path: Path) -> None:
    """Write a rendered slide, shape (rows, columns, 3), as a tiled JPEG TIFF with its pyramid in pages."""
    import tifffile

    temporary = path.with_name(f".{path.name}.part")
    try:
        with tifffile.TiffWriter(temporary) as tiff:
            for number, level in enumerate(_levels(rgb)):
                pixels_per_cm = 1e4 / (spec.mpp * 2**number)
                tiff.write(
                    level,
                    photometric="rgb",
                    tile=(_TILE_PX, _TILE_PX),
                    compression="jpeg",
                    compressionargs={"level": 85},
                    subfiletype=1 if number else 0,
                    description=description(spec) if number == 0 else None,
                    software=False,
                    metadata=None,
                    resolution=(pixels_per_cm, pixels_per_cm),
                    resolutionunit="CENTIMETER",
                    maxworkers=1,
                )
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
