"""The query and what was found side by side: one camera, one magnification, a cell each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

from napari.layers import Image
from qtpy.QtCore import QObject, QTimer, Signal

from napari_fish._napari.compare.panes import LETTER_PX, QUERY_COLOUR, fill, label, new_cell, scene_unit
from napari_fish._napari.compare.pictures import Shelf, Shown, open_pictures
from napari_fish._napari.compare.view_state import ViewState
from napari_fish._napari.jobs.notify import in_words
from napari_fish._napari.jobs.one_job import OneJob
from napari_fish._napari.layers.hit_layers import CELL_KEY, grid_shape
from napari_fish._napari.layers.magnification import zoom_to
from napari_fish._napari.session.session import Answer, session_of
from napari_fish.database import Database
from napari_fish.errors import FishError
from napari_fish.search.output.colours import Colours

MOST_CELLS = 12
"""The query and eleven hits; more would be too small to judge."""
SLIDES_KEPT_OPEN = 24
LINKED = ("opacity", "gamma", "contrast_limits", "blending", "interpolation2d", "visible")
MOMENT = 0.045
"""Seconds for which cells are drawn without letting the viewer answer."""
SPACING = 6
"""Px between cells."""
MARGIN = 0.96
"""Share of a cell that the region fills at first."""


class Comparison(QObject):
    """Shows a search as a grid of linked image layers; see :func:`comparison_of`.

    Parameters
    ----------
    viewer : napari.Viewer
        The viewer, or napari's proxy of it.
    """

    started = Signal()
    """Slides are being opened."""
    progressed = Signal(int, int)
    """Slides opened and all slides."""
    changed = Signal(bool)
    """Whether a comparison is shown now."""
    failed = Signal(str)
    """What went wrong, in words."""
    ended = Signal()
    """No slide is being opened any more, whatever became of it."""

    def __init__(self, viewer: Any) -> None:
        super().__init__()
        # The layers of a proxied viewer are proxies themselves, and never the layers that were added.
        self._viewer_ref = ref(getattr(viewer, "__wrapped__", viewer))
        self._before: ViewState | None = None
        self._added: list[tuple[Any, bool]] = []
        self._cells: list[Image] = []
        self._pool: list[Image] = []
        self._shelf = Shelf()
        self._job = OneJob(self)
        self._job.progressed.connect(self.progressed)
        self._job.failed.connect(self._failed)
        self._job.ended.connect(self._ended)
        self._steps: Iterator[None] = iter(())
        # A few cells at a time, so that the viewer answers in between.
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._step)
        session = session_of(viewer)
        session.answered.connect(self._follow)
        session.database_changed.connect(self._database_changed)

    @property
    def _viewer(self) -> Any:
        return self._viewer_ref()

    @property
    def shown(self) -> bool:
        """Whether a comparison is shown."""
        return self._before is not None

    @property
    def busy(self) -> bool:
        """Whether slides are being opened or drawn."""
        return (self._job.busy and not self._job.stopping) or self._timer.isActive()

    @property
    def layers(self) -> tuple[Image, ...]:
        """The cells: the query, then the hits in order."""
        return tuple(self._cells)

    def show(self, answer: Answer, database: Database) -> None:
        """Show an answer, in place of the one shown before; returns at once.

        Parameters
        ----------
        answer
            What was searched and found.
        database
            Where.
        """
        self._stop()
        layers = [one for one in self._viewer.layers if isinstance(one, Image) and not self._is_cell(one)]
        layer = next((one for one in layers if answer.layer and one.name == answer.layer), None)
        # Diagnoses have the colours that they have everywhere, on black.
        done = partial(self._opened, partial(Colours.of_answers([answer.results]).of, dark=True))
        self._job.start(done, open_pictures, answer, database, layer, layers, self._shelf, MOST_CELLS - 1)
        self.started.emit()

    def zoom_to(self, objective: float) -> None:
        """Show all cells, or the slide that is looked at, as through an objective: at 20 one px is 0.5 µm."""
        try:
            zoom_to(self._viewer, objective, self._cells[0] if self._cells else None)
        except FishError as error:
            self.failed.emit(str(error))

    def clear(self, *_: object) -> None:
        """Leave the viewer as it was before the first comparison; what is being opened is given up."""
        busy = self.busy
        self._stop()
        before, self._before = self._before, None
        if before is None:
            if busy:
                self.changed.emit(False)
            return
        self._viewer.canvas.grid.enabled = False
        self._set_cells(0)
        added, self._added = self._added, []
        before.restore(self._viewer)
        for layer, visible in added:
            layer.visible = visible
        self._shelf.keep(0)
        self.changed.emit(False)

    def _follow(self, answer: Answer) -> None:
        """Show the answer to the next search instead."""
        database = session_of(self._viewer).database
        if not (self.shown or self.busy):
            return
        if database is None or not answer.results.hits:
            self.clear()
        else:
            self.show(answer, database)

    def _database_changed(self, database: Database | None) -> None:
        """Leave with the answer; slides that were added change nothing in it."""
        if session_of(self._viewer).current is None:
            self.clear()

    def _stop(self) -> None:
        self._job.cancel()
        self._timer.stop()
        self._steps = iter(())

    def _failed(self, text: str) -> None:
        if not self._job.stopping:  # a database that is closed meanwhile is no news
            self.failed.emit(text)

    def _opened(self, colour_of: Callable[[str], str], shown: Shown) -> None:
        self._steps = self._drawing(shown, colour_of)
        self._timer.start(0)

    def _ended(self) -> None:
        """Keep few slides open, and none for a comparison that was given up."""
        self._shelf.keep(SLIDES_KEPT_OPEN if self.shown or self.busy else 0)
        self.ended.emit()

    def _step(self) -> None:
        """Draw for a moment; napari paints the canvas after each, which takes longer than many a step."""
        end = time.perf_counter() + MOMENT
        try:
            while time.perf_counter() < end:
                next(self._steps)
        except StopIteration:
            self._timer.stop()
            self.changed.emit(True)
        except Exception as error:  # noqa: BLE001 - the user shall not be left amid a half-drawn comparison
            self.clear()
            self.failed.emit(in_words(error))

    def _drawing(self, shown: Shown, colour_of: Callable[[str], str]) -> Iterator[None]:
        """Draw a comparison cell by cell."""
        viewer, first = self._viewer, self._before is None
        if first:
            self._prepare()
        pictures = [shown.query, *(picture for _, picture in shown.hits)]
        columns = grid_shape(len(pictures), *viewer.canvas.size)[1]
        room = viewer.canvas.size[1] / columns / LETTER_PX
        query = shown.query_title if len(shown.query_title) <= room else "Query"
        titles = [query, *(pair.title(room) for pair, _ in shown.hits)]
        colours = [QUERY_COLOUR, *(colour_of(pair.hit.diagnosis) for pair, _ in shown.hits)]
        same = len(pictures) == len(self._cells)
        if not same:
            viewer.canvas.grid.enabled = False
            self._set_cells(len(pictures))
            yield
        unit = scene_unit(viewer)
        # At first where the query's region lies on its slide; then wherever the user is looking, so that the camera
        # need not move and nothing be read twice.
        here = tuple(c * unit[1] for c in viewer.scene.camera.center[-2:])
        anchor = tuple(c * shown.query.um_per_px for c in shown.query.centre) if first else here
        for layer, picture, title, colour in zip(self._cells, pictures, titles, colours, strict=True):
            fill(layer, picture, title, anchor, unit)
            label(layer, colour)
            if layer not in viewer.layers:
                viewer.add_layer(layer)
            yield
        if not same:
            self._arrange()
            if first:
                self._look(anchor, shown.side_um, unit[1])
            yield
            for layer in self._cells:
                layer.visible = True
                yield
            viewer.layers.link_layers(self._cells, LINKED)

    def _prepare(self) -> None:
        """Take note of the viewer and make room."""
        viewer = self._viewer
        self._before = ViewState.of(viewer)
        viewer.canvas.grid.enabled = False
        if viewer.dims.ndisplay != 2:
            viewer.dims.ndisplay = 2
        for layer in viewer.layers:
            layer.visible = False

    def _set_cells(self, n: int) -> None:
        """Take cells from the pool, or put them back and out of the viewer; the grid must be off."""
        viewer = self._viewer
        if len(self._cells) > 1:
            viewer.layers.unlink_layers(self._cells)
        while len(self._pool) < n:
            self._pool.append(new_cell())
        surplus, self._cells = self._cells[n:], self._pool[:n]
        # At once, for napari collects garbage after each removal otherwise.
        with viewer.layers.batched_update():
            for layer in surplus:
                if layer in viewer.layers:
                    viewer.layers.remove(layer)
        for layer in self._cells:
            layer.visible = False
        events = viewer.layers.events
        for event, react in ((events.removed, self._on_removed), (events.inserted, self._on_inserted)):
            event.disconnect(react)
            if n:
                event.connect(react)

    def _arrange(self) -> None:
        """Make a grid for the cells, with a scale bar."""
        viewer = self._viewer
        viewer.layers.selection = {self._cells[0]}
        viewer.layers.selection.active = self._cells[0]
        grid, bar = viewer.canvas.grid, viewer.canvas.overlays.scale_bar
        grid.stride, grid.spacing = 1, SPACING
        grid.shape = grid_shape(len(self._cells), *viewer.canvas.size)
        grid.enabled = True
        bar.gridded, bar.box, bar.length, bar.visible = False, True, None, True
        if viewer.layers.units is None:
            # Some hidden layer is in px, and napari then writes the bar's length without a unit.
            text = viewer.canvas.overlays.text
            text.text, text.position, text.gridded, text.box, text.visible = (
                "scale bar in µm", "bottom_left", False, True, True
            )  # fmt: skip

    def _look(self, anchor: tuple[float, ...], side_um: float, um: float) -> None:
        """Point the camera at the regions, which fill their cells; ``um`` is the scene's unit in µm."""
        viewer = self._viewer
        sizes = zip(viewer.canvas.size, viewer.canvas.grid.shape, strict=True)
        cell = min((px - SPACING * (n - 1)) / n for px, n in sizes)
        viewer.scene.camera.center = tuple(a / um for a in anchor)
        viewer.scene.camera.zoom = MARGIN * cell * um / side_um

    def _on_removed(self, event: Any) -> None:
        """Go on without a cell that the user removed."""
        layer = event.value
        self._added = [(one, visible) for one, visible in self._added if one is not layer]
        if any(layer is cell for cell in self._cells):
            self._cells = [cell for cell in self._cells if cell is not layer]
            self._pool = [cell for cell in self._pool if cell is not layer]
            if not self._cells:
                self.clear()

    def _on_inserted(self, event: Any) -> None:
        """End the comparison when a slide is opened; keep other layers out of the grid until it ends."""
        layer = event.value
        if any(layer is cell for cell in self._cells):
            return
        if isinstance(layer, Image):
            # Not now: others have yet to hear of the layer.
            QTimer.singleShot(0, self.clear)
            return
        before = () if self._before is None else self._before.visible
        gone = [(one.name, seen) for one, seen in before if one not in self._viewer.layers]
        # What takes the place of a layer that was hidden here, as boxes drawn anew do, is as visible as that was.
        self._added.append((layer, dict(gone).get(layer.name, layer.visible)))
        layer.visible = False

    def _is_cell(self, layer: Any) -> bool:
        return CELL_KEY in layer.metadata


_comparisons: WeakKeyDictionary[Any, Comparison] = WeakKeyDictionary()


def comparison_of(viewer: Any) -> Comparison:
    """Return the comparison of a viewer; the same for the viewer and for napari's proxies of it."""
    real = getattr(viewer, "__wrapped__", viewer)
    if real not in _comparisons:
        _comparisons[real] = Comparison(real)
    return _comparisons[real]
