"""The tables of an evaluation, once for the page, the terminal and the widget."""

from __future__ import annotations

from collections.abc import Sequence

from napari_fish.evaluate.metrics import FIXED_DIVISOR, Definition, Score
from napari_fish.evaluate.values import Evaluation, SpeedRow, WayScores

Table = tuple[list[str], list[list[str]]]
"""Head and lines."""


def interval(score: Score) -> str:
    """Write a share with its interval, where it has one."""
    return f"{score.value:.3f}" + (
        "" if score.interval is None else " [{:.2f}, {:.2f}]".format(*score.interval)
    )


def ways_table(ways: Sequence[WayScores], k: int, level: str) -> Table:
    """Return one line a way, the most important columns first."""
    head = ["", f"mMV@{k} macro", f"mMV@{k}", f"mAP@{k} macro", f"mAP@{k}", "top-1", f"top-{k}", f"fewer than {k}",
            "filled in", "recall", "median ms", "95 % ms"]  # fmt: skip
    lines = []
    for way in ways:
        time = way.latency
        lines.append(
            [
                way.name if level == "patch" or way.ranking == way.name else f"{way.name}, ranking {way.ranking}",
                interval(way.mmv_macro), interval(way.mmv), interval(way.map_macro), interval(way.map),
                interval(way.top1), interval(way.topk), f"{100 * way.short:.1f} %", f"{100 * way.filled:.1f} %",
                "" if way.recall is None else str(way.recall),
                "" if time is None else f"{time.median:.1f}", "" if time is None else f"{time.p95:.1f}",
            ]
        )  # fmt: skip
    if all(way.latency is None for way in ways):
        head, lines = head[:8], [line[:8] for line in lines]
    return head, lines


def definitions_table(ways: Sequence[WayScores], k: int, definition: Definition, level: str) -> Table:
    """Return the definitions in use and those of the published program side by side."""
    short = f"mMV@{k}, short answers need {'more than ⌈k/2⌉' if definition.short == '>' else '⌈k/2⌉'}"
    divided = (
        f"mAP@{k}, divided by {'the relevant ones' if definition.divisor == 'relevant' else FIXED_DIVISOR}"
    )
    head = ["", f"{short}: macro", "all", f"{'are wrong' if level == 'patch' else '⌈k/2⌉'} (released): macro", "all",
            f"{divided}: macro", "all", f"{FIXED_DIVISOR} (released): macro", "all"]  # fmt: skip
    return head, [
        [
            way.name,
            *(interval(s) for s in (way.mmv_macro, way.mmv, way.mmv_released_macro, way.mmv_released)),
            *(interval(s) for s in (way.map_macro, way.map, way.map_released_macro, way.map_released)),
        ]
        for way in ways
    ]


def labels_table(way: WayScores, k: int) -> Table:
    """Return one line a label."""
    head = ["", "queries", f"mMV@{k}", f"mAP@{k}", "top-1", f"top-{k}", "mMV as released", "mAP as released"]
    return head, [
        [
            label,
            str(one.n),
            *(interval(s) for s in (one.mmv, one.map, one.top1, one.topk)),
            *(interval(s) for s in (one.mmv_released, one.map_released)),
        ]
        for label, one in way.per_label.items()
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
            ("Truth (SQLite)", f"{kept.truth / slides / 1e3:.1f} kB a slide"),
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
    head, lines = table
    widths = [max(len(line[i]) for line in (head, *lines)) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (head, *lines)
    )
