"""Options made of the classes of parameters: name, kind, default and help of each come from its field."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from napari_fish.errors import FishError
from napari_fish.names import field_help, option_of

_METAVARS = {
    "where": "COLUMN=VALUE", "query_where": "COLUMN=VALUE", "within": "COLUMN", "patient": "COLUMN|REGEX",
    "mask": "FOLDER|FILE|COLUMN", "cluster": "ADDRESS|FILE", "map_path": "HERE=THERE",
}  # fmt: skip
Command = Callable[..., None]


def takes(kind: type[Any], *names: str) -> Callable[[Command], Command]:
    """Give a command options for these fields, or all, in place of its parameter ``params``, which gets what was chosen."""
    hints, first = get_type_hints(kind), {f.name: f.default for f in fields(kind)}
    names = names or tuple(first)

    def decorate(command: Command) -> Command:
        def run(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in names}
            command(**given, params=_made(kind, hints, chosen))

        derived = [_option(kind, name, hints[name], first[name]) for name in names]
        signature = inspect.signature(command, eval_str=True)
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values()]
        options = [one for p in own for one in (derived if p.name == "params" else [p])]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {one.name: one.annotation for one in options}
        run.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
        return run

    return decorate


def _option(kind: type[Any], name: str, hint: Any, default: Any) -> inspect.Parameter:
    """Return the option of a field; one that need not be given is None where the class decides by itself."""
    type_, choices, several = _parts(hint)
    optional = default is MISSING or default is None or several
    text = field_help(kind)[name] + (" May be repeated." if several else "")
    metavar = "|".join(choices) or _METAVARS.get(name)
    flag = type_ is bool
    option = typer.Option(option_of(name), metavar=metavar, help=text)
    kept = type_ if flag else list[str] | None if several else type_ | None if optional else type_
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY,
        default=bool(default) if flag else None if optional else default, annotation=Annotated[kept, option],
    )  # fmt: skip


def _parts(hint: Any) -> tuple[Any, tuple[str, ...], bool]:
    """Return what one value of a field is, its choices if it has few, and whether there may be several."""
    given = [one for one in get_args(hint) if one is not NoneType] if NoneType in get_args(hint) else [hint]
    if get_origin(given[0]) is Literal:
        return str, get_args(given[0]), False
    return (str, (), True) if get_origin(given[0]) is tuple else (given[0], (), False)


def _made(kind: type[Any], hints: dict[str, Any], chosen: dict[str, Any]) -> Any:
    """Return the parameters; what makes no sense is wrong usage."""
    values = {}
    for name, value in chosen.items():
        _, choices, several = _parts(hints[name])
        if choices and value not in (None, *choices):
            raise typer.BadParameter(f"choose one of {', '.join(choices)}", param_hint=option_of(name))
        # A flag that was not given leaves the choice to the class.
        if value is not None and not (value is False and NoneType in get_args(hints[name])):
            values[name] = tuple(value) if several else value
    try:
        return kind(**values)
    except (FishError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
