"""The commands about tissue and mosaics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_fish.building.params import BuildParams
from napari_fish.cli.options import (
    Json,
    Mask,
    MaskClass,
    Mpp,
    joined,
    progress_bar,
    write_json,
)
from napari_fish.cli.params import takes
from napari_fish.errors import FishError

if TYPE_CHECKING:
    from napari_fish.mosaic import Mosaic


@takes(BuildParams, "artefacts")
def mosaic(
    slide: Path,
    *,
    mpp: Mpp = None,
    mask: Mask = None,
    mask_class: MaskClass = None,
    png: Annotated[
        Path | None, typer.Option("--png", help="Draw tissue, kept and dropped patches here.")
    ] = None,
    geojson: Annotated[
        Path | None, typer.Option("--geojson", help="Write tissue and patches for QuPath here.")
    ] = None,
    preset: Annotated[str, typer.Option("--preset", help="default, paper or released.")] = "default",
    params: BuildParams,
    as_json: Json = False,
) -> None:
    """Find the tissue of a slide and the patches that stand for it."""
    from napari_fish.building.strictness import params_for
    from napari_fish.mosaic import PRESETS, make_mosaic
    from napari_fish.mosaic import preset as parameters
    from napari_fish.mosaic.draw import save_png
    from napari_fish.mosaic.masks import mask_of
    from napari_fish.search.output.writing import check_outputs
    from napari_fish.slides import open_slide

    if preset not in PRESETS:
        raise typer.BadParameter(f"choose one of {', '.join(PRESETS)}", param_hint="--preset")
    chosen = params_for(None, params.artefacts, parameters(preset))
    given = mask_of(mask, joined(mask_class))
    wanted = [path for path in (png, geojson) if path is not None]
    check_outputs(wanted, [slide])
    with open_slide(slide, mpp=mpp) as opened:
        with progress_bar("Finding the mosaic") as progress:
            found = make_mosaic(opened, chosen, given, progress=progress)
        _tell(found, as_json)
        try:
            if png is not None:
                save_png(opened, found, png)
            if geojson is not None:
                document = json.dumps(found.to_geojson(everything=True), ensure_ascii=False)
                geojson.write_text(document + "\n", encoding="utf-8")
        except OSError as error:
            place = error.filename or " or ".join(map(str, wanted))
            raise FishError(f"Cannot write {place}: {error.strerror}.") from error


def _tell(found: Mosaic, as_json: bool) -> None:
    """Say what was found."""
    from napari_fish.mosaic.left_out import WARNING, is_much, told
    from napari_fish.mosaic.masks import marks_everything

    counts = len(found.candidates), found.dropped_counts
    notes = [
        *(["found with gentler parameters than asked for"] if found.retried else []),
        *(["every patch was doubtful; the best was kept"] if found.rescued else []),
        *(["the mask marks the whole slide, glass included"] if marks_everything(found) else []),
        *([WARNING] if is_much(*counts) else []),
    ]
    if as_json:
        write_json({**found.summary(), "notes": notes})
        return
    pieces = len(found.contours)
    lines = [
        f"tissue   {found.tissue_mm2:.3g} mm² in {pieces} piece{'s' * (pieces != 1)}",
        f"patches  {told(*counts)} (each of {found.patch_size} level-0 px)",
        f"mosaic   {len(found.patches)} patches",
        *(f"note     {note}" for note in notes),
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
    from napari_fish.mosaic.training.train import train_artefacts as train

    with progress_bar("Painting and training") as progress:
        document = train(output, data, slides=slides, progress=progress)
    if as_json:
        write_json(document["card"])
    else:
        typer.echo(f"Filters trained on {document['card']['patches']} patches are in {output}")
