"""An answer goes to a file, in the background."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from qtpy.QtWidgets import QFileDialog, QMenu, QWidget

from napari_fish._napari.jobs.one_job import OneJob
from napari_fish.search import Results, SlideHit
from napari_fish.search.output.export import FORMATS
from napari_fish.texts import file_stem


class Entry(NamedTuple):
    """An entry of the menu: ending of the file, what it is called and good for, and whether it is of the chosen slide."""

    ending: str
    title: str
    tip: str
    of_hit: bool = False


ENTRIES = {ending[1:]: Entry(ending, f"{form.title} …", form.tip) for ending, form in FORMATS.items()}
ENTRIES["hit_geojson"] = Entry(
    ".geojson", "Chosen slide's regions (GeoJSON) …", "Annotations on the slide that is chosen.", of_hit=True
)


def write(
    results: Results, path: Path, database: str, hit: SlideHit | None, progress: Any = None, should_stop: Any = None
) -> Path:  # fmt: skip
    """Write an answer, or the regions of one of its slides, to a file."""
    return results.save(path, database=database, slide=None if hit is None else hit.slide)


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
        for name, entry in ENTRIES.items():
            action = self.menu.addAction(entry.title, partial(self.ask, name))
            action.setObjectName(f"results.export.{name}")
            action.setToolTip(entry.tip)
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
            f"{hit.name or hit.slide} regions" if ENTRIES[name].of_hit and hit else f"{results.query} results"
        )
        stem = stem.translate(str.maketrans(",", "-", "[]"))  # as a box is written
        ending = ENTRIES[name].ending
        stem = file_stem(stem, len(ending))
        chosen, _ = QFileDialog.getSaveFileName(
            self._parent, ENTRIES[name].title.removesuffix(" …"), stem + ending, f"*{ending}"
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
        if ENTRIES[name].of_hit and hit is None:
            self._say("Choose a slide first: its regions are written.", True)
            return
        self._say(f"Writing {path.name} …", False)
        self._job.start(self._written, write, results, path, database, hit if ENTRIES[name].of_hit else None)

    def _written(self, path: Path) -> None:
        self._say(f"Written: {path}", False)

    def _update(self) -> None:
        current = self._current()
        for name, action in self._actions.items():
            action.setEnabled(current is not None and (not ENTRIES[name].of_hit or current[2] is not None))
