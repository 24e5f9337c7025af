"""An answer goes to a file, in the background."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QFileDialog, QMenu, QWidget

from napari_fish._napari.jobs.one_job import OneJob
from napari_fish.errors import FishError
from napari_fish.search import Results, SlideHit, to_html
from napari_fish.search.output.export import to_geojson
from napari_fish.texts import file_stem


@dataclass(frozen=True)
class Format:
    """What an answer can be written as.

    Attributes
    ----------
    ending
        Of the file.
    title
        Of the menu entry.
    tip
        What it is good for.
    of_hit
        Whether it is about the chosen slide, not about the whole answer.
    """

    ending: str
    title: str
    tip: str
    of_hit: bool = False


FORMATS = {
    "csv": Format(".csv", "Table (CSV) …", "One line a slide, for a spreadsheet."),
    "html": Format(".html", "Report (HTML) …", "One page with all pictures, to mail or print."),
    "png": Format(".png", "Figure (PNG) …", "The query and the best slides with what matches, for a talk."),
    "pdf": Format(".pdf", "Figure (PDF) …", "The same for a paper."),
    "geojson": Format(".geojson", "Query's regions (GeoJSON) …", "Annotations on the query slide, for QuPath."),
    "hit_geojson": Format(
        ".geojson", "Chosen slide's regions (GeoJSON) …", "Annotations on the slide that is chosen.", True
    ),
    "json": Format(".json", "Everything (JSON) …", "For programs."),
}  # fmt: skip


def write(
    results: Results, path: Path, database: str, hit: SlideHit | None, progress: Any = None, should_stop: Any = None
) -> Path:  # fmt: skip
    """Write an answer, or the regions of one of its slides, to a file; raises FishError where that fails."""
    try:
        if hit is not None:
            text = json.dumps(to_geojson(results, hit.slide), ensure_ascii=False) + "\n"
            path.write_text(text, encoding="utf-8", errors="replace")
        elif path.suffix.lower() == ".html":
            path.write_text(to_html(results, database=database), encoding="utf-8", errors="replace")
        else:
            results.save(path)
    except OSError as error:
        raise FishError(
            f"{path}: cannot be written ({error.strerror or error}). Choose another place."
        ) from error
    return path


class Exporter:
    """The *Export* menu.

    Parameters
    ----------
    parent
        The widget whose answer is written.
    current
        Returns the answer, the name of the database and the chosen slide; None without an answer.
    say
        Called with what to tell the user, and whether it went wrong.
    """

    def __init__(
        self,
        parent: QWidget,
        current: Callable[[], tuple[Results, str, SlideHit | None] | None],
        say: Callable[[str, bool], None],
    ) -> None:
        self._parent, self._current, self._say = parent, current, say
        self._job = OneJob(parent)
        self._job.failed.connect(lambda text: say(text, True))
        self.menu = QMenu(parent)
        self.menu.setObjectName("results.export_menu")
        self.menu.setToolTipsVisible(True)
        self._actions = {}
        for name, form in FORMATS.items():
            action = self.menu.addAction(form.title, partial(self.ask, name))
            action.setObjectName(f"results.export.{name}")
            action.setToolTip(form.tip)
            self._actions[name] = action
        self.menu.aboutToShow.connect(self._update)

    @property
    def busy(self) -> bool:
        """Whether a file is being written."""
        return self._job.busy

    def ask(self, name: str) -> None:
        """Ask where to, and write."""
        current = self._current()
        if current is None:
            return
        results, _, hit = current
        stem = (
            f"{hit.name or hit.slide} regions" if FORMATS[name].of_hit and hit else f"{results.query} results"
        )
        stem = stem.translate(str.maketrans(",", "-", "[]"))  # as a box is written
        ending = FORMATS[name].ending
        stem = file_stem(stem, len(ending))
        chosen, _ = QFileDialog.getSaveFileName(
            self._parent, FORMATS[name].title.removesuffix(" …"), stem + ending, f"*{ending}"
        )
        if chosen:
            path = Path(chosen)
            self.export(name, path if path.suffix.lower() == ending else path.with_name(path.name + ending))

    def export(self, name: str, path: Path) -> None:
        """Write the answer to a file, in the background."""
        current = self._current()
        if current is None:
            return
        results, database, hit = current
        if FORMATS[name].of_hit and hit is None:
            self._say("Choose a slide first: its regions are written.", True)
            return
        self._say(f"Writing {path.name} …", False)
        self._job.start(self._written, write, results, path, database, hit if FORMATS[name].of_hit else None)

    def _written(self, path: Path) -> None:
        self._say(f"Written: {path}", False)

    def _update(self) -> None:
        current = self._current()
        for name, action in self._actions.items():
            action.setEnabled(current is not None and (not FORMATS[name].of_hit or current[2] is not None))
