"""A removed slide keeps its number for a while; nothing else of it is left."""

from __future__ import annotations

import numpy as np
import pytest

from napari_fish.errors import FishError
from napari_fish.index import ClusterParams
from napari_fish.search import Query, SearchParams, measure_recall, search
from napari_fish.search.calibrate import calibrate
from napari_fish.search.filters import exclusion_mask, slide_mask
from napari_fish.search.params import MODES, Mode
from napari_fish.store import MemoryStore, SlideRecord, SlideTable
from tests.search.archives import demo_slides, remove

GONE = (2, 3, 8, 9, 17)


@pytest.fixture(scope="module")
def thinned() -> MemoryStore:
    """The store of the other tests, some slides removed but their rows still there."""
    store = MemoryStore(4, demo_slides(np.random.default_rng(0)))
    store.train_clusters(ClusterParams(clusters=20))
    remove(store, GONE)
    return store


def test_a_removed_slide_has_no_number_no_values_and_no_columns() -> None:
    table = SlideTable(
        [
            SlideRecord("a", diagnosis="KIRC", labels={"Stain": "PAS"}),
            SlideRecord("b", diagnosis="BLCA"),
            SlideRecord("a", diagnosis="KIRP"),
        ],
        [False, True, True],
    )
    assert table.number("a") == 2 and table.number("b") == 1
    codes, names = table.numbered("diagnosis")
    assert codes.tolist() == [-1, 0, 1] and names == ["BLCA", "KIRP"]
    assert "stain" not in table.columns
    with pytest.raises(FishError, match="stain"):
        slide_mask(table, ["stain=PAS"])
    assert SlideTable(table.records).alive.all()
    with pytest.raises(ValueError, match="3 slides"):
        SlideTable(table.records, [True])


def test_no_filter_and_no_exclusion_brings_a_removed_slide_back(thinned: MemoryStore) -> None:
    for where in ([], ["diagnosis!=PRAD"], ["diagnosis="]):
        assert not slide_mask(thinned.slides, where)[list(GONE)].any()
    assert not exclusion_mask(thinned.slides, "s0", "")[list(GONE)].any()


@pytest.mark.parametrize("mode", MODES)
def test_no_mode_returns_a_removed_slide(thinned: MemoryStore, query: Query, mode: Mode) -> None:
    results = search(thinned, query, SearchParams(k=100, mode=mode, threshold=60, fill=True))
    assert {hit.slide for hit in results.hits} == {f"s{i}" for i in range(2, 40) if i not in GONE}
    assert any("leave only 33" in note.text for note in results.notes)


def test_random_pairs_and_samples_are_of_slides_that_are_there(thinned: MemoryStore) -> None:
    rows = thinned.rows_of(np.arange(40))
    assert len(rows) == 25 * 35 and not np.isin(thinned.slides_of(rows), GONE).any()
    without = MemoryStore(
        4, (s for i, s in enumerate(demo_slides(np.random.default_rng(0))) if i not in GONE)
    )
    assert np.array_equal(calibrate(thinned, pairs=5000).histogram, calibrate(without, pairs=5000).histogram)
    exact = SearchParams(mode="exact", threshold=60)
    assert measure_recall(thinned, exact, queries=40) == measure_recall(without, exact, queries=40)
