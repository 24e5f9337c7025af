"""What pages take from the program itself while they are built, so that they cannot say anything else.

A page holds a line ``<!-- generated: NAME -->``, and what the function of that name returns, Markdown, takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

import napari_fish
from napari_fish.names import MODE_HELP, RANKING_HELP, field_help

_PLACE = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
_PACKAGE = Path(napari_fish.__file__).parent
_WIDTH = 110


def commands() -> str:
    """Return a section for each command: what ``--help`` says."""
    import typer
    from typer.testing import CliRunner

    from napari_fish.cli import app

    parts = []
    for name in typer.main.get_command(app).commands:  # type: ignore[attr-defined]
        said = CliRunner().invoke(
            app,
            [name, "--help"],
            prog_name="napari-fish",
            terminal_width=_WIDTH,
            env={"COLUMNS": str(_WIDTH)},
        )
        if said.exit_code:
            raise RuntimeError(f"napari-fish {name} --help: {said.output}")
        parts.append(f"## `{name}`\n\n```text\n{said.output.strip()}\n```\n")
    return "\n".join(parts)


def parameters() -> str:
    """Return a section for each class of parameters: every field with its type, its default and what it is."""
    parts = []
    for params in parameter_classes():
        help_of = field_help(params)
        lines = [
            f"| `{f.name}` | `{_type(f)}` | {_default(f)} | {_cell(help_of[f.name])} |"
            for f in fields(params)
        ]
        first = cleandoc(params.__doc__ or "").splitlines()[0].replace("``", "`")
        place = f"`{params.__module__}.{params.__name__}`"
        table = "\n".join(["| field | type | default | |", "|---|---|---|---|", *lines])
        parts.append(f"## {params.__name__}\n\n{first} {place}\n\n{table}\n")
    return "\n".join(parts)


def choices() -> str:
    """Return what each mode does and how each ranking orders slides."""
    tables = (
        "\n".join([f"| {what} | |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in known.items())])
        for what, known in (("mode", MODE_HELP), ("ranking", RANKING_HELP))
    )
    return "\n\n".join(tables)


def parameter_classes() -> Iterator[type[Any]]:
    """Yield every class of parameters outside the plugin, in the order of files."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        place = path.relative_to(_PACKAGE.parent).with_suffix("")
        if "_napari" not in place.parts:
            for name in re.findall(r"^class (\w+Params)\b", path.read_text(encoding="utf-8"), re.MULTILINE):
                yield getattr(import_module(".".join(place.parts)), name)


def _type(field: Field[Any]) -> str:
    return str(field.type).replace("|", "\\|")


def _default(field: Field[Any]) -> str:
    if field.default is not MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is MISSING:
        return "must be given"
    # What is made anew for each is a set of defaults of its own, or depends on the machine.
    name = getattr(field.default_factory, "__name__", "")
    return f"`{name}()`" if name.isidentifier() else "from the machine"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


PARTS: dict[str, Callable[[], str]] = {"choices": choices, "commands": commands, "parameters": parameters}


def fill(app: object, page: str, source: list[str]) -> None:
    """Put what is generated into a page that was read; Sphinx calls it with each."""
    source[0] = _PLACE.sub(lambda found: PARTS[found[1]](), source[0])


def generated_pages(app: Any, env: Any, added: object, changed: object, removed: object) -> list[str]:
    """Return the pages to be read again although their files are as they were: the program may not be."""
    return [
        page for page in env.found_docs if _PLACE.search(Path(env.doc2path(page)).read_text(encoding="utf-8"))
    ]
