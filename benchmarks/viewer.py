"""What a user of the viewer waits for, with fish-lite and the real widgets.

- *box*: from a drawn box to the gallery, in a database of 100 000 mosaics, and how much of that is search;
- *compare*: the first comparison of an answer, and those after it, which use its layers again;
- *build*: a folder of 300 small slides, some of them broken: the Database widget lists exactly those;
- *loop*: how long the event loop stood still meanwhile, and through whom.

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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, report
from event_loop import probe

from napari_fish.database import DiskStore, EncodedSlide

WINDOW = (1400, 900)
SECONDS = 1800.0
MOSAICS_PER_SLIDE = 100
FLIPPED = 0.04
"""Share of the bits of a demo barcode that differ in a copy."""
PATCH_PX = 1024
BROKEN_EVERY = 9


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer boxes, 30 slides to build")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's rows as JSON")
    parser.add_argument("--demo", type=Path, metavar="DIR", help="folder with slides/ and demo.fish")
    parser.add_argument(
        "--parts", nargs="+", choices=["box", "compare", "build"], default=["box", "compare", "build"]
    )
    return parser.parse_args()


def demo(folder: Path) -> Path:
    """Return the demo database, made where it is missing."""
    from napari_fish.building.build import build
    from napari_fish.slides.demo import write_demo

    database = folder / "demo.fish"
    if not database.exists():
        write_demo(folder / "slides")
        build(folder / "slides", database, folder / "slides" / "labels.csv")
    return database


def large_archive(database: Path, folder: Path, mosaics: int) -> Path:
    """Make a database of many mosaics: those of the demo with some bits flipped, as slides of patients of their own."""
    from napari_fish.database.truth import Truth
    from napari_fish.search import calibrate

    dice = np.random.default_rng(0)
    with DiskStore(database) as source:
        alive = np.flatnonzero(source.slides.alive)
        rows = np.concatenate([source.rows_of([int(i)]) for i in alive])
        keys, codes = source.encoded(rows)
        found = source.records(rows)
        boxes = np.array([one.box for one in found], np.int32)
        owner = np.array([one.slide for one in found])
        records = {int(i): source.slides[int(i)] for i in alive}
        truth = source.truth
        Truth.create(
            folder, words=truth.words, encoder=truth.encoder, weights_hash=truth.weights_hash,
            parameters=truth.parameters,
        ).close()  # fmt: skip
    with DiskStore(folder, writer=True) as store:
        store.truth.begin_build()
        for number in range(mosaics // MOSAICS_PER_SLIDE):
            one = int(alive[number % len(alive)])
            own = np.flatnonzero(owner == one)
            chosen = dice.choice(own, MOSAICS_PER_SLIDE)
            flips = np.packbits(
                dice.random((MOSAICS_PER_SLIDE, truth.words * 64)) < FLIPPED, axis=1, bitorder="little"
            ).view(np.uint64)
            record = records[one]
            place = (database.parent / record.path).resolve()
            record = replace(
                record, slide=f"{number}-{record.slide}", patient=f"patient {number}", path=str(place),
                content_hash=f"{record.content_hash}-{number}",
            )  # fmt: skip
            jitter = dice.integers(-(10**9), 10**9, MOSAICS_PER_SLIDE)
            places = boxes[chosen] + np.array([1, 0, 0, 0]) * np.arange(MOSAICS_PER_SLIDE)[:, None]
            store.commit(
                EncodedSlide(
                    record,
                    np.maximum(keys[chosen] + jitter, 0),
                    codes[chosen] ^ flips,
                    places.astype(np.int32),
                )
            )
        store.settle()
        store.refresh()
        store.calibration = calibrate(store)
    return folder


def small_slides(slides: Path, folder: Path, n: int) -> set[str]:
    """Write pieces of demo slides, each of one patch, and some that are broken; return the names of those."""
    import tifffile

    from napari_fish.slides import open_slide
    from napari_fish.slides.demo import demo_specs
    from napari_fish.slides.demo.specs import GLASS

    folder.mkdir()
    broken = set()
    # Clean ones: pen marks and dust would rightly be refused, and are not broken.
    sources = [
        slides / f"{spec.name}.tif" for spec in demo_specs() if not spec.artefacts and spec.diagnosis != GLASS
    ]
    dice = np.random.default_rng(1)
    for i in range(n):
        path = folder / f"slide-{i:03}.tif"
        with open_slide(sources[i % len(sources)]) as slide:
            width, height = slide.dimensions
            side = PATCH_PX + 256
            x, y = (int((size - side) * (0.35 + 0.3 * dice.random())) for size in (width, height))
            tissue = slide.read_level(0, x, y, side, side)
        # With glass around it, or nothing would tell tissue from glass.
        pixels = np.full((2 * side, 2 * side, 3), 243, np.uint8)
        pixels[side // 2 : -side // 2, side // 2 : -side // 2] = tissue
        pixels[0, 0] = (i % 256, i // 256, 7)
        tifffile.imwrite(
            path, pixels, tile=(256, 256), compression="deflate", photometric="rgb",
            resolution=(2e4, 2e4), resolutionunit="CENTIMETER", metadata=None,
        )  # fmt: skip
        if i % BROKEN_EVERY == 7:
            data = path.read_bytes()
            kinds = (b"", b"this is no slide", data[: len(data) // 3], bytes(len(data)))
            path.write_bytes(kinds[i // BROKEN_EVERY % len(kinds)])
            broken.add(path.name)
    return broken


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

    from napari_fish._napari.database_widget import DatabaseWidget
    from napari_fish._napari.results_widget import ResultsWidget
    from napari_fish._napari.search_widget import SearchWidget

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
    from napari_fish._napari.session import session_of

    session = session_of(shown)
    wait(lambda: not session.busy)
    session.open(path, "cpu")
    wait(lambda: session.database is not None and not session.busy)
    return session


def tissue_boxes(session: Any, slide: str, n: int) -> list[tuple[float, float, float, float]]:
    """Return boxes a little beside the mosaics of a slide of the demo."""
    boxes = session.database.ask(f"id:{slide}").query.boxes
    dice = np.random.default_rng(2)
    chosen = boxes[dice.integers(0, len(boxes), n)]
    return [
        (float(x + dice.integers(-90, 90)), float(y + dice.integers(-90, 90)), float(w), float(h))
        for x, y, w, h in chosen
    ]


def box_part(database: Path, large: Path, quick: bool) -> list[Row]:
    """Draw boxes, one after the other, and wait for the gallery each time."""
    from napari_fish._napari.reader import PLUGIN

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
        count = int(session.database.store.mosaics_per_slide.sum())
        session.close()
    rows = [_row("box", f"drawn box to gallery, {count} mosaics, of it {pause:.0f} ms pause", total)]
    rows += [_row("box", f"of it: {name}", times) for name, times in parts.items()]
    return rows + gaps.rows("box")


def compare_part(database: Path, quick: bool) -> list[Row]:
    """Compare one answer after the other."""
    from napari_fish._napari.compare import comparison_of
    from napari_fish._napari.reader import PLUGIN
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
        from napari_fish._napari.session import session_of

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
        if "box" in chosen.parts:
            rows += box_part(database, large_archive(database, folder / "large.fish", 100_000), chosen.quick)
        if "compare" in chosen.parts:
            rows += compare_part(database, chosen.quick)
        if "build" in chosen.parts:
            rows += build_part(database, folder, chosen.quick)
        rows.append({"part": "machine", "what": f"load {load:.1f} to {os.getloadavg()[0]:.1f}"})
    report(rows, chosen.json)


if __name__ == "__main__":
    main()
