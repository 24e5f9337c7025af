"""Databases: their snapshots, their SQLite files and their latent codes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from . import mutators
from .kind import Kind
from .mutators import Dice

SLIDES = 5


@cache
def _encoded_slides() -> list[Any]:
    from tests.search.archives import demo_slides

    return list(demo_slides(np.random.default_rng(2), n=SLIDES + 2, patches=12))


def _databases(folder: Path) -> Iterator[Path]:
    from napari_fish.mosaic import MosaicParams
    from napari_fish.search.calibrate import calibrate
    from napari_fish.store.latent_codes import save_codes
    from napari_fish.store.snapshot.store import SnapshotStore
    from napari_fish.store.sqlite.catalogue import SqliteCatalogue
    from napari_fish.store.sqlite.pictures import Thumbnails

    path = folder / "x.fish"
    known = {"mosaic": MosaicParams().to_dict(), "patches": False, "patient": r"(P\d+)", "bundle": "../tiny"}
    SqliteCatalogue.create(path, words=4, encoder="fish-lite", weights_hash="abc", parameters=known).close()
    pictures = Thumbnails.open_to_write(path)
    with SnapshotStore(path, writer=True) as store:
        for i, slide in enumerate(_encoded_slides()):
            store.catalogue.commit(slide)
            store.refresh()
            store.save_delta()
            pictures.save(slide.record.slide, b"jpeg", slide.boxes.tolist(), [b"jpeg"] * len(slide.boxes))
            save_codes(path, slide.record.slide, _codes(len(slide.keys)))
            if i + 1 == SLIDES:
                store.compact()
                calibrate(store)
    pictures.close()
    yield path


def _codes(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, 128, (n, 64, 64), np.uint8)


def _change_snapshot(source: Path, target: Path, dice: Dice) -> None:
    if dice.random() < 0.3:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("snapshot"))
        mutators.folder(source / "snapshot", target / "snapshot", dice)
        return
    shutil.copytree(source, target)
    parts = sorted((target / "snapshot").iterdir())
    part = target / "snapshot" / "main" if dice.random() < 0.8 else parts[int(dice.integers(len(parts)))]
    mutators.arrays(part, dice)


def _change_sqlite(source: Path, target: Path, dice: Dice) -> None:
    shutil.copytree(source, target)
    if dice.random() < 0.6:
        # What is in a snapshot is not asked of the truth.
        shutil.rmtree(target / "snapshot")
    path = target / ("fish.sqlite" if dice.random() < 0.85 else "thumbnails.sqlite")
    if dice.random() < 0.35:
        path.write_bytes(mutators.of_bytes(path.read_bytes(), dice))
    else:
        mutators.table(path, dice)


def _answers(store: Any) -> list[Any]:
    from napari_fish.search import Query, SearchParams, search

    found = []
    slide = _encoded_slides()[1]
    query = Query(slide.record.name, slide.keys, slide.barcodes, slide.boxes, slide.record.slide)
    for mode in ("clustered", "guided", "exact"):
        params = SearchParams(mode=mode, threshold=70, k=8, where=("site!=brain",), fill=True)
        for hit in search(store, query, params).hits:
            regions = sorted((m.query_index, m.hit_box, m.distance) for m in hit.matches)
            found.append((mode, hit.rank, hit.slide, hit.distance, hit.diagnosis, regions))
    return found


@cache
def _right_answers() -> list[Any]:
    from napari_fish.index import ClusterParams
    from napari_fish.store import MemoryStore

    store = MemoryStore(4, _encoded_slides())
    store.train_clusters(ClusterParams())
    return _answers(store)


def _ask_snapshot(path: Path) -> None:
    from napari_fish.store.snapshot.store import SnapshotStore

    with SnapshotStore(path) as store:
        found = _answers(store)
        said = store.verify()
    assert said or [f for f in found if f[0] != "clustered"] == [
        f for f in _right_answers() if f[0] != "clustered"
    ], "other answers, and verify says that all is well"
    with SnapshotStore(path, writer=True) as store:
        store.verify()
        assert _answers(store)


def _each(*steps: Callable[[], object]) -> None:
    """Do all steps, whatever became of those before; one that was refused is what is said in the end."""
    from napari_fish.errors import FishError

    refused = None
    for step in steps:
        try:
            step()
        except FishError as error:
            refused = refused or error
    if refused:
        raise refused


def _ask_database(path: Path) -> None:
    from PIL import Image

    from napari_fish.database.care import relocate
    from napari_fish.database.inspection import inspect_database
    from napari_fish.store.copy import export

    copy = path.with_name("copy.fish")
    (path.parent / "elsewhere").mkdir()
    Image.new("RGB", (64, 64)).save(path.parent / "elsewhere" / "a.png")
    _each(
        lambda: _read_database(path),
        lambda: inspect_database(path),
        lambda: _ask_of(path),
        lambda: _pictures(path),
        lambda: export(path, copy, deidentify=True),
        lambda: relocate(path, path.parent / "elsewhere"),
        lambda: _write_database(path),
    )


def _read_database(path: Path) -> None:
    from napari_fish.store.snapshot.store import SnapshotStore

    with SnapshotStore(path) as store:
        _each(
            lambda: _answers(store),
            lambda: store.calibration,
            lambda: store.catalogue.quarantined,
            lambda: list(store.slides),
            lambda: [store.slides.numbered(column) for column in store.slides.columns],
            store.verify,
            store.digest,
        )


def _ask_of(path: Path) -> None:
    from napari_fish.database import open_database
    from napari_fish.errors import FishError

    with open_database(path) as database:
        asked = database.ask(f"id:{_encoded_slides()[0].record.slide}")
        _each(lambda: database.answer([asked]), lambda: database._patient("a.tif"), database._mosaic)
        for record in database.store.slides:
            with suppress(FishError):  # none of their files is there
                database.place(record)


def _pictures(path: Path) -> None:
    from napari_fish.store.sqlite.pictures import Thumbnails

    pictures = Thumbnails.open_to_read(path)
    if pictures is not None:
        slide = _encoded_slides()[0].record.slide
        _each(lambda: pictures.overview(slide), lambda: pictures.patches(slide), pictures.close)


def _write_database(path: Path) -> None:
    from napari_fish.store.snapshot.store import SnapshotStore

    slide = _encoded_slides()[0]
    with SnapshotStore(path, writer=True) as store:
        _each(
            store.verify,
            lambda: store.catalogue.commit(slide),
            store.refresh,
            lambda: store.catalogue.remove([slide.record.slide]),
            store.settle,
            store.compact,
        )


def _change_codes(source: Path, target: Path, dice: Dice) -> None:
    target.mkdir()
    mutators.folder(source / "codes.zarr", target / "codes.zarr", dice)


def _ask_codes(path: Path) -> None:
    from napari_fish.errors import FishError
    from napari_fish.store.latent_codes import has_codes, read_codes

    wrong = None
    for slide in _encoded_slides():
        try:
            if has_codes(path, slide.record.slide):
                found = read_codes(path, slide.record.slide)
                assert np.array_equal(found, _codes(len(slide.keys))), "other codes than were kept"
        except FishError as error:
            wrong = error
    if wrong:
        raise wrong


KINDS = {
    "snapshots": Kind(_databases, _change_snapshot, _ask_snapshot),
    "sqlite": Kind(_databases, _change_sqlite, _ask_database),
    "codes": Kind(_databases, _change_codes, _ask_codes),
}
