"""Slides whose barcodes say what they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from napari_fish.store import EncodedSlide, SlideRecord

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
