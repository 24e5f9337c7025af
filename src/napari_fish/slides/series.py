"""Which of a file's images is the slide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from napari_fish.errors import SlideError
from napari_fish.slides.protocol import SeriesInfo

KINDS = {
    kind: re.compile(rf"(?<![a-z])({names})(image)?(?![a-z])", re.IGNORECASE)
    for kind, names in {
        "label": "label|barcode",
        "macro": "macro|overview",
        "thumbnail": "thumb|thumbnail",
    }.items()
}
"""Whole words: a slide may well be called "macrophages" or "unlabelled"."""


def kind_of(name: str) -> str:
    """Tell from an image's name whether it is a label, macro or thumbnail; else it is a slide."""
    return next((kind for kind, pattern in KINDS.items() if pattern.search(name)), "slide")


def choose_series(path: Path, series: Sequence[SeriesInfo], wanted: int | None) -> SeriesInfo:
    """Return the image the user wants, else the largest that is no label, macro or thumbnail."""
    if wanted is not None:
        for info in series:
            if info.index == wanted:
                return info
        listed = ", ".join(f"{s.index} ({s.name})" for s in series)
        raise SlideError(f"{path}: there is no image number {wanted} in this file. Choose one of: {listed}.")
    chosen = default_series(series)
    if chosen is None:
        listed = ", ".join(f"{s.index} ({s.name})" for s in series)
        raise SlideError(
            f"{path}: no image in this file looks like a slide. If one of these is, choose it with "
            f"--series (series= in Python): {listed}."
        )
    return chosen


def default_series(series: Sequence[SeriesInfo]) -> SeriesInfo | None:
    """Return the largest image that is no label, macro or thumbnail."""
    slides = (s for s in series if s.kind == "slide")
    return max(slides, key=lambda s: s.width * s.height, default=None)
