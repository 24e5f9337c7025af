"""Slides whose barcodes say what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from napari_fish.store import EncodedSlide, MemoryStore, SlideRecord, SlideTable
from napari_fish.store.snapshot.store import SnapshotStore

DIAGNOSES = ("KIRC", "KIRP", "BLCA", "PRAD")


def demo_slides(
    dice: np.random.Generator, n: int = 40, patches: int = 25, words: int = 4, labelled: float = 1.0
) -> Iterator[EncodedSlide]:
    """Make slides: two of each patient, diagnoses in turn, barcodes scattered about their diagnosis's."""
    centres = dice.integers(0, 2**64, (len(DIAGNOSES), words), np.uint64)
    for i in range(n):
        kind = i // 2 % len(DIAGNOSES)
        flips = dice.integers(0, 2**64, (3, patches, words), np.uint64)
        record = SlideRecord(
            f"s{i}",
            f"slide {i}.svs",
            f"p{i // 2}",
            site="kidney" if kind < 2 else "pelvis",
            diagnosis=DIAGNOSES[kind] if dice.random() < labelled else "",
            labels={"Stain": "H&E" if i % 3 else "PAS"},
        )
        yield EncodedSlide(
            record,
            4 * 10**14 + dice.integers(-(10**13), 10**13, patches),
            centres[kind] ^ (flips[0] & flips[1] & flips[2]),
            np.column_stack([1024 * np.arange(patches), np.full((patches, 3), 1024)]).astype(np.int32),
        )


def commit(store: SnapshotStore, *slides: EncodedSlide) -> None:
    """Add slides one by one, each shown at once and kept as a delta."""
    for slide in slides:
        store.catalogue.commit(slide)
        store.refresh()
        store.save_delta()


def remove(store: MemoryStore, gone: Sequence[int]) -> None:
    """Remove slides, given by number, from a store in memory as databases do: their rows are still there."""
    alive = ~np.isin(np.arange(len(store.slides)), gone)
    store.slides = SlideTable(store.slides.records, alive)
    store._rows = replace(store._rows, alive=alive, counts=np.where(alive, store.patches_per_slide, 0))
