"""The commands about tissue and mosaics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from napari_fish.cli.options import Json, Mpp, progress_bar, write_json
from napari_fish.errors import FishError


def mosaic(
    slide: Path,
    mpp: Mpp = None,
    mask: Annotated[
        Path | None,
        typer.Option(
            "--mask", help="Where the tissue is: a binary image of the slide, or GeoJSON from QuPath."
        ),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", help="Draw tissue, kept and dropped patches here.")
    ] = None,
    geojson: Annotated[
        Path | None, typer.Option("--geojson", help="Write tissue and patches for QuPath here.")
    ] = None,
    preset: Annotated[str, typer.Option("--preset", help="default, paper or released.")] = "default",
    as_json: Json = False,
) -> None:
    """Find the tissue of a slide and the patches that stand for it."""
    from napari_fish.mosaic import PRESETS, make_mosaic
    from napari_fish.mosaic import preset as parameters
    from napari_fish.mosaic.draw import save_png
    from napari_fish.slides import open_slide

    if preset not in PRESETS:
        raise typer.BadParameter(f"choose one of {', '.join(PRESETS)}", param_hint="--preset")
    with open_slide(slide, mpp=mpp) as opened:
        with progress_bar("Finding the mosaic") as progress:
            found = make_mosaic(opened, parameters(preset), mask, progress=progress)
        try:
            if png is not None:
                save_png(opened, found, png)
            if geojson is not None:
                document = json.dumps(found.to_geojson(everything=True), ensure_ascii=False)
                geojson.write_text(document + "\n", encoding="utf-8")
        except OSError as error:
            raise FishError(f"Cannot write {error.filename}: {error.strerror}.") from error
    if as_json:
        write_json(found.summary())
        return
    dropped = ", ".join(f"{count} {reason}" for reason, count in found.dropped_counts.items() if count)
    notes = [
        "found with gentler parameters than asked for" if found.retried else "",
        "every patch was doubtful; the best was kept" if found.rescued else "",
    ]
    pieces = len(found.contours)
    lines = [
        f"tissue   {found.tissue_mm2:.3g} mm² in {pieces} piece{'s' * (pieces != 1)}",
        f"patches  {len(found.candidates)} of {found.patch_size} level-0 px; dropped: {dropped or 'none'}",
        f"mosaic   {len(found.patches)} patches",
        *(f"note     {note}" for note in notes if note),
    ]
    typer.echo("\n".join(lines))


def train_artefacts(
    output: Annotated[Path, typer.Option("--output", "-o", help="The JSON file to write.")],
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder with real tissue to paint over, besides demo slides."),
    ] = None,
    slides: Annotated[int, typer.Option("--slides", min=1, help="How many demo slides to paint over.")] = 42,
    as_json: Json = False,
) -> None:
    """Train the filters that drop pen marks, folds and debris, on examples painted over clean tissue."""
    from napari_fish.mosaic.training import train_artefacts as train

    with progress_bar("Painting and training") as progress:
        document = train(output, data, slides=slides, progress=progress)
    if as_json:
        write_json(document["card"])
    else:
        typer.echo(f"Filters trained on {document['card']['patches']} patches are in {output}")
