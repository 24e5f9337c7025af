"""How large a pixel is: one rule for every format."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from napari_fish.errors import SlideError

SMALLEST, LARGEST = 0.05, 10.0
"""Bounds in µm outside which a value found in a file is not believed."""
MICROMETRES_AT_1X = 10.0
"""A 20x objective gives 0.5 µm a pixel."""


class MppSource(StrEnum):
    """Where the size of a pixel came from, most trusted first."""

    USER = "user"
    FILE = "file"
    OBJECTIVE = "objective"
    RESOLUTION = "resolution"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Mpp:
    """Micrometres per level-0 px, where that came from, and what was not believed."""

    value: float | None
    source: MppSource
    notes: tuple[str, ...] = ()


def plausible(mpp: float | None) -> bool:
    """Whether a value in µm per px could be a microscope's."""
    return mpp is not None and math.isfinite(mpp) and SMALLEST <= mpp <= LARGEST


def decide_mpp(
    name: object,
    *,
    user: float | None = None,
    file: Iterable[float | None] = (),
    objective: float | None = None,
    resolution: Iterable[float | None] = (),
) -> Mpp:
    """Apply the rule: user, plausible file value, objective power, plausible resolution, unknown.

    Parameters
    ----------
    name : object
        What to call the slide in messages.
    user : float, optional
        What the user says, in µm; believed as long as it is a positive number.
    file : iterable of float
        What the file's own metadata says for x and y, in µm.
    objective : float, optional
        Objective power.
    resolution : iterable of float
        What generic resolution tags say for x and y, in µm.

    Returns
    -------
    Mpp
        The value, its source, and notes on values that were not believed.
    """
    if user is not None:
        if not (math.isfinite(user) and user > 0):
            raise SlideError(f"{name}: mpp must be a positive number of µm per px, not {user!r}.")
        return Mpp(float(user), MppSource.USER)
    notes: list[str] = []
    value = _believed(file, "mpp", notes)
    if value is not None:
        return Mpp(value, MppSource.FILE, tuple(notes))
    if objective is not None and plausible(MICROMETRES_AT_1X / objective if objective > 0 else None):
        return Mpp(MICROMETRES_AT_1X / objective, MppSource.OBJECTIVE, tuple(notes))
    value = _believed(resolution, "resolution tag", notes)
    if value is not None:
        return Mpp(value, MppSource.RESOLUTION, tuple(notes))
    return Mpp(None, MppSource.UNKNOWN, tuple(notes))


def _believed(values: Iterable[float | None], what: str, notes: list[str]) -> float | None:
    """Return the geometric mean of the values when all are plausible; note it when they are not."""
    stated = [v for v in values if v is not None]
    if not stated:
        return None
    if not all(map(plausible, stated)):
        shown = " x ".join(f"{v:.4g}" for v in stated)
        notes.append(
            f"the file's {what} says {shown} µm/px, which is outside {SMALLEST:g} to {LARGEST:g} and not believed"
        )
        return None
    if max(stated) > 1.05 * min(stated):
        notes.append(
            f"the file's {what} differs between x and y ({stated[0]:.4g} and {stated[1]:.4g} µm/px); "
            "their mean is used"
        )
    return math.prod(stated) ** (1 / len(stated))
