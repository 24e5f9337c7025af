"""The page about JSON output has the fields that commands write, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.building.test_build import NAMES
from tests.cli.test_cli import run

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
pytestmark = pytest.mark.usefixtures("quick")


def on_the_page(command: str) -> set[str]:
    """Return the fields that the section of a command names."""
    section = re.search(
        rf"^##+ {command}$(.*?)(?=^##|\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert section, f"{command} is not on the page"
    rows = [line.split("|")[1] for line in section[1].splitlines() if line.startswith("|")]
    return {field for row in rows for field in re.findall(r"`([^`]+)`", row)}


def written(value: Any, place: str = "") -> Iterator[str]:
    """Yield the place of every value that holds no others by name."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from written(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for one in value:
            yield from written(one, f"{place}[]")
    else:
        yield place


def fits(field: str, place: str) -> bool:
    """Whether a field of the page is this place: names in capitals stand for any, an ellipsis for all that follows."""
    text = re.sub(r"\b[A-Z]{2,}\b", "[^.]+", re.escape(field).replace("…", ".*"))
    return re.fullmatch(text, place) is not None


def holders(field: str) -> list[str]:
    """Return what a field lies in, itself included: of ``a[].b`` these are ``a``, ``a[]`` and ``a[].b``."""
    return [field[: end.start()] for end in re.finditer(r"\[\]|\.|$", field)] + [field]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("info", ["SLIDE"]),
        ("mosaic", ["SLIDE"]),
        ("encoders", []),
        ("build", ["FOLDER", "-o", "NEW"]),
        ("search", ["DATABASE", "SLIDE", "--recall"]),
        ("evaluate", ["DATABASE", "--ablation", "--speed", "--jobs", 1]),
        ("labels", ["DATABASE", "LABELS"]),
        ("verify", ["DATABASE"]),
        ("compact", ["DATABASE"]),
        ("relocate", ["DATABASE", "FOLDER"]),
        ("remove", ["DATABASE", NAMES[0]]),
        ("export", ["DATABASE", "-o", "NEW"]),
    ],
)
def test_the_page_names_what_a_command_writes_and_nothing_else(
    command: str, arguments: list[object], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home / "Schnitte ü"
    (folder / "broken.tif").write_bytes(b"no slide")
    meant = {
        "SLIDE": folder / NAMES[0],
        "FOLDER": folder,
        "DATABASE": home / "a b.fish",
        "LABELS": folder / "labels.csv",
        "NEW": home / "new.fish",
    }
    code, out, _ = run(capsys, command, *(meant.get(str(one), one) for one in arguments), "--json")
    assert code in (0, 3)
    fields, said = on_the_page(command), set(written(json.loads(out)))
    # A list or mapping that is empty here has no places inside; what holds others has no place of its own.
    unnamed = {place for place in said if not any(fits(one, place) for f in fields for one in holders(f))}
    assert not unnamed
    places = {one for place in said for one in holders(place)}
    unwritten = {f for f in fields if not any(fits(f, one) for one in places)}
    empty = {f for f in unwritten if any(fits(one, place) for one in holders(f) for place in said)}
    assert not unwritten - empty
