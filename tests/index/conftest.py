from __future__ import annotations

import numpy as np
import pytest

from napari_fish.index import Segment
from tests.index.archives import Archive, random_archive


@pytest.fixture(scope="session")
def archive() -> Archive:
    """3000 patches of 60 slides in 12 families of barcodes, 256 bits."""
    return random_archive(np.random.default_rng(0), 3000, words=4, slides=60)


@pytest.fixture(scope="session")
def segment(archive: Archive) -> Segment:
    return Segment.from_rows(archive.keys, archive.barcodes, archive.slides)[0]
