"""How far apart unrelated mosaics are, and how near is near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_fish.database.protocol import Store
from napari_fish.database.records import Calibration
from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Rows
from napari_fish.index.guided import GuidedParams
from napari_fish.index.hamming import pair_distances
from napari_fish.names import Mode

#: θ_h is this quantile of the distances of random pairs.
QUANTILE = 0.001
PAIRS = 100_000
_ROUNDS = 50


def calibrate(store: Store, *, pairs: int = PAIRS, seed: int = 0) -> Calibration:
    """Measure the distances of random pairs of mosaics from different patients.

    A slide without a known patient counts as a patient of its own. With a single patient pairs come from
    different slides, with a single slide from anywhere in it; the result says so.

    Parameters
    ----------
    store
        The database.
    pairs
        Pairs to draw; 10⁵ or more for a threshold to trust.
    seed
        The same seed draws the same pairs.
    """
    if store.mosaics_per_slide[store.slides.alive].sum() < 2:
        raise DatabaseError("A threshold needs at least two mosaics: build the database first.")
    patients = store.slides.codes("patient")[0].astype(np.int64)
    owner = np.where(patients >= 0, patients, len(patients) + np.arange(len(patients)))
    used = store.slides.alive & (store.mosaics_per_slide > 0)
    note = ""
    if len(np.unique(owner[used])) < 2:
        owner = np.arange(len(owner))
        note = "All mosaics are of one patient: random pairs come from different slides."
        if used.sum() < 2:
            return _calibration(store, None, pairs, seed, "Only one slide: random pairs come from within it.")
    return _calibration(store, owner, pairs, seed, note)


def _calibration(
    store: Store, owner: NDArray[np.int64] | None, pairs: int, seed: int, note: str
) -> Calibration:  # fmt: skip
    dice, rows = np.random.default_rng(seed), living_rows(store)
    found: list[NDArray[np.int64]] = []
    missing = pairs
    for _ in range(_ROUNDS):
        left, right = rows[dice.integers(0, len(rows), (2, max(1000, missing)))]
        apart = left != right
        if owner is not None:
            apart = owner[store.slides_of(left)] != owner[store.slides_of(right)]
        left, right = left[apart][:missing], right[apart][:missing]
        found.append(pair_distances(store.barcodes(left), store.barcodes(right)).astype(np.int64))
        missing -= len(left)
        if not missing:
            break
    distances = np.concatenate(found)
    threshold = int(np.quantile(distances, QUANTILE)) if len(distances) else 64 * store.words // 8
    return Calibration(np.bincount(distances, minlength=64 * store.words + 1), threshold, note)


def living_rows(store: Store) -> Rows:
    """Return the rows of all slides that were not removed."""
    alive = store.slides.alive
    return np.arange(len(store)) if alive.all() else store.rows_of(np.flatnonzero(alive))


def threshold_of(store: Store, wanted: int | None, mode: Mode = "auto") -> tuple[int, str]:
    """Return θ_h in bits and what is to be said of it: given, calibrated, or the paper's.

    The paper's modes on the paper's barcodes go by the paper's threshold; without a calibration, any other search goes by the
    same share of the bits.
    """
    if wanted is not None:
        return int(wanted), ""
    bits = 64 * store.words
    if mode in ("guided", "released") and store.paper_barcodes:
        return GuidedParams().threshold, ""
    if store.calibration is not None:
        return store.calibration.threshold, store.calibration.note
    return bits // 8, f"The threshold is not calibrated: the paper's, {bits // 8} of {bits} bits, was used."
