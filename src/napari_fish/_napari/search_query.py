"""What is searched for: the part of the Search widget that shows the slide and draws the box."""

from __future__ import annotations

from functools import partial
from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QGridLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari.box_tool import BoxTool
from napari_fish._napari.controls import named
from napari_fish._napari.jobs import JobWorker
from napari_fish._napari.queries import (
    LayerFacts,
    LayerQuestion,
    facts_of,
    looked_at,
    slide_layers,
    unwrapped,
)
from napari_fish._napari.query_layers import LAYER as MOSAICS
from napari_fish._napari.search_params import field_label
from napari_fish._napari.shortcuts import with_shortcut

PATCH_UM = 512.0
"""Side of the fixed box where no database says how large its patches are: 1024 px at 20x."""
PATCH_PX = 1024.0
"""The same where nobody knows how large a pixel is."""


class QueryPanel(QWidget):
    """Which slide, how large its pixels are, and the buttons that start a search.

    Parameters
    ----------
    viewer
        Where the slides are open.
    """

    slide_wanted = Signal()
    box_wanted = Signal()
    box_changed = Signal()
    paste_wanted = Signal()
    file_wanted = Signal()
    said = Signal(str)
    """What the user may do next."""

    def __init__(self, viewer: Any, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self._worker: JobWorker | None = None
        self._layers: list[Any] = []
        self._facts: dict[int, LayerFacts] = {}
        self.patch_um = PATCH_UM
        self.box = BoxTool(viewer, self)
        self._build()
        events = viewer.layers.events
        for event in (
            events.inserted,
            events.removed,
            events.reordered,
            viewer.layers.selection.events.active,
        ):
            event.connect(self._list)
        self.box.changed.connect(self._box_changed)
        self.box.placing_changed.connect(self._placing)
        self._list()

    @property
    def layer(self) -> Any:
        """The layer that shows the slide; None where no slide is open."""
        index = self.slide.currentIndex()
        return self._layers[index] if 0 <= index < len(self._layers) else None

    @property
    def facts(self) -> LayerFacts | None:
        """What is known of that slide; None until that is known."""
        return None if self.layer is None else self._facts.get(id(self.layer))

    @property
    def mpp(self) -> float | None:
        """What the user stated as µm per level-0 px."""
        return self.mpp_box.value() or None

    def question(self) -> LayerQuestion | None:
        """Return the slide as a question."""
        return None if self.layer is None else self._ask(self.layer)

    def box_question(self) -> LayerQuestion | None:
        """Return the box as a question, about the slide that it lies on."""
        found = self.box.box()
        return None if found is None else self._ask(*found)

    def all_questions(self) -> list[LayerQuestion]:
        """Return every open slide as a question."""
        return [self._ask(layer) for layer in self._layers]

    def draw(self) -> None:
        """Let the user place or draw the box; a second time stops it."""
        if self.box.placing:
            self.box.stop()
            return
        if self.layer is None:
            self.draw_button.setChecked(False)
            self.said.emit("Open a slide to draw a box on: File > Open, or drop one on the viewer.")
            return
        if self.size.currentIndex() == 0:
            self.box.place(self.layer, self.side())
            self.said.emit("Click on the slide to place the box; Draw box again to leave it.")
        else:
            self.box.draw(self.layer, self.side())
            self.said.emit("Press and drag on the slide to draw the box.")

    def side(self) -> float:
        """Return the side of the fixed box in px of the layer."""
        facts = self.facts
        um = None if facts is None else facts.um_per_pixel
        if self.mpp is not None:
            um = self.mpp * (1.0 if um is None or facts.mpp is None else um / facts.mpp)
        return PATCH_PX if um is None else self.patch_um / um

    def reset(self) -> None:
        """Back to the slide's own pixel size, the fixed box and live searching."""
        self.mpp_box.setValue(0)
        self.size.setCurrentIndex(0)
        self.live.setChecked(True)

    def forget(self) -> None:
        """Let go of the viewer."""
        self.box.forget()
        self._worker = None

    def set_patch(self, um: float) -> None:
        """Make the fixed box as large as a patch of the database."""
        self.patch_um = um
        self.size.setItemText(0, f"{um:.0f} µm square")

    def _ask(self, layer: Any, region: Any = None) -> LayerQuestion:
        return LayerQuestion(layer, tuple(map(unwrapped, self._viewer.layers)), region, self.mpp)

    def _box_changed(self) -> None:
        self.box_button.setEnabled(self.box.box() is not None)
        self.box_changed.emit()

    def _placing(self, placing: bool) -> None:
        self.draw_button.setChecked(placing)
        self.box_button.setEnabled(self.box.box() is not None)

    def _list(self, *_: Any) -> None:
        """Offer the slides that are open; the one that the user looks at is chosen."""
        before = self.layer
        self._layers = slide_layers(self._viewer.layers)
        kept = {id(layer) for layer in self._layers}
        self._facts = {key: facts for key, facts in self._facts.items() if key in kept}
        active = unwrapped(self._viewer.layers.selection.active)
        drawn_on = active is None or active is self.box.layer or active.name == MOSAICS
        chosen = before if drawn_on and id(before) in kept else looked_at(self._layers, active)
        if chosen is None and self._layers:
            chosen = before if id(before) in kept else self._layers[0]
        self.slide.blockSignals(True)
        self.slide.clear()
        self.slide.addItems([layer.name for layer in self._layers] or ["no slide is open"])
        if chosen is not None:
            self.slide.setCurrentIndex(next(i for i, one in enumerate(self._layers) if one is chosen))
        self.slide.blockSignals(False)
        for control in (self.slide, self.slide_button, self.draw_button, self.mpp_box):
            control.setEnabled(bool(self._layers))
        self.box_button.setEnabled(self.box.box() is not None)
        self._look()

    def _look(self, *_: Any) -> None:
        """Find out about the slide that is chosen, in the background."""
        layer = self.layer
        if layer is not None and id(layer) not in self._facts:
            # Without what the user stated: that belongs to the slide that was chosen before.
            worker = JobWorker(facts_of, LayerQuestion(layer, tuple(map(unwrapped, self._viewer.layers))))
            worker.returned.connect(partial(self._known, layer))
            self._worker = worker
            worker.start()
        self._show_facts()

    def _known(self, layer: Any, facts: LayerFacts) -> None:
        if self._worker is not None and any(layer is one for one in self._layers):
            self._facts[id(layer)] = facts
            self._show_facts()

    def _show_facts(self) -> None:
        facts = self.facts
        text = "as the slide says"
        if facts is not None:
            text = "not known: state it" if facts.mpp is None else f"{facts.mpp:.4g}, as the slide says"
        self.mpp_box.setSpecialValueText(text)
        unknown = facts is not None and facts.mpp is None
        self.mpp_box.setStyleSheet("QDoubleSpinBox { border: 1px solid #e0a030; }" if unknown else "")

    def _build(self) -> None:
        self.slide = named(
            "search", QComboBox(), "slide", "The slide that is searched for; follows the active layer."
        )
        self.slide.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.slide.setMinimumContentsLength(12)
        self.mpp_box = named(
            "search",
            QDoubleSpinBox(),
            "mpp",
            "µm per level-0 px, if the slide does not say or you know better: 0.25 for 40x, 0.5 for 20x.",
        )
        self.mpp_box.setRange(0, 10)
        self.mpp_box.setDecimals(4)
        self.mpp_box.setSingleStep(0.05)
        self.mpp_box.setKeyboardTracking(False)
        self.slide_button = _button(
            "Search this slide", "this_slide", "Search for slides similar to this one.", "search_this_slide"
        )
        self.box_button = _button(
            "Search this box", "this_box", "Search for the box drawn on the slide.", "search_this_box"
        )
        self.draw_button = _button(
            "Draw box",
            "draw_box",
            "Place or draw a box on the slide. It can be dragged afterwards; a larger one is searched as several patches.",
            "draw_a_box",
        )
        self.draw_button.setCheckable(True)
        self.size = named(
            "search",
            QComboBox(),
            "box_size",
            "One patch, placed with a click, or any rectangle, drawn freely.",
        )
        self.size.addItems([f"{PATCH_UM:.0f} µm square", "free"])
        self.live = named(
            "search",
            QCheckBox("Live: search whenever the box moves"),
            "live",
            "Search as soon as the box is placed, and anew when it is moved.",
        )
        self.live.setChecked(True)
        paste = _button(
            "Paste image", "paste", "Search for the image or file on the clipboard.", "search_clipboard"
        )
        file = _button("Image or file…", "file", "Search for a slide or image on disk, or drop it here.", "")

        form = QFormLayout()
        form.setVerticalSpacing(4)
        form.addRow(field_label("slide"), self.slide)
        form.addRow(field_label("µm per px"), self.mpp_box)
        grid = QGridLayout()
        grid.setSpacing(4)
        for row, controls in enumerate(
            (
                (self.slide_button, self.box_button),
                (self.draw_button, self.size),
                (paste, file),
            )
        ):
            for column, control in enumerate(controls):
                grid.addWidget(control, row, column)
        grid.addWidget(self.live, 3, 0, 1, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(form)
        layout.addLayout(grid)

        self.slide.currentIndexChanged.connect(self._look)
        self.slide_button.clicked.connect(self.slide_wanted)
        self.box_button.clicked.connect(self.box_wanted)
        self.draw_button.clicked.connect(self.draw)
        paste.clicked.connect(self.paste_wanted)
        file.clicked.connect(self.file_wanted)


def _button(text: str, name: str, tip: str, command: str) -> QPushButton:
    return named("search", QPushButton(text), name, with_shortcut(tip, command))
