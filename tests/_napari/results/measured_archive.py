"""A small archive whose slides can be told apart and measured on the screen.

Each slide has a colour of its own and a black square of 40 µm in the middle of its only patch, which lies
elsewhere on every slide; pixel sizes differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish._napari.layers.magnification import mpp_at, um_per_world_unit
from napari_fish._napari.session.session import Answer
from napari_fish.database import Asked, Database, open_database
from napari_fish.search import Query, SearchParams
from napari_fish.slides import open_slide
from napari_fish.slides.pixels import to_jpeg
from napari_fish.store import EncodedSlide, SlideRecord
from napari_fish.store.places import recorded_path
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from napari_fish.store.sqlite.pictures import Thumbnails
from tests.slides.conftest import write_tiff

SIZE_UM, PATCH_UM, SQUARE_UM = (600, 500), 128, 40
COLOURS = ((250, 80, 80), (80, 250, 80), (90, 90, 250), (240, 240, 60))
MPPS = (0.5, 0.25, 0.5, 1.0)
CENTRES_UM = ((200, 250), (330, 180), (150, 330), (420, 300))
"""x and y of the middle of each slide's patch."""
WORDS = 4


def picture(i: int) -> NDArray[np.uint8]:
    """Paint slide i."""
    mpp, (cx, cy) = MPPS[i], CENTRES_UM[i]
    image = np.empty((round(SIZE_UM[1] / mpp), round(SIZE_UM[0] / mpp), 3), np.uint8)
    image[:] = COLOURS[i]
    half = SQUARE_UM / 2
    rows = slice(round((cy - half) / mpp), round((cy + half) / mpp))
    columns = slice(round((cx - half) / mpp), round((cx + half) / mpp))
    image[rows, columns] = 0
    return image


def box(i: int) -> tuple[int, int, int, int]:
    """Return the patch of slide i in its level-0 px."""
    mpp, (cx, cy) = MPPS[i], CENTRES_UM[i]
    half, side = PATCH_UM / 2, round(PATCH_UM / mpp)
    return round((cx - half) / mpp), round((cy - half) / mpp), side, side


def make_archive(folder: Path) -> Path:
    """Write slides, and a database in which slide i is i bits from slide 0."""
    (folder / "slides").mkdir(parents=True)
    database = folder / "small.fish"
    SqliteCatalogue.create(database, words=WORDS, encoder="fish-lite", weights_hash="abc").close()
    pictures = Thumbnails.open_to_write(database)
    with SnapshotStore(database, writer=True) as store:
        for i, mpp in enumerate(MPPS):
            path = write_tiff(
                folder / "slides" / f"s{i}.tif", picture(i), resolution=(1e4 / mpp, 1e4 / mpp), levels=2
            )
            with open_slide(path) as slide:
                record = SlideRecord(
                    f"s{i}.tif", f"s{i}.tif", f"p{i}", "site", f"diagnosis {i}",
                    path=recorded_path(path, database), content_hash=slide.content_hash,
                    mpp=mpp, width=slide.dimensions[0], height=slide.dimensions[1],
                )  # fmt: skip
                x, y, *_ = box(i)
                mosaic = to_jpeg(slide.read(x, y, 64, 64, PATCH_UM / 64))
                pictures.save(f"s{i}.tif", to_jpeg(slide.thumbnail(64)), [box(i)], [mosaic])
            barcode = np.zeros((1, WORDS), np.uint64)
            barcode[0, 0] = 2**i - 1
            boxes = np.array([box(i)], np.int32)
            store.catalogue.commit(EncodedSlide(record, np.array([10**14]), barcode, boxes))
        store.settle()
    pictures.close()
    return database


def ask(database: Database, i: int = 0, k: int = 3, layer: str = "") -> Answer:
    """Search for the patch of slide i, as if a box had been drawn on it."""
    record = database.record(f"s{i}.tif")
    assert record is not None
    barcode = np.zeros((1, WORDS), np.uint64)
    barcode[0, 0] = 2**i - 1
    query = Query(
        f"s{i}.tif", np.array([10**14]), barcode, np.array([box(i)], np.int32), record.slide, record.patient
    )
    with open_slide(database.place(record)) as slide:
        x, y, *_ = box(i)
        asked = Asked(query, [to_jpeg(slide.read(x, y, 64, 64, PATCH_UM / 64))], size=slide.dimensions)
    params = SearchParams(k=k, mode="exact", threshold=60)
    return Answer(asked, params, database.answer([asked], params)[0], layer=layer)


def open_archive(path: Path) -> Database:
    """Open it."""
    return open_database(path, "cpu")


def magnification(viewer: Any, layer: Any = None) -> float:
    """Return through which objective a slide is seen now."""
    return mpp_at(um_per_world_unit(viewer, layer) / viewer.scene.camera.zoom)  # its own inverse
