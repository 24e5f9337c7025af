"""A store in memory does what every store does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_fish.errors import DatabaseError
from napari_fish.index import ClusterParams
from napari_fish.store import MemoryStore
from napari_fish.store.request import Request
from tests.store.conformance import KEPT, REPLACED, SLIDES, StoreTests


class TestMemoryStore(StoreTests):
    def make(self, place: Path) -> MemoryStore:
        made = MemoryStore(4, [*(slide for slide in KEPT if slide is not REPLACED), REPLACED])
        made.train_clusters(ClusterParams())
        return made


def test_slides_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DatabaseError, match="do not fit"):
        MemoryStore(5, SLIDES)


def test_without_clusters_clustered_search_has_no_price_and_is_refused() -> None:
    store = MemoryStore(4, SLIDES)
    request = Request(np.zeros((1, 4), np.uint64), "clustered")
    assert store.cost(request) == float("inf")
    with pytest.raises(DatabaseError, match="no clusters"):
        store.nearest(request)
