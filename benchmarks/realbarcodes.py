"""Barcodes of real tissue, from which the model of the recall archives is fitted; made once and kept.

fish-lite's barcodes of every labelled image in ``../shared/data/tissue`` whose licence allows more than looking
(breakhis, lc25000, oral, osteosarcoma; about 1600), each image one patch. Run it by itself to make them:
``python benchmarks/realbarcodes.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode import load_encoder, patch_from_image

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CACHE = Path(__file__).resolve().parent / ".cache"
SETS = ("breakhis", "lc25000", "oral", "osteosarcoma")
BATCH = 16


def images(data: Path = DATA) -> Iterator[NDArray[np.uint8]]:
    """Give all images."""
    from PIL import Image

    for path in sorted(p for name in SETS for p in (data / "tissue").glob(f"*/{name}/**/*.*")):
        with Image.open(path) as file:
            yield np.asarray(file.convert("RGB"))


def real_barcodes(data: Path = DATA) -> NDArray[np.uint64] | None:
    """Return barcodes, shape (n, words), from the cache or made now; None where there is no data."""
    file = CACHE / "real-barcodes.npy"
    if file.is_file():
        return np.asarray(np.load(file, allow_pickle=False), np.uint64)
    if not (data / "tissue").is_dir():
        return None
    encoder = load_encoder("fish-lite")
    made: list[NDArray[np.uint64]] = []
    batch: list[NDArray[np.uint8]] = []
    for image in images(data):
        batch.append(patch_from_image(image, encoder.card.size))
        if len(batch) == BATCH:
            made.append(encoder.encode(np.stack(batch)).barcodes)
            batch = []
    if batch:
        made.append(encoder.encode(np.stack(batch)).barcodes)
    barcodes = np.unique(np.concatenate(made), axis=0)
    CACHE.mkdir(exist_ok=True)
    np.save(file, barcodes, allow_pickle=False)
    return barcodes


if __name__ == "__main__":
    found = real_barcodes()
    print("no data" if found is None else f"{len(found)} different barcodes of {found.shape[1]} words")
