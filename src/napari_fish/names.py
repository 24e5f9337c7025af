"""Names decided once, and what the program says of parameters; light, so that the command line starts at once."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args

Mode = Literal["auto", "exact", "clustered", "guided", "released"]
Ranking = Literal["auto", "fish", "fish-naive", "fish-weighted", "fish-clean", "released", "label-free"]
Preset = Literal["default", "paper", "released"]
Strictness = Literal["strict", "normal", "off"]
"""How strictly ink, folds, debris and blur are left out."""
Level = Literal["slide", "patch"]
MODES: tuple[Mode, ...] = get_args(Mode)
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)
MODE_HELP: dict[str, str] = {
    "auto": "Exact while that is quick, clustered in large databases; completes short answers.",
    "exact": "Compares with every patch of the database, so nothing similar is missed.",
    "clustered": "Looks into the nearest groups of patches only: quick in large databases, misses little.",
    "guided": "As in the paper: walks along the keys near the query's; as quick in any database.",
    "released": "As the program published with the paper walks, to compare with it.",
}
"""What each mode does."""
RANKING_HELP: dict[str, str] = {
    "auto": "By labels where the slides found have them, else by distance alone.",
    "fish": "The paper's: regions with clear votes are trusted first, doubtful ones are dropped.",
    "fish-naive": "Votes counted plainly, nothing dropped.",
    "fish-weighted": "Votes weighed by rarity and position, nothing dropped.",
    "fish-clean": "Weighed votes; regions that are unusual or far are dropped.",
    "released": "As the program published with the paper ranks.",
    "label-free": "By distance alone, without looking at any label.",
}
"""How each ranking orders slides."""
OWN_COLUMNS = ("slide", "name", "patient", "site", "diagnosis")
"""Columns every database has."""
WHICH_SLIDE = ("slide", "name", "patient")
"""Columns that say which slide it is: there is nothing to vote on in them."""
STATE_MPP = "--mpp on the command line, mpp= in Python, µm per px in the widgets"
"""How to say how large a pixel is; the viewer shortens it to its own way."""
LOOK_OR_KEEP = "look at it (napari-fish mosaic SLIDE --png FILE) or keep them (--artefacts off)"
"""What to do where much of a slide was left out; the viewer names its buttons instead."""


def option_of(name: str) -> str:
    """Return the option of the command line for a field of a parameter class."""
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def field_help(params: type[Any]) -> dict[str, str]:
    """Return what the docstring of a parameter class says of each field, for tooltips and ``--help``."""
    if not is_dataclass(params):
        raise TypeError(f"{params!r} is not a dataclass")
    help_of: dict[str, str] = {}
    names: list[str] = []
    # Since Python 3.13 the compiler takes the common indentation away.
    for line in inspect.cleandoc(params.__doc__ or "").splitlines():
        heading = re.match(r"^(\w+(?:, \w+)*)(?: : .*)?$", line)
        if heading:
            names = heading.group(1).split(", ")
        elif line.startswith(" "):
            for name in names:
                help_of[name] = f"{help_of.get(name, '')} {line.strip()}".strip()
    return {f.name: help_of.get(f.name, "").replace("``", "") for f in fields(params)}
