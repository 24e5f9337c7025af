"""Evaluations of small databases: what is asked, what is kept, what is said."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_fish.encode.bundle.keys import keys_from_codes
from napari_fish.errors import Cancelled, FishError
from napari_fish.evaluate import EvaluateParams, Evaluation, evaluate, to_html, to_json
from napari_fish.evaluate.asking import running
from napari_fish.evaluate.asking.answers import Answers, Questions
from napari_fish.evaluate.asking.kept import content_of
from napari_fish.evaluate.asking.questions import Asker, choose_questions, queries_of
from napari_fish.evaluate.asking.running import ask_all
from napari_fish.evaluate.params import Way
from napari_fish.evaluate.speed import growing, noisy_copies
from napari_fish.evaluate.values import Times
from napari_fish.search import Query, SearchParams, search
from napari_fish.store import MemoryStore
from napari_fish.store.array_store import exact_cost_ms
from napari_fish.store.snapshot.store import SnapshotStore
from tests.evaluate.conftest import N, make_database
from tests.search.archives import DIAGNOSES, demo_slides

QUICK = EvaluateParams(jobs=1)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Evaluation:
    with SnapshotStore(folder) as store:
        cache = tmp_path_factory.mktemp("cache")
        return evaluate(store, params=replace(QUICK, ablation=True), cache=cache, command="fish evaluate")


def test_every_mode_and_the_label_free_ranking_are_in_one_table(found: Evaluation) -> None:
    assert [way.name for way in found.ways] == [
        "auto",
        "exact",
        "clustered",
        "guided",
        "released",
        "label-free",
    ]
    assert found.n_queries == N
    assert found.n_patients == N // 2
    assert set(found.labels) == set(DIAGNOSES)


def test_slides_whose_barcodes_say_what_they_are_are_found(found: Evaluation) -> None:
    auto = found.main
    # Each diagnosis has four slides, two of them of the query's own patient: two of five can be right.
    assert auto.scores["top1"].value == 1.0
    assert auto.scores["map"].value == 1.0
    assert auto.short == 0.0
    assert auto.latency is not None and 0 < auto.latency.median <= auto.latency.p95
    recall = found.ways[1].recall
    assert recall is not None and recall.recall == 1.0 and recall.queries > 0


def test_the_ablation_switches_the_parts_of_the_ranking_on_one_by_one(found: Evaluation) -> None:
    assert [way.name for way in found.ablation[:4]] == [
        "exact naive",
        "exact +weighted",
        "exact +clean",
        "exact +filter",
    ]
    full = next(way for way in found.ways if way.name == "exact")
    assert found.ablation[3].scores["mmv"] == full.scores["mmv"]


def test_answers_are_those_users_get(store: SnapshotStore) -> None:
    questions, _ = choose_questions(store, store, QUICK, "slide")
    params = QUICK.search(Way("auto", "auto", "auto"))
    answers = Asker(store, store).ask(questions, params, "slide")
    for i, query in enumerate(queries_of(store, questions)):
        results = search(store, query, SearchParams(k=5))
        assert [store.slides[n].slide for n in answers.slides[i, :5]] == [hit.slide for hit in results.hits]
        assert answers.distances[i, :5].tolist() == [hit.distance for hit in results.hits]
        assert all(hit.patient != questions.patients[i] for hit in results.hits)


def test_no_query_is_short_without_a_reason(tmp_path: Path) -> None:
    folder = make_database(tmp_path / "strict.fish", n=8, threshold=20)
    with SnapshotStore(folder) as store:
        found = evaluate(store, params=replace(QUICK, k=7), keep=False)
    for way in found.ways:
        assert sum(way.why_short.values()) == round(way.short * found.n_queries)
    auto, exact = found.ways[0], found.ways[1]
    # Six slides are of other patients, so seven cannot be had; the threshold leaves none.
    assert auto.why_short == {"the exclusion of the patient and the filters leave fewer than 7": 8}
    assert exact.why_short == {"no patch of the query has a neighbour within the threshold": 8}
    assert auto.filled == 1.0
    # Nothing is near, so nothing was measured: that is no perfect recall.
    assert exact.recall is not None
    assert (exact.recall.recall, exact.recall.queries, str(exact.recall)) == (None, 0, "- (n=0)")
    document = to_json(found)["modes"]["exact"]
    assert (document["recall"], document["recall_queries"]) == (None, 0)


def test_short_answers_can_be_completed_in_every_mode(tmp_path: Path) -> None:
    with SnapshotStore(make_database(tmp_path / "strict.fish", n=12, threshold=20)) as store:
        found = evaluate(store, params=replace(QUICK, fill=True), keep=False)
    assert all(way.short == 0 and way.filled == 1 for way in found.ways)
    assert len({way.scores["mmv"] for way in found.ways}) == 1


def test_another_k_is_answered_from_what_is_kept(
    store: SnapshotStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate(store, params=QUICK, cache=tmp_path)
    anew = {k: evaluate(store, params=replace(QUICK, k=k), keep=False) for k in (1, 3)}

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("searched again")

    module = __import__("napari_fish.evaluate.steps", fromlist=["x"])
    for name in ("ask_all", "time_searches", "measure_recall"):
        monkeypatch.setattr(module, name, never)
    for k, fresh in anew.items():
        again = evaluate(store, params=replace(QUICK, k=k), cache=tmp_path)
        for a, b in zip(again.ways, fresh.ways, strict=True):
            assert (a.scores["mmv"], a.scores["map"], a.short, a.per_label) == (
                b.scores["mmv"],
                b.scores["map"],
                b.short,
                b.per_label,
            )
            assert np.array_equal(a.matrices[0].confusion, b.matrices[0].confusion)
    assert first.k == 5


def test_what_is_kept_is_not_used_when_labels_change(tmp_path: Path) -> None:
    folder, cache = make_database(tmp_path / "a.fish", n=8), tmp_path / "cache"
    with SnapshotStore(folder) as store:
        evaluate(store, params=QUICK, cache=cache)
    with SnapshotStore(folder, writer=True) as store:
        store.catalogue.relabel([replace(record, diagnosis="all alike") for record in store.slides])
    with SnapshotStore(folder) as store:
        assert evaluate(store, params=QUICK, cache=cache).main.scores["mmv"].value == 1.0


def test_a_damaged_entry_of_the_cache_is_made_again(store: SnapshotStore, tmp_path: Path) -> None:
    first = evaluate(store, params=QUICK, cache=tmp_path)
    for path in tmp_path.glob("*.npz"):
        path.write_bytes(b"rubbish")
    assert evaluate(store, params=QUICK, cache=tmp_path).main.scores["mmv"] == first.main.scores["mmv"]


@pytest.mark.parametrize("in_thread", [False, True])
def test_several_processes_give_the_same_answers(
    store: SnapshotStore, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "BATCH_PATCHES", 10)
    questions, _ = choose_questions(store, store, QUICK, "slide")
    ways = [QUICK.search(way) for way in QUICK.ways("slide")[:2]]
    alone = ask_all(store, store, questions, ways, "slide")
    seen: list[tuple[int, int]] = []
    asked: list[int] = []
    ask = Asker.ask

    def counted(self: Asker, questions: Questions, *more: Any) -> Answers:
        asked.append(len(questions))
        return ask(self, questions, *more)

    monkeypatch.setattr(Asker, "ask", counted)

    def in_processes() -> list[Answers]:
        # Work that is worth no time at all goes to other processes after the first task.
        return ask_all(
            store, store, questions, ways, "slide", jobs=2, worth_seconds=0.0,
            progress=lambda *done: seen.append(done),
        )  # fmt: skip

    if in_thread:
        with ThreadPoolExecutor(1) as pool:
            together = pool.submit(in_processes).result()
        assert len(asked) == 1, "a window that waits is not kept from being drawn"
    else:
        together = in_processes()
        assert 1 < len(asked) < len(seen), "the main thread goes on asking, and so do others"
    assert seen[-1] == (2 * len(questions), 2 * len(questions))
    for a, b in zip(alone, together, strict=True):
        for name, array in a.arrays().items():
            np.testing.assert_array_equal(array, b.arrays()[name])


def test_an_evaluation_in_several_processes_can_be_stopped(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "BATCH_PATCHES", 10)
    questions, _ = choose_questions(store, store, QUICK, "slide")
    ways = [QUICK.search(way) for way in QUICK.ways("slide")]
    done: list[int] = []
    with pytest.raises(Cancelled):
        ask_all(
            store, store, questions, ways, "slide", jobs=2, worth_seconds=0.0,
            progress=lambda n, _: done.append(n), should_stop=lambda: len(done) > 3,
        )  # fmt: skip
    assert 3 < len(done) < len(ways) * len(questions)


def test_another_cohort_is_asked_of_this_one(store: SnapshotStore, tmp_path: Path) -> None:
    other = make_database(tmp_path / "other.fish", seed=0, n=4)
    with SnapshotStore(other) as queries:
        found = evaluate(store, queries, QUICK, keep=False)
    assert found.queries == "other.fish"
    assert (found.n_queries, found.n_slides) == (4, N)
    # The patients p0 and p1 are in both: they are left out, so their slides are not simply found again.
    with SnapshotStore(other) as queries:
        questions, _ = choose_questions(store, queries, QUICK, "slide")
        answers = Asker(store, queries).ask(questions, QUICK.search(Way("", "exact", "label-free")), "slide")
    for i, patient in enumerate(questions.patients):
        slides = answers.slides[i][answers.slides[i] >= 0]
        assert len(slides) and all(store.slides[n].patient != patient for n in slides.tolist())


def test_a_cohort_of_another_encoder_is_refused(store: SnapshotStore, tmp_path: Path) -> None:
    with (
        SnapshotStore(make_database(tmp_path / "other.fish", n=4, weights="xyz")) as queries,
        pytest.raises(FishError, match="same encoder"),
    ):
        evaluate(store, queries, QUICK, keep=False)


def test_any_column_can_be_the_target_and_bound_the_answers(store: SnapshotStore) -> None:
    found = evaluate(store, params=replace(QUICK, target="Stain", within="site", mode="exact"), keep=False)
    assert set(found.labels) == {"H&E", "PAS"}
    questions, _ = choose_questions(store, store, replace(QUICK, within="site"), "slide")
    answers = Asker(store, store).ask(questions, QUICK.search(Way("", "exact", "label-free")), "slide")
    for i in range(len(questions)):
        sites = {store.slides[n].site for n in answers.slides[i].tolist() if n >= 0}
        assert sites == {store.slides[int(questions.slides[i])].site}


def test_answers_within_a_site_have_matrices_of_each_site_divided_by_its_own_queries(
    store: SnapshotStore,
) -> None:
    found = evaluate(
        store,
        params=replace(QUICK, within="site", mode="exact", query_where=("name!=slide 0.svs",)),
        keep=False,
    )
    kidney, pelvis = sorted(found.main.matrices, key=lambda one: one.within)
    assert (kidney.within, kidney.n, kidney.labels) == ("kidney", N // 2 - 1, ("KIRC", "KIRP"))
    assert (pelvis.within, pelvis.n, pelvis.labels) == ("pelvis", N // 2, ("BLCA", "PRAD"))
    assert kidney.confusion.sum() == kidney.n
    alone = evaluate(
        store,
        params=replace(QUICK, mode="exact", where=("site=pelvis",), query_where=("site=pelvis",)),
        keep=False,
    )
    assert np.array_equal(pelvis.hamming, alone.main.matrices[0].hamming)
    # Two labels to guess from in each site, four in all.
    assert (found.chance, alone.chance) == (0.5, 0.5)
    assert evaluate(store, params=replace(QUICK, mode="exact"), keep=False).chance == 0.25
    assert "site kidney, 7 queries" in to_html(found)


def test_a_filter_on_the_column_answers_are_kept_within_does_not_widen_it(store: SnapshotStore) -> None:
    p = replace(QUICK, within="site", where=("site=Kidney",))
    questions, _ = choose_questions(store, store, p, "slide")
    answers = Asker(store, store).ask(questions, p.search(Way("", "exact", "label-free")), "slide")
    for i, n in enumerate(questions.slides.tolist()):
        sites = {store.slides[hit].site for hit in answers.slides[i].tolist() if hit >= 0}
        assert sites == ({"kidney"} if store.slides[n].site == "kidney" else set())


def test_auto_chooses_as_it_does_for_users() -> None:
    mine, users = QUICK.search(Way("auto", "auto", "auto")), SearchParams()
    rows, patches = 10_000_000, np.arange(1, 100)
    cost = [exact_cost_ms(rows, n, 16, mine.threads) <= mine.latency_budget_ms for n in patches.tolist()]
    for_users = [
        exact_cost_ms(rows, n, 16, users.threads) <= users.latency_budget_ms for n in patches.tolist()
    ]
    assert mine.threads == 1 and cost == for_users
    timed = QUICK.as_users_search(Way("auto", "auto", "auto"))
    assert (timed.threads, timed.latency_budget_ms) == (users.threads, users.latency_budget_ms)


def test_the_definitions_of_the_published_program_are_told_and_can_be_chosen_one_by_one(
    store: SnapshotStore,
) -> None:
    p = replace(QUICK, mode="exact", k=3)
    paper = evaluate(store, params=p, keep=False).main
    divided = evaluate(store, params=replace(p, fixed_divisor=True), keep=False).main
    enough = evaluate(store, params=replace(p, half_is_enough=True), keep=False).main
    assert paper.scores["map"].value == 1.0 and paper.macro["map_released"].value < 1.0
    # Two slides of other patients share the diagnosis; of short answers with two right ones, only the program's rule is content.
    assert paper.macro["mmv"].value < paper.macro["mmv_released"].value
    assert (divided.macro["map"], divided.scores["mmv"]) == (paper.macro["map_released"], paper.scores["mmv"])
    assert (enough.macro["mmv"], enough.scores["map"]) == (paper.macro["mmv_released"], paper.scores["map"])
    for label, one in paper.per_label.items():
        assert divided.per_label[label].scores["map"] == one.scores["map_released"]
        assert enough.per_label[label].scores["mmv"] == one.scores["mmv_released"]


def test_a_column_that_is_not_there_is_refused_with_those_that_are(store: SnapshotStore) -> None:
    with pytest.raises(FishError, match=r"No column 'grade'.*diagnosis"):
        evaluate(store, params=replace(QUICK, target="grade"), keep=False)


def test_single_patches_are_answered_with_the_nearest_patches(memory: MemoryStore) -> None:
    found = evaluate(memory, params=replace(QUICK, level="patch", mode="exact"), keep=False)
    assert found.n_queries == N * 6
    questions, _ = choose_questions(memory, memory, replace(QUICK, sample=5), "patch")
    answers = Asker(memory, memory).ask(questions, QUICK.search(Way("", "auto", "label-free")), "patch")
    keys, codes = memory.encoded(np.arange(len(memory)))
    for i, row in enumerate(questions.rows.tolist()):
        far = np.bitwise_count(codes ^ codes[row]).sum(axis=1).astype(int)
        mine = [memory.slides[n].patient == questions.patients[i] for n in memory.slides_of(range(len(keys)))]
        far[mine] = 10**6
        assert answers.distances[i].tolist() == np.sort(far)[: answers.distances.shape[1]].tolist()


def test_a_sample_asks_so_many_and_says_so(store: SnapshotStore) -> None:
    found = evaluate(store, params=replace(QUICK, sample=6, mode="auto"), keep=False)
    assert found.n_queries == 6
    assert any("sample of 6 of 16" in note for note in found.notes)


def test_a_label_that_only_one_patient_has_is_pointed_out(tmp_path: Path) -> None:
    with SnapshotStore(make_database(tmp_path / "a.fish", n=6)) as store:
        found = evaluate(store, params=replace(QUICK, mode="auto"), keep=False)
    assert any("6 queries cannot be answered" in note for note in found.notes)


def test_a_database_without_labels_is_refused(memory: MemoryStore) -> None:
    slides = [
        replace(s, record=replace(s.record, diagnosis="")) for s in demo_slides(np.random.default_rng(0), 4)
    ]
    with pytest.raises(FishError, match="No slide has a diagnosis"):
        evaluate(MemoryStore(4, slides), params=QUICK, keep=False)


def test_an_evaluation_can_be_stopped(store: SnapshotStore) -> None:
    with pytest.raises(Cancelled):
        evaluate(store, params=QUICK, keep=False, should_stop=lambda: True)


def test_progress_only_grows_and_ends_at_the_end(store: SnapshotStore) -> None:
    seen: list[tuple[int, int]] = []
    evaluate(store, params=replace(QUICK, mode="exact"), keep=False, progress=lambda *at: seen.append(at))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


def test_speed_is_measured_over_growing_parts(memory: MemoryStore) -> None:
    found = evaluate(memory, params=replace(QUICK, speed=True, mode="exact", sample=3), keep=False)
    sizes = [row.mosaics for row in found.speed if row.mode == "guided"]
    assert sizes == [6, 12, 24, 48, 96]
    assert all(row.patch.median > 0 and row.slide is not None for row in found.speed)
    whole = {row.mode: row.recall for row in found.speed if row.mosaics == 96}
    assert whole["exact"].recall == 1.0 and whole["guided"].queries > 50
    assert whole["guided (veb)"] == whole["guided"]


def test_times_over_growing_parts_are_kept(
    store: SnapshotStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = replace(QUICK, speed=True, mode="exact", sample=3)
    first = evaluate(store, params=params, cache=tmp_path)
    monkeypatch.setattr("napari_fish.evaluate.speed.time_searches", None)
    assert evaluate(store, params=replace(params, k=3), cache=tmp_path).speed == first.speed


def test_a_single_mosaic_is_any_of_its_slide(memory: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def note(part: MemoryStore, queries: list[Query], *_: object) -> list[Times]:
        asked.extend(bool(np.isin(query.keys, lowest).all()) for query in queries if len(query) == 1)
        return [Times(1.0, 1.0, 1.0, 1)] * 5

    lowest = [memory.encoded(memory.rows_of([i]))[0].min() for i in range(N)]
    monkeypatch.setattr("napari_fish.evaluate.speed.time_searches", note)
    questions, _ = choose_questions(memory, memory, QUICK, "slide")
    list(growing(memory, questions, memory, QUICK.as_users_search(Way("", "exact", "auto"))))
    assert len(asked) == 5 * N and 0 < sum(asked) < len(asked) / 2


def test_a_database_built_anew_in_its_place_is_another(tmp_path: Path) -> None:
    folder = make_database(tmp_path / "a.fish", n=4)
    with SnapshotStore(folder) as store:
        first, again = content_of(store), content_of(store)
        generation = store.catalogue.generation
    shutil.rmtree(folder)
    with SnapshotStore(make_database(folder, n=4)) as store:
        assert store.catalogue.generation == generation and content_of(store) != first
    assert first == again


def test_copies_that_went_different_ways_are_told_apart(tmp_path: Path) -> None:
    one = make_database(tmp_path / "a.fish", n=4)
    two = Path(shutil.copytree(one, tmp_path / "b.fish"))
    contents = []
    for folder, label in ((one, "x"), (two, "y")):
        with SnapshotStore(folder, writer=True) as store:
            store.catalogue.relabel([replace(record, diagnosis=label) for record in store.slides])
        with SnapshotStore(folder) as store:
            contents.append(content_of(store))
    assert contents[0][:2] == contents[1][:2] and contents[0] != contents[1]


def test_noisy_copies_share_the_barcode_and_have_keys_of_their_own() -> None:
    dice = np.random.default_rng(0)
    codes = dice.integers(0, 128, (3, 64, 64)).astype(np.uint8)
    (slide,) = demo_slides(dice, n=1, patches=3)
    slide = replace(slide, keys=np.sort(keys_from_codes(codes).astype(np.int64)))
    grown = noisy_copies(slide, codes, 10, dice)
    assert len(grown.keys) == 30
    assert np.array_equal(grown.keys[:3], slide.keys)
    assert len(np.unique(grown.keys)) == 30
    assert (grown.keys[3:].reshape(9, 3) >= slide.keys).all()
    assert np.array_equal(grown.barcodes[3:6], slide.barcodes)


def test_copies_without_stored_codes_are_refused_with_the_remedy(store: SnapshotStore) -> None:
    with pytest.raises(FishError, match="--store-codes"):
        evaluate(store, params=replace(QUICK, augment=True, mode="exact"), keep=False)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_stands_alone_and_says_how_it_was_made(found: Evaluation) -> None:
    text = to_html(found)
    page = _Page()
    page.feed(text)
    assert not page.open
    assert all(address.startswith("data:") for address in page.addresses)
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg)", text)
    for said in ("fish evaluate", "numba", "a ü.fish", "released", "label-free", *DIAGNOSES):
        assert said in text


def test_the_json_has_the_promised_fields_and_no_nan(found: Evaluation) -> None:
    document = json.loads(json.dumps(to_json(found), allow_nan=False))
    assert {"n_queries", "target", "level", "k", "modes", "index_bytes_per_mosaic"} <= set(document)
    promised = ["mmv", "mmv_macro", "map", "map_macro", "top1", "short", "per_label", "latency_ms", "recall"]
    for line in document["modes"].values():
        assert set(promised) <= set(line)
        assert set(line["latency_ms"]) >= {"median", "p95"}
        assert np.array(line["matrices"][0]["confusion"]).sum() == document["n_queries"]
