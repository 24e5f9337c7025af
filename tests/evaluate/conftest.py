from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_fish.index import ClusterParams
from napari_fish.search.calibrate import calibrate
from napari_fish.store import MemoryStore
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from tests.search.archives import demo_slides

N = 16


def make_database(folder: Path, seed: int = 0, n: int = N, threshold: int = 60, weights: str = "abc") -> Path:
    """Write a database of slides whose barcodes say what they are, two slides a patient."""
    SqliteCatalogue.create(folder, words=4, encoder="fish-lite", weights_hash=weights).close()
    with SnapshotStore(folder, writer=True) as store:
        for slide in demo_slides(np.random.default_rng(seed), n=n, patches=6):
            store.catalogue.commit(slide)
        store.settle()
        store.calibration = replace(calibrate(store, pairs=2000), threshold=threshold)
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_database(tmp_path_factory.mktemp("evaluate") / "a ü.fish")


@pytest.fixture
def store(folder: Path) -> Iterator[SnapshotStore]:
    with SnapshotStore(folder) as opened:
        yield opened


@pytest.fixture
def memory() -> MemoryStore:
    made = MemoryStore(4, demo_slides(np.random.default_rng(0), n=N, patches=6))
    made.calibration = replace(calibrate(made, pairs=2000), threshold=60)
    made.train_clusters(ClusterParams(clusters=4))
    return made
