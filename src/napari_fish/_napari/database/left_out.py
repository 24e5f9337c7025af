"""*Show what was left out*: a slide of the database, with the patches that were kept and those that were not."""

from __future__ import annotations

from functools import partial
from typing import Any

from qtpy.QtCore import QObject, Signal

from napari_fish._napari.compare.navigate import open_database_slide
from napari_fish._napari.jobs.notify import as_sentence
from napari_fish._napari.jobs.one_job import OneJob
from napari_fish._napari.layers.mosaic_show import show_mosaic
from napari_fish.building.masks import mask_again
from napari_fish.building.settings import recorded_mosaic
from napari_fish.building.strictness import params_for
from napari_fish.database import Database
from napari_fish.errors import FishError
from napari_fish.mosaic import Mosaic, make_mosaic
from napari_fish.mosaic.left_out import WARNING, is_much, told
from napari_fish.slides import open_slide
from napari_fish.store.records import SlideRecord


class LeftOutViewer(QObject):
    """Opens slides of a database and shows what was left out of them, beside the viewer.

    Parameters
    ----------
    viewer : napari.Viewer
        Where.
    owner
        When it is destroyed, the work is stopped.
    """

    said = Signal(str, bool)
    """What is going on, and whether it is something wrong."""
    progressed = Signal(int, int)
    running = Signal(bool)

    def __init__(self, viewer: Any, owner: QObject) -> None:
        super().__init__(owner)
        self._viewer = viewer
        self._slide = ""
        self._job = OneJob(self)
        self._job.progressed.connect(self.progressed)
        self._job.failed.connect(lambda text: self.said.emit(text, True))
        self._job.cancelled.connect(lambda: self.said.emit("Stopped.", False))
        self._job.ended.connect(self._ended)

    @property
    def busy(self) -> bool:
        """Whether a slide is being opened or looked at."""
        return bool(self._slide)

    def show(self, database: Database, slide: str) -> None:
        """Open a slide and show what was left out of it; one under way gives way."""
        self._job.cancel()
        self._slide = slide
        self.said.emit(f"Opening {slide} …", False)
        self.running.emit(True)
        open_database_slide(self._viewer, database, slide, partial(self._opened, database, slide))

    def cancel(self) -> None:
        """Stop; returns at once."""
        if self._job.busy:
            self._job.cancel()
        elif self.busy:
            self._ended()
            self.said.emit("Stopped.", False)

    def _opened(self, database: Database, slide: str, layer: Any) -> None:
        if slide != self._slide:
            return  # another one is wanted, or none
        if layer is None:
            self._ended()
            self.said.emit(f"{slide}: cannot be shown.", True)
            return
        self.said.emit(f"Looking what was left out of {slide} …", False)
        self.progressed.emit(0, 0)
        self._job.start(partial(self._show, layer), left_out_of, database, slide)

    def _show(self, layer: Any, seen: tuple[SlideRecord, Mosaic]) -> None:
        record, mosaic = seen
        if layer in self._viewer.layers:
            show_mosaic(self._viewer, layer, mosaic, reveal=True)
        self.said.emit(described(record, mosaic), False)

    def _ended(self) -> None:
        self._slide = ""
        self.running.emit(False)


def left_out_of(
    database: Database, slide: str, *, progress: Any, should_stop: Any
) -> tuple[SlideRecord, Mosaic]:
    """Choose the patches of a slide as they were chosen when it was built; return what is known of it, and them."""
    record = database.record(slide)
    if record is None:
        raise FishError(f"{slide}: is not in the database any more.")
    mosaic, patches = recorded_mosaic(database.store.catalogue)
    if patches:
        raise FishError(f"{slide}: is an image that is one patch, of which nothing is left out.")
    place, params = database.place(record), params_for(record, None, mosaic)
    marked = mask_again(place, record, database.store.catalogue)
    mask = None if marked is None else marked.file
    with open_slide(place, mpp=record.mpp or None) as opened:
        return record, make_mosaic(opened, params, mask, progress=progress, should_stop=should_stop)


def described(record: SlideRecord, mosaic: Mosaic) -> str:
    """Say what was left out of a slide."""
    counts, choice = (len(mosaic.candidates), mosaic.dropped_counts), record.choice
    lines = [f"{record.slide}: {told(*counts)}."]
    if mosaic.params.artefacts == "off":
        lines.append("Artefacts are kept on this slide.")
    if is_much(*counts):
        lines.append(as_sentence(f"{WARNING.partition(':')[0]}; Keep them takes it into the database"))
    if choice.mask and not mosaic.masked:
        name = choice.mask.rpartition("#")[0]
        lines.append(f"Its mask {name} is not where it was any more: the tissue shown is what was found.")
    elif choice.candidates and (choice.candidates, dict(choice.left_out)) != counts:
        lines.append(f"When it was built: {told(choice.candidates, choice.left_out)}.")
    return " ".join(lines)
