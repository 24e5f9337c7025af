"""What a user of the viewer waits for, with fish-lite and the real widgets.

- *open*: opening a database of 100 000 patches in the viewer;
- *box*: from a drawn box to the gallery, in that database, and how much of that is search;
- *slide*: from *Search this slide* to the gallery, in that database;
- *jump*: from a hit to its slide, opened, marked and gone to;
- *compare*: the first comparison of an answer, and those after it, which use its layers again;
- *build*: a folder of 300 small slides, some of them broken: the Database widget lists exactly those;
- in each, how long the event loop stood still meanwhile, and through whom.

``holds`` says whether a line keeps what is promised: nothing of ours holds the loop for more than 50 ms, a box is
answered within a second, and 100 000 patches are searched within 20 ms.

Needs a display or xvfb-run. ``--demo`` names what ``napari-fish demo`` made; it is made where it is missing (minutes).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, claim, report
from event_loop import probe
from viewer_archives import demo, large_archive, small_slides

WINDOW = (1400, 900)
SECONDS = 1800.0
PARTS = ("open", "box", "slide", "jump", "compare", "build")
LARGE = ("open", "box", "slide")
"""Those that take place in the large database."""
GALLERY_MS, SEARCH_MS = 1000, 20


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer boxes, 30 slides to build")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's rows as JSON")
    parser.add_argument("--demo", type=Path, metavar="DIR", help="folder with slides/ and demo.fish")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    return parser.parse_args()


def wait(done: Callable[[], bool]) -> None:
    """Turn the event loop until something has happened."""
    from qtpy.QtWidgets import QApplication

    end = time.monotonic() + SECONDS
    while not done():
        if time.monotonic() > end:
            raise SystemExit("it does not come to an end")
        QApplication.processEvents()
        time.sleep(0.001)


@contextmanager
def viewer(*names: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Show a viewer with widgets."""
    import napari

    from napari_fish._napari.database.widget import DatabaseWidget
    from napari_fish._napari.results.widget import ResultsWidget
    from napari_fish._napari.search.widget import SearchWidget

    kinds = {"Database": DatabaseWidget, "Search": SearchWidget, "Results": ResultsWidget}
    shown = napari.Viewer(show=True)
    shown.window.resize(*WINDOW)
    widgets = {name: kinds[name](shown) for name in names}
    for name, widget in widgets.items():
        shown.window.add_dock_widget(widget, name=name, area="bottom" if name == "Results" else "right")
    yield shown, widgets
    shown.close()


def opened(shown: Any, path: Path) -> Any:
    """Open a database in a viewer and make it ready."""
    from napari_fish._napari.session.session import session_of

    session = session_of(shown)
    wait(lambda: not session.busy)
    session.open(path, "cpu")
    wait(lambda: session.database is not None and not session.busy)
    return session


def tissue_boxes(session: Any, slide: str, n: int) -> list[tuple[float, float, float, float]]:
    """Return boxes a little beside the patches of a slide of the demo."""
    boxes = session.database.ask(f"id:{slide}").query.boxes
    dice = np.random.default_rng(2)
    chosen = boxes[dice.integers(0, len(boxes), n)]
    return [
        (float(x + dice.integers(-90, 90)), float(y + dice.integers(-90, 90)), float(w), float(h))
        for x, y, w, h in chosen
    ]


def open_part(large: Path, quick: bool) -> list[Row]:
    """Open a database, close it, and open it again."""
    times = []
    with viewer("Search", "Results") as (shown, _), probe() as gaps:
        for _ in range(3 if quick else 10):
            start = time.perf_counter()
            session = opened(shown, large)
            times.append(1e3 * (time.perf_counter() - start))
            session.close()
    return [_row("open", "database opened, encoder and all", times), *gaps.rows("open")]


def slide_part(database: Path, large: Path, quick: bool) -> list[Row]:
    """Search for whole slides, one after the other, and wait for the gallery each time."""
    from napari_fish._napari.reader.reader import PLUGIN

    total: list[float] = []
    with viewer("Search", "Results") as (shown, widgets):
        session = opened(shown, large)
        search, results = widgets["Search"], widgets["Results"]
        with probe() as gaps:
            for number in range(1, 3 if quick else 7):
                shown.open(database.parent / "slides" / f"demo-{number:03}.tif", plugin=PLUGIN)
                wait(lambda: search.query.facts is not None)
                before = session.current
                start = time.perf_counter()
                search.search_slide()
                wait(
                    lambda before=before: session.current is not before and results.answer is session.current
                )
                total.append(1e3 * (time.perf_counter() - start))
                wait(lambda: not results.loading and not session.busy)
        session.close()
    return [_row("slide", "whole slide to gallery", total), *gaps.rows("slide")]


def jump_part(database: Path, quick: bool) -> list[Row]:
    """Go to hits, one after the other; each opens a slide."""
    from napari_fish._napari.compare.navigate import draw_matches
    from napari_fish._napari.reader.reader import PLUGIN
    from napari_fish.search import SearchParams

    times = []
    with viewer("Results") as (shown, _):
        session = opened(shown, database)
        shown.open(database.parent / "slides" / "demo-001.tif", plugin=PLUGIN)
        session.search("id:demo-001.tif", None, SearchParams(k=3 if quick else 10))
        wait(lambda: session.current is not None and not session.busy)
        with probe() as gaps:
            for hit in session.current.results.hits:
                arrived: list[Any] = []
                start = time.perf_counter()
                draw_matches(shown, session.current, hit, database=session.database, done=arrived.append)
                wait(lambda arrived=arrived: bool(arrived))
                times.append(1e3 * (time.perf_counter() - start))
        session.close()
    return [_row("jump", "hit to its slide, opened and marked", times), *gaps.rows("jump")]


def box_part(database: Path, large: Path, quick: bool) -> list[Row]:
    """Draw boxes, one after the other, and wait for the gallery each time."""
    from napari_fish._napari.reader.reader import PLUGIN

    n, slide = (10 if quick else 30), "demo-001.tif"
    with viewer("Search", "Results") as (shown, widgets):
        session = opened(shown, database)
        boxes = tissue_boxes(session, slide, n + 1)
        session = opened(shown, large)
        (layer,) = shown.open(database.parent / "slides" / slide, plugin=PLUGIN)
        search, results = widgets["Search"], widgets["Results"]
        wait(lambda: search.query.facts is not None)
        total: list[float] = []
        parts: dict[str, list[float]] = {}
        pause = 0.0
        with probe() as gaps:
            for i, region in enumerate(boxes):
                before = session.current
                start = time.perf_counter()
                search.query.box.put(layer, region)
                pause = search._box_pause.interval()
                wait(
                    lambda before=before: session.current is not before and results.answer is session.current
                )
                took = 1e3 * (time.perf_counter() - start)
                wait(lambda: not results.loading and not session.busy)
                if i:  # the first one warms the encoder up
                    total.append(took)
                    for name, ms in session.current.results.elapsed_ms.items():
                        parts.setdefault(name, []).append(ms)
        count = int(session.database.store.patches_per_slide.sum())
        session.close()
    rows = [_row("box", f"drawn box to gallery, {count} patches, of it {pause:.0f} ms pause", total)]
    rows[0] |= claim(statistics.median(total), "ms", GALLERY_MS)
    for name, times in parts.items():
        row = _row("box", f"of it: {name}", times)
        rows.append(row | claim(row["median_ms"], "ms", SEARCH_MS) if name == "search" else row)
    return rows + gaps.rows("box")


def compare_part(database: Path, quick: bool) -> list[Row]:
    """Compare one answer after the other."""
    from napari_fish._napari.compare.compare import comparison_of
    from napari_fish._napari.reader.reader import PLUGIN
    from napari_fish.search import SearchParams

    slides = [f"demo-{i:03}.tif" for i in range(1, 5 if quick else 11)]
    with viewer() as (shown, _):
        session = opened(shown, database)
        shown.open(database.parent / "slides" / slides[0], plugin=PLUGIN)
        comparison, times = comparison_of(shown), []
        changed: list[bool] = []
        comparison.changed.connect(changed.append)
        with probe() as gaps:
            for slide in slides:
                before = session.current
                session.search(f"id:{slide}", None, SearchParams(k=11))
                wait(lambda before=before: session.current is not before and not session.busy)
                changed.clear()
                start = time.perf_counter()
                comparison.show(session.current, session.database)
                wait(lambda: bool(changed))
                shown.window._qt_viewer.canvas.native.repaint()
                times.append(1e3 * (time.perf_counter() - start))
            start = time.perf_counter()
            comparison.clear()
            cleared = 1e3 * (time.perf_counter() - start)
        session.close()
    rows = [_row("compare", "first", times[:1]), _row("compare", "later ones, same layers", times[1:])]
    return [*rows, _row("compare", "clear", [cleared]), *gaps.rows("compare")]


def build_part(database: Path, folder: Path, quick: bool) -> list[Row]:
    """Build a database of small slides through the widget."""
    n = 30 if quick else 300
    broken = small_slides(database.parent / "slides", folder / "small", n)
    with viewer("Database") as (shown, widgets):
        widget = widgets["Database"]
        with probe() as gaps:
            start = time.perf_counter()
            widget.build.form.slides.put(str(folder / "small"))
            widget.build.form.database.put(str(folder / "small.fish"))
            wait(lambda: widget.build.prospect is not None)
            looked = 1e3 * (time.perf_counter() - start)
            start = time.perf_counter()
            widget.build.start()
            wait(lambda: not widget.build.building)
            took = time.perf_counter() - start
        model = widget.build.progress.table.model()
        table = [[str(model.index(r, c).data()) for c in range(2)] for r in range(model.rowCount())]
        listed = {name for name, state in table if state == "quarantined"}
        wait(lambda: not widget.busy)
        from napari_fish._napari.session.session import session_of

        wait(lambda: not session_of(shown).busy)
        session_of(shown).close()
    verdict = "exactly the broken ones" if listed == broken else f"WRONG by {len(listed ^ broken)} slides"
    rows = [
        _row("build", f"look at {n} slides", [looked]),
        _row("build", f"build of {n} slides, {len(broken)} broken, a slide", [1e3 * took / n]),
        {"part": "build", "what": f"quarantine lists {verdict}", "n": len(listed)},
    ]
    return rows + gaps.rows("build")


def _row(part: str, what: str, times: list[float]) -> Row:
    if not times:
        return {"part": part, "what": what, "n": 0}
    ordered = sorted(times)
    return {
        "part": part,
        "what": what,
        "n": len(times),
        "median_ms": statistics.median(ordered),
        "p95_ms": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        "max_ms": ordered[-1],
    }


def main() -> None:
    chosen = options()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        # What widgets remember must neither change these figures nor be changed by them.
        os.environ["NAPARI_CONFIG"] = str(folder / "settings.yaml")
        database = demo(chosen.demo or folder / "demo")
        load = os.getloadavg()[0]
        large = folder / "large.fish"
        if set(LARGE) & set(chosen.parts):
            large_archive(database, large, 100_000)
        if "open" in chosen.parts:
            rows += open_part(large, chosen.quick)
        if "box" in chosen.parts:
            rows += box_part(database, large, chosen.quick)
        if "slide" in chosen.parts:
            rows += slide_part(database, large, chosen.quick)
        if "jump" in chosen.parts:
            rows += jump_part(database, chosen.quick)
        if "compare" in chosen.parts:
            rows += compare_part(database, chosen.quick)
        if "build" in chosen.parts:
            rows += build_part(database, folder, chosen.quick)
        rows.append({"part": "machine", "what": f"load {load:.1f} to {os.getloadavg()[0]:.1f}"})
    report(rows, chosen.json)


if __name__ == "__main__":
    main()
