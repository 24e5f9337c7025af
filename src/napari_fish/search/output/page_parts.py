"""The parts of a report: the query, one card a slide, and why."""

from __future__ import annotations

from collections import Counter

from napari_fish.search.output.page_style import Palette, data_uri, esc, image
from napari_fish.search.output.pictures import Pictures
from napari_fish.search.values import Fate, Hit, ListFate, Results, SlideHit
from napari_fish.search.verdict import bar_of, bits, closeness, regions_in_words
from napari_fish.store.records import Box

#: Matching pairs shown of a slide, and regions in the table of reasons.
PAIRS, REGIONS = 5, 300
# A table longer than this is folded.
_FOLD = 12
# More boxes than this are drawn without their numbers.
_NUMBERED = 60
FATES: dict[Fate, tuple[str, str, str]] = {
    # Colours that stand out on stained tissue and on glass; dropped ones are dashed as well.
    "kept": ("counted", "#00703c", ""),
    "vote": ("dropped: disagrees with the others", "#9b1fb5", "6 3"),
    "distance": ("dropped: its neighbours are far", "#b84300", "6 3"),
    "length": ("dropped: unusually many or few neighbours", "#0058b0", "2 3"),
    "empty": ("dropped: no neighbour within the threshold", "#4d4d4d", "2 3"),
}

_LABELLED_HEAD = (
    '<th class="number">Mean distance<br>of the first 5</th><th class="number">Entropy</th>'
    "<th>Labels of its neighbours</th>"
)
_LABELLED_FOOT = (
    '<p class="small soft">Entropy in bits: 0 where all neighbours carry one label, more the less they agree. '
    "The most certain regions bring their slides first.</p>"
)


class Album:
    """Pictures of one answer, each fetched once.

    Parameters
    ----------
    pictures
        Where they come from; None for none at all.
    """

    def __init__(self, pictures: Pictures | None) -> None:
        self.source = pictures
        self._patches: dict[int, bytes | None] = {}

    def query(self, index: int) -> bytes | None:
        """Return the picture of a patch of the query."""
        if self.source is not None and index not in self._patches:
            self._patches[index] = self.source.query(index)
        return self._patches.get(index)


def votes_of(results: Results) -> Counter[str]:
    """Count the query patches that counted, by the label they stand for."""
    return Counter(fate.vote for fate in results.explanation.lists if fate.fate == "kept" and fate.vote)


def query_picture(results: Results, album: Album) -> str:
    """Draw the query with its patches, coloured by what became of them."""
    overview = album.source.query_overview() if album.source else None
    size = album.source.query_size() if album.source else None
    fates = {fate.query_index: fate for fate in results.explanation.lists}
    boxes = [(i, box) for i, box in enumerate(results.query_boxes) if box.width > 0 and box.height > 0]
    if overview is not None and size is None:
        return image(overview, f"Overview of {results.query}", (800, 440))
    if not boxes and overview is None:
        return '<div class="blank" style="height:160px">no picture of the query</div>'
    left, top = (0, 0) if size else (min(b.x for _, b in boxes), min(b.y for _, b in boxes))
    right, bottom = size or (max(b.x + b.width for _, b in boxes), max(b.y + b.height for _, b in boxes))
    width, height = right - left, bottom - top
    margin = 0 if size else max(width, height) * 0.02
    view = f"{left - margin:g} {top - margin:g} {width + 2 * margin:g} {height + 2 * margin:g}"
    picture = (
        f'<image href="{data_uri(overview)}" width="{width}" height="{height}" preserveAspectRatio="none"/>'
        if overview is not None
        else ""
    )
    letter = max(width / 62, height / 32)
    drawn = "".join(
        _drawn(i, box, fates.get(i), letter if len(boxes) <= _NUMBERED else 0) for i, box in boxes
    )
    counts = Counter(fate.fate for fate in results.explanation.lists)
    legend = "".join(
        f'<span><svg viewBox="0 0 18 14" aria-hidden="true"><rect x="2" y="2" width="14" height="10" fill="#fff" '
        f'stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}"/></svg>{esc(words)}: {counts[fate]}</span>'
        for fate, (words, colour, dash) in FATES.items()
        if counts[fate]
    )
    return (
        f'<svg class="{"" if picture else "bare"}" viewBox="{view}" preserveAspectRatio="xMinYMin" role="img" aria-label="{esc(results.query)} with {len(boxes)} regions">'
        f'{picture}{drawn}</svg><div class="legend small">{legend}</div>'
    )


def _drawn(index: int, box: Box, fate: ListFate | None, letter: float) -> str:
    words, colour, dash = FATES[fate.fate if fate else "kept"]
    place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" vector-effect="non-scaling-stroke"'
    number = (
        f'<text x="{box.x + box.width / 2:g}" y="{box.y + box.height / 2:g}" font-size="{letter:.4g}" '
        'text-anchor="middle" dominant-baseline="central" font-family="sans-serif" font-weight="700" '
        f'fill="{colour}" stroke="#fff" stroke-width="{letter / 5:.4g}" paint-order="stroke">{index}</text>'
        if letter
        else ""
    )
    # White below the line: it is seen on dark tissue too.
    return (
        f'<g><title>Region {index}: {esc(words)}</title><rect {place} fill="none" stroke="#fff" stroke-width="5"/>'
        f'<rect {place} fill="{colour}" fill-opacity="0.12" stroke="{colour}" stroke-width="2.5" '
        f'stroke-dasharray="{dash}"/>{number}</g>'
    )


def hit_card(hit: SlideHit, results: Results, album: Album, palette: Palette) -> str:
    """Return the card of a slide."""
    source = album.source
    overview = source.overview(hit.slide) if source else None
    known = [("patient", hit.patient), ("site", hit.site), ("slide", hit.slide if hit.name else "")]
    facts = " · ".join(f"{word} {esc(value)}" for word, value in known if value and value != hit.name)
    flags = ""
    if hit.filled:
        flags += '<span class="flag">filled in from exact search: the nearest of the rest</span> '
    median = results.ranking == "label-free" or hit.filled
    certainty = (
        f'<div class="small soft">entropy {hit.entropy:.2f} bits {_certainty(hit.entropy)}</div>'
        if hit.entropy is not None
        else ""
    )
    shown = hit.matches[:PAIRS]
    more = f" ({len(shown)} of {len(hit.matches)} shown)" if len(shown) < len(hit.matches) else ""
    pairs = "".join(_pair(match, hit, album) for match in shown)
    matching = (
        f'<h3 style="margin:14px 0 0">Matching pairs{more} '
        '<span class="soft small">left: query · right: this slide</span></h3>'
        f'<div class="pairs">{pairs}</div>'
        if pairs
        else '<p class="soft">No single pair of regions stands for this slide.</p>'
    )
    return (
        f'<article class="card hit" style="border-left-color:{palette.of(hit.diagnosis)}"><div class="head">'
        f'<div class="rank" title="rank">{hit.rank}</div>'
        f'<div><div class="name">{esc(hit.name or hit.slide)}</div>{palette.chip(hit.diagnosis)}'
        f'<div class="soft small">{facts}</div>{flags}</div>'
        f"<div><strong>{bits(hit.distance)}</strong> {'median distance' if median else 'distance'}"
        f"{_meter(hit.distance, results)}"
        f'<div class="small">{closeness(hit.percentile)}</div>'
        f'<div class="small">{regions_in_words(hit, results)} of the query within the threshold</div>{certainty}</div>'
        f"{image(overview, f'Overview of {hit.name or hit.slide}', (150, 110))}</div>{matching}</article>"
    )


def _certainty(entropy: float) -> str:
    return "(all neighbours agree)" if entropy < 0.005 else "(neighbours disagree)" if entropy > 1 else ""


def _meter(distance: float, results: Results) -> str:
    share, mark = (100 * part for part in bar_of(distance, results))
    return (
        f'<div class="meter" title="the mark is the threshold, {results.threshold} bits">'
        f'<i style="width:{share:.1f}%"></i><b style="left:{mark:.1f}%"></b></div>'
    )


def _pair(match: Hit, hit: SlideHit, album: Album) -> str:
    theirs = album.source.hit(hit.slide, match.hit_box) if album.source else None
    at = match.hit_box
    ours = "a region you liked" if match.liked else f"region {match.query_index}"
    return (
        f'<figure class="pair">{image(album.query(match.query_index), f"Query: {ours}")}'
        f"{image(theirs, f'Region of {hit.name or hit.slide}')}"
        f"<figcaption>{ours} · {bits(match.distance)}<br>"
        f"<span>at x {at.x}, y {at.y}</span></figcaption></figure>"
    )


def why(results: Results, album: Album, palette: Palette) -> str:
    """Return the explanation: what was decided, and what became of each patch."""
    told = results.explanation
    kept = sum(fate.fate == "kept" for fate in told.lists)
    lines = [f"{kept} of {len(told.lists)} query regions counted."] if told.lists else []
    if told.prediction:
        lines.append(f"The most certain of them agree on <strong>{esc(told.prediction)}</strong>.")
    if told.hit_threshold is not None:
        lines.append(f"Hits of uncertain regions counted up to {bits(told.hit_threshold)}.")
    left_out = "".join(f"<li>Left out: {esc(step)}</li>" for step in told.skipped_steps)
    order = list(FATES)
    lists = sorted(told.lists, key=lambda f: (order.index(f.fate), f.entropy or 0.0, f.query_index))
    labelled = any(fate.entropy is not None for fate in lists)
    rows = "".join(_row(fate, album, palette, labelled) for fate in lists[:REGIONS])
    more = f"<p>{len(lists) - REGIONS} more regions are not listed.</p>" if len(lists) > REGIONS else ""
    table = (
        f"<details{' open' if len(lists) <= _FOLD else ''}><summary>What became of each region of the query</summary>"
        '<div class="scroll"><table><thead><tr><th>Region</th><th class="number"></th>'
        f'<th class="number">Neighbours</th>{_LABELLED_HEAD if labelled else ""}<th>What became of it</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more}{_LABELLED_FOOT if labelled else ''}</details>"
        if lists
        else ""
    )
    skipped = f"<ul>{left_out}</ul>" if left_out else ""
    return f'<div class="card"><h2>Why</h2><p>{" ".join(lines)}</p>{skipped}{table}</div>'


def _row(fate: ListFate, album: Album, palette: Palette, labelled: bool) -> str:
    def number(value: float | None, digits: int) -> str:
        return f'<td class="number">{"-" if value is None else f"{value:.{digits}f}"}</td>'

    votes = palette.strip(fate.votes) + esc(fate.vote) if fate.vote else '<span class="soft">none</span>'
    certain = f"{number(fate.mean_distance, 1)}{number(fate.entropy, 2)}<td>{votes}</td>" if labelled else ""
    words = f"dropped: {fate.reason}" if fate.reason and fate.fate != "kept" else FATES[fate.fate][0]
    return (
        f'<tr class="{"" if fate.fate == "kept" else "dropped"}">'
        f"<td>{image(album.query(fate.query_index), f'Query region {fate.query_index}', (52, 52))}</td>"
        f"{number(fate.query_index, 0)}{number(fate.length, 0)}{certain}"
        f"<td>{esc(words)}</td></tr>"
    )
