"""What the benchmark of the viewer works on: the demo, a large database made of it, and a folder of small slides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_fish.store import EncodedSlide
from napari_fish.store.snapshot.store import SnapshotStore

PATCHES_PER_SLIDE = 100
FLIPPED = 0.04
"""Share of the bits of a demo barcode that differ in a copy."""
PATCH_PX = 1024
BROKEN_EVERY = 9


def demo(folder: Path) -> Path:
    """Return the demo database, made where it is missing."""
    from napari_fish.building.build import build
    from napari_fish.slides.demo import write_demo

    database = folder / "demo.fish"
    if not database.exists():
        write_demo(folder / "slides")
        build(folder / "slides", database, folder / "slides" / "labels.csv")
    return database


def large_archive(database: Path, folder: Path, patches: int) -> Path:
    """Make a database of many patches: those of the demo with some bits flipped, as slides of patients of their own."""
    from napari_fish.search.calibrate import calibrate
    from napari_fish.store.sqlite.catalogue import SqliteCatalogue

    dice = np.random.default_rng(0)
    with SnapshotStore(database) as source:
        alive = np.flatnonzero(source.slides.alive)
        rows = np.concatenate([source.rows_of([int(i)]) for i in alive])
        keys, codes = source.encoded(rows)
        found = source.regions(rows)
        boxes = np.array([one.box for one in found], np.int32)
        owner = np.array([one.slide for one in found])
        records = {int(i): source.slides[int(i)] for i in alive}
        truth = source.catalogue
        SqliteCatalogue.create(
            folder, words=truth.words, encoder=truth.encoder, weights_hash=truth.weights_hash,
            parameters=truth.parameters,
        ).close()  # fmt: skip
    with SnapshotStore(folder, writer=True) as store:
        with store.catalogue.changing():
            for number in range(patches // PATCHES_PER_SLIDE):
                one = int(alive[number % len(alive)])
                own = np.flatnonzero(owner == one)
                chosen = dice.choice(own, PATCHES_PER_SLIDE)
                flips = np.packbits(
                    dice.random((PATCHES_PER_SLIDE, truth.words * 64)) < FLIPPED, axis=1, bitorder="little"
                ).view(np.uint64)
                record = records[one]
                place = (database.parent / record.path).resolve()
                record = replace(
                    record, slide=f"{number}-{record.slide}", patient=f"patient {number}", path=str(place),
                    content_hash=f"{record.content_hash}-{number}",
                )  # fmt: skip
                jitter = dice.integers(-(10**9), 10**9, PATCHES_PER_SLIDE)
                places = boxes[chosen] + np.array([1, 0, 0, 0]) * np.arange(PATCHES_PER_SLIDE)[:, None]
                store.catalogue.commit(
                    EncodedSlide(
                        record,
                        np.maximum(keys[chosen] + jitter, 0),
                        codes[chosen] ^ flips,
                        places.astype(np.int32),
                    )
                )
        store.settle()
        store.calibration = calibrate(store)
    return folder


def small_slides(slides: Path, folder: Path, n: int) -> set[str]:
    """Write pieces of demo slides, each of one patch, and some that are broken; return the names of those."""
    import tifffile

    from napari_fish.slides import open_slide
    from napari_fish.slides.demo import demo_specs
    from napari_fish.slides.demo.specs import GLASS

    folder.mkdir()
    broken = set()
    # Clean ones: pen marks and dust would rightly be refused, and are not broken.
    sources = [
        slides / f"{spec.name}.tif" for spec in demo_specs() if not spec.artefacts and spec.diagnosis != GLASS
    ]
    dice = np.random.default_rng(1)
    for i in range(n):
        path = folder / f"slide-{i:03}.tif"
        with open_slide(sources[i % len(sources)]) as slide:
            width, height = slide.dimensions
            side = PATCH_PX + 256
            x, y = (int((size - side) * (0.35 + 0.3 * dice.random())) for size in (width, height))
            tissue = slide.read_level(0, x, y, side, side)
        # With glass around it, or nothing would tell tissue from glass.
        pixels = np.full((2 * side, 2 * side, 3), 243, np.uint8)
        pixels[side // 2 : -side // 2, side // 2 : -side // 2] = tissue
        pixels[0, 0] = (i % 256, i // 256, 7)
        tifffile.imwrite(
            path, pixels, tile=(256, 256), compression="deflate", photometric="rgb",
            resolution=(2e4, 2e4), resolutionunit="CENTIMETER", metadata=None,
        )  # fmt: skip
        if i % BROKEN_EVERY == 7:
            data = path.read_bytes()
            kinds = (b"", b"this is no slide", data[: len(data) // 3], bytes(len(data)))
            path.write_bytes(kinds[i // BROKEN_EVERY % len(kinds)])
            broken.add(path.name)
    return broken
