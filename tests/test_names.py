"""What the program says of its parameters, on any Python."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from napari_fish.building.params import BuildParams
from napari_fish.evaluate.params import EvaluateParams
from napari_fish.mosaic import MosaicParams
from napari_fish.mosaic.params import TissueParams
from napari_fish.names import MODE_HELP, MODES, RANKING_HELP, RANKINGS, field_help
from napari_fish.search import SearchParams


def _with_docstring(text: str) -> type[Any]:
    @dataclass
    class Params:
        first: int = 1
        second: int = 2
        third: int = 3

    Params.__doc__ = text
    return Params


_INDENTED = """How to do it.

    Attributes
    ----------
    first : int
        What comes
        first.
    second, third
        ``What`` follows.
    """


@pytest.mark.parametrize("text", [_INDENTED, inspect.cleandoc(_INDENTED)], ids=["indented", "dedented"])
def test_parameters_are_explained_whether_or_not_the_compiler_dedents_docstrings(text: str) -> None:
    said = field_help(_with_docstring(text))
    assert said == {"first": "What comes first.", "second": "What follows.", "third": "What follows."}


@pytest.mark.parametrize("params", [BuildParams, EvaluateParams, MosaicParams, SearchParams, TissueParams])
def test_every_parameter_has_the_same_help_on_every_python(
    params: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = field_help(params)
    assert all(before.values())
    monkeypatch.setattr(params, "__doc__", inspect.cleandoc(params.__doc__ or ""))
    assert field_help(params) == before


def test_every_mode_and_ranking_is_explained_in_the_program_and_on_the_page_about_search() -> None:
    assert (tuple(MODE_HELP), tuple(RANKING_HELP)) == (MODES, RANKINGS)
    page = (Path(__file__).parents[1] / "docs" / "databases.md").read_text(encoding="utf-8")
    modes, rankings = (page.partition(f"**{name}**")[2].partition("**")[0] for name in ("Modes", "Rankings"))
    assert re.findall(r"^\| `(\w+)`", modes, re.MULTILINE) == list(MODES)
    assert {name for name in RANKINGS if f"`{name}`" in rankings} == set(RANKINGS)
