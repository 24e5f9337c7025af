"""Whether the arrays of a snapshot fit each other.

Checksums say whether a file is what was written, not whether it was written by us. Kernels look at nothing again: what they
are led by (orders, sums, numbers of rows, slides and clusters) is compared here before one of them sees it. What costs next to
nothing is looked at when a part is opened, what has to be read from end to end before its first use; that every number is the
right one is asked by ``verify``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import UNIVERSE
from napari_fish.index.barcodes import half
from napari_fish.index.hamming import pair_distances

_CHUNK, _MANY = 1 << 16, 1 << 20
Arrays = Mapping[str, NDArray[Any]]


def misfit(arrays: Arrays, words: int) -> str:
    """Say which array of a main part has not the type, shape, order or sum that the others ask for; nothing if all do.

    Reads the arrays of slides and clusters, some thousand numbers, and none of the arrays of rows.

    Parameters
    ----------
    arrays
        Of a main part, by name.
    words
        64-bit words a barcode.
    """
    n, n_slides, n_keys = (len(arrays[name]) for name in ("slides", "numbers", "keys"))
    n_clusters = len(arrays["centres"])
    shapes: dict[str, tuple[type[np.generic], tuple[int, ...]]] = {
        "keys": (np.int64, (n_keys,)),
        "offsets": (np.int32, (n_keys + 1,)),
        "slides": (np.int32, (n,)),
        "corners": (np.int32, (n, 2)),
        "sizes": (np.int32, (n if len(arrays["sizes"]) == n else n_slides, 2)),
        "by_slide": (np.int32, (n,)),
        "head": (np.uint64, (n, half(words))),
        "tail": (np.uint64, (n, words - half(words))),
        "place": (np.int32, (n,)),
        "numbers": (np.int64, (n_slides,)),
        "counts": (np.int64, (n_slides,)),
        "centres": (np.uint64, (n_clusters, words)),
        "cell_starts": (np.int32, (n_clusters + 1,)),
        "cell_rows": (np.int32, (n,)),
        "cell_far": (np.uint16, (n,)),
    }
    if wrong := _other_shape(arrays, shapes):
        return wrong
    counts, edges = arrays["counts"], arrays["cell_starts"]
    if not _rises(arrays["numbers"]):
        return "numbers: not in order."
    # Each at most the sum, so that the sum cannot run over.
    if (n_slides and not 0 <= int(counts.min()) <= int(counts.max()) <= n) or int(counts.sum()) != n:
        return "counts: not those of the rows."
    if not n_clusters or edges[0] != 0 or edges[-1] != n or (edges[1:] < edges[:-1]).any():
        return "cluster_starts: not in order."
    offsets = arrays["offsets"]
    return "" if offsets[0] == 0 and offsets[-1] == n else "offsets: not those of the rows."


def danger(arrays: Arrays, words: int) -> str:
    """Say what in the arrays of rows would lead a search astray: numbers of what is not there, keys out of order.

    This reads all arrays of numbers, 40 MB each at ten million rows, and so is no part of opening.
    """
    n, n_slides = len(arrays["slides"]), len(arrays["numbers"])
    for name, end in (("slides", n_slides), ("by_slide", n), ("cell_rows", n), ("place", n)):
        # Seen without a sign, a number below zero is a large one.
        if n and int(arrays[name].view(np.uint32).max()) >= end:
            return f"{name}: numbers of what is not there."
    keys = arrays["keys"]
    if len(keys) and not 0 <= keys[0] <= keys[-1] < UNIVERSE:
        return "keys: numbers that are no keys."
    for name in ("keys", "offsets"):
        if not _rises(arrays[name]):
            return f"{name}: not in order."
    counts = np.zeros(n_slides, np.int64)
    for start in range(0, n, _MANY):
        # In pieces: counting makes a copy of twice the size.
        counts += np.bincount(arrays["slides"][start : start + _MANY], minlength=n_slides)
    if not np.array_equal(counts, arrays["counts"]):
        return "slides: not as many rows of each as were counted."
    if n and int(arrays["cell_far"].max()) > 64 * words:
        return "cluster_far: farther than barcodes can be."
    return ""


def disagreement(arrays: Arrays) -> str:
    """Say which array of numbers is not what the others make of it: wrong answers, though no danger; for ``verify``."""
    n, slides = len(arrays["slides"]), arrays["slides"]
    expected = np.repeat(np.arange(len(arrays["counts"]), dtype=np.int32), arrays["counts"])
    if not np.array_equal(slides[arrays["by_slide"]], expected):
        return "by_slide: not ordered by slide."
    if n and int(np.bincount(arrays["by_slide"]).max()) > 1:
        return "by_slide: a row twice."
    rows, place = arrays["cell_rows"], arrays["place"]
    if not np.array_equal(rows[place], np.arange(n)):
        return "place: not where the rows lie in the clusters."
    cluster = np.repeat(np.arange(len(arrays["centres"])), np.diff(arrays["cell_starts"]))
    for start in range(0, n, _CHUNK):
        at = slice(start, start + _CHUNK)
        barcodes = np.hstack([arrays["head"][rows[at]], arrays["tail"][at]])
        if not np.array_equal(
            pair_distances(barcodes, arrays["centres"][cluster[at]]), arrays["cell_far"][at]
        ):
            return "cluster_far: not the distances from the centres."
    return ""


def delta_misfit(arrays: Arrays, words: int, last: int) -> str:
    """Say what is wrong with the arrays of a delta, which are few: they are read from end to end.

    Parameters
    ----------
    arrays
        Of a delta, by name.
    words
        64-bit words a barcode.
    last
        The highest number of a slide in the parts before it.
    """
    n, keys, slides, numbers = (
        len(arrays["keys"]),
        *(arrays[name] for name in ("keys", "slides", "numbers")),
    )
    shapes: dict[str, tuple[type[np.generic], tuple[int, ...]]] = {
        "keys": (np.int64, (n,)),
        "barcodes": (np.uint64, (n, words)),
        "numbers": (np.int64, (n,)),
        "boxes": (np.int32, (n, 4)),
        "slides": (np.int64, (len(slides),)),
    }
    if wrong := _other_shape(arrays, shapes):
        return wrong
    if n and not 0 <= int(keys.min()) <= int(keys.max()) < UNIVERSE:
        return "keys: numbers that are no keys."
    if not _rises(slides) or (len(slides) and slides[0] <= last) or not np.isin(numbers, slides).all():
        return "slides: not those that came after the parts before."
    return ""


def _other_shape(arrays: Arrays, shapes: Mapping[str, tuple[type[np.generic], tuple[int, ...]]]) -> str:
    for name, (dtype, shape) in shapes.items():
        if arrays[name].dtype != dtype or arrays[name].shape != shape:
            return (
                f"{name}: {arrays[name].dtype} of shape {arrays[name].shape} does not fit the other arrays."
            )
    return ""


def _rises(numbers: NDArray[Any]) -> bool:
    """Whether each number is larger than the one before; read in pieces, for which there is room in a cache."""
    for start in range(0, len(numbers) - 1, _CHUNK):
        some = numbers[start : start + _CHUNK + 1]
        if (some[1:] <= some[:-1]).any():
            return False
    return True
