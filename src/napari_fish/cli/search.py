"""The command that searches."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_fish.cli.answer_text import recall_text
from napari_fish.cli.batch import Batch
from napari_fish.cli.options import Device, Json, JsonList, Mask, MaskClass, Mpp, joined, write_json
from napari_fish.cli.params import takes
from napari_fish.errors import FishError
from napari_fish.search.params import SearchParams

if TYPE_CHECKING:
    from napari_fish.search.output.writing import AnswerFiles
    from napari_fish.search.recall import Recall


@takes(SearchParams, "k", "mode", "index", "ranking", "target", "threshold", "where")
def search(
    database: Annotated[Path, typer.Argument(help="The database, NAME.fish.")],
    queries: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help="A slide, an image, or id:SLIDE of the database; several are a batch."),
    ],
    *,
    box: Annotated[
        str | None, typer.Option("--box", metavar="X,Y,W,H", help="Only this box, in level-0 px of the query.")
    ] = None,
    mask: Mask = None,
    mask_class: MaskClass = None,
    params: SearchParams,
    include_patient: Annotated[
        bool, typer.Option("--include-patient", help="Also show the query's own slide and patient.")
    ] = False,
    recall: Annotated[
        bool, typer.Option("--recall", help="Measure how many of the true neighbours this mode finds here, with these filters.")
    ] = False,
    mpp: Mpp = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="Where the encoder of the database is, if it is not found.")
    ] = None,
    device: Device = "auto",
    explain: Annotated[bool, typer.Option("--explain", help="Say why the answer is what it is.")] = False,
    as_json: Json = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a table here.")] = None,
    geojson: Annotated[Path | None, typer.Option("--geojson", help="Write the matching regions for QuPath here; for several queries one file each, NAME-QUERY.geojson.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write one page with pictures here.")] = None,
) -> None:  # fmt: skip
    """Find the slides most similar to a slide, to a box in it, or to an image."""
    region = _region(box)
    if mask is not None and len(queries) > 1:
        raise typer.BadParameter("a mask is of one slide; ask for one at a time", param_hint="--mask")
    from napari_fish.database import open_database
    from napari_fish.search import measure_recall
    from napari_fish.search.output.writing import Outputs, check_outputs

    params = replace(params, exclude_query=not include_patient)
    outputs = Outputs(csv, geojson, html)
    check_outputs(outputs.paths, [Path(query) for query in queries])
    with open_database(database, device) as opened:
        opened.check_params(params)
        batch = Batch(
            database=opened, queries=queries, region=region, mpp=mpp, mask=mask, mask_class=joined(mask_class), params=params
        )  # fmt: skip
        batch.check()
        if encoder is not None:
            from napari_fish.encode import load_encoder

            opened.use_encoder(load_encoder(encoder, device))
        measured = measure_recall(opened.store, params) if recall else None
        files = batch.files(outputs, explain)
        try:
            if as_json:
                _print_json(batch, files, measured)
            else:
                for told in batch.answers(files, explain):
                    if "text" in told:
                        typer.echo(told["text"])
                if measured is not None:
                    typer.echo(recall_text(measured))
        finally:
            unwritten = files.finish()
    if wrong := [*batch.refused.values(), *unwritten]:
        raise FishError("\n".join(wrong))
    files.forget()


def _print_json(batch: Batch, files: AnswerFiles, measured: Recall | None) -> None:
    """Print one document, or a list of them that grows as answers come."""
    more = {} if measured is None else {"recall": asdict(measured)}
    if len(batch.queries) == 1:
        (told,) = batch.answers(files)
        write_json(told["json"] | more)
        return
    with JsonList() as documents:
        for told in batch.answers(files):
            documents.add(told["json"] | more if "text" in told else told["json"])


def _region(text: str | None) -> tuple[float, float, float, float] | None:
    if text is None:
        return None
    try:
        x, y, w, h = (float(part) for part in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(
            "write x,y,width,height in level-0 px, such as 1000,2000,1024,1024", param_hint="--box"
        ) from error
    return x, y, w, h
