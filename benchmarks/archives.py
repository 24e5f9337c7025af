"""Archives of patches for the benchmarks of search.

*Latency* archives follow the paper's kather1M and kather10M: 100 000 patches, each copied 10 or 100 times with noise
on its codes (1 added to each of the 64x64 codes with probability 0.05), all copies sharing the barcode. A block of
codes carries into the next coarser map with probability 0.05 on average, so copies are made by adding binomial
carries to S1, S2 and S3 of the patch, which is what the key is made of.

*Recall* archives have no duplicates. They are drawn from a model fitted to fish-lite's barcodes of real tissue (see
``realbarcodes.py`` and :meth:`BarcodeModel.fitted`), which fills the space between real barcodes that are near each other.
The benchmark's table says how near the model comes to what it was fitted to. Queries are drawn from the same model.
"""

from __future__ import annotations

import os
import shutil
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray
from realbarcodes import CACHE

from napari_fish.encode.bundle.barcode import unpack
from napari_fish.index import ClusteredIndex, Segment, SplitBarcodes
from napari_fish.index.hamming import distances
from napari_fish.index.kmeans import ClusterPart
from napari_fish.store.snapshot.files import read_through

BASE, CLASSES, SLIDE = 100_000, 9, 100
WORDS = 16
MATES = 20


@njit(nogil=True, cache=True)
def _bits(scores: NDArray[np.float32], bias: NDArray[np.float32], gain: NDArray[np.float32], seed: int, out: NDArray[np.uint64]) -> None:  # fmt: skip
    """Set bit i with probability 0.5 + gain_i * (score_i - bias_i), cut to 0..1."""
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    for row in range(len(scores)):
        for word in range(out.shape[1]):
            bits = np.uint64(0)
            for bit in range(64):
                i = 64 * word + bit
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                chance = np.float32(state >> np.uint64(40)) * np.float32(2.0**-24)
                if chance < np.float32(0.5) + gain[i] * (scores[row, i] - bias[i]):
                    bits |= np.uint64(1) << np.uint64(bit)
            out[row, word] = bits


@dataclass(frozen=True, eq=False)
class BarcodeModel:
    """Where duplicate-free barcodes come from.

    Attributes
    ----------
    centres : float32, shape (n_centres, dim)
        Places in the space of low dimension around which barcodes lie.
    spread
        Their scatter about these.
    projection : float32, shape (dim, bits)
    bias, gain : float32, shape (bits,)
        Where a bit turns, and how sharply.
    mates : int64, shape (n_centres, m)
        Other places near each: barcodes lie anywhere between a place and two of its mates. None where m is 0.
    """

    centres: NDArray[np.float32]
    spread: NDArray[np.float32]
    projection: NDArray[np.float32]
    bias: NDArray[np.float32]
    gain: NDArray[np.float32]
    mates: NDArray[np.int64]

    @classmethod
    def synthetic(
        cls,
        dim: int = 24,
        centres: int = 200,
        spread: float = 0.5,
        sharpness: float = 1.2,
        bits: int = 64 * WORDS,
    ) -> BarcodeModel:
        """Make a model of given intrinsic dimension; sharp and narrow means near neighbours."""
        dice = np.random.default_rng(20)
        projection = dice.standard_normal((dim, bits), np.float32) / np.float32(dim**0.5)
        places = dice.standard_normal((centres, dim), np.float32)
        return cls(
            places,
            np.full(dim, spread, np.float32),
            projection,
            np.zeros(bits, np.float32),
            np.full(bits, sharpness, np.float32),
            np.empty((centres, 0), np.int64),
        )

    @classmethod
    def fitted(cls, barcodes: NDArray[np.uint64], dim: int = 64) -> BarcodeModel:
        """Fit a model to real barcodes, shape (n, words).

        A drawn barcode lies, in the space of the bits' first ``dim`` principal components, between a real one and two of
        its 20 nearest, and is moved from there at random; its bits are cut so that each is set as often as in the
        real ones. How far it is moved, and how sharp the cut is, are those of a small grid that best give back the
        distances of random pairs and of nearest neighbours among equally many barcodes.
        """
        bits = unpack(barcodes, 64 * barcodes.shape[1]).astype(np.float32)
        share = bits.mean(axis=0)
        _, values, axes = np.linalg.svd(bits - share, full_matrices=False)
        dim = min(dim, len(values))
        scores, axes = (bits - share) @ axes[:dim].T, axes[:dim].astype(np.float32)
        wanted = distances_of(barcodes)
        best: tuple[float, BarcodeModel] | None = None
        mates = np.argsort(_distance_matrix(barcodes), axis=1, kind="stable")[:, 1 : MATES + 1]
        for move in (0.2, 0.3, 0.4, 0.5, 0.6):
            spread = (move * scores.std(axis=0)).astype(np.float32)
            model = cls(scores, spread, axes, share, share, mates)
            bias = _cuts(model, share)
            for gain in (1.5, 2.5, 5.0, 10.0):
                model = replace(model, bias=bias, gain=np.full(len(share), gain, np.float32))
                found = distances_of(model.draw(len(barcodes), 3))
                off = sum((np.log(found[name] / wanted[name])) ** 2 for name in wanted)
                if best is None or off < best[0]:
                    best = off, model
        assert best is not None
        return best[1]

    @property
    def fingerprint(self) -> int:
        """A number that tells models apart."""
        value = 0
        for array in (self.centres, self.spread, self.projection, self.bias, self.gain, self.mates):
            value = zlib.crc32(np.ascontiguousarray(array).tobytes(), value)
        return value

    def places(self, of: NDArray[np.int64], dice: np.random.Generator) -> NDArray[np.float32]:
        """Draw places in the space of low dimension, each near or between centres, shape (n, dim)."""
        place = self.centres[of]
        if self.mates.shape[1]:
            a, b = (self.mates[of, dice.integers(0, self.mates.shape[1], len(of))] for _ in range(2))
            u, v, w = dice.dirichlet((1, 1, 1), len(of)).astype(np.float32).T[:, :, None]
            place = u * place + v * self.centres[a] + w * self.centres[b]
        return place + self.spread * dice.standard_normal(place.shape, np.float32)

    def draw(self, n: int, seed: int, family: NDArray[np.int64] | None = None) -> NDArray[np.uint64]:
        """Draw barcodes, shape (n, words); ``family`` says from which centre each comes."""
        dice = np.random.default_rng(seed)
        out = np.empty((n, self.projection.shape[1] // 64), np.uint64)
        for start in range(0, n, 20_000):
            stop = min(start + 20_000, n)
            of = dice.integers(0, len(self.centres), stop - start) if family is None else family[start:stop]
            scores = self.places(of % len(self.centres), dice) @ self.projection
            _bits(scores, self.bias, self.gain, seed * 1_000_003 + start + 1, out[start:stop])
        return out


def _cuts(model: BarcodeModel, share: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return where each bit must turn to be set as often as it should."""
    dice = np.random.default_rng(1)
    scores = model.places(dice.integers(0, len(model.centres), 4000), dice) @ model.projection
    scores.sort(axis=0)
    at = np.clip(((1 - share) * len(scores)).astype(int), 0, len(scores) - 1)
    return np.ascontiguousarray(scores[at, np.arange(len(share))])


def _distance_matrix(barcodes: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return the distances of all pairs, bits."""
    return np.stack([distances(barcodes, one) for one in barcodes])


def distances_of(barcodes: NDArray[np.uint64]) -> dict[str, float]:
    """Return what a model should have in common with the real: distances of random pairs and of neighbours, bits."""
    table = _distance_matrix(barcodes)
    pairs = table[np.triu_indices(len(table), 1)]
    ordered = np.sort(table, axis=1)
    return {
        "pairs, 0.1 %": float(np.quantile(pairs, 0.001)),
        "pairs, median": float(np.median(pairs)),
        "nearest, median": float(np.median(ordered[:, 1])),
        "10th nearest, median": float(np.median(ordered[:, 10])),
    }


@dataclass(frozen=True, eq=False)
class LatencyArchive:
    """Patches in key order, with queries: the patches that were copied.

    Attributes
    ----------
    segment
        The patches; slide numbers are of slides of 100 patches of one class.
    rows : uint64, shape (n, words)
        Their barcodes in one piece.
    classes : int64, shape (n_slides,)
        Class of each slide.
    keys, barcodes
        The 100 000 patches as queries.
    """

    segment: Segment
    rows: NDArray[np.uint64]
    classes: NDArray[np.int64]
    keys: NDArray[np.int64]
    barcodes: NDArray[np.uint64]


def kept(
    name: str, make: Callable[[], dict[str, NDArray[Any]]], mapped: Literal["r"] | None = None
) -> dict[str, NDArray[Any]]:
    """Return arrays from the cache, made and put there where missing."""
    folder = CACHE / name
    if not folder.is_dir():
        new = folder.with_name(name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        for what, array in make().items():
            np.save(new / f"{what}.npy", array, allow_pickle=False)
        new.rename(folder)
    return {path.stem: np.load(path, mapped, allow_pickle=False) for path in folder.glob("*.npy")}


def forget_pages(folder: Path) -> None:
    """Drop what the system keeps of files in memory, as after a restart."""
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def recall_archive(n: int, model: BarcodeModel) -> NDArray[np.uint64]:
    """Return n barcodes of a model, from the cache or made now; mapped, as the program maps those of a database."""
    name = f"recall-{n}-{model.fingerprint:08x}"
    return kept(name, lambda: {"barcodes": model.draw(n, 1)}, "r")["barcodes"]


def recall_model(real: NDArray[np.uint64]) -> BarcodeModel:
    """Return the model fitted to real barcodes, from the cache or made now."""
    name = f"model-{zlib.crc32(np.ascontiguousarray(real).tobytes()):08x}"
    arrays = kept(name, lambda: vars(BarcodeModel.fitted(real)))
    return BarcodeModel(**arrays)


def as_in_a_database(segment: Segment, name: str) -> tuple[ClusteredIndex, float]:
    """Return an archive with the clusters and the order of barcodes that a database gives it, and how long that took in s.

    From the cache or made now; mapped, as the program maps the files of a database.
    """

    def make() -> dict[str, NDArray[Any]]:
        start = time.perf_counter()
        index = ClusteredIndex.train(segment, threads=2)
        arrays = dict(zip(("head", "tail", "place"), index.main.codes.arrays, strict=True))
        arrays |= {
            "centres": index.centres,
            "starts": index.clusters.starts,
            "rows": index.clusters.rows,
            "far": index.clusters.far,
        }
        return arrays | {"seconds": np.array(time.perf_counter() - start)}

    arrays = kept(f"{name}-in-clusters", make, "r")
    # As after a restart, once the program has read its files: how other work left them in memory makes a third of difference.
    forget_pages(CACHE / f"{name}-in-clusters")
    read_through(CACHE / f"{name}-in-clusters")
    codes = SplitBarcodes(arrays["head"], arrays["tail"], arrays["place"])
    clusters = ClusterPart(arrays["starts"], arrays["rows"], arrays["far"])
    index = ClusteredIndex(arrays["centres"], replace(segment, codes=codes), clusters)
    return index, float(arrays["seconds"])


def latency_archive(n: int) -> LatencyArchive:
    """Return an archive as in the paper's experiment on speed; n is a multiple of 100 000."""
    arrays = kept(
        f"latency-{n}", lambda: _latency_arrays(n, BarcodeModel.synthetic(spread=0.2, sharpness=6.0))
    )
    segment = Segment(*(arrays[name] for name in ("keys", "offsets", "barcodes", "slides")))
    index, _ = as_in_a_database(segment, f"latency-{n}")
    queries = arrays["query_keys"], arrays["query_barcodes"]
    return LatencyArchive(index.main, segment.codes.head, arrays["classes"], *queries)


def _latency_arrays(n: int, model: BarcodeModel) -> dict[str, NDArray[Any]]:
    dice = np.random.default_rng(n)
    kind = np.arange(BASE) * CLASSES // BASE
    mean_code = dice.uniform(20, 100, CLASSES)[kind] + 6 * dice.standard_normal(BASE)
    s3 = np.clip(64 * mean_code, 64, 8064).astype(np.int64)
    s2 = 4 * s3 + np.clip(96 + 8.9 * dice.standard_normal(BASE), 0, 192).astype(np.int64)
    s1 = 4 * s2 + np.clip(384 + 17.9 * dice.standard_normal(BASE), 0, 768).astype(np.int64)
    codes = model.draw(BASE, 7, kind * 20 + dice.integers(0, 20, BASE))
    patch = np.tile(np.arange(BASE), n // BASE)
    noisy = np.repeat(np.arange(n // BASE) > 0, BASE)
    carries = [np.where(noisy, dice.binomial(blocks, 0.05, n), 0) for blocks in (1024, 256, 64)]
    keys = (s1[patch] + carries[0]) + (s2[patch] + carries[1]) * 10**6 + (s3[patch] + carries[2]) * 10**11
    order = np.argsort(keys, kind="stable")
    unique, first = np.unique(keys[order], return_index=True)
    return {
        "keys": unique,
        "offsets": np.append(first, n).astype(np.int32),
        "barcodes": codes[patch[order]],
        "slides": (order // SLIDE).astype(np.int32),
        "classes": np.tile(kind[::SLIDE], n // BASE),
        "query_keys": s1 + s2 * 10**6 + s3 * 10**11,
        "query_barcodes": codes,
    }
