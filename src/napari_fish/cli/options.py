"""Options and output that commands share."""

from __future__ import annotations

import json
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Self

import typer

from napari_fish.building.params import BuildParams
from napari_fish.cli.streams import bare
from napari_fish.errors import Cancelled
from napari_fish.names import field_help
from napari_fish.texts import json_safe
from napari_fish.work import Progress, ShouldStop

Mpp = Annotated[
    float | None, typer.Option("--mpp", help="Micrometres per level-0 pixel, if you know better.")
]
Series = Annotated[int | None, typer.Option("--series", help="Which image of the file; 'info' lists them.")]
Device = Annotated[str, typer.Option("--device", help=field_help(BuildParams)["device"])]
Mask = Annotated[
    Path | None,
    typer.Option("--mask", help="Where the tissue is: a binary image of the slide, or GeoJSON from QuPath."),
]
MaskClass = Annotated[
    list[str] | None,
    typer.Option(
        "--mask-class", metavar="C", help=field_help(BuildParams)["mask_class"] + " May be repeated."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write one JSON document to standard output.")]


def joined(classes: list[str] | None) -> str | None:
    """Return classes that were named one by one, or together, in one text."""
    return ",".join(classes) if classes else None


def write_json(document: Any) -> None:
    """Write one JSON document to standard output."""
    sys.stdout.write(_as_json(document) + "\n")


def _as_json(document: Any) -> str:
    return json_safe(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False))


class JsonList:
    """A JSON list on standard output that grows; it is one document when it is left."""

    def __init__(self) -> None:
        self._empty = True

    def add(self, document: Any) -> None:
        """Write one more element."""
        sys.stdout.write(("[\n" if self._empty else ",\n") + textwrap.indent(_as_json(document), "  "))
        sys.stdout.flush()
        self._empty = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.write("[]\n" if self._empty else "\n]\n")


ENDINGS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals by which a user, the system or a terminal that is closed ends a program."""


@contextmanager
def interruptible(signals: Sequence[signal.Signals] = (signal.SIGINT,)) -> Iterator[ShouldStop]:
    """Yield a function that says whether Ctrl-C was pressed; pressed again, it strikes at once.

    Python's own exception would be lost, and its traceback shown, where it strikes inside a library's finaliser.
    Further signals are taken alike, for work that must clean up behind it.
    """
    pressed, before = threading.Event(), {number: signal.getsignal(number) for number in signals}

    def press(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            signal.default_int_handler(number, frame)
        pressed.set()
        sys.stderr.write("\nStopping after what is in progress; press Ctrl-C again to stop at once.\n")

    ours = threading.current_thread() is threading.main_thread()
    if ours:
        for number in signals:
            signal.signal(number, press)
    try:
        yield pressed.is_set
    except Cancelled:
        if pressed.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        if ours:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Show a bar on standard error; yields a function that takes the work done and all the work."""
    steps = 1000
    with typer.progressbar(length=steps, label=label, file=bare(sys.stderr)) as bar:
        yield lambda done, total: bar.update(steps * done // max(1, total) - bar.pos)


def clear_line() -> None:
    """Take a bar away from standard error, so that what is printed next begins a line; the bar goes on below it."""
    if sys.stderr.isatty():
        bare(sys.stderr).write("\r\x1b[K")
        sys.stderr.flush()


def say_meanwhile(line: str) -> None:
    """Write a line to standard error while a bar is shown there."""
    clear_line()
    typer.echo(line, err=True)
