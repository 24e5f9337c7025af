"""Finds out about slides in the background, once for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from qtpy.compat import isalive
from qtpy.QtCore import QObject, Signal

from napari_fish._napari.jobs.worker import JobWorker
from napari_fish._napari.layers.queries import LayerFacts, LayerQuestion, facts_of


class FactsFinder(QObject):
    """Knows what was found out about the slides behind layers."""

    found = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._facts: dict[int, LayerFacts] = {}
        self._layers: list[Any] = []
        self._workers: dict[int, JobWorker] = {}

    def of(self, layer: Any) -> LayerFacts | None:
        """Return what is known of a layer's slide; None until that is known."""
        return self._facts.get(id(layer))

    def keep(self, layers: Sequence[Any]) -> None:
        """Forget all layers but these."""
        self._layers = list(layers)
        kept = {id(layer) for layer in layers}
        self._facts = {key: facts for key, facts in self._facts.items() if key in kept}

    def find(self, layer: Any, others: tuple[Any, ...]) -> None:
        """Find out about a layer's slide, unless that is known or going on; ``others`` are all layers."""
        if id(layer) not in self._facts and id(layer) not in self._workers:
            worker = JobWorker(facts_of, LayerQuestion(layer, others))
            worker.returned.connect(partial(self._known, layer))
            worker.finished.connect(partial(self._workers.pop, id(layer), None))
            self._workers[id(layer)] = worker
            worker.start()

    def stop(self) -> None:
        """Find out nothing any more."""
        self._layers = []

    def _known(self, layer: Any, facts: LayerFacts) -> None:
        # Qt's part may be gone with the window.
        if isalive(self) and any(layer is one for one in self._layers):
            self._facts[id(layer)] = facts
            self.found.emit()
