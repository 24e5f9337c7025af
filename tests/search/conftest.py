from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from napari_fish.index import ClusterParams
from napari_fish.search import Query
from napari_fish.search.calibrate import calibrate
from napari_fish.store import MemoryStore
from tests.search.archives import demo_slides


@pytest.fixture(scope="session")
def store() -> MemoryStore:
    """40 slides of 20 patients in 4 diagnoses, 25 patches each, calibrated, with clusters."""
    made = MemoryStore(4, demo_slides(np.random.default_rng(0)))
    # A quarter of random pairs share a diagnosis here, unlike in a real archive: the thousandth is too strict.
    made.calibration = replace(calibrate(made, pairs=20_000), threshold=60)
    made.train_clusters(ClusterParams(clusters=20))
    return made


@pytest.fixture(scope="session")
def query(store: MemoryStore) -> Query:
    """The first slide of the store, as a query."""
    rows = store.rows_of([0])
    keys, barcodes = store.encoded(rows)
    boxes = np.array([record.box for record in store.regions(rows)], np.int32)
    return Query("slide 0", keys, barcodes, boxes, slide="s0", patient="p0")
