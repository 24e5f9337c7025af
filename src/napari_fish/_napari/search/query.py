"""What is searched for: the part of the Search widget that shows the slide and draws the box."""

from __future__ import annotations

from typing import Any

from qtpy.compat import isalive
from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QGridLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari.controls.common import mpp_field, named
from napari_fish._napari.layers.coordinates import world_um_per_pixel
from napari_fish._napari.layers.queries import (
    LayerFacts,
    LayerQuestion,
    looked_at,
    slide_layers,
    unwrapped,
)
from napari_fish._napari.layers.query_layers import LAYER as REGIONS
from napari_fish._napari.search.box_tool import BoxTool
from napari_fish._napari.search.facts_finder import FactsFinder
from napari_fish._napari.search.params import field_label
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
        self._layers: list[Any] = []
        self._facts = FactsFinder(self)
        self._stated: dict[int, float | None] = {}
        self.patch_um = PATCH_UM
        self.box = BoxTool(viewer, self)
        self._build()
        for event in self._events():
            event.connect(self._list)
        self._facts.found.connect(self._show_facts)
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
        return None if self.layer is None else self._facts.of(self.layer)

    @property
    def mpp(self) -> float | None:
        """What the user stated as µm per level-0 px of the slide."""
        return self.mpp_box.value() or None

    @property
    def image_mpp(self) -> float | None:
        """What the user stated as µm per px of pasted images, and of files that do not say."""
        return self.image_mpp_box.value() or None

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
        if self.box_size.currentIndex() == 0:
            self.box.place(self.layer, self.side())
            self.said.emit("Click on the slide to place the box; Escape leaves it.")
        else:
            self.box.draw(self.layer, self.side())
            self.said.emit("Press and drag on the slide to draw the box; Escape leaves it.")

    def side(self) -> float:
        """Return the side of the fixed box in px of the layer."""
        facts = self.facts
        if facts is None:
            # Not opened yet: what the layer says will do.
            sizes = world_um_per_pixel(self.layer)
            um = None if sizes is None else sizes[1]
        else:
            um = facts.um_per_pixel
        if self.mpp is not None:
            um = self.mpp * (um / facts.mpp if um is not None and facts is not None and facts.mpp else 1.0)
        return PATCH_PX if um is None else self.patch_um / um

    def reset(self) -> None:
        """Back to the slide's own pixel size, the fixed box and live searching."""
        self.mpp_box.setValue(0)
        self.image_mpp_box.setValue(0)
        self.box_size.setCurrentIndex(0)
        self.live.setChecked(True)

    def forget(self) -> None:
        """Let go of the viewer."""
        self.box.forget()
        for event in self._events():
            event.disconnect(self._list)
        self._facts.stop()

    def set_patch(self, um: float) -> None:
        """Make the fixed box as large as a patch of the database."""
        self.patch_um = um
        self.box_size.setItemText(0, f"{um:.0f} µm square")

    def _events(self) -> tuple[Any, ...]:
        """Return what happens in the viewer that may change which slide is looked at."""
        layers = self._viewer.layers
        events = layers.events
        return events.inserted, events.removed, events.reordered, layers.selection.events.active

    def _ask(self, layer: Any, region: Any = None) -> LayerQuestion:
        others = tuple(map(unwrapped, self._viewer.layers))
        return LayerQuestion(layer, others, region, self._stated.get(id(layer)))

    def _state_mpp(self, value: float) -> None:
        """Keep what the user says for this slide, and only for it."""
        if self.layer is not None:
            self._stated[id(self.layer)] = value or None

    def _box_changed(self) -> None:
        self.box_button.setEnabled(self.box.box() is not None)
        self.box_changed.emit()

    def _placing(self, placing: bool) -> None:
        self.draw_button.setChecked(placing)
        self.box_button.setEnabled(self.box.box() is not None)

    def _list(self, *_: Any) -> None:
        """Offer the slides that are open; the one that the user looks at is chosen."""
        if not isalive(self):
            return
        before = self.layer
        self._layers = slide_layers(self._viewer.layers)
        kept = {id(layer) for layer in self._layers}
        self._facts.keep(self._layers)
        self._stated = {key: mpp for key, mpp in self._stated.items() if key in kept}
        active = unwrapped(self._viewer.layers.selection.active)
        drawn_on = active is None or active is self.box.layer or active.name == REGIONS
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
        if self.layer is not None:
            self._facts.find(self.layer, tuple(map(unwrapped, self._viewer.layers)))
        self._show_facts()

    def _show_facts(self) -> None:
        facts = self.facts
        self.mpp_box.blockSignals(True)
        self.mpp_box.setValue(self._stated.get(id(self.layer)) or 0)
        self.mpp_box.blockSignals(False)
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
        self.mpp_box = mpp_field(
            "search",
            "mpp",
            "µm per px of this slide, if it does not say or you know better: 0.25 for 40x, 0.5 for 20x.",
            "as the slide says",
        )
        self.image_mpp_box = mpp_field(
            "search",
            "image_mpp",
            "µm per px of pasted images, and of files that do not say: 0.25 for 40x, 0.5 for 20x.",
            "as the image says",
        )
        self.slide_button = _button(
            "Search this slide", "this_slide", "Search for slides similar to this one.", "search_this_slide"
        )
        self.box_button = _button(
            "Search this box", "this_box", "Search for the box drawn on the slide.", "search_this_box"
        )
        self.draw_button = _button(
            "Draw box",
            "draw_box",
            "Place or draw a box on the slide; Escape leaves it. It can be dragged afterwards; a larger one is searched as "
            "several patches.",
            "draw_a_box",
        )
        self.draw_button.setCheckable(True)
        self.box_size = named(
            "search",
            QComboBox(),
            "box_size",
            "One patch, placed with a click, or any rectangle, drawn freely.",
        )
        self.box_size.addItems([f"{PATCH_UM:.0f} µm square", "free"])
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
                (self.draw_button, self.box_size),
                (self.live,),
                (paste, file),
                (QLabel("their µm per px"), self.image_mpp_box),
            )
        ):
            for column, control in enumerate(controls):
                grid.addWidget(control, row, column, 1, 3 - len(controls))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(form)
        layout.addLayout(grid)

        self.slide.currentIndexChanged.connect(self._look)
        self.mpp_box.valueChanged.connect(self._state_mpp)
        self.slide_button.clicked.connect(self.slide_wanted)
        self.box_button.clicked.connect(self.box_wanted)
        self.draw_button.clicked.connect(self.draw)
        paste.clicked.connect(self.paste_wanted)
        file.clicked.connect(self.file_wanted)


def _button(text: str, name: str, tip: str, command: str) -> QPushButton:
    return named("search", QPushButton(text), name, with_shortcut(tip, command))
