"""Many queries at once get the answers they would get alone."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_fish.errors import DatabaseError, FishError
from napari_fish.index import ClusterParams, exact_neighbours
from napari_fish.search import Query, SearchParams, search, search_many
from napari_fish.search import neighbours as rooms
from napari_fish.search.calibrate import calibrate
from napari_fish.search.params import MODES, RANKINGS
from napari_fish.store import MemoryStore, patch_rows
from tests.search.archives import demo_slides, remove

GONE = (4, 21)
_FILTERS = ((), ("diagnosis!=PRAD",), ("diagnosis=KIRC", "diagnosis=BLCA"), ("stain=PAS", "site=kidney"))


@pytest.fixture(scope="module")
def archive() -> MemoryStore:
    """The store of the other tests, two slides removed."""
    made = MemoryStore(4, demo_slides(np.random.default_rng(0)))
    made.calibration = replace(calibrate(made, pairs=5000), threshold=60)
    made.train_clusters(ClusterParams(clusters=20))
    remove(made, GONE)
    return made


def query_of(store: MemoryStore, slide: int, patches: int, known: str) -> Query:
    """Make a query of a slide's first patches, of which slide and patient are known or not."""
    rows = np.sort(store.patch_rows(slide))[:patches]
    keys, barcodes = store.encoded(rows)
    boxes = np.array([record.box for record in store.regions(rows)], np.int32)
    names = {"slide": f"s{slide}"} if known == "slide" else {"patient": f"P{slide // 2}"} if known else {}
    return Query(f"query {slide}", keys, barcodes, boxes, **names)


params_drawn = st.builds(
    SearchParams,
    k=st.sampled_from([1, 5, 14, 60]),
    mode=st.sampled_from(MODES),
    ranking=st.sampled_from(RANKINGS),
    neighbours=st.sampled_from([3, 50]),
    latency_budget_ms=st.sampled_from([0.0, 0.05, 150.0]),
    where=st.sampled_from(_FILTERS),
    exclude_query=st.booleans(),
    fill=st.sampled_from([None, True, False]),
    threads=st.sampled_from([1, 2]),
)
query_drawn = st.tuples(
    st.integers(0, 39), st.sampled_from([1, 2, 9, 25]), st.sampled_from(["", "slide", "patient"])
)


@settings(max_examples=150, deadline=None)
@given(
    wanted=st.lists(query_drawn, max_size=7),
    params=params_drawn,
    few=st.sampled_from([10, 200, 32_768]),
    patches=st.sampled_from([1, 30, 4096]),
    entries=st.sampled_from([1, 100, 1 << 26]),
)
def test_a_batch_gives_what_its_queries_give_alone(
    archive: MemoryStore,
    wanted: list[tuple[int, int, str]],
    params: SearchParams,
    few: int,
    patches: int,
    entries: int,
) -> None:
    queries = [query_of(archive, *one) for one in wanted]
    with patch.object(rooms, "FEW_ROWS", few), patch.object(patch_rows, "FEW_ROWS", few):
        alone = [search(archive, query, params) for query in queries]
        with patch.object(rooms, "PASS_PATCHES", patches), patch.object(rooms, "PASS_MASKS", entries):
            together = search_many(archive, queries, params)
    assert [replace(r, elapsed_ms={}) for r in together] == [replace(r, elapsed_ms={}) for r in alone]
    for results in together:
        assert {"search", "rank"} == set(results.elapsed_ms) and not {"s4", "s21"} & {
            h.slide for h in results.hits
        }


def test_a_batch_in_mode_exact_reads_the_archive_once(archive: MemoryStore) -> None:
    queries = [query_of(archive, i, 25, "slide") for i in range(0, 40, 3)]
    params = SearchParams(mode="exact", fill=False)
    with (
        patch.object(patch_rows, "FEW_ROWS", 10),
        patch.object(patch_rows, "exact_neighbours", wraps=patch_rows.exact_neighbours) as read,
    ):
        search_many(archive, queries, params)
        assert read.call_count == 1
        with patch.object(rooms, "PASS_PATCHES", 100):
            search_many(archive, queries, params)
        assert read.call_count == 1 + 4, "four queries of 25 patches a pass"


def test_rows_that_no_query_of_a_batch_wants_may_hold_anything(archive: MemoryStore) -> None:
    """A store need not fetch them."""
    dice = np.random.default_rng(1)
    main = archive._rows.parts[0]
    codes, slides = main.codes[:], main.slides
    masks = dice.random((3, len(archive.slides))) < 0.2
    queries, which = dice.integers(0, 2**64, (9, 4), np.uint64), np.arange(9) % 3
    spoiled = codes.copy()
    unwanted = ~masks.any(axis=0)[slides]
    spoiled[unwanted] = queries[0]
    true = exact_neighbours([(codes, slides)], queries, k=7, mask=masks, which=which)
    found = exact_neighbours([(spoiled, slides)], queries, k=7, mask=masks, which=which)
    assert np.array_equal(found.rows, true.rows) and np.array_equal(found.distances, true.distances)
    for q in range(9):
        one = exact_neighbours([(codes, slides)], queries[q], k=7, mask=masks[which[q]])
        assert np.array_equal(one.rows, true[q][0])


def test_a_batch_with_a_query_that_cannot_be_searched_is_refused_as_a_whole(archive: MemoryStore) -> None:
    good = query_of(archive, 0, 5, "")
    empty = replace(query_of(archive, 1, 0, ""), name="bare glass")
    with pytest.raises(FishError, match="bare glass"):
        search_many(archive, [good, empty])
    with pytest.raises(DatabaseError, match="same encoder"):
        search_many(archive, [good, replace(good, barcodes=np.zeros((5, 16), np.uint64))])
    assert search_many(archive, []) == []
