"""The query and what was found side by side: one camera, one magnification, a cell each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from napari.layers import Image
from qtpy.QtCore import QObject, QTimer, Signal

from napari_fish._napari.compare_pictures import Shelf, Shown, open_pictures
from napari_fish._napari.coordinates import micrometres
from napari_fish._napari.hit_layers import KEPT_PICTURE, Picture, grid_shape
from napari_fish._napari.jobs import JobWorker
from napari_fish._napari.magnification import um_per_world_unit, zoom_to
from napari_fish._napari.session import Answer
from napari_fish._napari.view_state import ViewState
from napari_fish.archive import Database
from napari_fish.errors import FishError

MOST_CELLS = 12
"""The query and eleven hits; more would be too small to judge."""
SLIDES_KEPT_OPEN = 24
LINKED = ("opacity", "gamma", "contrast_limits", "blending", "interpolation2d", "visible")
SPACING = 6
"""Px between cells."""
MARGIN = 0.96
"""Share of a cell that the region fills at first."""
LABEL_PT = 8
METADATA_KEY = "napari_fish_compare"
QUERY_COLOUR = "#ffd54a"


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

    def __init__(self, viewer: Any) -> None:
        super().__init__()
        # The layers of a proxied viewer are proxies themselves, and never the layers that were added.
        self._viewer_ref = ref(getattr(viewer, "__wrapped__", viewer))
        self._before: ViewState | None = None
        self._cells: list[Image] = []
        self._pool: list[Image] = []
        self._shelf = Shelf()
        self._worker: JobWorker | None = None
        self._steps: Iterator[None] = iter(())
        # One cell at a time, so that the viewer answers in between.
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._step)

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
        return self._worker is not None or self._timer.isActive()

    @property
    def layers(self) -> tuple[Image, ...]:
        """The cells: the query, then the hits in order."""
        return tuple(self._cells)

    def show(self, answer: Answer, database: Database, colour_of: Callable[[str], str] | None = None) -> None:
        """Show an answer, in place of the one shown before; returns at once.

        Parameters
        ----------
        answer
            What was searched and found.
        database
            Where.
        colour_of
            Takes a diagnosis to the colour of its name.
        """
        self._stop()
        layers = [one for one in self._viewer.layers if isinstance(one, Image) and not self._is_cell(one)]
        layer = next((one for one in layers if answer.layer and one.name == answer.layer), None)
        worker = JobWorker(
            open_pictures, answer, database, layer, layers, self._shelf, MOST_CELLS - 1
        )  # fmt: skip
        worker.progressed.connect(self.progressed)
        worker.returned.connect(partial(self._opened, worker, colour_of))
        worker.errored.connect(partial(self._failed, worker))
        self._worker = worker
        self.started.emit()
        worker.start()

    def zoom_to(self, objective: float) -> None:
        """Show all cells as through an objective: at 20 one px of the canvas is 0.5 µm."""
        zoom_to(self._viewer, objective, self._cells[0] if self._cells else None)

    def clear(self) -> None:
        """Leave the viewer as it was before the first comparison."""
        self._stop()
        before, self._before = self._before, None
        if before is None:
            return
        self._viewer.canvas.grid.enabled = False
        self._set_cells(0)
        before.restore(self._viewer)
        self._shelf.keep(0)
        self.changed.emit(False)

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None
        self._timer.stop()
        self._steps = iter(())

    def _failed(self, worker: JobWorker, error: Exception) -> None:
        if worker is self._worker:
            self._worker = None
            self.failed.emit(
                str(error) if isinstance(error, FishError) else f"{type(error).__name__}: {error}"
            )

    def _opened(self, worker: JobWorker, colour_of: Callable[[str], str] | None, shown: Shown) -> None:
        if worker is not self._worker:
            return
        self._worker = None
        self._shelf.keep(SLIDES_KEPT_OPEN)
        self._steps = self._drawing(shown, colour_of)
        self._timer.start(0)

    def _step(self) -> None:
        try:
            next(self._steps)
        except StopIteration:
            self._timer.stop()
            self.changed.emit(True)

    def _drawing(self, shown: Shown, colour_of: Callable[[str], str] | None) -> Iterator[None]:
        """Draw a comparison cell by cell."""
        first = self._before is None
        if first:
            self._prepare()
        pictures = [shown.query, *(picture for _, picture in shown.hits)]
        titles = [shown.query_title, *(pair.title for pair, _ in shown.hits)]
        diagnoses = [None, *(pair.hit.diagnosis for pair, _ in shown.hits)]
        same = len(pictures) == len(self._cells)
        if not same:
            self._viewer.canvas.grid.enabled = False
            self._set_cells(len(pictures))
            yield
        # The middle of the query's region, where it lies on its slide.
        unit = _scene_unit(self._viewer)
        anchor = tuple(c * shown.query.um_per_px for c in shown.query.centre)
        for layer, picture, title, diagnosis in zip(self._cells, pictures, titles, diagnoses, strict=True):
            _fill(layer, picture, title, anchor, unit)
            if layer not in self._viewer.layers:
                self._viewer.add_layer(layer)
            colour = QUERY_COLOUR if diagnosis is None else colour_of(diagnosis) if colour_of else None
            _label(layer, colour)
            yield
        if not same:
            self._arrange()
            yield
        self._look(anchor, shown.side_um, first)

    def _prepare(self) -> None:
        """Take note of the viewer and make room."""
        viewer = self._viewer
        self._before = ViewState.of(viewer)
        viewer.canvas.grid.enabled = False
        if viewer.dims.ndisplay != 2:
            viewer.dims.ndisplay = 2
        for layer in viewer.layers:
            layer.visible = False
        viewer.layers.events.removed.connect(self._on_removed)

    def _set_cells(self, n: int) -> None:
        """Take cells from the pool, or put them back and out of the viewer; the grid must be off."""
        viewer = self._viewer
        viewer.layers.events.removed.disconnect(self._on_removed)
        if len(self._cells) > 1:
            viewer.layers.unlink_layers(self._cells)
        while len(self._pool) < n:
            self._pool.append(_new_cell())
        # At once, for napari collects garbage after each removal otherwise.
        with viewer.layers.batched_update():
            for layer in self._cells[n:]:
                if layer in viewer.layers:
                    viewer.layers.remove(layer)
        self._cells = self._pool[:n]
        for layer in self._cells:
            layer.visible = True
        if n:
            viewer.layers.events.removed.connect(self._on_removed)

    def _arrange(self) -> None:
        """Put the cells into a grid, linked, with a scale bar."""
        viewer = self._viewer
        viewer.layers.link_layers(self._cells, LINKED)
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

    def _look(self, anchor: tuple[float, ...], side_um: float, first: bool) -> None:
        """Point the camera at the regions; a magnification that the user chose stays."""
        viewer = self._viewer
        um = um_per_world_unit(viewer, self._cells[0])
        viewer.scene.camera.center = tuple(a / um for a in anchor)
        if first:
            viewer.scene.camera.zoom = MARGIN * min(viewer.canvas.viewbox_size(viewer.layers)) * um / side_um

    def _on_removed(self, event: Any) -> None:
        """Go on without a cell that the user removed."""
        if self._is_cell(event.value):
            self._cells = [cell for cell in self._cells if cell is not event.value]
            self._pool = [cell for cell in self._pool if cell is not event.value]
            if not self._cells:
                self.clear()

    def _is_cell(self, layer: Any) -> bool:
        return METADATA_KEY in layer.metadata


def _new_cell() -> Image:
    return Image(
        [np.full((2, 2, 3), 255, np.uint8)],
        rgb=True,
        multiscale=True,
        units=("µm", "µm"),
        axis_labels=("y", "x"),
        contrast_limits=(0, 255),
        interpolation2d="linear",
        metadata={METADATA_KEY: True},
    )


def _fill(
    layer: Image, picture: Picture, title: str, anchor: tuple[float, ...], unit: tuple[str, float]
) -> None:
    """Give a cell another picture, with its region at the anchor; ``unit`` has a name and a length in µm."""
    name, um = unit
    layer.data = picture.levels
    layer.units = (name, name)
    layer.scale = (picture.um_per_px / um,) * 2
    layer.translate = tuple(t / um for t in picture.translate(anchor))
    layer.name = f"{title} · {KEPT_PICTURE}" if picture.kept else title


def _scene_unit(viewer: Any) -> tuple[str, float]:
    """Return the unit of length of the scene and how many µm it is; µm where it has none.

    napari reads the wrong part of a multiscale layer whose units are not the scene's.
    """
    units = viewer.layers.units
    um = None if units is None else micrometres(units[-1])
    return ("µm", 1.0) if um is None else (str(units[-1]), um)


def _label(layer: Image, colour: str | None) -> None:
    """Write a cell's name into it."""
    overlay = layer.name_overlay
    overlay.position, overlay.box, overlay.font_size = "top_left", True, LABEL_PT
    overlay.color = colour
    overlay.visible = True


_comparisons: WeakKeyDictionary[Any, Comparison] = WeakKeyDictionary()


def comparison_of(viewer: Any) -> Comparison:
    """Return the comparison of a viewer; the same for the viewer and for napari's proxies of it."""
    real = getattr(viewer, "__wrapped__", viewer)
    if real not in _comparisons:
        _comparisons[real] = Comparison(real)
    return _comparisons[real]
