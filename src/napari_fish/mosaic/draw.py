"""The picture of a mosaic: thumbnail, outlines, patches kept and dropped."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_fish.mosaic.artefacts.measure import RGB
from napari_fish.mosaic.geojson import CLUSTER_COLOURS, REASON_COLOURS, TISSUE_COLOUR, colour_of
from napari_fish.mosaic.values import REASONS, Mosaic, Patch
from napari_fish.slides import Slide

LEGEND_PX = 22


def draw_mosaic(slide: Slide, mosaic: Mosaic, max_px: int = 1600) -> RGB:
    """Draw a slide with its tissue and patches.

    Mosaic patches are filled and framed in the colour of their cluster, other candidates have a thin
    frame in that colour, dropped patches are crossed out in the colour of the reason.

    Parameters
    ----------
    slide : Slide
        The slide.
    mosaic : Mosaic
        Its mosaic.
    max_px : int
        Longer side of the thumbnail in px.

    Returns
    -------
    ndarray of uint8, shape (rows, columns, 3)
        The thumbnail with a legend below.
    """
    from PIL import Image, ImageDraw

    thumbnail = Image.fromarray(slide.thumbnail(max_px))
    scale = mosaic.dimensions[0] / thumbnail.width
    size = mosaic.patch_size / scale
    pen = ImageDraw.Draw(thumbnail, "RGBA")
    width = max(1, round(max_px / 800))
    inset = min(2.0 * width, size / 6)

    def frame(patch: Patch) -> tuple[float, float, float, float]:
        left, top = patch.x / scale + inset, patch.y / scale + inset
        return left, top, left + max(1.0, size - 2 * inset), top + max(1.0, size - 2 * inset)

    for patch in mosaic.candidates:
        pen.rectangle(frame(patch), outline=(*colour_of(patch), 255), width=1)
    for patch in mosaic.patches:
        pen.rectangle(frame(patch), fill=(*colour_of(patch), 50), outline=colour_of(patch), width=2 * width)
    for patch in mosaic.dropped:
        left, top, right, bottom = frame(patch)
        pen.rectangle((left, top, right, bottom), outline=(*colour_of(patch), 255), width=width)
        pen.line((left, top, right, bottom), fill=(*colour_of(patch), 255), width=width)
        pen.line((left, bottom, right, top), fill=(*colour_of(patch), 255), width=width)
    for contour in mosaic.contours:
        for number, ring in enumerate((contour.outer, *contour.holes)):
            points = [(x / scale, y / scale) for x, y in (*ring, ring[0])]
            pen.line(points, fill=(0, 0, 255) if number else TISSUE_COLOUR, width=2 * width)
    picture = Image.new("RGB", (thumbnail.width, thumbnail.height + LEGEND_PX), "white")
    picture.paste(thumbnail, (0, 0))
    _legend(ImageDraw.Draw(picture), mosaic, thumbnail.height)
    return np.asarray(picture)


def save_png(slide: Slide, mosaic: Mosaic, path: str | Path, max_px: int = 1600) -> None:
    """Draw a mosaic (see :func:`draw_mosaic`) into a PNG file."""
    from PIL import Image

    Image.fromarray(draw_mosaic(slide, mosaic, max_px)).save(path, "PNG")


def _legend(pen: object, mosaic: Mosaic, top: int) -> None:
    from PIL import ImageDraw

    assert isinstance(pen, ImageDraw.ImageDraw)
    entries = [(TISSUE_COLOUR, f"tissue {mosaic.tissue_mm2:.3g} mm^2")]
    entries.append((CLUSTER_COLOURS[0], f"{len(mosaic.patches)} of {len(mosaic.candidates)} in the mosaic"))
    entries += [(REASON_COLOURS[r], f"{n} left out: {REASONS[r]}") for r, n in mosaic.dropped_counts.items()]
    if mosaic.retried:
        entries.append(((200, 0, 0), "gentler parameters"))
    left = 4.0
    for colour, text in entries:
        pen.rectangle((left, top + 6, left + 10, top + 16), fill=colour)
        pen.text((left + 14, top + 5), text, fill=(0, 0, 0))
        left += 26 + pen.textlength(text)
