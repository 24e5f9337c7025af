"""What a TIFF says about the size of its pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tifffile

from napari_fish.slides.mpp import Mpp, decide_mpp
from napari_fish.slides.ome import OmeImage, micrometres


def tiff_mpp(
    path: Path,
    tiff: tifffile.TiffFile,
    page: Any,
    ome: OmeImage | None,
    objective: float | None,
    user: float | None,
) -> Mpp:
    """Apply the mpp rule: OME-XML counts as the file's own word, resolution tags as resolution."""
    return decide_mpp(
        path,
        user=user,
        file=ome.mpp if ome else (),
        objective=objective,
        resolution=_resolution(tiff, page),
    )


def _resolution(tiff: tifffile.TiffFile, page: Any) -> list[float | None]:
    """Return µm per px for x and y from the resolution tags; ImageJ keeps its unit elsewhere."""
    unit = {tifffile.RESUNIT.INCH: "inch", tifffile.RESUNIT.CENTIMETER: "cm"}.get(page.resolutionunit)
    if tiff.is_imagej and tiff.imagej_metadata:
        unit = str(tiff.imagej_metadata.get("unit", unit or "")).replace("\\u00B5", "µ")
    if not unit or "XResolution" not in page.tags:
        return []
    return [micrometres(1 / r, unit) if r else None for r in page.resolution]
