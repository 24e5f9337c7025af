"""A small database with pictures, of which only one slide is at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_fish.database import Database
from napari_fish.search import Results, SearchParams
from napari_fish.slides.pixels import to_jpeg
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from napari_fish.store.sqlite.pictures import Thumbnails
from tests.search.archives import demo_slides
from tests.slides.conftest import write_tiff

KEPT, SHARP = (250, 120, 120), (120, 120, 250)
"""Colours of the pictures that were kept, and of the slide that is at hand."""
AT_HAND = "s1"
PARAMS = SearchParams(k=8, mode="exact", fill=True, threshold=60, exclude_query=False, where=("slide!=s0",))


def make_database(folder: Path) -> Database:
    """Write 12 slides of 6 patients with 4 patches each; s0 and s1 are of the same diagnosis."""
    place = folder / "small.fish"
    SqliteCatalogue.create(place, words=4, encoder="fish-lite", weights_hash="abc").close()
    pictures = Thumbnails.open_to_write(place)
    picture = to_jpeg(np.full((32, 32, 3), KEPT, np.uint8))
    slide = np.full((1100, 4200, 3), SHARP, np.uint8)
    write_tiff(folder / f"{AT_HAND}.tif", slide, resolution=(2e4, 2e4), levels=2)
    with SnapshotStore(place, writer=True) as store:
        for made in demo_slides(np.random.default_rng(0), 12, 4):
            record = replace(made.record, path=f"{made.record.slide}.tif", mpp=0.5, width=4200, height=1100)
            boxes = made.boxes.copy()
            boxes[:, 1] = 0
            store.catalogue.commit(replace(made, record=record, boxes=boxes))
            pictures.save(record.slide, picture, boxes.tolist(), [picture] * len(boxes))
        store.settle()
    pictures.close()
    return Database(place, "cpu")


def answer(database: Database, **params: object) -> Results:
    """Search for the first slide."""
    return database.answer([database.ask("id:s0")], replace(PARAMS, **params))[0]
