"""One colour for a diagnosis wherever it is shown: in the viewer, in reports and in figures."""

from __future__ import annotations

from collections.abc import Iterable

from napari_fish.search.values import Results

# Told apart by readers who see red and green alike; each stands out by 3:1 or more from the page behind it.
_LIGHT = ("#0072b2", "#c85200", "#00795a", "#a8478a", "#7d6608", "#5b4fc9", "#b3263a", "#0b7285")
_DARK = ("#4ea8de", "#f08c4a", "#35c495", "#d98cc0", "#cdb53f", "#a79cf5", "#f07083", "#4cc3d9")
_SECOND_ROUND = 0.5

UNKNOWN_LIGHT, UNKNOWN_DARK = "#868e96", "#8b949e"
"""For slides whose diagnosis is not known."""


def _mixed(colour: str, other: int, share: float) -> str:
    """Mix a colour with a grey of the value ``other``."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part * (1 - share) + other * share):02x}" for part in parts)


LIGHT = (*_LIGHT, *(_mixed(colour, 0, _SECOND_ROUND) for colour in _LIGHT))
"""Colours on a light page."""
DARK = (*_DARK, *(_mixed(colour, 255, _SECOND_ROUND) for colour in _DARK))
"""The same on a dark one."""


class Colours:
    """Colours of labels, whatever their case.

    Parameters
    ----------
    labels
        Each gets the next colour: with those of :func:`labels_in` a diagnosis has the same colour in every answer
        of a database.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        names = dict.fromkeys(label.casefold() for label in labels if label)
        self._number = {name: i % len(LIGHT) for i, name in enumerate(names)}

    @classmethod
    def of_answers(cls, answers: Iterable[Results]) -> Colours:
        """Return the colours for answers of one database."""
        labels, more = list[str](), list[str]()
        for results in answers:
            labels += results.labels
            more += (hit.diagnosis for hit in results.hits)
            more += (vote for fate in results.explanation.lists for vote in (fate.vote, *fate.votes))
        return cls((*labels, *labels_in(more)))

    def number(self, label: str) -> int | None:
        """Return the place of a label's colour in :data:`LIGHT` and :data:`DARK`; None for an unknown label."""
        return self._number.get(label.casefold())

    def of(self, label: str, dark: bool = False) -> str:
        """Return the colour of a label, as ``#rrggbb``."""
        number = self.number(label)
        if number is None:
            return UNKNOWN_DARK if dark else UNKNOWN_LIGHT
        return (DARK if dark else LIGHT)[number]


def labels_in(*columns: Iterable[str]) -> tuple[str, ...]:
    """Join the labels of columns, each once: by the alphabet, those of the first column first."""
    kept: dict[str, str] = {}
    for column in columns:
        for label in sorted({label for label in column if label}, key=lambda one: (one.casefold(), one)):
            kept.setdefault(label.casefold(), label)
    return tuple(kept.values())
