"""What a user would pick instead, on the same encoded data: accuracy, latency and memory side by side.

* *median of minimum*: Yottixel's ranking. The distance of two slides is the median, over the query's patches, of the
  distance to the nearest patch of the other; all barcodes are compared, no threshold.
* *FAISS* flat, IVF and HNSW over the barcodes: 50 nearest patches of each query patch, slides ranked as above.
* *kNN on floats*: the texture features before they become barcodes, standardised over the database, cosine distance,
  ranked as above.
* our modes as users get them.

Leave-one-patient-out over every labelled slide, k = 5. One thread everywhere; times are what the processor spent on
whole queries (search and ranking, no encoding), so that other programs on the machine disturb less; memory
is what has to be held or mapped to search. ``python benchmarks/alternatives.py NAME.fish…``; without a name the demo
archive is made first. The slides must be at hand: floats are computed from them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np
import torch
from common import Row, report
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from napari_fish.building.build import build
from napari_fish.encode import patch_from_image
from napari_fish.encode.bundle.bundle import load_bundle
from napari_fish.encode.networks.registry import make_texture
from napari_fish.evaluate.asking.questions import choose_questions, queries_of
from napari_fish.evaluate.metrics import Resamples, average_precision, first_right, majority_right
from napari_fish.evaluate.params import EvaluateParams
from napari_fish.index.arrays import NeighbourLists
from napari_fish.search import SearchParams, search
from napari_fish.search.labelfree import rank_without_labels
from napari_fish.slides import open_slide
from napari_fish.slides.demo import write_demo
from napari_fish.store.places import place_of
from napari_fish.store.snapshot.store import SnapshotStore

K, NEIGHBOURS = 5, 50
Floats = NDArray[np.float32]
Ranking = Callable[[int], list[int]]
"""Returns slide numbers in order, given the number of a query slide."""


@dataclass(frozen=True, eq=False)
class Archive:
    """A database as plain arrays.

    Attributes
    ----------
    barcodes, features : shape (n_rows, …)
    slides : shape (n_rows,)
    excluded
        Slides of the same patient as each slide, itself included.
    """

    store: SnapshotStore
    barcodes: NDArray[np.uint8]
    features: Floats
    slides: NDArray[np.int64]
    excluded: list[NDArray[np.int64]]

    @classmethod
    def of(cls, store: SnapshotStore) -> Archive:
        """Read a database."""
        rows = np.arange(len(store))
        barcodes = np.ascontiguousarray(store.encoded(rows)[1]).view(np.uint8)
        patients = store.slides.numbered("patient")[0]
        same = [
            np.flatnonzero((patients == p) & (p >= 0) | (np.arange(len(patients)) == i))
            for i, p in enumerate(patients)
        ]
        return cls(store, barcodes, features_of(store), store.slides_of(rows).astype(np.int64), same)

    def rows(self, slide: int) -> NDArray[np.intp]:
        """Return the rows of a slide."""
        return np.flatnonzero(self.slides == slide)


def features_of(store: SnapshotStore) -> Floats:
    """Compute the texture features of all patches anew, in row order, standardised."""
    bundle = load_bundle(store.catalogue.encoder)
    network = make_texture(bundle.card, bundle.tensors, bundle.path)
    size, found = bundle.card.size, {}
    for number in range(len(store.slides)):
        record = store.slides[number]
        with open_slide(place_of(record.path, store.folder), mpp=record.mpp or 1.0) as slide:
            for one in store.regions(store.rows_of([number])):
                box = one.box
                if record.mpp:
                    patch = slide.read(box.x, box.y, size, size, record.mpp * box.width / size)
                else:
                    patch = patch_from_image(slide.read_level(0, 0, 0, box.width, box.height), size)
                pixels = torch.from_numpy(np.array(patch)[None]).permute(0, 3, 1, 2).float()
                with torch.inference_mode():
                    found[one.row] = network(pixels).numpy()[0]
    table = np.stack([found[row] for row in range(len(store))])
    return np.asarray((table - table.mean(0)) / (table.std(0) + 1e-6), np.float32)


def median_of_minimum(distances: NDArray[np.floating], archive: Archive, query: int) -> list[int]:
    """Rank slides from all distances, shape (n_query_mosaics, n_rows)."""
    order = np.argsort(archive.slides, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(archive.slides[order]) > 0])
    nearest = np.minimum.reduceat(distances[:, order], starts, axis=1)
    names = archive.slides[order][starts]
    score = np.median(nearest, axis=0)
    score[np.isin(names, archive.excluded[query])] = np.inf
    best = np.lexsort([nearest.mean(axis=0), score])[:K]
    return [int(names[i]) for i in best if np.isfinite(score[i])]


def popcount_distances(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.float64]:
    wide_a, wide_b = a.view(np.uint64), b.view(np.uint64)
    return np.stack([np.bitwise_count(wide_b ^ line).sum(axis=1) for line in wide_a]).astype(np.float64)


def ranked_lists(archive: Archive, found: NDArray[np.int64], far: NDArray[np.int32], query: int) -> list[int]:
    """Rank slides from the nearest rows of each query patch, shape (n, k)."""
    allowed = (found >= 0) & ~np.isin(archive.slides[found], archive.excluded[query])
    lengths = np.minimum(allowed.sum(axis=1), NEIGHBOURS)
    first = allowed & (np.cumsum(allowed, axis=1) <= NEIGHBOURS)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = found[first]
    lists = NeighbourLists(
        offsets, rows, far[first].astype(np.int32), slides=archive.slides[rows].astype(np.int32)
    )
    missing = float(lists.distances.max(initial=0)) + 1
    order, _, _ = rank_without_labels(lists, missing)
    return [int(slide) for slide in order[:K]]


def faiss_indexes(archive: Archive) -> Iterator[tuple[str, faiss.IndexBinary]]:
    bits, n = 8 * archive.barcodes.shape[1], len(archive.barcodes)
    flat = faiss.IndexBinaryFlat(bits)
    flat.add(archive.barcodes)
    yield "FAISS flat, barcodes", flat
    clusters = max(1, min(1024, n // 39, int(4 * n**0.5)))
    quantiser = faiss.IndexBinaryFlat(bits)
    ivf = faiss.IndexBinaryIVF(quantiser, bits, clusters)
    ivf.train(archive.barcodes)
    ivf.add(archive.barcodes)
    ivf.nprobe = max(1, clusters // 8)
    yield f"FAISS IVF ({clusters} clusters, {ivf.nprobe} probed), barcodes", ivf
    hnsw = faiss.IndexBinaryHNSW(bits, 32)
    hnsw.hnsw.efSearch = 128
    hnsw.add(archive.barcodes)
    yield "FAISS HNSW (32, ef 128), barcodes", hnsw


def rankings(archive: Archive) -> Iterator[tuple[str, Ranking, int]]:
    """Return name, how to rank, and bytes to be held, of each alternative."""
    unit = archive.features / np.linalg.norm(archive.features, axis=1, keepdims=True)
    most_own = max(int(np.isin(archive.slides, own).sum()) for own in archive.excluded)
    store = archive.store

    def yottixel(query: int) -> list[int]:
        mine = archive.barcodes[archive.rows(query)]
        return median_of_minimum(popcount_distances(mine, archive.barcodes), archive, query)

    def floats(query: int) -> list[int]:
        return median_of_minimum(1 - unit[archive.rows(query)] @ unit.T, archive, query)

    yield "median of minimum, all barcodes", yottixel, archive.barcodes.nbytes
    yield "kNN on floats, cosine", floats, unit.nbytes
    for name, index in faiss_indexes(archive):

        def nearest(query: int, index: faiss.IndexBinary = index) -> list[int]:
            k = min(index.ntotal, NEIGHBOURS + most_own)
            far, found = index.search(archive.barcodes[archive.rows(query)], k)
            return ranked_lists(archive, found, far, query)

        yield name, nearest, len(faiss.serialize_index_binary(index))
    snapshot = sum(p.stat().st_size for p in (store.folder / "snapshot").rglob("*") if p.is_file())
    questions, _ = choose_questions(store, store, EvaluateParams(level="slide"), "slide")
    queries = dict(zip(questions.slides.tolist(), queries_of(store, questions), strict=True))
    for way in EvaluateParams().ways("slide"):
        params = SearchParams(k=K, mode=way.mode, ranking=way.ranking, threads=1)

        def ours(query: int, params: SearchParams = params) -> list[int]:
            results = search(store, queries[query], params)
            return [store.slides.number(hit.slide) or 0 for hit in results.hits]

        yield (
            f"napari-fish {way.name}" + (f", ranking {way.ranking}" if way.ranking != way.name else ""),
            ours,
            snapshot,
        )


def rows_for(folder: Path, quick: bool) -> Iterator[Row]:
    with SnapshotStore(folder) as store:
        archive = Archive.of(store)
        params = EvaluateParams(level="slide", sample=50 if quick else None)
        questions, _ = choose_questions(store, store, params, "slide")
        labels = store.slides.numbered("diagnosis")[0].astype(np.int64)
        resamples = Resamples(questions.truth, questions.patient_numbers)
        for name, rank, held in rankings(archive):
            rank(int(questions.slides[0]))
            answers, times = np.full((len(questions), K), -2, np.int64), []
            for i, slide in enumerate(questions.slides.tolist()):
                start = time.thread_time()
                found = rank(slide)[:K]
                times.append(1e3 * (time.thread_time() - start))
                answers[i, : len(found)] = labels[found]
            truth = questions.truth
            yield {
                "database": folder.name,
                "patches": len(store),
                "way": name,
                "mMV@5 macro": str(resamples.scores(majority_right(answers, truth))[1]),
                "mAP@5 macro": str(resamples.scores(average_precision(answers, truth))[1]),
                "top-1 macro": str(resamples.scores(first_right(answers, truth))[1]),
                "short": float((answers == -2).any(axis=1).mean()),
                "median ms": statistics.median(times),
                "bytes a patch": held / len(store),
            }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("databases", type=Path, nargs="*", metavar="NAME.fish")
    parser.add_argument("--quick", action="store_true", help="50 queries a database")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's rows as JSON")
    given = parser.parse_args()
    faiss.omp_set_num_threads(1)
    torch.set_num_threads(1)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as temporary:
        folders = given.databases
        if not folders:
            write_demo(Path(temporary) / "slides")
            folders = [Path(temporary) / "demo.fish"]
            build(Path(temporary) / "slides", folders[0], Path(temporary) / "slides" / "labels.csv")
        report([row for folder in folders for row in rows_for(folder, given.quick)], given.json)


if __name__ == "__main__":
    main()
