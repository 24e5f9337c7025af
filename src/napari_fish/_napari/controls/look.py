"""Colours for what we paint ourselves, taken from the theme of the widget it is painted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qtpy.QtGui import QColor, QPalette


@dataclass(frozen=True)
class Look:
    """Colours of a theme.

    Attributes
    ----------
    dark
        Whether the background is dark.
    base, text
        Background and text.
    soft, line, track
        Less important text, thin lines, and the empty part of a bar.
    accent, chosen
        Frame and background of what is chosen.
    warn, wrong
        Text that must be read, and text that says what went wrong.
    """

    dark: bool
    base: QColor
    text: QColor
    soft: QColor
    line: QColor
    track: QColor
    accent: QColor
    chosen: QColor
    warn: QColor
    wrong: QColor


def look_of(widget: Any) -> Look:
    """Return the colours of a widget, as its style sheet or its palette gives them."""
    widget.ensurePolished()
    palette = widget.palette()
    base, text = palette.color(QPalette.ColorRole.Window), palette.color(QPalette.ColorRole.WindowText)
    dark = base.lightness() < text.lightness()
    accent = QColor("#4ea8de" if dark else "#0072b2")
    return Look(
        dark,
        base,
        text,
        mixed(text, base, 0.28),
        mixed(text, base, 0.75),
        mixed(text, base, 0.82),
        accent,
        mixed(base, accent, 0.16),
        QColor("#f0b840" if dark else "#8a5a00"),
        QColor("#ff8080" if dark else "#b3263a"),
    )


def mixed(one: QColor, other: QColor, share: float) -> QColor:
    """Mix two colours; ``share`` is that of the other."""
    parts = zip((one.red(), one.green(), one.blue()), (other.red(), other.green(), other.blue()), strict=True)
    return QColor(*(round(a * (1 - share) + b * share) for a, b in parts))


def ink_on(colour: QColor) -> QColor:
    """Return black or white, whichever is read better on a colour."""
    bright = 0.299 * colour.red() + 0.587 * colour.green() + 0.114 * colour.blue()
    return QColor("#101418") if bright > 140 else QColor("#ffffff")
