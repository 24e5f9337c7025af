"""The command that says how good search is on a database."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_fish.cli.options import Json, progress_bar, write_json
from napari_fish.cli.params import takes
from napari_fish.evaluate.params import EvaluateParams

if TYPE_CHECKING:
    from napari_fish.evaluate import Evaluation


@takes(EvaluateParams)
def evaluate(
    database: Annotated[Path, typer.Argument(help="The database, NAME.fish.")],
    *,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="Another database whose slides are asked for: another cohort.")
    ] = None,
    params: EvaluateParams,
    fresh: Annotated[bool, typer.Option("--fresh", help="Neither use nor keep answers of earlier runs.")] = False,
    report: Annotated[Path | None, typer.Option("--report", help="Write one page with tables and figures here.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Say how well search works on a database: accuracy, coverage, speed and storage of every mode."""
    from napari_fish.database import open_database
    from napari_fish.database.timing import encoding_times
    from napari_fish.evaluate import evaluate as run
    from napari_fish.evaluate import to_json
    from napari_fish.search.output.writing import check_outputs

    check_outputs([] if report is None else [report])
    with ExitStack() as stack:
        opened = stack.enter_context(open_database(database))
        other = None if queries is None else stack.enter_context(open_database(queries)).store
        times = encoding_times(opened) if params.speed else []
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
    shown = (
        ("", tables.ways_table(found.ways, found.k, found.level)),
        (f"By {found.target}, mode {found.main.name}:", tables.labels_table(found.main, found.k)),
        (
            "By the definitions in use and by those of the published program:",
            tables.definitions_table(found.ways, found.k, found.definition, found.level),
        ),
        ("Parts of the ranking:", tables.ways_table(found.ablation, found.k, "patch")),
        (f"Fewer than {found.k} results:", tables.short_table([*found.ways, *found.ablation])),
        ("Speed:", tables.speed_table(found.speed)),
    )
    for heading, table in shown:
        if table[1]:
            typer.echo(f"\n{heading}\n" * bool(heading) + tables.as_text(table))
    for name, text in tables.storage_lines(found):
        typer.echo(f"{name}: {text}")
    for note in found.notes:
        typer.echo(f"note: {note}")
