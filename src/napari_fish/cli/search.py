"""The command that searches."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from napari_fish.cli.options import Json, Mask, MaskClass, Mpp, joined, progress_bar, write_json
from napari_fish.errors import FishError
from napari_fish.names import MODES, RANKINGS

if TYPE_CHECKING:
    from napari_fish.archive import Asked, Database
    from napari_fish.search import Results
    from napari_fish.search.recall import Recall


def search(
    database: Annotated[Path, typer.Argument(help="The database, NAME.fish.")],
    queries: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help="A slide, an image, or id:SLIDE of the database; several are a batch."),
    ],
    box: Annotated[
        str | None, typer.Option("--box", metavar="X,Y,W,H", help="Only this box, in level-0 px of the query.")
    ] = None,
    mask: Mask = None,
    mask_class: MaskClass = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Slides wanted.")] = 5,
    mode: Annotated[str, typer.Option("--mode", help=f"How neighbours are found: {', '.join(MODES)}.")] = "auto",
    ranking: Annotated[str, typer.Option("--ranking", help=f"How slides are ranked: {', '.join(RANKINGS)}.")] = "auto",
    target: Annotated[str, typer.Option("--target", help="The column whose values vote.")] = "diagnosis",
    threshold: Annotated[
        int | None,
        typer.Option("--threshold", min=0, help="Bits within which patches count as near; by default as measured for the database."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="COLUMN=VALUE", help="Only slides with (=) or without (!=) this value; may be repeated."),
    ] = None,
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
    device: Annotated[str, typer.Option("--device", help="Where to encode: auto, cuda, mps, xpu or cpu.")] = "auto",
    explain: Annotated[bool, typer.Option("--explain", help="Say why the answer is what it is.")] = False,
    as_json: Json = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a table here.")] = None,
    geojson: Annotated[Path | None, typer.Option("--geojson", help="Write the matching regions for QuPath here; for several queries one file each, NAME-QUERY.geojson.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write one page with pictures here.")] = None,
) -> None:  # fmt: skip
    """Find the slides most similar to a slide, to a box in it, or to an image."""
    if mode not in MODES:
        raise typer.BadParameter(f"choose one of {', '.join(MODES)}", param_hint="--mode")
    if ranking not in RANKINGS:
        raise typer.BadParameter(f"choose one of {', '.join(RANKINGS)}", param_hint="--ranking")
    region = _region(box)
    if mask is not None and len(queries) > 1:
        raise typer.BadParameter("a mask is of one slide; ask for one at a time", param_hint="--mask")
    from napari_fish.archive import open_database
    from napari_fish.search import SearchParams, measure_recall

    params = SearchParams(
        k=k, mode=mode, ranking=ranking, target=target, threshold=threshold, where=tuple(where or ()),
        exclude_query=not include_patient,
    )  # fmt: skip
    with open_database(database, device) as opened:
        if encoder is not None:
            from napari_fish.encode import load_encoder

            opened.use_encoder(load_encoder(encoder, device))
        asked, refused = _ask(opened, queries, region, mpp, mask, joined(mask_class))
        answers = opened.answer(list(asked.values()), params) if asked else []
        measured = measure_recall(opened.store, params) if recall else None
        _write(answers, database, csv, geojson, html)
        if as_json:
            documents = {i: _document(answer, measured) for i, answer in zip(asked, answers, strict=True)}
            for i, error in refused.items():
                documents[i] = {"query": queries[i], "error": error, "results": []}
            write_json(documents[0] if len(queries) == 1 else [documents[i] for i in range(len(queries))])
        else:
            for answer in answers:
                print_answer(answer, explain)
            if measured is not None:
                said = (
                    "-, as none of those drawn has a neighbour within the threshold"
                    if measured.recall is None
                    else f"{measured.recall:.3f}"
                )
                typer.echo(
                    f"recall@{measured.k} of mode {measured.mode} against exact search, on "
                    f"{measured.queries} mosaics of this database: {said}"
                )
    if refused:
        raise FishError("\n".join(refused.values()))


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


def _ask(
    database: Database, queries: Sequence[str], region: tuple[float, float, float, float] | None, mpp: float | None,
    mask: Path | None, mask_class: str | None,
) -> tuple[dict[int, Asked], dict[int, str]]:  # fmt: skip
    """Encode the queries, by their position; of several, a bad one does not stop the others."""
    asked: dict[int, Asked] = {}
    refused: dict[int, str] = {}
    with progress_bar("Encoding") as progress:
        for i, query in enumerate(queries):

            def report(done: int, known: int, i: int = i) -> None:
                progress(int(1000 * (i + done / max(1, known))), 1000 * len(queries))

            try:
                asked[i] = database.ask(
                    query, region, mpp=mpp, mask=mask, mask_class=mask_class, progress=report
                )
            except FishError as error:
                if len(queries) == 1:
                    raise
                refused[i] = str(error)
    return asked, refused


def _document(answer: Results, measured: Recall | None) -> dict[str, Any]:
    from napari_fish.search.export import to_json

    return to_json(answer) | ({} if measured is None else {"recall": asdict(measured)})


def _write(
    answers: Sequence[Results], database: Path, csv: Path | None, geojson: Path | None, html: Path | None
) -> None:  # fmt: skip
    """Write the files that were asked for."""
    if not answers:
        return
    from napari_fish.search import to_html
    from napari_fish.search.export import to_csv, to_geojson

    texts: dict[Path, str] = {}
    if csv is not None:
        tables = [to_csv(answer, query=len(answers) > 1) for answer in answers]
        texts[csv] = tables[0] + "".join(table.partition("\n")[2] for table in tables[1:])
    if geojson is not None:
        for path, answer in zip(_one_each(geojson, answers), answers, strict=True):
            texts[path] = json.dumps(to_geojson(answer), ensure_ascii=False) + "\n"
    if html is not None:
        texts[html] = to_html(answers, database=database.name)
    for path, text in texts.items():
        try:
            # A file name that is not valid Unicode must not cost the whole answer.
            path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise FishError(f"Cannot write {path}: {error.strerror}.") from error
        typer.echo(f"Written: {path}", err=True)


def _one_each(path: Path, answers: Sequence[Results]) -> list[Path]:
    """Return a file for each answer: regions lie in one slide, and those of another would be drawn over it."""
    if len(answers) == 1:
        return [path]
    names = [re.sub(r"[^\w.,\- ()]+", "_", answer.query).strip(". ") or "query" for answer in answers]
    return [
        path.with_name(f"{path.stem}-{name}{f'-{i + 1}' if names.count(name) > 1 else ''}{path.suffix}")
        for i, name in enumerate(names)
    ]


def _nearer(percentile: float | None) -> str:
    """Say how many random pairs are farther apart, rounded down: 99.996 % is not all of them."""
    if percentile is None:
        return ""
    return (
        f"{math.floor(100 * (100 - percentile) + 1e-6) / 100:.2f} % of pairs"
        if percentile > 0
        else "all pairs"
    )


def print_answer(answer: Results, explain: bool = False) -> None:
    """Print an answer as a table."""
    times = answer.elapsed_ms
    typer.echo(
        f"{answer.query}: mode {answer.mode}, ranking {answer.ranking}, threshold {answer.threshold} bits; "
        f"read {times.get('read', 0):.0f} ms, encode {times.get('encode', 0):.0f} ms, "
        f"search {times.get('search', 0):.1f} ms, rank {times.get('rank', 0):.1f} ms"
    )
    header = ("rank", "slide", "diagnosis", "site", "patient", "distance", "nearer than", "matches")
    lines = [header]
    for hit in answer.hits:
        name = hit.slide + (" (filled in)" if hit.filled else "")
        columns = (
            name,
            hit.diagnosis,
            hit.site,
            hit.patient,
            f"{hit.distance:.0f}",
            _nearer(hit.percentile),
            str(len(hit.matches)),
        )
        lines.append((str(hit.rank), *columns))
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    for line in lines:
        typer.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    for note in answer.notes:
        typer.echo(f"note: {note}")
    if explain:
        typer.echo(str(answer.explanation))
    sys.stdout.flush()
