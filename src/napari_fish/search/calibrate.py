"""How far apart unrelated patches are, and how near is near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import DatabaseError
from napari_fish.index.guided.params import GuidedParams
from napari_fish.names import Mode
from napari_fish.store.protocol import Store
from napari_fish.store.records import Calibration

#: θ_h is this quantile of the distances of random pairs.
QUANTILE = 0.001
PAIRS = 100_000
_ROUNDS = 50


def calibrate(store: Store, *, pairs: int = PAIRS, seed: int = 0) -> Calibration:
    """Measure the distances of random pairs of patches from different patients.

    A slide without a known patient counts as a patient of its own. With a single patient pairs come from
    different slides, with a single slide from anywhere in it; the result says so. Copies of a slide are never paired
    with one another, and pairs of the very same barcode never count: they tell of how files were copied, or of what is
    blank, not of how near chance comes, and one in a thousand of them would make the threshold 0.

    Parameters
    ----------
    store
        The database.
    pairs
        Pairs to draw; 10⁵ or more for a threshold to trust.
    seed
        The same seed draws the same pairs.
    """
    if store.patches_per_slide[store.slides.alive].sum() < 2:
        raise DatabaseError("A threshold needs at least two patches: build the database first.")
    patients = store.slides.numbered("patient")[0].astype(np.int64)
    owner: NDArray[np.int64] | None
    owner = np.where(patients >= 0, patients, len(patients) + np.arange(len(patients)))
    used = store.slides.alive & (store.patches_per_slide > 0)
    copies = store.copies()
    kinds, note = len(np.unique(copies[used])), ""
    if kinds < used.sum():
        note = f"{int(used.sum()) - kinds} slides are copies of others: random pairs leave copies of a slide out."
    if kinds < 2:
        owner, note = None, "Only one slide: random pairs come from within it."
    elif len(np.unique(owner[used])) < 2:
        owner, note = copies, "All patches are of one patient: random pairs come from different slides."
    return _calibration(store, owner, copies, pairs, seed, note)


def _calibration(
    store: Store, owner: NDArray[np.int64] | None, copies: NDArray[np.int64], pairs: int, seed: int, note: str
) -> Calibration:  # fmt: skip
    dice = np.random.default_rng(seed)
    found: list[NDArray[np.int64]] = []
    missing = pairs
    for _ in range(_ROUNDS):
        one, other, near = store.random_pairs(max(1000, missing), dice)
        counts = near > 0
        if owner is not None:
            counts &= (owner[one] != owner[other]) & (copies[one] != copies[other])
        found.append(near[counts][:missing].astype(np.int64))
        missing -= len(found[-1])
        if not missing:
            break
    distances = np.concatenate(found)
    threshold = int(np.quantile(distances, QUANTILE)) if len(distances) else 64 * store.words // 8
    return Calibration(np.bincount(distances, minlength=64 * store.words + 1), threshold, note)


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
