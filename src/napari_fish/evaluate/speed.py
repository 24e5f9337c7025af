"""How long a search takes and what it finds, over growing databases, and what a database takes on disk."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from napari_fish.encode.bundle.keys import CODEWORDS, keys_from_codes
from napari_fish.evaluate.asking.answers import Questions
from napari_fish.evaluate.asking.questions import queries_of
from napari_fish.evaluate.values import SpeedRow, Storage, Times
from napari_fish.index.clustered.params import ClusterParams
from napari_fish.index.guided.params import Index
from napari_fish.names import Mode
from napari_fish.search.calibrate import threshold_of
from napari_fish.search.engine import search
from napari_fish.search.params import SearchParams
from napari_fish.search.recall import measure_recall
from napari_fish.search.values import Query
from napari_fish.store import EncodedSlide, MemoryStore
from napari_fish.store.latent_codes import read_codes
from napari_fish.store.opening import sizes_of
from napari_fish.store.places import Location
from napari_fish.store.protocol import Store
from napari_fish.work import ShouldStop, stop_if_asked

#: Searches that are timed, one after the other.
TIMED = 50
#: Smallest to largest part of the database, as in the paper's 500 to 11 561 slides.
STEPS = 5
AUGMENTED = (10, 100)
#: Each latent code is raised by one with this probability.
NOISE = 0.05
#: How rows of databases with noisy copies are called.
COPIES = "copies"
_WAYS: tuple[tuple[Mode, Index], ...] = (
    ("exact", "sorted"), ("clustered", "sorted"), ("guided", "sorted"), ("guided", "veb"), ("released", "sorted")
)  # fmt: skip


def time_searches(
    store: Store, queries: Sequence[Query], ways: Sequence[SearchParams], should_stop: ShouldStop | None = None
) -> list[Times]:  # fmt: skip
    """Time single searches in several ways, turn by turn, so that a busy machine is equally unkind to all.

    Parameters
    ----------
    store
        Where to search.
    queries
        What to search for.
    ways
        How to.
    should_stop
        Asked before each turn.
    """
    times: list[list[float]] = [[] for _ in ways]
    for way in ways:
        search(store, queries[0], way)
    for query in queries:
        stop_if_asked(should_stop, "the evaluation was stopped.")
        for way, mine in zip(ways, times, strict=True):
            start = time.perf_counter()
            search(store, query, way)
            mine.append(1e3 * (time.perf_counter() - start))
    return [Times.of(mine) for mine in times]


def sample_of(questions: Questions, n: int, seed: int) -> Questions:
    """Draw questions."""
    at = np.random.default_rng(seed).permutation(len(questions))[:n]
    return questions.take(np.sort(at).tolist())


def growing(
    store: Store,
    questions: Questions,
    source: Store,
    params: SearchParams,
    *,
    seed: int = 0,
    should_stop: ShouldStop | None = None,
) -> Iterator[SpeedRow]:
    """Time searches over growing random parts of a database.

    Each part is a database of its own, in memory; the threshold of a mode is the same for all.

    Parameters
    ----------
    store
        The database.
    questions, source
        What is asked, and the database the queries come from.
    params
        How to search; the mode varies.
    seed
        For the parts, the queries and the patches asked for.
    should_stop
        Asked before each search.
    """
    alive = np.flatnonzero(store.slides.alive & (store.patches_per_slide > 0))
    order = np.random.default_rng(seed).permutation(alive)
    sizes = sorted({max(1, len(order) >> step) for step in range(STEPS)})
    queries = queries_of(source, sample_of(questions, TIMED, seed))
    ways = _each_mode(store, params)
    for size in sizes:
        part = MemoryStore(store.words, (_taken(store, int(i)) for i in np.sort(order[:size])))
        part.train_clusters(ClusterParams(), threads=params.threads)
        yield from _rows(part, "part of the database", size, queries, ways, seed, should_stop)


def augmented(
    store: Store,
    location: Location,
    questions: Questions,
    source: Store,
    params: SearchParams,
    *,
    factors: Sequence[int] = AUGMENTED,
    seed: int = 0,
    should_stop: ShouldStop | None = None,
) -> Iterator[SpeedRow]:
    """Time searches over the database with each patch 10 and 100 times, as in the paper's kather1M and kather10M.

    Copies get noise on their latent codes, one more with probability 0.05 each, and share the barcode.

    Parameters
    ----------
    store, location
        The database, and where it is, with its codes.
    questions, source
        What is asked, and the database the queries come from.
    params
        How to search; the mode varies.
    factors
        How often each patch occurs.
    seed
        For noise and queries.
    should_stop
        Asked before each slide and each search.
    """
    ways = _each_mode(store, params)
    queries = queries_of(source, sample_of(questions, TIMED, seed))
    living = np.flatnonzero(store.slides.alive & (store.patches_per_slide > 0)).tolist()
    for factor in (1, *factors):
        dice = np.random.default_rng(seed)
        slides = []
        for i in living:
            stop_if_asked(should_stop, "the evaluation was stopped.")
            slides.append(
                noisy_copies(_taken(store, i), read_codes(location, store.slides[i].slide), factor, dice)
            )
        grown = MemoryStore(store.words, slides)
        grown.train_clusters(ClusterParams(), threads=params.threads)
        yield from _rows(grown, f"{COPIES} x{factor}", len(living), queries, ways, seed, should_stop)


def noisy_copies(
    slide: EncodedSlide, codes: np.ndarray, factor: int, dice: np.random.Generator
) -> EncodedSlide:
    """Return a slide with each patch ``factor`` times: itself, and copies with noise on its codes.

    Parameters
    ----------
    slide
        Patches in the order of their keys.
    codes : uint8, shape (n, 64, 64)
        Their latent codes, in any order.
    factor
        How often each patch occurs.
    dice
        Source of the noise.
    """
    codes = codes[np.argsort(keys_from_codes(codes), kind="stable")]
    keys = [slide.keys]
    for _ in range(factor - 1):
        raised = codes + (dice.random(codes.shape, np.float32) < NOISE)
        keys.append(keys_from_codes(np.minimum(raised, CODEWORDS - 1)).astype(np.int64))
    return EncodedSlide(
        slide.record, np.concatenate(keys), np.tile(slide.barcodes, (factor, 1)), np.tile(slide.boxes, (factor, 1))
    )  # fmt: skip


def _taken(store: Store, number: int) -> EncodedSlide:
    rows = store.rows_of([number])
    keys, barcodes = store.encoded(rows)
    boxes = np.array([record.box for record in store.regions(rows)], np.int32).reshape(-1, 4)
    return EncodedSlide(store.slides[number], keys, barcodes, boxes)


def _each_mode(store: Store, params: SearchParams) -> list[SearchParams]:
    """Return every way with the threshold it has in the whole database: parts and copies of it have none of their own."""
    return [
        replace(params, mode=mode, index=index, threshold=threshold_of(store, params.threshold, mode)[0])
        for mode, index in _WAYS
    ]


def _rows(
    store: MemoryStore,
    what: str,
    slides: int,
    queries: Sequence[Query],
    ways: Sequence[SearchParams],
    seed: int,
    should_stop: ShouldStop | None,
) -> Iterator[SpeedRow]:
    dice = np.random.default_rng(seed)
    single = [_one_patch(query, int(dice.integers(len(query)))) for query in queries]
    patch = time_searches(store, single, [replace(way, ranking="label-free") for way in ways], should_stop)
    several = [query for query in queries if len(query) > 1]
    whole = time_searches(store, several, ways, should_stop) if several else [None] * len(ways)
    for way, one, many in zip(ways, patch, whole, strict=True):
        stop_if_asked(should_stop, "the evaluation was stopped.")
        recall = measure_recall(store, way, seed=seed)
        name = way.mode if way.index == "sorted" else f"{way.mode} ({way.index})"
        yield SpeedRow(
            what=what, slides=slides, mosaics=len(store), mode=name, patch=one, slide=many, recall=recall
        )


def _one_patch(query: Query, i: int) -> Query:
    at = slice(i, i + 1)
    return replace(query, keys=query.keys[at], barcodes=query.barcodes[at], boxes=query.boxes[at])


def storage_of(location: Location, slides: int, mosaics: int) -> Storage:
    """Add up what a database takes on disk."""
    sizes = sizes_of(location)
    return Storage(
        index=sizes.snapshot,
        truth=sizes.catalogue,
        thumbnails=sizes.pictures,
        codes=sizes.latent_codes,
        mosaics=mosaics,
        slides=slides,
    )
