"""The command about slides."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import typer

from napari_fish.cli.options import Json, Mpp, Series, write_json
from napari_fish.texts import one_line


def info(slide: Path, mpp: Mpp = None, series: Series = None, as_json: Json = False) -> None:
    """Show what a slide is: format, size, levels, the size of its pixels and where that is known from."""
    from napari_fish.slides import open_slide

    with open_slide(slide, mpp=mpp, series=series) as opened:
        width, height = opened.dimensions
        about = {
            "path": str(opened.path),
            "backend": opened.backend,
            "width": width,
            "height": height,
            "levels": [
                {"width": w, "height": h, "downsample": d}
                for (w, h), d in zip(opened.level_dimensions, opened.level_downsamples, strict=True)
            ],
            "mpp": opened.mpp,
            "mpp_source": str(opened.mpp_source),
            "objective_power": opened.objective_power,
            "series": [dataclasses.asdict(s) for s in opened.series],
            "series_index": opened.series_index,
            "content_hash": opened.content_hash,
            "notes": list(opened.notes),
        }
    if as_json:
        write_json(about)
    else:
        typer.echo(_as_text(about))


def _as_text(about: dict[str, Any]) -> str:
    """Lay out what ``info`` found for a person."""
    mpp = "unknown; state it with --mpp" if about["mpp"] is None else f"{about['mpp']:.4g} µm/px"
    source = "" if about["mpp"] is None else f" (from: {about['mpp_source']})"
    power = "unknown" if about["objective_power"] is None else f"{about['objective_power']:g}x"
    levels = ", ".join(f"{v['width']} x {v['height']} (1:{v['downsample']:.4g})" for v in about["levels"])
    lines = [
        f"slide      {one_line(about['path'])}",
        f"read by    {about['backend']}",
        f"size       {about['width']} x {about['height']} px",
        f"levels     {levels}",
        f"pixel      {mpp}{source}",
        f"objective  {power}",
        f"content    {about['content_hash']}",
    ]
    for image in about["series"]:
        mark = "*" if image["index"] == about["series_index"] else " "
        size = f"{image['width']} x {image['height']} px"
        lines.append(f"image {mark}{image['index']:>3}  {image['kind']}: {one_line(image['name'])}, {size}")
    return "\n".join([*lines, *(f"note       {note}" for note in about["notes"])])
