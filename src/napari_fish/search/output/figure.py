"""The answer as a figure for a talk or a paper: the query with its regions, and the best slides with what matches."""

from __future__ import annotations

import io
from bisect import bisect
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from napari_fish.search.output.colours import Colours
from napari_fish.search.output.page_parts import FATES, Album
from napari_fish.search.values import Fate, Results, SlideHit
from napari_fish.search.verdict import bits, certainty_in_words, closeness, notes_of, tally

DPI = 200
TOP = 8
"""Most slides in a figure."""
PAIRS = 4
"""Most matching pairs of a slide."""
_TEXT, _SOFT, _LINE, _BLANK, _WARN = "#1b1f24", "#57606a", "#c3c9d0", "#e9ebee", "#8a5a00"
_MARGIN, _GAP = 48, 28
_LEFT = 760
_PATCH = 190
_WORDS = 400
_ROW = _PATCH + 40
_FONTS = {
    False: ("DejaVuSans.ttf", "Arial.ttf", "arial.ttf", "Helvetica.ttc"),
    True: ("DejaVuSans-Bold.ttf", "Arial Bold.ttf", "arialbd.ttf", "Helvetica.ttc"),
}

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Place = tuple[int, int]


def save_figure(results: Results, path: Path, top: int = TOP) -> Path:
    """Write the figure as PNG or PDF, by the ending of the path."""
    picture = draw_figure(results, top)
    if path.suffix.lower() == ".pdf":
        title = _printable(f"Slides similar to {results.query}")
        picture.save(path, "PDF", resolution=float(DPI), title=title)
    else:
        picture.save(path, "PNG", dpi=(DPI, DPI))
    return path


def draw_figure(results: Results, top: int = TOP) -> Image.Image:
    """Draw the query with its regions on the left, one row a slide on the right.

    Parameters
    ----------
    results
        The answer; without pictures, empty fields take their place.
    top
        Most slides to show.
    """
    album, colours = Album(results.pictures), Colours.of_answers([results])
    shown = results.hits[:top]
    pairs = max([1, *(min(PAIRS, len(hit.matches)) for hit in shown)])
    width = 2 * _MARGIN + _LEFT + _GAP * 2 + _WORDS + pairs * (2 * _PATCH + 6 + _GAP) - _GAP
    left = _query_column(results, album, colours)
    head = 92
    height = head + 2 * _MARGIN + max(left.height, _ROW * max(1, len(shown)) - 40 + _GAP)
    page = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(page)
    _write(draw, (_MARGIN, _MARGIN), f"Slides similar to {results.query}", 34, width - 2 * _MARGIN, bold=True)
    page.paste(left, (_MARGIN, _MARGIN + head))
    x = _MARGIN + _LEFT + _GAP * 2
    if not shown:
        _write(draw, (x, _MARGIN + head), "No slide was found.", 26, width - x - _MARGIN, colour=_SOFT)
    for i, hit in enumerate(shown):
        _row(page, draw, (x, _MARGIN + head + i * _ROW), hit, album, colours)
    return page


def _row(
    page: Image.Image, draw: ImageDraw.ImageDraw, at: Place, hit: SlideHit, album: Album, colours: Colours
) -> None:
    """Draw a slide of the answer: what it is, and the pairs that match."""
    x, y = at
    colour = colours.of(hit.diagnosis)
    draw.rectangle((x, y, x + 9, y + _PATCH), fill=colour)
    lines = [
        (f"{hit.rank}. {hit.diagnosis or 'diagnosis not known'}", 25, _TEXT, True),
        (hit.name or hit.slide, 20, _TEXT, False),
        (" · ".join(word for word in (hit.site, hit.patient and f"patient {hit.patient}") if word), 20, _SOFT, False),
        (bits(hit.distance) + (", filled in" if hit.filled else ""), 20, _TEXT, False),
        (closeness(hit.percentile), 18, _SOFT, False),
    ]  # fmt: skip
    line = y
    for text, size, ink, bold in lines:
        if text:
            line += _write(draw, (x + 24, line), text, size, _WORDS - 40, colour=ink, bold=bold, rows=2) + 5
    x += _WORDS
    for match in hit.matches[:PAIRS]:
        ours = album.query(match.query_index)
        theirs = album.source.hit(hit.slide, match.hit_box) if album.source else None
        for jpeg, left in ((ours, x), (theirs, x + _PATCH + 6)):
            page.paste(_picture(jpeg, (_PATCH, _PATCH)), (left, y))
        draw.rectangle((x + _PATCH + 6, y, x + 2 * _PATCH + 5, y + _PATCH - 1), outline=colour, width=4)
        _write(
            draw,
            (x, y + _PATCH + 4),
            f"{'liked' if match.liked else f'region {match.query_index}'} · {bits(match.distance)}",
            17,
            2 * _PATCH,
            _SOFT,
        )
        x += 2 * _PATCH + 6 + _GAP


def _query_column(results: Results, album: Album, colours: Colours) -> Image.Image:
    """Draw the query, what became of its regions, and the vote."""
    parts = [_overview(results, album), *_legend(results), *_votes(results, colours), *_remarks(results)]
    column = Image.new("RGB", (_LEFT, sum(part.height + 10 for part in parts)), "white")
    y = 0
    for part in parts:
        column.paste(part, (0, y))
        y += part.height + 10
    return column


def _overview(results: Results, album: Album) -> Image.Image:
    """Draw the whole query slide with the boxes of its regions."""
    jpeg = album.source.query_overview() if album.source else None
    size = album.source.query_size() if album.source else None
    boxes = [(i, box) for i, box in enumerate(results.query_boxes) if box.width > 0 and box.height > 0]
    if size is None:
        size = (max([1, *(b.x + b.width for _, b in boxes)]), max([1, *(b.y + b.height for _, b in boxes)]))
    scale = min(_LEFT / size[0], 900 / size[1])
    shape = (max(1, round(size[0] * scale)), max(1, round(size[1] * scale)))
    picture = _picture(jpeg, shape, cut=False)
    draw = ImageDraw.Draw(picture)
    fates: dict[int, Fate] = {fate.query_index: fate.fate for fate in results.explanation.lists}
    for i, box in boxes:
        colour = FATES[fates.get(i, "kept")][1]
        left, top = box.x * scale, box.y * scale
        right, bottom = max(left + 2, (box.x + box.width) * scale), max(top + 2, (box.y + box.height) * scale)
        draw.rectangle((left, top, right, bottom), outline="white", width=6)
        draw.rectangle((left + 1, top + 1, right - 1, bottom - 1), outline=colour, width=4)
        if len(boxes) <= 40:
            draw.text(
                (left + 8, top + 4),
                str(i),
                fill=colour,
                font=_font(22, True),
                stroke_width=3,
                stroke_fill="white",
            )
    draw.rectangle((0, 0, shape[0] - 1, shape[1] - 1), outline=_LINE)
    return picture


def _legend(results: Results) -> list[Image.Image]:
    """Say what the colours of the boxes mean."""
    counted = [fate.fate for fate in results.explanation.lists]
    return [
        _line(f"{words}: {counted.count(fate)}", colour, outline=True)
        for fate, (words, colour, _) in FATES.items()
        if fate in counted
    ]


def _votes(results: Results, colours: Colours) -> list[Image.Image]:
    """Say who votes for what."""
    votes = tally(results)
    if not votes.votes:
        return []
    title = "Votes of the query's regions" if votes.voters == "regions" else "Slides found, by diagnosis"
    lines = [_line(title, None, bold=True)]
    for vote in votes.votes[:6]:
        sure = certainty_in_words(vote.certainty)
        text = f"{vote.label or 'not known'}: {vote.count} of {votes.total}" + (f", {sure}" if sure else "")
        lines.append(_line(text, colours.of(vote.label)))
    return lines


def _remarks(results: Results) -> list[Image.Image]:
    """Say what the reader must know, and what this is not."""
    texts = [(str(note), _WARN) for note in notes_of(results)]
    texts.append(("Research use only, not a diagnostic device.", _SOFT))
    pictures = []
    for text, colour in texts:
        rows = _wrapped(text, _font(18), _LEFT, 4)
        picture = Image.new("RGB", (_LEFT, 26 * len(rows)), "white")
        draw = ImageDraw.Draw(picture)
        for i, row in enumerate(rows):
            draw.text((0, 26 * i), row, fill=colour, font=_font(18))
        pictures.append(picture)
    return pictures


def _line(text: str, colour: str | None, *, bold: bool = False, outline: bool = False) -> Image.Image:
    """Return a line of text, with a patch of colour in front of it."""
    picture = Image.new("RGB", (_LEFT, 30), "white")
    draw = ImageDraw.Draw(picture)
    if colour is not None:
        draw.rectangle((2, 5, 22, 23), outline=colour, width=4, fill=None if outline else colour)
    _write(draw, (0 if colour is None else 34, 2), text, 20, _LEFT - 40, bold=bold)
    return picture


def _picture(jpeg: bytes | None, size: tuple[int, int], cut: bool = True) -> Image.Image:
    """Return a picture of a size, cut to fit or stretched; a neutral field where there is none."""
    if jpeg is not None:
        try:
            opened = Image.open(io.BytesIO(jpeg)).convert("RGB")
        except OSError:
            jpeg = None
        else:
            if cut:
                side = min(opened.size)
                left, top = (opened.width - side) // 2, (opened.height - side) // 2
                opened = opened.crop((left, top, left + side, top + side))
            return opened.resize(size, Image.Resampling.LANCZOS)
    blank = Image.new("RGB", size, _BLANK)
    ImageDraw.Draw(blank).text(
        (size[0] / 2, size[1] / 2), "no picture", fill=_SOFT, font=_font(17), anchor="mm"
    )
    return blank


def _write(
    draw: ImageDraw.ImageDraw, at: Place, text: str, size: int, width: int, colour: str = _TEXT, *, bold: bool = False,
    rows: int = 1,
) -> int:  # fmt: skip
    """Write text in at most so many rows of a width, and return its height."""
    lines = _wrapped(text, _font(size, bold), width, rows)
    for i, line in enumerate(lines):
        draw.text((at[0], at[1] + round(i * size * 1.25)), line, fill=colour, font=_font(size, bold))
    return round(len(lines) * size * 1.25)


def _wrapped(text: str, font: Font, width: int, rows: int) -> list[str]:
    """Break text into rows; what does not fit into the last is cut."""
    lines = [""]
    for word in _printable(text).split():
        joined = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength(joined) > width and len(lines) < rows:
            lines.append(word)
        else:
            lines[-1] = joined
    return [_cut(line, font, width) for line in lines]


def _cut(text: str, font: Font, width: int) -> str:
    """Cut a line that is too long, in the middle: both ends of a file name tell something."""
    if font.getlength(text) <= width:
        return text

    def ends(kept: int) -> str:
        return f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"

    too_wide = bisect(range(len(text)), False, key=lambda kept: font.getlength(ends(kept)) > width)
    return ends(max(1, too_wide - 1))


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


@cache
def _font(size: int, bold: bool = False) -> Font:
    """Return a font with as many letters as the system has; Pillow's own knows only Latin ones."""
    for name in _FONTS[bold]:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)
