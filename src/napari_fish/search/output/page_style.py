"""What a report looks like: its style sheet, its colours, and the small pieces that pages are made of."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping
from datetime import datetime

from napari_fish.search.output.colours import DARK, LIGHT, UNKNOWN_DARK, UNKNOWN_LIGHT, Colours
from napari_fish.search.values import Results

# Browsers keep to it: nothing is fetched, whatever a page contains.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
CSS = (
    """
:root { color-scheme: light dark; --page: #f4f5f7; --card: #ffffff; --text: #1b1f24; --soft: #57606a;
  --line: #d3d8de; --track: #e4e7eb; --warn: #fff4d6; --warn-line: #b27b00; --bar: #44546a; --none: UNKNOWN_LIGHT;
  LIGHT_COLOURS }
@media screen and (prefers-color-scheme: dark) { :root { --page: #14171b; --card: #1e2227; --text: #e8eaed;
  --soft: #a9b1ba; --line: #3a4048; --track: #343a42; --warn: #3a2f10; --warn-line: #d9a520; --bar: #9fb3c8;
  --none: UNKNOWN_DARK; DARK_COLOURS } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); overflow-wrap: anywhere;
  font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1400px; margin: 0 auto; padding: 24px 28px 40px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 21px; margin: 0 0 12px; }
h3 { font-size: 16px; margin: 0 0 10px; } h3 span { font-weight: 400; }
a { color: inherit; }
.soft { color: var(--soft); }
.small { font-size: 13px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px;
  margin: 16px 0; }
.notes { background: var(--warn); border: 1px solid var(--warn-line); border-left-width: 6px;
  border-radius: 8px; padding: 12px 18px; margin: 16px 0; }
.notes ul { margin: 4px 0 0; padding-left: 20px; }
section + section { margin-top: 44px; border-top: 3px solid var(--line); padding-top: 28px; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 3px 14px; margin: 0 0 18px; }
dl.facts dt { color: var(--soft); } dl.facts dd { margin: 0; }
.query { display: grid; grid-template-columns: minmax(0, 3fr) minmax(320px, 2fr); gap: 28px; }
.query svg { display: block; width: 100%; max-height: 460px; border-radius: 6px; }
.query svg.bare { background: #fff; border: 1px solid var(--line); }
.query img { max-width: 100%; height: auto; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin-top: 8px; }
.legend svg { display: inline; width: 18px; height: 14px; vertical-align: -2px; margin-right: 6px; }
.strip { display: flex; gap: 2px; height: 16px; border-radius: 4px; overflow: hidden; background: var(--track);
  margin: 4px 0 6px; }
.strip i { display: block; min-width: 3px; }
.dot { display: inline-block; width: 11px; height: 11px; border-radius: 50%; margin-right: 6px; }
.chip { display: inline-block; border: 1px solid var(--line); border-radius: 99px; padding: 1px 11px 1px 9px;
  margin: 0 4px 4px 0; background: var(--page); }
.hit { border-left-width: 8px; }
.hit .head { display: grid; grid-template-columns: 44px minmax(0, 1fr) 300px 150px; gap: 20px; align-items: start; }
.rank { font-size: 30px; font-weight: 650; line-height: 1; text-align: right; }
.name { font-size: 17px; font-weight: 600; margin-bottom: 6px; }
.flag { border: 1px dashed var(--warn-line); background: var(--warn); border-radius: 6px; padding: 1px 9px;
  font-size: 13px; display: inline-block; }
.meter { position: relative; height: 10px; border-radius: 5px; background: var(--track); margin: 6px 0; }
.meter i { position: absolute; inset: 0 auto 0 0; border-radius: 5px; background: var(--bar); }
.meter b { position: absolute; top: -4px; bottom: -4px; width: 2px; background: var(--text); }
.head img, .head .blank { width: 150px; height: 110px; object-fit: contain; background: #fff; border-radius: 6px;
  border: 1px solid var(--line); }
.pairs { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 16px; margin-top: 14px; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 3px; margin: 0; max-width: 300px; }
.pair img, .pair .blank { width: 100%; height: auto; aspect-ratio: 1; object-fit: cover; border-radius: 4px; }
.pair figcaption { grid-column: 1 / -1; font-size: 13px; }
.pair span { font-size: 12px; color: var(--soft); }
.blank { display: flex; align-items: center; justify-content: center; text-align: center; padding: 2px;
  color: var(--soft); font-size: 11px; line-height: 1.2; background: var(--track); }
.head .blank { background: var(--track); }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 13px; vertical-align: bottom; }
th, td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td img, td .blank { width: 52px; height: 52px; object-fit: cover; border-radius: 4px; display: block; }
td .blank { display: flex; }
td .strip { width: 150px; height: 10px; }
.dropped { color: var(--soft); }
summary { cursor: pointer; font-weight: 600; margin: 10px 0; }
footer { margin-top: 36px; border-top: 1px solid var(--line); padding-top: 12px; }
@media (max-width: 1150px) { .pairs { gap: 10px; }
  .hit .head { grid-template-columns: 36px minmax(0, 1fr) 240px 130px; } .head img, .head .blank { width: 130px; } }
@media screen and (max-width: 800px) { .query, .hit .head { grid-template-columns: minmax(0, 1fr); }
  .rank { text-align: left; } .pairs { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .scroll { overflow-x: auto; } }
@page { margin: 12mm; }
@media print { body { background: #fff; font-size: 11px; } main { max-width: none; padding: 0; }
  .card { padding: 10px 12px; margin: 8px 0; } .small, .pair figcaption, th { font-size: 10px; } .name { font-size: 13px; }
  h3 { font-size: 12px; margin-bottom: 4px; } .pair span { font-size: 9px; }
  .query { grid-template-columns: minmax(0, 1fr) 230px; gap: 16px; } .query svg { max-height: 300px; }
  .hit .head { grid-template-columns: 26px minmax(0, 1fr) 190px 100px; gap: 12px; }
  .head img, .head .blank { width: 100px; height: 74px; } .pairs { gap: 8px; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .card, .notes, tr, .pair { break-inside: avoid; } h2, h3 { break-after: avoid; }
  section + section { break-before: page; border: 0; } .nav { display: none; } }
""".replace("UNKNOWN_LIGHT", UNKNOWN_LIGHT)
    .replace("UNKNOWN_DARK", UNKNOWN_DARK)
    .replace("LIGHT_COLOURS", " ".join(f"--d{i}: {colour};" for i, colour in enumerate(LIGHT)))
    .replace("DARK_COLOURS", " ".join(f"--d{i}: {colour};" for i, colour in enumerate(DARK)))
    .strip()
)


def document(heading: str, under: str, body: str, css: str = "") -> str:
    """Return a page that stands alone: its heading, a line under that and the body, which are HTML already."""
    from napari_fish import __version__

    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{esc(heading)}</title>\n<style>\n{CSS}{css}\n</style>\n</head>\n<body>\n"
        f'<main id="top">\n<header><h1>{esc(heading)}</h1>'
        f'<div class="soft">{under} of {datetime.now().astimezone():%d %B %Y, %H:%M}</div></header>\n{body}'
        '<footer class="small soft"><strong>Research use only, not a diagnostic device.</strong> '
        f"Made by napari-fish {esc(__version__)}.</footer>\n</main>\n</body>\n</html>\n"
    )


def esc(text: object) -> str:
    """Make any text safe anywhere in a page, names of files that are not valid Unicode included."""
    return html.escape(str(text).encode("utf-8", "replace").decode("utf-8"), quote=True)


def data_uri(jpeg: bytes) -> str:
    """Put a picture into an address, so that the page needs no other file."""
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")


def image(jpeg: bytes | None, alt: str, size: tuple[int, int] = (128, 128)) -> str:
    """Return a picture, or a neutral field that says what would be there."""
    if jpeg is None:
        return f'<div class="blank" role="img" aria-label="{esc(alt)}: no picture">no picture</div>'
    return (
        f'<img src="{data_uri(jpeg)}" alt="{esc(alt)}" width="{size[0]}" height="{size[1]}" '
        'loading="lazy" decoding="async">'
    )


class Palette:
    """One colour for a label wherever it occurs on the page: that of :class:`~napari_fish.search.output.colours.Colours`.

    Parameters
    ----------
    answers
        All answers of the page.
    """

    def __init__(self, answers: Iterable[Results]) -> None:
        self._colours = Colours.of_answers(answers)

    def of(self, label: str) -> str:
        """Return the colour of a label as CSS."""
        number = self._colours.number(label)
        return "var(--none)" if number is None else f"var(--d{number})"

    def chip(self, label: str, extra: str = "") -> str:
        """Return a label with its colour; the text is in the page's own colour, so it can always be read."""
        dot = f'<span class="dot" style="background:{self.of(label)}"></span>'
        return f'<span class="chip">{dot}{esc(label or "not known")}{esc(extra)}</span>'

    def strip(self, shares: Mapping[str, float]) -> str:
        """Return a bar divided among labels, the largest first."""
        parts = "".join(
            f'<i style="flex:{n:g};background:{self.of(label)}" title="{esc(label or "not known")}: {n:g}"></i>'
            for label, n in sorted(shares.items(), key=lambda item: -item[1])
            if n > 0
        )
        return f'<div class="strip">{parts}</div>'
