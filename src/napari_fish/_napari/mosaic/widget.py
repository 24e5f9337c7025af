"""The *Tissue & mosaic* dock widget: what the program sees on a slide, live."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from napari.layers import Image, Labels, Shapes
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari.controls.common import STOPPING, OwnMpp, mpp_field, named, offer, state_line
from napari_fish._napari.controls.param_form import ParamForm
from napari_fish._napari.docks import DockedWidget
from napari_fish._napari.jobs.one_job import OneJob
from napari_fish._napari.layers.mosaic_layers import TISSUE, mask_of, polygons_of
from napari_fish._napari.layers.mosaic_show import remove_mosaic, show_mosaic
from napari_fish._napari.layers.queries import slide_layers, unwrapped
from napari_fish._napari.layers.slide_layers import slide_of
from napari_fish._napari.mosaic.memory import keep, recall
from napari_fish.errors import FishError
from napari_fish.mosaic import PRESETS, Mosaic, MosaicParams, make_mosaic, preset
from napari_fish.mosaic.left_out import is_much, told
from napari_fish.texts import count

PAUSE_MS = 300
"""A preview starts when nothing has been changed for so long."""
PRESET_TIP = (
    "default: the paper with repairs. paper: the paper's text. released: what the authors' program computes."
)
FOUND = "found by the program"
MUCH_HERE = "More than a fifth of its tissue is left out: look at the crosses, or set artefacts to off."
TISSUE_FIELDS = (
    "method",
    "sensitivity",
    "threshold",
    "otsu",
    "min_tissue",
    "min_hole",
    "max_holes",
    "median",
    "close",
    "tighten",
    "retry",
)
MOSAIC_FIELDS = (
    "least_tissue",
    "white_share",
    "artefacts",
    "clusters",
    "share",
    "representative",
    "seed",
)

if TYPE_CHECKING:
    import napari.viewer


class MosaicWidget(DockedWidget):
    """Previews tissue and mosaic of the chosen slide, anew whenever a parameter changes.

    Parameters
    ----------
    viewer : napari.Viewer
        Where the slide is open and the layers appear.
    """

    def __init__(self, viewer: napari.viewer.Viewer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self._job = OneJob(self)
        self._mosaic: Mosaic | None = None
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(PAUSE_MS)
        self._pause.timeout.connect(self.preview)
        self._build()
        self._listen()
        self._list_layers()

    @property
    def mosaic(self) -> Mosaic | None:
        """The mosaic shown, if any."""
        return self._mosaic

    def params(self) -> MosaicParams:
        """Return the parameters as shown."""
        params: MosaicParams = replace(self._mosaic_form.params(), tissue=self._tissue_form.params())
        return params

    def preview(self) -> None:
        """Find the mosaic with the parameters as shown; a preview under way gives way."""
        self._pause.stop()
        self.cancel()
        layer = self._chosen(self._slide_box, Image)
        if layer is None:
            self._say("Open a slide: File > Open, or drop one on the viewer.")
            return
        try:
            params = self.params()
        except ValueError as error:
            self._say(f"{error}", wrong=True)
            return
        self._remember(params)
        mask = unwrapped(self._chosen(self._mask_box, (Shapes, Labels)))
        others = tuple(map(unwrapped, self._viewer.layers))
        stated = self._mpp_box.value() or None
        self._job.start(partial(self._show, layer), _make, unwrapped(layer), others, stated, params, mask)
        self._bar.setValue(0)
        self._cancel_button.setEnabled(True)
        self._say(f"Looking at {layer.name} …")

    def cancel(self) -> None:
        """Stop a preview under way; returns at once."""
        if self._job.busy:
            self._job.cancel()
            self._say(STOPPING)

    def reset(self) -> None:
        """Go back to the preset's own values."""
        params = preset(self._preset_box.currentText())
        self._tissue_form.show_params(params.tissue)
        self._mosaic_form.show_params(params)
        self._changed()

    def _remember(self, params: MosaicParams) -> None:
        keep(self._preset_box.currentText(), params, self._live_box.isChecked())

    def _let_go(self) -> None:
        with suppress(ValueError):
            self._remember(self.params())
        self._pause.stop()
        self.cancel()

    def _heard(self) -> tuple[tuple[Any, Any], ...]:
        events = self._viewer.layers.events
        return (events.inserted, self._list_layers), (events.removed, self._list_layers)

    def _progress(self, done: int, total: int) -> None:
        if not self._job.stopping:
            self._bar.setMaximum(total)
            self._bar.setValue(done)

    def _show(self, layer: Any, mosaic: Mosaic) -> None:
        self._mosaic = mosaic
        if layer not in self._viewer.layers:
            return
        show_mosaic(self._viewer, layer, mosaic)
        counts = len(mosaic.candidates), mosaic.dropped_counts
        said = (
            f"{layer.name}: {told(*counts)}. {len(mosaic.patches)} of the patches are in the mosaic; "
            f"{mosaic.tissue_mm2:.3g} mm² of tissue in {count(len(mosaic.contours), 'piece')}."
        )
        if mosaic.retried:
            said += " Found only with gentler parameters."
        if mosaic.rescued:
            said += " Every patch was doubtful; the best was kept."
        if is_much(*counts):
            said += f" {MUCH_HERE}"
        self._say(said)

    def _failed(self, text: str) -> None:
        self._mosaic = None
        remove_mosaic(self._viewer)
        self._say(text, wrong=True)

    def _stopped(self) -> None:
        if self._state.text() == STOPPING:
            self._say("Stopped.")

    def _ended(self) -> None:
        self._bar.setValue(0)
        self._cancel_button.setEnabled(False)

    def _changed(self, *_: Any) -> None:
        if self._live_box.isChecked():
            self._pause.start()

    def _list_layers(self, *_: Any) -> None:
        """Offer the layers there are; keep what was chosen."""
        images = slide_layers(self._viewer.layers)[::-1]
        masks = [
            layer
            for layer in self._viewer.layers
            if isinstance(layer, Shapes | Labels) and layer.name != TISSUE
        ]
        changed = offer(self._slide_box, [layer.name for layer in images])
        self._turn_to_slide()
        offer(self._mask_box, [FOUND, *(layer.name for layer in masks)])
        if not images:
            self._say("Open a slide: File > Open, or drop one on the viewer.")
        elif changed:
            self._say("Ready.")
            self._changed()

    def _turn_to_slide(self, *_: Any) -> None:
        layer = self._chosen(self._slide_box, Image)
        self._own_mpp.turn_to("" if layer is None else str(layer.unique_id))

    def _chosen(self, box: QComboBox, kind: Any) -> Any:
        named = (layer for layer in self._viewer.layers if layer.name == box.currentText())
        return next((layer for layer in named if isinstance(layer, kind)), None)

    def _build(self) -> None:
        """Lay out the controls."""
        self._slide_box = named("mosaic", QComboBox(), "slide", "The layer that shows the slide.")
        self._mpp_box = mpp_field(
            "mosaic", "mpp", "µm per level-0 px, if you know better than the file.", "as the slide says"
        )
        self._own_mpp = OwnMpp(self._mpp_box)
        self._mask_box = named(
            "mosaic", QComboBox(), "mask", "Where the tissue is: found, or drawn by you on a layer."
        )
        self._preset_box = named("mosaic", QComboBox(), "preset", PRESET_TIP)
        self._preset_box.addItems(PRESETS)
        name, params, live = recall()
        self._preset_box.setCurrentText(name)
        self._live_box = named(
            "mosaic", QCheckBox("Live"), "live", "Look anew whenever something is changed."
        )
        self._live_box.setChecked(live)
        run = named("mosaic", QPushButton("Preview"), "preview", "Find tissue and mosaic now.")
        self._cancel_button = named("mosaic", QPushButton("Cancel"), "cancel", "Stop looking.")
        self._cancel_button.setEnabled(False)
        again = named("mosaic", QPushButton("Reset"), "reset", "Back to the preset's own values.")
        self._bar = named("mosaic", QProgressBar(), "progress", "How far the preview is.")
        self._state = state_line("mosaic")
        self._say = self._state.say
        self._tissue_form = ParamForm("Tissue", params.tissue, TISSUE_FIELDS)
        self._mosaic_form = ParamForm("Mosaic", params, MOSAIC_FIELDS)

        top = QFormLayout()
        rows = (("slide", self._slide_box), ("µm per px", self._mpp_box), ("tissue", self._mask_box))
        for label, control in (*rows, ("preset", self._preset_box)):
            top.addRow(label, control)
        buttons = QHBoxLayout()
        for button in (run, self._cancel_button, again, self._live_box):
            buttons.addWidget(button)
        forms = QWidget()
        stack = QVBoxLayout(forms)
        stack.addWidget(self._tissue_form)
        stack.addWidget(self._mosaic_form)
        stack.addStretch()
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(forms)
        layout = QVBoxLayout(self)
        layout.addLayout(top)
        layout.addWidget(scroll)
        layout.addLayout(buttons)
        layout.addWidget(self._bar)
        layout.addWidget(self._state)

        self._job.progressed.connect(self._progress)
        self._job.failed.connect(self._failed)
        self._job.cancelled.connect(self._stopped)
        self._job.ended.connect(self._ended)
        run.clicked.connect(self.preview)
        self._cancel_button.clicked.connect(self.cancel)
        again.clicked.connect(self.reset)
        self._preset_box.currentTextChanged.connect(self.reset)
        self._mpp_box.valueChanged.connect(self._changed)
        self._slide_box.currentTextChanged.connect(self._turn_to_slide)
        for box in (self._slide_box, self._mask_box):
            box.currentTextChanged.connect(self._changed)
        for form in (self._tissue_form, self._mosaic_form):
            form.changed.connect(self._changed)


def _make(
    layer: Any,
    layers: tuple[Any, ...],
    mpp: float | None,
    params: MosaicParams,
    drawn: Any,
    progress: Any,
    should_stop: Any,
) -> Mosaic:
    """Find the mosaic of the slide behind a layer, in the tissue that is drawn on another one, if any is."""
    with slide_of(layer, layers, mpp=mpp) as slide:
        if slide.mpp is None:
            raise FishError(
                f"The size of a pixel of {layer.name} is unknown. State it above in µm per px: "
                "0.25 for a 40x slide, 0.5 for 20x."
            )
        mask = None
        if drawn is not None:
            mask = (mask_of if isinstance(drawn, Labels) else polygons_of)(drawn, layer, slide)
        return make_mosaic(slide, params, mask, progress=progress, should_stop=should_stop)
