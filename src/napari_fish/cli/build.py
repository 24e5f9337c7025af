"""The commands that make a database and look after it."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from napari_fish.building.params import BuildParams
from napari_fish.cli.options import (
    ENDINGS,
    Json,
    MaskClass,
    interruptible,
    joined,
    progress_bar,
    say_meanwhile,
    write_json,
)
from napari_fish.cli.params import takes
from napari_fish.errors import FishError
from napari_fish.names import field_help
from napari_fish.texts import enumerated, one_line

if TYPE_CHECKING:
    from napari_fish.building.summary import SlideDone

QUARANTINED = 3
"""Exit code of a build that finished, but not with every slide."""
_Database = Annotated[Path, typer.Argument(help="The database, NAME.fish.")]
_Labels = Annotated[
    Path | None, typer.Option("--labels", help="CSV, TSV or Excel file with what is known of the slides.")
]
_Patient = Annotated[
    str | None, typer.Option("--patient", metavar="COLUMN|REGEX", help=field_help(BuildParams)["patient"])
]
_Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="Which column of the labels is slide, patient, site, diagnosis or stain, where the guess is wrong.",
    ),
]
_Slides = Annotated[Path, typer.Argument(help="A folder of slides, or one slide.")]
_MADE = (
    "patient", "device", "workers", "store_codes", "artefacts", "mask", "mpp", "cluster", "map_path", "insecure",
)  # fmt: skip


@takes(BuildParams, "encoder", "preset", "patches", *_MADE)
def build(
    slides: _Slides,
    output: Annotated[Path, typer.Option("--output", "-o", help="The database, NAME.fish.")],
    *,
    labels: _Labels = None,
    column: _Columns = None,
    params: BuildParams,
    mask_class: MaskClass = None,
    as_json: Json = False,
) -> None:
    """Build a database from a folder of slides; run it again to resume or to add what is new."""
    _build(slides, output, labels, column, replace(params, mask_class=joined(mask_class)), as_json=as_json)


@takes(BuildParams, *_MADE)
def add(
    database: _Database,
    slides: _Slides,
    *,
    labels: _Labels = None,
    column: _Columns = None,
    params: BuildParams,
    mask_class: MaskClass = None,
    as_json: Json = False,
) -> None:
    """Add slides to a database."""
    from napari_fish.store.opening import is_database

    if not is_database(database):
        raise FishError(f"{database}: no database here; make one with napari-fish build.")
    _build(slides, database, labels, column, replace(params, mask_class=joined(mask_class)), as_json=as_json)


def _build(
    slides: Path,
    database: Path,
    labels: Path | None,
    column: list[str] | None,
    params: BuildParams,
    *,
    as_json: bool,
) -> None:
    from napari_fish.building.build import build as run
    from napari_fish.building.summary import Watch
    from napari_fish.mosaic.left_out import told

    columns = _columns(column)
    if columns and labels is None:
        raise typer.BadParameter(
            "names columns of a labels file; state that with --labels", param_hint="--column"
        )
    skipped = 0

    def count(done: SlideDone) -> None:
        nonlocal skipped
        skipped += done.fate == "unchanged"
        if done.candidates:
            say_meanwhile(f"{one_line(done.slide)}: {told(done.candidates, done.left_out)}")

    try:
        with progress_bar("Building") as progress, interruptible() as should_stop:
            # Slides that need no work take no time: counted, they would spoil the estimate of what is left.
            summary = run(
                slides, database, labels, params, watch=Watch(finished=count, said=say_meanwhile), columns=columns,
                progress=lambda done, total: progress(done - skipped, total - skipped), should_stop=should_stop,
            )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo("\nStopped. Finished slides are kept; run it again to go on.", err=True)
        raise
    if as_json:
        candidates, left_out = summary.judged
        write_json(
            {
                "database": str(summary.database),
                "slides": summary.slides,
                "mosaics": summary.patches,
                "seconds": round(summary.seconds, 3),
                "counts": summary.counts,
                "candidates": candidates,
                "left_out": left_out,
                "much_left_out": summary.much_left_out,
                "warnings": summary.warnings,
                "done": [_under_known_names(one) for one in summary.done],
                "quarantined": [asdict(bad) for bad in summary.quarantined],
                "notes": list(map(str, summary.notes)),
            }
        )
    else:
        typer.echo(str(summary))
    # Files that an earlier build found bad are listed, but only what went wrong now is a failure of this run.
    if summary.counts.get("quarantined"):
        raise typer.Exit(QUARANTINED)


def _under_known_names(done: SlideDone) -> dict[str, Any]:
    """Return what became of a slide as scripts know it: its patches are called mosaics there."""
    said = asdict(done)
    return said | {"path": str(done.path), "mosaics": said.pop("patches")}


def labels(
    database: _Database,
    file: Annotated[Path, typer.Argument(help="CSV, TSV or Excel file.")],
    patient: _Patient = None,
    column: _Columns = None,
    as_json: Json = False,
) -> None:
    """Give the slides of a database what a file says of them: patient, site, diagnosis, anything else."""
    from napari_fish.database.care import import_labels

    table, matched = import_labels(database, file, patient=patient, columns=_columns(column))
    labelled = len(matched.labels) - len(matched.unlabelled)
    notes = [*table.notes, *matched.notes]
    if as_json:
        write_json(
            {
                "understood": table.understood,
                "others": list(table.others),
                "labelled": labelled,
                "unknown": list(matched.unknown),
                "unlabelled": list(matched.unlabelled),
                "notes": notes,
            }
        )
        return

    lines = [f"{labelled} slides labelled: {table.describe()}", *(f"note  {note}" for note in notes)]
    if matched.unknown:
        lines.append(f"note  Labels for slides that are not here: {enumerated(matched.unknown)}.")
    if matched.unlabelled:
        lines.append(f"note  Slides without labels: {enumerated(matched.unlabelled)}.")
    typer.echo("\n".join(lines))


def _columns(texts: list[str] | None) -> dict[str, str]:
    """Return which column is meant by a name, as written on the command line."""
    chosen = {}
    for text in texts or []:
        name, sign, header = text.partition("=")
        if not sign:
            raise typer.BadParameter("write NAME=COLUMN", param_hint="--column")
        chosen[name.strip().lower()] = header.strip()
    return chosen


def remove(
    database: _Database,
    slides: Annotated[
        list[str], typer.Argument(help="Ids, or names that fit only one slide or one file in quarantine.")
    ],
    as_json: Json = False,
) -> None:
    """Remove slides from a database, or dismiss files in quarantine; the files stay where they are."""
    from napari_fish.database.care import remove_slides

    removed = remove_slides(database, slides)
    write_json({"removed": removed}) if as_json else typer.echo(f"Removed: {', '.join(removed)}")


def verify(database: _Database, as_json: Json = False) -> None:
    """Read the whole database and check it; a damaged snapshot is made again."""
    from napari_fish.store.opening import open_store

    # Nothing can be mended in a folder that cannot be written to, but it can be read.
    with open_store(database, writer=os.access(database, os.W_OK)) as store:
        wrong = store.verify()
        damaged = not all(problem.repaired for problem in wrong)
        digest = "" if damaged else store.digest()
        counts = int(store.slides.alive.sum()), int(store.patches_per_slide.sum())
    if as_json:
        write_json(
            {
                "slides": counts[0],
                "mosaics": counts[1],
                "digest": digest,
                "wrong": [str(problem) for problem in wrong],
            }
        )
    else:
        state = "\n".join(map(str, wrong)) if wrong else "all is well"
        said = f", digest {digest[:16]}" if digest else ""
        typer.echo(f"{database}: {counts[0]} slides, {counts[1]} patches{said}\n{state}")
    if damaged:
        raise FishError(f"{database}: is damaged; restore it from a copy, or build it again.")


def compact(database: _Database, as_json: Json = False) -> None:
    """Write the snapshot anew, without what was removed."""
    from napari_fish.store.opening import open_store

    with open_store(database, writer=True) as store:
        store.compact()
        count = len(store)
    write_json({"mosaics": count}) if as_json else typer.echo(f"{database}: {count} patches in one part")


def relocate(
    database: _Database,
    folder: Annotated[Path, typer.Argument(help="Where to look, subfolders included.")],
    as_json: Json = False,
) -> None:
    """Find the slides of a database again after they were moved or renamed."""
    from napari_fish.database.care import relocate as find

    with progress_bar("Looking at slides") as progress:
        done = find(database, folder, progress=progress)
    if as_json:
        write_json(asdict(done))
        return
    typer.echo(f"{len(done.found)} found again, {done.in_place} where they were, {len(done.missing)} missing")
    for slide in done.missing:
        typer.echo(f"missing  {slide}")


def export(
    database: _Database,
    output: Annotated[Path, typer.Option("--output", "-o", help="The copy, NAME.fish.")],
    deidentify: Annotated[
        bool, typer.Option("--deidentify", help="Leave out whatever names a person, a file or a folder.")
    ] = False,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="With --deidentify: a further column to keep.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Copy a database, whole or without anything that names a person."""
    from napari_fish.store.copy import export as copy

    with progress_bar("Copying") as progress, interruptible(ENDINGS) as should_stop:
        removed = copy(
            database,
            output,
            deidentify=deidentify,
            keep=keep or (),
            progress=progress,
            should_stop=should_stop,
        )
    for part in removed:
        typer.echo(f"Removed what an export that was killed had left: {part}", err=True)
    write_json({"database": str(output)}) if as_json else typer.echo(f"The copy is in {output}")
