"""The command that says how good search is on a database."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from napari_fish.cli.options import Json, progress_bar, write_json
from napari_fish.names import MODES, RANKINGS

if TYPE_CHECKING:
    from napari_fish.evaluate import Evaluation


def evaluate(
    database: Annotated[Path, typer.Argument(help="The database, NAME.fish.")],
    queries: Annotated[
        Path | None, typer.Option("--queries", help="Another database whose slides are asked for: another cohort.")
    ] = None,
    level: Annotated[str | None, typer.Option("--level", help="Ask for whole slides or for single patches: slide or patch.")] = None,
    target: Annotated[str, typer.Option("--target", help="The column that says what is right.")] = "diagnosis",
    k: Annotated[int, typer.Option("-k", min=1, help="Slides looked at of each answer.")] = 5,
    mode: Annotated[str | None, typer.Option("--mode", help=f"Only this mode: {', '.join(MODES)}.")] = None,
    ranking: Annotated[str | None, typer.Option("--ranking", help=f"This ranking in every mode: {', '.join(RANKINGS)}.")] = None,
    ablation: Annotated[bool, typer.Option("--ablation", help="Also switch the parts of the ranking on one by one.")] = False,
    speed: Annotated[bool, typer.Option("--speed", help="Also time searches over growing parts of the database.")] = False,
    augment: Annotated[
        bool, typer.Option("--augment", help="Also time searches with each patch copied 10 and 100 times; needs --store-codes at build.")
    ] = False,
    within: Annotated[
        str, typer.Option("--within", metavar="COLUMN", help="Answer each query only from slides that share its value, such as site; one matrix for each.")
    ] = "",
    where: Annotated[
        list[str] | None, typer.Option("--where", metavar="COLUMN=VALUE", help="Only these slides may be found; may be repeated.")
    ] = None,
    query_where: Annotated[
        list[str] | None, typer.Option("--query-where", metavar="COLUMN=VALUE", help="Only these slides are asked for; may be repeated.")
    ] = None,
    sample: Annotated[int | None, typer.Option("--sample", min=1, help="At most so many queries, drawn at random.")] = None,
    threshold: Annotated[int | None, typer.Option("--threshold", min=0, help="In bits, instead of the calibrated one (the paper's modes with the paper's encoder: 128).")] = None,
    fill: Annotated[bool, typer.Option("--fill", help="Complete short answers from exact search in every mode, not in auto alone.")] = False,
    fixed_divisor: Annotated[
        bool, typer.Option("--fixed-divisor", help="Divide average precision by 5, as the published program does.")
    ] = False,
    half_is_enough: Annotated[
        bool, typer.Option("--half-is-enough", help="A short answer is right with ⌈k/2⌉ right slides, as in the published program.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="For the sample and the intervals.")] = 0,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Processes; all cores by default.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Neither use nor keep answers of earlier runs.")] = False,
    report: Annotated[Path | None, typer.Option("--report", help="Write one page with tables and figures here.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Say how well search works on a database: accuracy, coverage, speed and storage of every mode."""
    for name, value, known in (
        ("--mode", mode, MODES),
        ("--ranking", ranking, RANKINGS),
        ("--level", level, ("slide", "patch")),
    ):
        if value is not None and value not in known:
            raise typer.BadParameter(f"choose one of {', '.join(known)}", param_hint=name)
    from napari_fish.database import open_database
    from napari_fish.database.timing import encoding_times
    from napari_fish.evaluate import EvaluateParams, to_json
    from napari_fish.evaluate import evaluate as run
    from napari_fish.search.output.writing import check_outputs

    check_outputs([] if report is None else [report])
    options: dict[str, Any] = {} if jobs is None else {"jobs": jobs}
    params = EvaluateParams(
        k=k, level=level, target=target, mode=mode, ranking=ranking, ablation=ablation, speed=speed, augment=augment,  # type: ignore[arg-type]
        within=within, where=tuple(where or ()), query_where=tuple(query_where or ()), sample=sample,
        threshold=threshold, fill=fill, fixed_divisor=fixed_divisor, half_is_enough=half_is_enough, seed=seed, **options,
    )  # fmt: skip
    with ExitStack() as stack:
        opened = stack.enter_context(open_database(database))
        other = None if queries is None else stack.enter_context(open_database(queries)).store
        times = encoding_times(opened) if speed else []
        with progress_bar("Evaluating") as progress:
            found = run(
                opened.store, other, params, command=_command(), keep=not fresh, encode_ms=times, progress=progress
            )  # fmt: skip
    if as_json:
        write_json(to_json(found))
    else:
        _print(found)
    if report is not None:
        found.save(report)
        typer.echo(f"Written: {report}", err=True)


def _command() -> str:
    return shlex.join(["napari-fish", *sys.argv[1:]])


def _print(found: Evaluation) -> None:
    """Print the tables."""
    from napari_fish.evaluate.report import tables

    what = "patches" if found.level == "patch" else "slides"
    asked = f"{found.n_queries} {what} of {found.n_patients} patients"
    only = f" of the same {found.within}" if found.within else ""
    typer.echo(
        f"{asked}{f' of {found.queries}' if found.queries else ''} asked of {found.database} ({found.n_slides} slides{only}); "
        f"right means the same {found.target} ({len(found.labels)} labels); {found.thresholds}\n"
    )
    typer.echo(tables.as_text(tables.ways_table(found.ways, found.k, found.level)))
    typer.echo(f"\nBy {found.target}, mode {found.main.name}:")
    typer.echo(tables.as_text(tables.labels_table(found.main, found.k)))
    typer.echo("\nBy the definitions in use and by those of the published program:")
    typer.echo(tables.as_text(tables.definitions_table(found.ways, found.k, found.definition, found.level)))
    if found.ablation:
        typer.echo("\nParts of the ranking:")
        typer.echo(tables.as_text(tables.ways_table(found.ablation, found.k, "patch")))
    short = tables.short_table([*found.ways, *found.ablation])
    if short[1]:
        typer.echo(f"\nFewer than {found.k} results:")
        typer.echo(tables.as_text(short))
    if found.speed:
        typer.echo("\nSpeed:")
        typer.echo(tables.as_text(tables.speed_table(found.speed)))
    for name, text in tables.storage_lines(found):
        typer.echo(f"{name}: {text}")
    for note in found.notes:
        typer.echo(f"note: {note}")
