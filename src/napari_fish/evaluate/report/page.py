"""An evaluation as one page that stands alone, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from napari_fish.errors import FishError
from napari_fish.evaluate.report import tables
from napari_fish.evaluate.report.figures import bars, matrix, speed_lines
from napari_fish.evaluate.speed import COPIES
from napari_fish.evaluate.values import Evaluation, Example, Matrices
from napari_fish.search.output.page_style import document, esc, image

_MORE_CSS = """
.figure { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: 10px; overflow-x: auto; }
.figure svg { display: block; max-width: 100%; height: auto; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 18px; }
.example { display: flex; gap: 10px; margin: 10px 0; overflow-x: auto; }
.example figure { margin: 0; width: 132px; flex: none; font-size: 12px; line-height: 1.25; }
.example img, .example .blank { width: 128px; height: 128px; object-fit: cover; border-radius: 4px; border: 4px solid transparent; }
.example .right img, .example .right .blank { border-color: #00795a; }
.example .wrong img, .example .wrong .blank { border-color: #c92a2a; border-style: dashed; }
.example .asked { margin-right: 14px; }
pre { white-space: pre-wrap; background: var(--track); padding: 10px 14px; border-radius: 6px; }
td:first-child { font-weight: 600; } .scroll { overflow-x: auto; } td { white-space: nowrap; }
th.number { white-space: normal; }
"""


def write_report(evaluation: Evaluation, path: str | Path) -> Path:
    """Write the page."""
    file = Path(path)
    try:
        file.write_text(to_html(evaluation), encoding="utf-8")
    except OSError as error:
        raise FishError(f"Cannot write {file}: {error.strerror}.") from error
    return file


def to_html(evaluation: Evaluation) -> str:
    """Return one self-contained page: tables, figures, examples, command and versions."""
    e = evaluation
    heading = f"How well search works on {e.database}"
    parts = (_summary, _ways, _labels, _matrices, _ablation, _short, _speed, _examples, _about)
    return document(heading, "Report", "".join(part(e) for part in parts), _MORE_CSS)


def _summary(e: Evaluation) -> str:
    asked = f"{e.n_queries} {'patches' if e.level == 'patch' else 'slides'} of {e.n_patients} patients" + (
        f" of {esc(e.queries)}" if e.queries else ""
    )
    way = "each answered without its own patient" + (", from another cohort" if e.queries else "")
    facts = [
        ("Asked", f"{asked}, {way}{_from_same(e)}"),
        ("Searched", f"{e.n_slides} slides of {esc(e.database)}; {e.thresholds}"),
        ("Right means", f"the same {esc(e.target)}, of {len(e.labels)} different ones"),
        (
            "Chance level",
            f"{e.chance:.2f} for the macro-averaged majority: guessing among the labels of the queries{_same(e)}",
        ),
        *((name, esc(text)) for name, text in tables.storage_lines(e)),
    ]
    lines = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts)
    notes = "".join(f"<li>{esc(note)}</li>" for note in e.notes)
    return (
        f'<div class="card"><dl class="facts">{lines}</dl></div>'
        + (f'<div class="notes" role="note"><strong>Please note</strong><ul>{notes}</ul></div>' if notes else "")
    )  # fmt: skip


def _same(e: Evaluation) -> str:
    return f" of the same {esc(e.within)}" if e.within else ""


def _from_same(e: Evaluation) -> str:
    return f", from slides of its own {esc(e.within)} alone" if e.within else ""


def _ways(e: Evaluation) -> str:
    figure = bars(
        [
            (way.name, way.macro["mmv"], f"{100 * way.short:.0f} % short" if way.short else "")
            for way in e.ways
        ],
        title=f"mMV@{e.k}, macro-averaged, by mode",
    )
    return (
        f'<div class="card"><h2>Modes</h2><div class="figure">{figure}</div>'
        f'<p class="small soft">Macro-averaged mMV@{e.k}: how often the majority of the first {e.k} is right, averaged '
        "over labels so that rare ones count as much as common ones. Intervals hold 95 % of bootstrap resamples of "
        "patients, for macro averages drawn within each label; a label of one patient has none.</p>"
        f"{_table(tables.ways_table(e.ways, e.k, e.level))}"
        '<p class="small soft">Fewer: answers with fewer slides than asked for. Recall: share of true neighbours '
        "within the threshold that the mode finds, on n patches that have any. Times are of single searches for queries already encoded.</p>"
        "<details><summary>By other definitions: those of the published program</summary>"
        f"{_table(tables.definitions_table(e.ways, e.k, e.definition, e.level))}</details></div>"
    )


def _labels(e: Evaluation) -> str:
    way = e.main
    figure = bars(
        [(label, one.scores["mmv"], f"n = {one.n}") for label, one in way.per_label.items()],
        title=f"mMV@{e.k} by {e.target}, mode {way.name}",
    )
    return (
        f'<div class="card"><h2>By {esc(e.target)}, mode {esc(way.name)}</h2><div class="figure">{figure}</div>'
        f"{_table(tables.labels_table(way, e.k))}</div>"
    )


def confusion_figure(e: Evaluation, made: Matrices, **options: Any) -> str:
    """Draw who is taken for whom."""
    lines = [*made.labels, "none or other"]
    table = made.confusion
    if not table[-1].any():
        table, lines = table[:-1], lines[:-1]
    return matrix(
        table, made.labels, lines, title="Confusion matrix", below=f"{e.target} of the query",
        beside=f"majority of the first {e.k}", **options,
    )  # fmt: skip


def hamming_figure(e: Evaluation, made: Matrices, **options: Any) -> str:
    """Draw how far apart labels are."""
    return matrix(
        made.hamming, made.labels, made.labels, strong_is_small=True, title="Hamming-distance matrix",
        below=f"{e.target} of the query", beside=f"{e.target} of the hits, bits", **options,
    )  # fmt: skip


def _matrices(e: Evaluation) -> str:
    figures = "".join(
        (f"<h3>{esc(e.within)} {esc(one.within or 'not known')}, {one.n} queries</h3>" if e.within else "")
        + f'<div class="two"><div class="figure">{confusion_figure(e, one)}</div>'
        f'<div class="figure">{hamming_figure(e, one)}</div></div>'
        for one in e.main.matrices
    )
    return (
        f'<div class="card"><h2>Who is taken for whom, mode {esc(e.main.name)}</h2>{figures}'
        '<p class="small soft">Left, queries, coloured by share of their column. Right, Hamming distance as the paper '
        "defines it: each hit adds its distance to its own label and one more than the largest to every other; divided "
        f"by the number of queries{_same(e)}. The darkest of a column is the nearest.</p></div>"
    )


def _ablation(e: Evaluation) -> str:
    if not e.ablation:
        return ""
    figure = bars([(way.name, way.macro["mmv"], "") for way in e.ablation], title="Ablation of the ranking")
    return (
        f'<div class="card"><h2>Parts of the ranking, one by one</h2><div class="figure">{figure}</div>'
        f"{_table(tables.ways_table(e.ablation, e.k, 'patch'))}</div>"
    )


def _short(e: Evaluation) -> str:
    head, lines = tables.short_table([*e.ways, *e.ablation])
    told = _table((head, lines)) if lines else f"<p>Every query got {e.k} results in every mode.</p>"
    return f'<div class="card"><h2>Answers that are short, and why</h2>{told}</div>'


def _speed(e: Evaluation) -> str:
    if not e.speed:
        return ""
    parts = []
    for what, rows in (
        ("Growing parts of the database", [row for row in e.speed if not row.what.startswith(COPIES)]),
        (
            "Each patch copied with noise on its latent codes",
            [row for row in e.speed if row.what.startswith(COPIES)],
        ),
    ):
        if rows:
            figures = [
                f'<div><h3>{name}</h3><div class="figure">{drawn}</div></div>'
                for name, drawn in (
                    ("One patch", speed_lines(rows, False, title="Time of a search for one patch")),
                    ("A whole slide", speed_lines(rows, True, title="Time of a search for a slide")),
                )
                if drawn
            ]
            parts.append(
                f'<h3>{what}</h3><div class="two">{"".join(figures)}</div>{_table(tables.speed_table(rows))}'
            )
    return (
        f'<div class="card"><h2>Speed</h2>{"".join(parts)}<p class="small soft">Lines are medians, bands hold 90 % of '
        "searches; both axes are logarithmic. Recall: against exact search, on n random patches of each part.</p></div>"
    )


def _examples(e: Evaluation) -> str:
    if not e.examples:
        return ""
    right = "".join(_example(one) for one in e.examples if one.right)
    wrong = "".join(_example(one) for one in e.examples if not one.right)
    return (
        f'<div class="card"><h2>Examples, mode {esc(e.main.name)}</h2><p class="small soft">Chosen at random. The region of '
        "the query, and the region of each slide found that matches it or another of its regions best; the number is the "
        "distance in bits. Dashed red: another label.</p>"
        f"<h3>Right</h3>{right or '<p>None.</p>'}<h3>Wrong</h3>{wrong or '<p>None.</p>'}</div>"
    )


def _example(one: Example) -> str:
    hits = "".join(
        f'<figure class="{"right" if label.casefold() == one.label.casefold() else "wrong"}">{image(picture, name)}'
        f'<figcaption>{esc(label or "no label")} ({distance:.0f})<br><span class="soft">{esc(name)}</span>'
        "</figcaption></figure>"
        for name, label, distance, picture in one.hits
    )
    return (
        f'<div class="example"><figure class="asked">{image(one.picture, one.name)}<figcaption><strong>{esc(one.label)}'
        f'</strong><br><span class="soft">{esc(one.name)}</span></figcaption></figure>{hits}</div>'
    )


def _about(e: Evaluation) -> str:
    about = dict(e.about)
    command = about.pop("command", "")
    given = about.pop("parameters", {})
    lines = "".join(f"<dt>{esc(name)}</dt><dd>{esc(value)}</dd>" for name, value in about.items())
    told = f"<pre>{esc(command)}</pre>" if command else ""
    return (
        f'<div class="card"><h2>How this was made</h2>{told}<dl class="facts">{lines}</dl><details><summary>Parameters'
        f"</summary><pre>{esc(json.dumps(given, indent=1, default=str))}</pre></details></div>"
    )


def _table(table: tables.Table) -> str:
    head, lines = table

    def cell(i: int, value: str, tag: str) -> str:
        kind = ' class="number"' if i else ""
        share, bracket, interval = esc(value).partition(" [")
        told = f'{share}<br><span class="small soft">{interval.rstrip("]")}</span>' if bracket else share
        return f"<{tag}{kind}>{told}</{tag}>"

    top = "".join(cell(i, value, "th") for i, value in enumerate(head))
    rows = "".join(
        "<tr>" + "".join(cell(i, value, "td") for i, value in enumerate(line)) + "</tr>" for line in lines
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'
