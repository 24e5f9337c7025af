"""The answer as one page that can be mailed, printed and read anywhere: no script, no other file, no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from napari_fish.names import MODE_HELP, RANKING_HELP
from napari_fish.search.output.page_parts import Album, hit_card, query_picture, votes_of, why
from napari_fish.search.output.page_style import Palette, document, esc
from napari_fish.search.values import Results
from napari_fish.search.verdict import notes_of


def to_html(results: Results | Sequence[Results], *, title: str | None = None, database: str = "") -> str:
    """Return one self-contained page with pictures, where the answers have any.

    Parameters
    ----------
    results
        An answer, or the answers to several queries.
    title
        Heading of the page; None for the name of the query.
    database
        Name of the database, to be shown.
    """
    answers = [results] if isinstance(results, Results) else list(results)
    if len(answers) == 1:
        heading = title or f"Slides similar to {answers[0].query}"
        return page(heading, [], [_section(answers[0], 1, Palette(answers), False)], database)
    parts = [part_of(answer, i) for i, answer in enumerate(answers, 1)]
    return page_of_parts(parts, title=title, database=database)


def part_of(results: Results, number: int) -> tuple[str, str]:
    """Return the line in the table of contents and the section of one of several answers."""
    palette = Palette([results])
    return _index_row(results, number, palette), _section(results, number, palette, True)


def page_of_parts(parts: Sequence[tuple[str, str]], *, title: str | None = None, database: str = "") -> str:
    """Return one page with several answers, see :func:`part_of`."""
    heading = title or f"Answers to {len(parts)} queries"
    return page(heading, [row for row, _ in parts], [section for _, section in parts], database)


def page(heading: str, rows: Sequence[str], sections: Sequence[str], database: str) -> str:
    """Return the page, with a table of contents where there are rows for it."""
    where = f"Searched in <strong>{esc(database)}</strong> · report" if database else "Report"
    return document(heading, where, f"{_index(rows) if rows else ''}{''.join(sections)}")


def _section(results: Results, number: int, palette: Palette, several: bool) -> str:
    album = Album(results.pictures)
    notes = "".join(f"<li>{esc(note)}</li>" for note in notes_of(results))
    name = f"<h2>{number}. {esc(results.query)}</h2>" if several else ""
    cards = "".join(hit_card(hit, results, album, palette) + "\n" for hit in results.hits)
    back = '<p class="nav small"><a href="#top">All queries</a></p>' if several else ""
    return (
        f'<section id="answer-{number}">{name}'
        + (
            f'<div class="notes" role="note"><strong>Please note</strong><ul>{notes}</ul></div>'
            if notes
            else ""
        )
        + f'<div class="card query"><div>{query_picture(results, album)}</div>'
        f"<div>{_facts(results)}{_votes(results, palette)}</div></div>\n{cards}{why(results, album, palette)}"
        f"{back}</section>\n"
    )


def _facts(results: Results) -> str:
    regions = len(results.explanation.lists)
    took = sum(results.elapsed_ms.values())
    facts = [
        ("Query", results.query),
        ("Regions", str(regions) if regions else ""),
        ("Slides found", f"{len(results.hits)} of {results.k} asked for"),
        ("Mode", _explained(results.mode, MODE_HELP)),
        ("Ranking", _explained(results.ranking, RANKING_HELP)),
        ("Threshold", f"{results.threshold} bits"),
        ("Took", f"{took:.0f} ms" if took >= 10 else f"{took:.1f} ms" if took else ""),
    ]
    lines = "".join(f"<dt>{word}</dt><dd>{esc(value)}</dd>" for word, value in facts if value)
    return f'<dl class="facts">{lines}</dl>'


def _explained(choice: str, explained: Mapping[str, str]) -> str:
    return f"{choice}. {explained[choice]}" if choice in explained else choice


def _votes(results: Results, palette: Palette) -> str:
    votes = votes_of(results)
    found = Counter(hit.diagnosis for hit in results.hits)
    parts = []
    for words, counts in (
        ("What the query's regions vote for", votes),
        ("Slides found, by diagnosis", found),
    ):
        if counts:
            chips = "".join(palette.chip(label, f" {n}") for label, n in counts.most_common())
            parts.append(f"<h3>{words}</h3>{palette.strip(counts)}<div>{chips}</div>")
    return '<div style="height:12px"></div>'.join(parts)


def _index_row(results: Results, number: int, palette: Palette) -> str:
    first = results.hits[0] if results.hits else None
    votes = votes_of(results) or Counter(hit.diagnosis for hit in results.hits)
    most = votes.most_common(1)
    return (
        f'<tr><td class="number">{number}</td><td><a href="#answer-{number}">{esc(results.query)}</a></td>'
        f"<td>{palette.chip(most[0][0]) if most else '-'}</td>"
        f"<td>{esc(first.name or first.slide) if first else '-'}</td>"
        f'<td class="number">{len(results.hits)} of {results.k}</td>'
        f'<td class="number">{len(notes_of(results)) or "-"}</td></tr>'
    )


def _index(rows: Sequence[str]) -> str:
    return (
        '<nav class="card"><div class="scroll"><table><thead><tr><th class="number"></th><th>Query</th><th>Most votes</th>'
        '<th>Nearest slide</th><th class="number">Slides</th><th class="number">Notes</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></nav>\n"
    )
