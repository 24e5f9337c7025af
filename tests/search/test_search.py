"""A query becomes an answer, complete and explained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from napari_fish.errors import DatabaseError, FishError
from napari_fish.index import ClusterParams
from napari_fish.search import Query, SearchParams, labelfree, measure_recall, search
from napari_fish.search.calibrate import calibrate
from napari_fish.search.params import MODES, RANKINGS, Mode, Ranking
from napari_fish.search.recall import Recall
from napari_fish.store import EncodedSlide, MemoryStore, SlideRecord
from tests.index.archives import distance_matrix, plain_distances
from tests.search.archives import demo_slides


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ranking", RANKINGS)
def test_every_mode_and_ranking_finds_the_diagnosis(
    store: MemoryStore, query: Query, mode: Mode, ranking: Ranking
) -> None:
    results = search(store, query, SearchParams(mode=mode, ranking=ranking, threads=2))
    assert 1 <= len(results) <= 5
    assert {hit.diagnosis for hit in results.hits} == {"KIRC"}
    assert [hit.rank for hit in results.hits] == list(range(1, len(results) + 1))
    assert len({hit.slide for hit in results.hits}) == len(results)


def test_the_querys_slide_and_patient_are_left_out_unless_asked_for(store: MemoryStore, query: Query) -> None:
    wide = SearchParams(k=40, mode="exact", ranking="label-free")
    assert not {"s0", "s1"} & {hit.slide for hit in search(store, query, wide).hits}
    own = search(store, query, replace(wide, exclude_query=False))
    assert own.hits[0].slide == "s0" and own.hits[0].distance == 0


def test_a_slide_of_the_database_is_enough_to_leave_out_its_patient(store: MemoryStore, query: Query) -> None:
    results = search(store, replace(query, patient=""), SearchParams(k=40))
    assert not {"s0", "s1"} & {hit.slide for hit in results.hits}


def test_a_match_names_the_regions_and_their_true_distance(store: MemoryStore, query: Query) -> None:
    results = search(store, query, SearchParams(mode="exact"))
    for hit in results.hits:
        assert hit.matches and len(hit.matches) <= 10
        for match in hit.matches:
            (record,) = store.regions([match.row])
            assert store.slides[record.slide].slide == hit.slide
            assert record.box == match.hit_box
            assert tuple(query.boxes[match.query_index]) == match.query_box
            code = store.encoded([match.row])[1]
            assert plain_distances(code, query.barcodes[match.query_index])[0] == match.distance
            assert match.percentile is not None and 0 <= match.percentile <= 25


def test_a_short_answer_is_filled_from_exact_search_and_says_so(store: MemoryStore, query: Query) -> None:
    results = search(store, query, SearchParams(k=15))
    assert len(results) == 15
    filled = [hit.filled for hit in results.hits]
    assert filled == sorted(filled) and filled[-1] and not filled[0]
    assert any("filled in from exact search" in note.text for note in results.notes)
    near = [hit.distance for hit in results.hits if hit.filled]
    assert near == sorted(near)


def test_an_answer_that_is_filled_throughout_says_that_nothing_is_near(
    store: MemoryStore, query: Query
) -> None:
    results = search(store, query, SearchParams(k=3, threshold=0))
    assert [hit.filled for hit in results.hits] == [True] * 3
    assert [str(note) for note in results.notes] == [
        "Nothing lies within the threshold of 0 bits; the 3 nearest slides are shown."
    ]


def test_the_papers_modes_are_not_filled_but_say_why_they_are_short(store: MemoryStore, query: Query) -> None:
    results = search(store, query, SearchParams(k=15, mode="guided"))
    assert 0 < len(results) < 15 and not any(hit.filled for hit in results.hits)
    assert any(
        note.kind == "short" and "of 15 slides" in note.text and "threshold" in note.text
        for note in results.notes
    )


def test_an_answer_says_when_nobody_knows_whose_slides_to_leave_out(store: MemoryStore, query: Query) -> None:
    def said(slide: str, patient: str, exclude: bool = True) -> list[str]:
        asked = replace(query, slide=slide, patient=patient)
        notes = search(store, asked, SearchParams(k=2, exclude_query=exclude)).notes
        return [note.text for note in notes if note.kind == "patient"]

    (nothing_known,) = said("", "")
    assert "its own slide, or others of the same patient" in nothing_known
    (slide_known,) = said(query.slide, "")
    assert "other slides of the same patient" in slide_known
    assert not said(query.slide, query.patient or "somebody")
    assert not said("", "somebody")
    assert not said("", "", exclude=False)


def test_filling_reaches_every_slide_there_is(store: MemoryStore, query: Query) -> None:
    results = search(store, query, SearchParams(k=100, neighbours=3))
    assert len(results) == 38
    assert any("leave only 38" in note.text for note in results.notes)


def true_medians(store: MemoryStore, query: Query) -> dict[str, float]:
    """Return the median over query patches of the distance of each slide's nearest patch, by the book."""
    found = {}
    for number, record in enumerate(store.slides):
        far = distance_matrix(query.barcodes, store.encoded(store.rows_of([number]))[1])
        found[record.slide] = float(np.median(far.min(axis=1)))
    return found


@pytest.mark.parametrize("neighbours", [1, 3, 50])
@pytest.mark.parametrize("patches", [1, 4, 25])
@pytest.mark.parametrize("mode", ["exact", "auto", "clustered", "guided"])
def test_without_labels_slides_come_by_the_true_median_of_minima(
    store: MemoryStore, query: Query, mode: Mode, patches: int, neighbours: int
) -> None:
    some = replace(query, keys=query.keys[:patches], barcodes=query.barcodes[:patches])
    params = SearchParams(k=12, mode=mode, ranking="label-free", neighbours=neighbours, threshold=70)
    results, true = search(store, some, params), true_medians(store, some)
    assert [hit.distance for hit in results.hits] == [true[hit.slide] for hit in results.hits]
    near = [hit.distance for hit in results.hits if not hit.filled]
    assert near == sorted(near)
    if mode in ("exact", "auto"):
        best = sorted(far for slide, far in true.items() if slide not in ("s0", "s1"))
        # Those within the threshold first; the others may only follow where there are no more of them.
        assert near == best[: len(near)] and len(near) >= 8


def test_a_candidate_too_many_is_not_measured_but_k_always_are(
    store: MemoryStore, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelfree, "CANDIDATES", 2)
    monkeypatch.setattr(labelfree, "CANDIDATE_ROWS", 30)
    results, true = search(store, query, SearchParams(k=7, ranking="label-free")), true_medians(store, query)
    assert [hit.distance for hit in results.hits] == [true[hit.slide] for hit in results.hits]
    assert len(results) == 7


def test_an_answer_is_short_because_lists_are_cut_only_where_they_are(
    store: MemoryStore, query: Query
) -> None:
    params = SearchParams(k=15, mode="exact", ranking="fish", neighbours=2)
    cut, whole = search(store, query, params), search(store, query, replace(params, neighbours=1000))
    assert any("at most 2 neighbours of each query region" in note.text for note in cut.notes)
    assert len(cut) < len(whole) < 15 and not any("at most" in note.text for note in whole.notes)


def test_filling_goes_on_until_there_are_k_however_many_patches_one_slide_has(query: Query) -> None:
    slides = list(demo_slides(np.random.default_rng(0), n=30, patches=3))
    crowd = replace(slides[0], keys=np.repeat(slides[0].keys, 100), barcodes=np.repeat(slides[0].barcodes, 100, axis=0),
                    boxes=np.repeat(slides[0].boxes, 100, axis=0))  # fmt: skip
    crowds = [replace(crowd, record=replace(crowd.record, slide=f"crowd {i}")) for i in range(12)]
    store = MemoryStore(4, [*crowds, *slides])
    asked = replace(
        query, keys=slides[0].keys, barcodes=slides[0].barcodes, boxes=slides[0].boxes, slide="", patient=""
    )
    assert len(search(store, asked, SearchParams(k=42, threshold=3, neighbours=2))) == 42


def test_filters_are_applied_during_the_search(store: MemoryStore, query: Query) -> None:
    for mode in MODES:
        where = ("diagnosis=kirc", "stain!=PAS")
        results = search(store, query, SearchParams(k=10, mode=mode, ranking="label-free", where=where))
        slides = {hit.slide for hit in results.hits}
        assert slides and all(hit.diagnosis == "KIRC" and int(hit.slide[1:]) % 3 for hit in results.hits)
    far = search(store, query, SearchParams(where=("diagnosis=PRAD",)))
    assert len(far) == 5 and all(hit.diagnosis == "PRAD" and hit.filled for hit in far.hits)


def test_auto_is_exact_while_it_fits_the_budget(store: MemoryStore, query: Query) -> None:
    assert search(store, query, SearchParams()).mode == "exact"
    hurried = SearchParams(latency_budget_ms=0)
    assert search(store, query, hurried).mode == "exact", "so few patches are searched exactly anyhow"


def test_clustered_search_is_used_when_there_are_many_patches(monkeypatch: pytest.MonkeyPatch, store: MemoryStore, query: Query) -> None:  # fmt: skip
    monkeypatch.setattr("napari_fish.search.neighbours.FEW_ROWS", 10)
    results = search(store, query, SearchParams(latency_budget_ms=0))
    assert results.mode == "clustered" and len(results) == 5
    without = MemoryStore(4, demo_slides(np.random.default_rng(0)))
    assert search(without, query, SearchParams(latency_budget_ms=0)).mode == "exact"
    with pytest.raises(DatabaseError, match="no clusters"):
        search(without, query, SearchParams(mode="clustered"))


def test_the_explanation_accounts_for_every_query_region(store: MemoryStore, query: Query) -> None:
    results = search(store, query, SearchParams(mode="exact", ranking="fish"))
    lists = results.explanation.lists
    assert [fate.query_index for fate in lists] == list(range(len(query)))
    kept = [fate for fate in lists if fate.fate == "kept"]
    assert kept and all(fate.vote == "KIRC" and fate.entropy == 0 for fate in kept)
    assert all(fate.reason for fate in lists if fate.fate != "kept")
    assert results.explanation.prediction == "KIRC"
    text = results.explain()
    assert "query regions voted" in text and "KIRC" in text


def test_labels_rank_where_there_are_labels(query: Query) -> None:
    for labelled, expected in ((0.9, "fish"), (0.0, "label-free")):
        partly = MemoryStore(4, demo_slides(np.random.default_rng(0), labelled=labelled))
        assert search(partly, query, SearchParams(mode="exact", threshold=60)).ranking == expected


def test_one_mosaic_is_ranked_by_distance(store: MemoryStore, query: Query) -> None:
    one = replace(query, keys=query.keys[:1], barcodes=query.barcodes[:1], boxes=query.boxes[:1])
    results = search(store, one)
    near = [hit.distance for hit in results.hits]
    assert results.ranking == "label-free" and near == sorted(near)
    assert near == [hit.matches[0].distance for hit in results.hits]


def test_a_query_without_mosaics_is_refused(store: MemoryStore, query: Query) -> None:
    nothing = replace(query, keys=query.keys[:0], barcodes=query.barcodes[:0], boxes=query.boxes[:0])
    with pytest.raises(FishError, match="nothing to search for"):
        search(store, nothing)


def test_a_query_from_another_encoder_is_refused(store: MemoryStore, query: Query) -> None:
    with pytest.raises(DatabaseError, match="same encoder"):
        search(store, replace(query, barcodes=np.zeros((len(query), 16), np.uint64)))


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="guided"):
        SearchParams(mode="psychic")  # type: ignore[arg-type]


def test_the_threshold_is_the_thousandth_of_random_pairs(store: MemoryStore) -> None:
    made = calibrate(store, pairs=20_000)
    assert made.histogram.sum() == 20_000
    share = float(made.percentile(made.threshold))
    assert 0.05 <= share <= 0.5
    assert float(made.percentile(256)) == 100.0
    again = calibrate(store, pairs=20_000)
    assert again.threshold == made.threshold and np.array_equal(again.histogram, made.histogram)


@pytest.mark.parametrize(
    ("mode", "expected"), [("guided", 128), ("released", 128), ("exact", 60), ("auto", 60)]
)
def test_the_papers_modes_go_by_the_papers_threshold_on_its_barcodes(
    store: MemoryStore, query: Query, mode: Mode, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert search(store, query, SearchParams(mode=mode)).threshold == 60
    monkeypatch.setattr(store, "paper_barcodes", True)
    assert search(store, query, SearchParams(mode=mode)).threshold == expected
    assert search(store, query, SearchParams(mode=mode, threshold=40)).threshold == 40


def test_random_pairs_come_from_different_patients() -> None:
    """Two patients whose slides are all alike: every pair is as far apart as the two patients."""

    def slide(i: int, patient: str, code: int) -> EncodedSlide:
        codes = np.full((3, 1), code, np.uint64)
        return EncodedSlide(
            SlideRecord(f"s{i}", patient=patient), np.arange(3), codes, np.zeros((3, 4), np.int32)
        )

    two = MemoryStore(1, [slide(0, "a", 0), slide(1, "A", 0), slide(2, "b", 255)])
    assert calibrate(two, pairs=500).histogram[8] == 500
    one = MemoryStore(1, [slide(0, "a", 0), slide(1, "a", 255)])
    assert "one patient" in calibrate(one, pairs=100).note
    single = MemoryStore(1, [slide(0, "a", 0)])
    assert "one slide" in calibrate(single, pairs=100).note
    with pytest.raises(DatabaseError, match="two patches"):
        calibrate(MemoryStore(1))


def test_recall_of_exact_search_is_one_and_of_few_clusters_less(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("napari_fish.search.neighbours.FEW_ROWS", 10)
    exact = measure_recall(store, SearchParams(mode="exact"), queries=30)
    assert exact.recall == 1.0 and exact.queries > 20
    narrow = SearchParams(mode="clustered", clustered=ClusterParams(probes=1, margin=0.0))
    clustered = measure_recall(store, narrow, queries=30)
    assert clustered.mode == "clustered" and 0.05 < clustered.recall < 1.0
    guided = measure_recall(store, SearchParams(mode="guided"), queries=30)
    assert 0 < guided.recall <= 1.0


def test_recall_is_unknown_where_nothing_is_near() -> None:
    far = MemoryStore(4, demo_slides(np.random.default_rng(0), n=8))
    assert measure_recall(far, SearchParams(mode="guided", threshold=5)) == Recall("guided", 10, None, 0)


def test_recall_is_that_among_the_slides_the_filters_allow(store: MemoryStore) -> None:
    # Neighbours share the diagnosis, and a diagnosis has one site.
    kidney = measure_recall(store, SearchParams(mode="exact", where=("site=kidney",)), queries=40)
    pelvis = measure_recall(store, SearchParams(mode="exact", where=("site=pelvis",)), queries=40)
    both = measure_recall(store, SearchParams(mode="exact"), queries=40)
    assert kidney.queries + pelvis.queries == both.queries and kidney.queries < both.queries
    assert measure_recall(store, SearchParams(mode="exact"), within="site", queries=40) == both
    kidney_within = SearchParams(mode="exact", where=("site=kidney",))
    assert measure_recall(store, kidney_within, within="site", queries=40) == kidney


@pytest.mark.parametrize("patches", [1, 30])
def test_copies_of_slides_do_not_make_the_threshold_0(patches: int) -> None:
    dice = np.random.default_rng(3)
    originals = list(demo_slides(dice, n=8, patches=patches, words=16))

    def named(one: EncodedSlide, name: str) -> EncodedSlide:
        return replace(one, record=replace(one.record, slide=name, patient=name))

    plain = calibrate(MemoryStore(16, (named(one, one.record.slide) for one in originals)), pairs=20_000)
    copied = [named(one, f"{one.record.slide} {i}") for one in originals for i in range(5)]
    made = calibrate(MemoryStore(16, copied), pairs=20_000)
    assert made.threshold > 0 and abs(made.threshold - plain.threshold) <= 16
    assert made.histogram[0] == 0 and made.histogram.sum() == 20_000
    assert made.note == "32 slides are copies of others: random pairs leave copies of a slide out."
    assert not plain.note


def test_blank_regions_that_many_slides_share_do_not_make_the_threshold_0() -> None:
    dice = np.random.default_rng(4)
    slides = []
    for one in demo_slides(dice, n=10, patches=20, words=16):
        barcodes = one.barcodes.copy()
        barcodes[:3] = 0
        slides.append(replace(one, barcodes=barcodes))
    assert calibrate(MemoryStore(16, slides), pairs=20_000).threshold > 0
