"""The command line: a thin skin over the rooms."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from napari_fish import cli_mosaic
from napari_fish.errors import FishError

app = typer.Typer(
    name="napari-fish",
    help="Image search for histology.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Mpp = Annotated[
    float | None, typer.Option("--mpp", help="Micrometres per level-0 pixel, if you know better.")
]
Series = Annotated[int | None, typer.Option("--series", help="Which image of the file; 'info' lists them.")]
Json = Annotated[bool, typer.Option("--json", help="Write one JSON document to standard output.")]


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


@app.command()
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
        _write_json(about)
    else:
        typer.echo(_as_text(about))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write everything.")] = Path("demo"),
    gui: Annotated[bool, typer.Option("--gui/--no-gui", help="Open the viewer at the end.")] = True,
) -> None:
    """Run the whole story on synthetic slides: no slides of your own needed."""
    from napari_fish.slides.demo import write_demo

    with typer.progressbar(length=1000, label="Painting demo slides", file=sys.stderr) as bar:
        paths = write_demo(
            out / "slides", progress=lambda done, total: bar.update(1000 * done // total - bar.pos)
        )
    typer.echo(f"{len(paths)} demo slides and their labels are in {out / 'slides'}")
    if gui:
        _show(paths, out / "viewer.png")


app.command("mosaic")(cli_mosaic.mosaic)
app.command("train-artefacts")(cli_mosaic.train_artefacts)


def _show(slides: Sequence[Path], picture: Path) -> None:
    """Open slides in napari: on the screen, or without one on a virtual display that is photographed.

    A process of its own, because nothing above the plugin may import it.
    """
    command = [sys.executable, "-m", "napari_fish._napari.show", *map(str, slides)]
    if _has_display():
        _run_viewer(command)
        return
    virtual = shutil.which("xvfb-run")
    if virtual is None:
        raise FishError(
            "There is no display, and xvfb-run, which makes a virtual one, is not installed: "
            "install it (Debian and Ubuntu: apt-get install xvfb xauth), or add --no-gui."
        )
    command += ["--screenshot", str(picture)]
    _run_viewer([virtual, "-a", "-s", "-screen 0 1600x1000x24", *command])
    typer.echo(f"No display here: a picture of the viewer is in {picture}")


def _run_viewer(command: Sequence[str]) -> None:
    """Run the viewer and wait for it to be closed."""
    code = subprocess.run(command, check=False).returncode
    if code:
        raise FishError(
            f"The viewer ended with code {code}. Is napari installed with Qt (pip install 'napari-fish[all]')?"
        )


def _has_display() -> bool:
    """Whether a window could be opened."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _write_json(document: Any) -> None:
    """Write one JSON document to standard output."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def _as_text(about: dict[str, Any]) -> str:
    """Lay out what ``info`` found for a person."""
    mpp = "unknown; state it with --mpp" if about["mpp"] is None else f"{about['mpp']:.4g} µm/px"
    source = "" if about["mpp"] is None else f" (from: {about['mpp_source']})"
    power = "unknown" if about["objective_power"] is None else f"{about['objective_power']:g}x"
    levels = ", ".join(f"{v['width']} x {v['height']} (1:{v['downsample']:.4g})" for v in about["levels"])
    lines = [
        f"slide      {about['path']}",
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
        lines.append(f"image {mark}{image['index']:>3}  {image['kind']}: {image['name']}, {size}")
    return "\n".join([*lines, *(f"note       {note}" for note in about["notes"])])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit with 0, 1 for a known error, 2 for wrong usage, 130 when interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    quiet = [a for a in arguments if a not in ("-v", "--verbose")]
    level = logging.ERROR if len(quiet) == len(arguments) else logging.INFO
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr)
    try:
        app(quiet, prog_name="napari-fish")
    except FishError as error:
        typer.echo(f"napari-fish: {error}", err=True)
        sys.exit(1)
