"""Filters such as ``diagnosis=KIRC`` or ``site!=brain``, as masks over slides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import FishError
from napari_fish.index.arrays import Mask
from napari_fish.store.slide_table import SlideTable

_FORM = re.compile(r"\s*(?P<column>[^=!]+?)\s*(?P<sign>!?=)\s*(?P<value>.*?)\s*", re.DOTALL)

# Known values that an error names.
_NAMED = 5


@dataclass(frozen=True)
class Condition:
    """One filter; columns and values are compared without regard to case."""

    column: str
    value: str
    wanted: bool
    given: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read ``column=value`` or ``column!=value``; an empty value means "not known"."""
        form = _FORM.fullmatch(text)
        if form is None:
            raise FishError(f"Cannot read the filter {text!r}: write column=value or column!=value.")
        return cls(form["column"].lower(), form["value"].casefold(), form["sign"] == "=", form["value"])


def slide_mask(slides: SlideTable, where: Iterable[str]) -> Mask:
    """Return which slides, of those not removed, satisfy all filters.

    Several ``=`` on one column mean any of these values; several ``!=`` none of them. A slide whose value is not
    known satisfies ``!=`` and fails ``=``.

    Parameters
    ----------
    slides
        Slides in the order of the mask.
    where
        Filters as text.
    """
    conditions = [Condition.parse(text) for text in where]
    mask = slides.alive.copy()
    for name in dict.fromkeys(c.column for c in conditions):
        codes, values = _codes(slides, name)
        numbers = {value.casefold(): i for i, value in enumerate(values)} | {"": -1}
        of_name = [c for c in conditions if c.column == name]
        wanted = [numbers.get(c.value, -2) for c in of_name if c.wanted]
        unwanted = [numbers.get(c.value, -2) for c in of_name if not c.wanted]
        if wanted:
            mask &= np.isin(codes, wanted)
        if unwanted:
            mask &= ~np.isin(codes, unwanted)
    return mask


def check_values(slides: SlideTable, where: Iterable[str]) -> None:
    """Refuse filters by a value that no slide has: a slip would go unnoticed beside values that are there.

    Parameters
    ----------
    slides
        All slides.
    where
        Filters as text.
    """
    for condition in (Condition.parse(text) for text in where):
        known = {value.casefold(): value for value in _codes(slides, condition.column)[1]}
        if condition.value and condition.value not in known:
            near = get_close_matches(condition.value, known, n=_NAMED, cutoff=0.0)
            told = ", ".join(known[value] for value in near) or "it is not known of any"
            raise FishError(
                f"No slide has the {condition.column} {condition.given!r}; of {len(known)} values the nearest are: {told}."
            )


def _codes(slides: SlideTable, column: str) -> tuple[NDArray[np.int32], list[str]]:
    if column not in slides.columns:
        raise FishError(f"No column {column!r} in this database; there are: {', '.join(slides.columns)}.")
    return slides.numbered(column)


def exclusion_mask(slides: SlideTable, slide: str, patient: str) -> Mask:
    """Return which slides are neither the query's own nor of its patient.

    The query's patient may be known only to the database; there the slide tells.
    """
    mask = slides.alive.copy()
    patients, names = slides.numbered("patient")
    own = slides.number(slide) if slide else None
    if own is not None:
        mask[own] = False
        if patients[own] >= 0:
            mask &= patients != patients[own]
    folded = patient.casefold()
    if folded:
        mask &= patients != next((i for i, name in enumerate(names) if name.casefold() == folded), -2)
    return mask
