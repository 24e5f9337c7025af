"""The command line: a thin skin over the rooms."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from napari_fish.cli import build, demo, encode, evaluate, mosaic, search, slides
from napari_fish.cli.streams import plain_streams
from napari_fish.errors import FishError

app = typer.Typer(
    name="napari-fish",
    help="Image search for histology.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(slides.info)
app.command()(mosaic.mosaic)
app.command()(mosaic.train_artefacts)
app.command()(encode.encoders)
app.command()(encode.train)
app.command()(encode.import_checkpoint)
app.command()(build.build)
app.command()(search.search)
app.command()(evaluate.evaluate)
for _command in (
    build.labels, build.add, build.remove, build.verify, build.compact, build.relocate, build.export
):  # fmt: skip
    app.command()(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        from napari_fish import __version__

        typer.echo(f"napari-fish {__version__}")
        raise typer.Exit


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more; may stand anywhere.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Image search for histology."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit with 0, 1 for a known error, 2 for wrong usage, 130 when interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    with plain_streams():
        _run(arguments)


def _run(arguments: list[str]) -> None:
    quiet = [a for a in arguments if a not in ("-v", "--verbose")]
    level = logging.ERROR if len(quiet) == len(arguments) else logging.INFO
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr)
    if level == logging.ERROR:
        # It reports damage that our own message then explains.
        logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    try:
        app(quiet, prog_name="napari-fish")
    except FishError as error:
        typer.echo(f"napari-fish: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        # What the system refuses has a file and a reason; where in the program it was is for -v.
        logging.getLogger(__name__).info("", exc_info=error)
        place = f"{error.filename}: " if error.filename else ""
        typer.echo(f"napari-fish: {place}{error.strerror or error}. Check the file and the disk.", err=True)
        sys.exit(1)
