"""The tables of an evaluation, once for the page, the terminal and the widget."""

from __future__ import annotations

from collections.abc import Sequence

from napari_fish.evaluate.metrics import FIXED_DIVISOR, METRICS, Definition, Score
from napari_fish.evaluate.values import Evaluation, SpeedRow, WayScores
from napari_fish.texts import in_columns

Table = tuple[list[str], list[list[str]]]
"""Head and lines."""


def interval(score: Score) -> str:
    """Write a share with its interval, where it has one."""
    return f"{score.value:.3f}" + (
        "" if score.interval is None else " [{:.2f}, {:.2f}]".format(*score.interval)
    )


def ways_table(ways: Sequence[WayScores], k: int, level: str) -> Table:
    """Return one line a way, the most important columns first."""
    head = [""]
    for metric in METRICS.values():
        title = metric.title.format(k=k)
        head += [f"{title} macro", title] if metric.defined else [title]
    timed = any(way.latency is not None for way in ways)
    head += [f"fewer than {k}", *(["filled in", "recall", "median ms", "95 % ms"] if timed else [])]
    return head, [_way_line(way, level)[: len(head)] for way in ways]


def _way_line(way: WayScores, level: str) -> list[str]:
    time = way.latency
    scores = [
        interval(score)
        for name, metric in METRICS.items()
        for score in ([way.macro[name]] if metric.defined else []) + [way.scores[name]]
    ]
    return [
        way.name if level == "patch" or way.ranking == way.name else f"{way.name}, ranking {way.ranking}",
        *scores, f"{100 * way.short:.1f} %", f"{100 * way.filled:.1f} %",
        "" if way.recall is None else str(way.recall),
        "" if time is None else f"{time.median:.1f}", "" if time is None else f"{time.p95:.1f}",
    ]  # fmt: skip


def definitions_table(ways: Sequence[WayScores], k: int, definition: Definition, level: str) -> Table:
    """Return the definitions in use and those of the published program side by side."""
    short = f"mMV@{k}, short answers need {'more than ⌈k/2⌉' if definition.short == '>' else '⌈k/2⌉'}"
    divided = (
        f"mAP@{k}, divided by {'the relevant ones' if definition.divisor == 'relevant' else FIXED_DIVISOR}"
    )
    head = ["", f"{short}: macro", "all", f"{'are wrong' if level == 'patch' else '⌈k/2⌉'} (released): macro", "all",
            f"{divided}: macro", "all", f"{FIXED_DIVISOR} (released): macro", "all"]  # fmt: skip
    names = [name for metric in ("mmv", "map") for name in (metric, f"{metric}_released")]
    return head, [
        [way.name, *(interval(score) for name in names for score in (way.macro[name], way.scores[name]))]
        for way in ways
    ]


def labels_table(way: WayScores, k: int) -> Table:
    """Return one line a label."""
    released = [metric.title.partition("@")[0] for metric in METRICS.values() if metric.defined]
    head = ["", "queries", *(metric.title.format(k=k) for metric in METRICS.values())]
    return [*head, *(f"{title} as released" for title in released)], [
        [label, str(one.n), *map(interval, one.scores.values())] for label, one in way.per_label.items()
    ]


def short_table(ways: Sequence[WayScores]) -> Table:
    """Return how many answers were short for each reason; no lines where none was."""
    reasons = list(dict.fromkeys(why for way in ways for why in way.why_short))
    head = ["queries answered short because", *reasons]
    return head, [
        [way.name, *(str(way.why_short.get(why, 0)) for why in reasons)] for way in ways if way.why_short
    ]


def speed_table(rows: Sequence[SpeedRow]) -> Table:
    """Return one line a size and mode."""
    head = ["", "slides", "patches", "mode", "patch: median ms", "5 to 95 %", "slide: median ms", "5 to 95 %",
            "recall"]  # fmt: skip
    lines = []
    for row in rows:
        line = [row.what, str(row.slides), str(row.mosaics), row.mode]
        for times in (row.patch, row.slide):
            line += (
                ["", ""] if times is None else [f"{times.median:.2f}", f"{times.p5:.2f} to {times.p95:.2f}"]
            )
        lines.append([*line, str(row.recall)])
    return head, lines


def storage_lines(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return what the database takes, in words."""
    lines: list[tuple[str, str]] = []
    kept = evaluation.storage
    if kept is not None:
        slides = max(1, kept.slides)
        lines += [
            (
                "Index",
                f"{kept.index_per_patch:.0f} bytes a patch, {kept.index / slides / 1e3:.1f} kB a slide",
            ),
            ("Catalogue (SQLite)", f"{kept.truth / slides / 1e3:.1f} kB a slide"),
            ("Thumbnails", f"{kept.thumbnails / slides / 1e3:.1f} kB a slide"),
        ]
        if kept.codes:
            lines.append(("Latent codes", f"{kept.codes / slides / 1e3:.1f} kB a slide"))
    if evaluation.encode_ms is not None:
        time = evaluation.encode_ms
        lines.append(("Reading and encoding", f"{time.median / 1e3:.1f} s a slide (median of {time.n})"))
    return lines


def as_text(table: Table) -> str:
    """Lay a table out for the terminal."""
    return in_columns([table[0], *table[1]])
