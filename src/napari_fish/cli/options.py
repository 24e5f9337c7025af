"""Options and output that commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

Mpp = Annotated[
    float | None, typer.Option("--mpp", help="Micrometres per level-0 pixel, if you know better.")
]
Series = Annotated[int | None, typer.Option("--series", help="Which image of the file; 'info' lists them.")]
Json = Annotated[bool, typer.Option("--json", help="Write one JSON document to standard output.")]


def write_json(document: Any) -> None:
    """Write one JSON document to standard output."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error; yields a function that takes the work done and all the work."""
    steps = 1000
    with typer.progressbar(length=steps, label=label, file=sys.stderr) as bar:
        yield lambda done, total: bar.update(steps * done // max(1, total) - bar.pos)
