"""Figures as SVG, plain enough for browsers and for Qt: no style sheet, no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.evaluate.metrics import Score
from napari_fish.evaluate.values import SpeedRow, Times
from napari_fish.search.output.colours import DARK, LIGHT
from napari_fish.search.output.page_style import esc

_FONT = 'font-family="sans-serif"'
_ROW = 26
_CELL = 44
# Width of a letter as a share of its height, on the safe side.
_LETTER = 0.58


@dataclass(frozen=True)
class Theme:
    """Colours of a figure.

    Attributes
    ----------
    ink, soft
        Of text and of lines.
    bar
        Of bars.
    many, near
        Of the fullest cells of a matrix, and of the nearest.
    paper
        Behind everything.
    right, wrong
        Around what has the right label, and another.
    """

    ink: str = "#1b1f24"
    soft: str = "#8a939d"
    bar: str = "#0072b2"
    paper: str = "#ffffff"
    many: str = "#084578"
    near: str = "#3c424a"
    right: str = "#00795a"
    wrong: str = "#c92a2a"


ON_PAPER = Theme()
ON_DARK = Theme("#e8eaed", "#8b949e", "#4ea8de", "#262930", "#4ea8de", "#c9d1d9", "#2fb88a", "#ff7b7b")


def bars(
    rows: Sequence[tuple[str, Score, str]], theme: Theme = ON_PAPER, *, width: int = 640, title: str = ""
) -> str:
    """Draw shares as bars with their intervals.

    Parameters
    ----------
    rows
        Name, share with interval, and a remark such as the number of queries.
    theme
        Colours.
    width
        In px.
    title
        What is shown, for those who cannot see it.
    """
    names = min(0.42 * width, 12 * _LETTER * max([4, *(len(name) for name, _, _ in rows)]) + 12)
    end = width - 12 * _LETTER * max([4, *(len(text) + 7 for _, _, text in rows)]) - 14
    height = _ROW * len(rows) + 26
    scale = max(40.0, end - names)
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0) if scale > 110 else (0.0, 0.5, 1.0):
        x = names + share * scale
        parts.append(_line(x, 4, x, height - 20, theme.soft, 0.5))
        parts.append(_text(x, height - 6, f"{share:g}", theme.soft, 11, "middle"))
    for i, (name, score, remark) in enumerate(rows):
        y = 6 + i * _ROW
        middle = y + _ROW / 2 - 2
        shown = _cut(name, names - 10, 12)
        parts.append(_text(names - 8, middle + 4, shown, theme.ink, 12, "end", name))
        parts.append(
            f'<rect x="{names:.1f}" y="{y + 3}" width="{max(0.5, score.value * scale):.1f}" height="{_ROW - 10}" '
            f'fill="{theme.bar}" rx="2"/>'
        )
        if score.interval is not None:
            low, high = (names + share * scale for share in score.interval)
            parts.append(_line(low, middle, high, middle, theme.ink, 1.5))
            parts += [_line(x, middle - 4, x, middle + 4, theme.ink, 1.5) for x in (low, high)]
        said = f"{score.value:.2f}" + (f" ({remark})" if remark else "")
        parts.append(_text(names + scale + 10, middle + 4, said, theme.ink, 12))
    return _svg(width, height, parts, title, theme)


def matrix(
    table: NDArray[Any],
    columns: Sequence[str],
    lines: Sequence[str],
    theme: Theme = ON_PAPER,
    *,
    strong_is_small: bool = False,
    digits: int = 0,
    width: int | None = None,
    title: str = "",
    below: str = "truth",
    beside: str = "",
) -> str:
    """Draw a matrix as coloured cells with their values.

    Parameters
    ----------
    table : shape (n_lines, n_columns)
        What is shown.
    columns, lines
        Names; the truth along x and what was found along y, as in the paper.
    theme
        Colours.
    strong_is_small
        For distances; counts are coloured by their share in the column.
    digits
        After the decimal point.
    width
        In px, where it must fit; None for what it takes.
    title, below, beside
        What is shown, and the names of the axes.
    """
    values = np.asarray(table, np.float64)
    # Columns differ in how many queries they have, so each is coloured by itself.
    if strong_is_small:
        low, high = values.min(axis=0, keepdims=True), values.max(axis=0, keepdims=True)
        share = (high - values) / np.where(high > low, high - low, 1)
    else:
        share = values / np.maximum(values.sum(axis=0, keepdims=True), 1)
    longest = max([4, *(len(name) for name in (*columns, *lines))])
    names = min(190.0 if width is None else 0.3 * width, 11 * _LETTER * longest + 22)
    slanted, cell, top = names * 0.72 + 12, float(_CELL), 18
    if width is not None:
        cell = min(cell, max(16.0, (width - 1.72 * names) / max(1, len(columns))))
    wide = max(names + cell * len(columns) + 0.72 * names, names + 170)
    height = top + cell * len(lines) + slanted + 20
    parts = [_text(names, 11, beside, theme.soft, 11)]
    for i, line in enumerate(lines):
        y = top + i * cell
        shown = _cut(line, names - 10, 11)
        parts.append(_text(names - 6, y + cell / 2 + 4, shown, theme.ink, 11, "end", line))
        for j in range(len(columns)):
            x = names + j * cell
            colour, on = _shade(float(share[i, j]), theme.near if strong_is_small else theme.many, theme)
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell - 1:.1f}" height="{cell - 1:.1f}" fill="{colour}">'
                f"<title>{esc(line)} / {esc(columns[j])}: {values[i, j]:.{digits}f}</title></rect>"
            )
            if digits or values[i, j]:
                shown = f"{values[i, j]:.{digits}f}"
                size = min(12, int(1.5 * cell / len(shown)))
                parts.append(_text(x + cell / 2, y + cell / 2 + 4, shown, on, size, "middle"))
    for j, column in enumerate(columns):
        x, y = names + (j + 0.4) * cell, top + cell * len(lines) + 12
        shown = _cut(column, names - 10, 11)
        parts.append(
            f'<g transform="translate({x:.1f} {y:.1f}) rotate(45)">'
            + _text(0, 6, shown, theme.ink, 11, full=column)
            + "</g>"
        )
    parts.append(_text(names, height - 6, below, theme.soft, 11))
    return _svg(math.ceil(wide), math.ceil(height), parts, title, theme)


def speed_lines(
    rows: Sequence[SpeedRow], whole: bool, theme: Theme = ON_PAPER, *, width: int = 640, title: str = ""
) -> str:
    """Draw the median time of a search, and the range of 90 % of searches, over the size of the database.

    Parameters
    ----------
    rows
        What was measured.
    whole
        Searches for whole slides, instead of single patches.
    theme
        Colours.
    width
        In px.
    title
        What is shown.
    """
    points: dict[str, list[tuple[int, Times]]] = {}
    for row in rows:
        measured = row.slide if whole else row.patch
        if measured is not None:
            points.setdefault(row.mode, []).append((row.mosaics, measured))
    if not points:
        return ""
    height, left, right, top, bottom = 300, 62, width - 110, 12, 256
    sizes = [n for mine in points.values() for n, _ in mine]
    times = [t for mine in points.values() for _, one in mine for t in (one.p5, one.p95)]
    x_low, x_high = math.log10(min(sizes)), math.log10(max(sizes))
    y_low, y_high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def at(n: float, ms: float) -> tuple[float, float]:
        x = left + (math.log10(n) - x_low) / ((x_high - x_low) or 1) * (right - left)
        y = bottom - (math.log10(ms) - y_low) / ((y_high - y_low) or 1) * (bottom - top)
        return x, y

    parts = []
    for power in range(y_low, y_high + 1):
        y = at(min(sizes), 10.0**power)[1]
        parts.append(_line(left, y, right, y, theme.soft, 0.5))
        parts.append(_text(left - 6, y + 4, f"{10.0**power:g} ms", theme.soft, 11, "end"))
    last = -math.inf
    for n in sorted(set(sizes)):
        x = at(n, min(times))[0]
        if x - last > 52:
            parts.append(_text(x, bottom + 16, f"{n:,}".replace(",", " "), theme.soft, 11, "middle"))
            last = x
    parts.append(_text((left + right) / 2, bottom + 34, "patches in the database", theme.soft, 11, "middle"))
    ends, colours = list[tuple[float, str, str]](), DARK if theme == ON_DARK else LIGHT
    for number, (mode, mine) in enumerate(points.items()):
        colour = colours[number % len(colours)]
        mine = sorted(mine, key=lambda point: point[0])
        band = [at(n, t.p95) for n, t in mine] + [at(n, t.p5) for n, t in reversed(mine)]
        line = [at(n, t.median) for n, t in mine]
        parts.append(f'<polygon points="{_points(band)}" fill="{colour}" fill-opacity="0.15"/>')
        parts.append(f'<polyline points="{_points(line)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in line]
        ends.append((line[-1][1], mode, colour))
    y = -math.inf
    for wanted, mode, colour in sorted(ends):
        y = max(wanted, y + 15)
        parts.append(_text(right + 10, y + 4, mode, theme.ink, 12))
        parts.append(f'<rect x="{right + 4}" y="{y - 5:.1f}" width="3" height="10" fill="{colour}"/>')
    return _svg(width, height, parts, title, theme)


def _shade(share: float, end: str, theme: Theme) -> tuple[str, str]:
    """Return the colour of a cell, between paper and ``end``, and of the text on it."""
    from_, to = ([int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (theme.paper, end))
    mixed = [round(a + (b - a) * min(1.0, max(0.0, share))) for a, b in zip(from_, to, strict=True)]
    light = 0.299 * mixed[0] + 0.587 * mixed[1] + 0.114 * mixed[2] > 140
    return "#{:02x}{:02x}{:02x}".format(*mixed), "#1b1f24" if light else "#ffffff"


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _cut(text: str, room: float, size: int) -> str:
    most = max(3, int(room / (size * _LETTER)))
    return text if len(text) <= most else text[: most - 1] + "…"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"/>'
    )


def _text(
    x: float, y: float, text: str, colour: str, size: int, anchor: str = "start", full: str = ""
) -> str:
    told = f"<title>{esc(full)}</title>" if full and full != text else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" {_FONT}>'
        f"{esc(text)}{told}</text>"
    )


def _svg(width: int, height: int, parts: Sequence[str], title: str, theme: Theme) -> str:
    told = f"<title>{esc(title)}</title>" if title else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">{told}'
        f'<rect width="{width}" height="{height}" fill="{theme.paper}"/>{"".join(parts)}</svg>'
    )
