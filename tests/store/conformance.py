"""What every store does, whoever keeps the data: subclass :class:`StoreTests` or :class:`CatalogueTests` and say how one is made.

Answers are compared with plain Python over the slides that were put in.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from napari_fish.errors import DatabaseError
from napari_fish.index import ClusterParams, GuidedParams, NeighbourLists
from napari_fish.search import Query, SearchParams, search, search_many
from napari_fish.search.calibrate import calibrate
from napari_fish.search.params import MODES, Mode
from napari_fish.store import EncodedSlide, MemoryStore, Store
from napari_fish.store.places import absolute
from napari_fish.store.protocol import CataloguedStore
from napari_fish.store.records import Quarantined
from napari_fish.store.request import Request
from tests.index import reference
from tests.index.archives import as_ints, distance_matrix, plain_neighbours
from tests.search.archives import demo_slides

SLIDES = list(demo_slides(np.random.default_rng(2), n=8, patches=12))
#: The same test of several stores is what this is about.
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
#: Slides that a store is made of, and one that was put in before it was replaced, and one that was removed again.
KEPT, REPLACED, REMOVED = SLIDES[:6], SLIDES[1], SLIDES[7]


def shorter(slide: EncodedSlide) -> EncodedSlide:
    """Return a slide without its first three patches."""
    return replace(slide, keys=slide.keys[3:], barcodes=slide.barcodes[3:], boxes=slide.boxes[3:])


def answers(store: Store, mode: Mode) -> list[tuple[object, ...]]:
    """Ask for each slide that was ever there; rows have other numbers in every store, all else is the same."""
    found = []
    for slide in SLIDES[:4]:
        query = Query(slide.record.name, slide.keys, slide.barcodes, slide.boxes, slide.record.slide)
        params = SearchParams(mode=mode, threshold=70, k=8, where=("site!=brain",), fill=True)
        for hit in search(store, query, params).hits:
            regions = sorted((m.query_index, m.hit_box, m.distance) for m in hit.matches)
            found.append((slide.record.slide, hit.rank, hit.slide, hit.distance, hit.diagnosis, regions))
    return found


def answers_in_memory(slides: Sequence[EncodedSlide], mode: Mode) -> list[tuple[object, ...]]:
    """Ask the same of a store in memory."""
    store = MemoryStore(4, slides)
    store.train_clusters(ClusterParams())
    return answers(store, mode)


def content(store: Store) -> dict[str, tuple[list[Any], ...]]:
    """Return what a store says of the patches of each slide, in the order of its mosaic."""
    found = {}
    for number in np.flatnonzero(store.slides.alive).tolist():
        rows = store.patch_rows(number)
        keys, barcodes = store.encoded(rows)
        boxes = [tuple(region.box) for region in store.regions(rows)]
        assert [region.slide for region in store.regions(rows)] == store.slides_of(rows).tolist()
        assert set(store.slides_of(rows).tolist()) <= {number}
        assert np.sort(rows).tolist() == store.rows_of([number]).tolist()
        assert len(rows) == store.patches_per_slide[number]
        found[store.slides[number].slide] = (keys.tolist(), barcodes.tolist(), boxes)
    return found


def content_of(slides: Sequence[EncodedSlide]) -> dict[str, tuple[list[Any], ...]]:
    """Return what that should be."""
    return {
        slide.record.slide: (
            slide.keys.tolist(),
            slide.barcodes.tolist(),
            [tuple(box) for box in slide.boxes.tolist()],
        )
        for slide in slides
    }


class Spy:
    """A store that counts what is asked of it and of its slides; a column is asked for once, and then known."""

    def __init__(self, asked: Any, calls: Counter[str], prefix: str = "") -> None:
        self._asked, self._calls, self._prefix = asked, calls, prefix

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._asked, name)
        if name == "slides":
            return Spy(found, self._calls, "slides.")
        if not callable(found):
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            if name == "numbered":
                self._calls[f"{self._prefix}{name} {arguments[0].lower()}"] = 1
            else:
                self._calls[self._prefix + name] += 1
            return found(*arguments, **named)

        return counted

    def __len__(self) -> int:
        return len(self._asked)

    def __getitem__(self, number: int) -> Any:
        self._calls[f"{self._prefix}[]"] += 1
        return self._asked[number]

    def __iter__(self) -> Iterator[Any]:
        self._calls[f"{self._prefix}all"] += 1
        return iter(self._asked)


class StoreTests(ABC):
    """What searches may rely on."""

    @abstractmethod
    def make(self, place: Path) -> Store:
        """Return a store of :data:`KEPT`, in this order but for :data:`REPLACED`, which came last; it has clusters."""

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
        """The store that is asked."""
        made = cls().make(tmp_path_factory.mktemp("store") / "a ü.fish")
        yield made
        if made.catalogue is not None:
            made.catalogue.close()

    def _plain(self, store: Store) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return keys, barcodes and slides of all rows that may be an answer; no barcode where none may."""
        rows = np.arange(len(store))
        keys, barcodes = store.encoded(rows)
        return keys, barcodes, store.slides_of(rows)

    def test_what_was_put_in_comes_back(self, store: Store) -> None:
        assert content(store) == content_of(KEPT)
        records = {store.slides[i].slide: store.slides[i] for i in np.flatnonzero(store.slides.alive)}
        assert records == {slide.record.slide: slide.record for slide in KEPT}
        numbers = [store.slides.number(name) for name in records]
        assert store.slides.records_of(numbers) == list(records.values())
        assert store.words == 4 and store.slides.number(REMOVED.record.slide) is None

    def test_the_digest_does_not_depend_on_the_order_in_which_slides_came(self, store: Store) -> None:
        assert store.digest() == MemoryStore(4, KEPT[::-1]).digest() != MemoryStore(4, SLIDES[:5]).digest()

    @settings(max_examples=60, deadline=None, suppress_health_check=SHARED)
    @given(
        seed=st.integers(0, 2**32 - 1),
        n_masks=st.sampled_from([None, 0, 1, 3]),
        k=st.integers(1, 40),
        radius=st.sampled_from([None, 0, 60, 110]),
        threads=st.integers(1, 2),
    )
    def test_exact_search_finds_the_nearest_of_all(
        self, store: Store, seed: int, n_masks: int | None, k: int, radius: int | None, threads: int
    ) -> None:
        dice = np.random.default_rng(seed)
        _, codes, slides = self._plain(store)
        asked = codes[dice.integers(0, len(codes), 5)] ^ np.uint64(dice.integers(0, 256))
        masks, which = _masks(store, n_masks, 5, dice)
        found = store.nearest(Request(asked, masks=masks, which=which, k=k, radius=radius, threads=threads))
        for i, allowed in enumerate(_allowed(store, slides, masks, which, 5)):
            rows, near = plain_neighbours(codes, asked[i], k, radius, allowed)
            assert found[i][1].tolist() == near
            assert found[i][0].tolist() == rows
        assert found.slides.tolist() == slides[found.rows].tolist()

    @settings(max_examples=60, deadline=None, suppress_health_check=SHARED)
    @given(
        seed=st.integers(0, 2**32 - 1),
        n_masks=st.sampled_from([None, 0, 1, 3]),
        params=st.builds(
            GuidedParams,
            variant=st.sampled_from(["paper", "released"]),
            step=st.sampled_from([10**10, 3 * 10**11, 10**13]),
            steps=st.integers(0, 5),
            limit=st.integers(1, 25),
            threshold=st.integers(20, 130),
            every_patch=st.booleans(),
            skips=st.integers(0, 3),
        ),
    )
    def test_guided_search_finds_what_the_paper_finds_on_sorted_keys_and_on_the_tree(
        self, store: Store, seed: int, n_masks: int | None, params: GuidedParams
    ) -> None:
        dice = np.random.default_rng(seed)
        keys, codes, slides = self._plain(store)
        at = dice.integers(0, len(codes), 4)
        # Of equal keys the paper's first counts: rows are in the order in which they came.
        plain = reference.Archive.of(keys.tolist(), as_ints(codes), slides.tolist())
        masks, which = _masks(store, n_masks, 4, dice)
        request = Request(codes[at], "guided", masks, which, keys=keys[at], guided=params)
        found = [store.nearest(replace(request, index=index)) for index in ("sorted", "veb")]
        for i, allowed in enumerate(_allowed_slides(store, masks, which, 4)):
            expected, cut = reference.guided(
                plain, int(keys[at[i]]), as_ints(codes[at[i : i + 1]])[0], released=params.variant == "released",
                step=params.step, steps=params.steps, k=params.limit, threshold=params.threshold,
                allowed=allowed.tolist(), every=params.every_patch, skips=params.skips,
            )  # fmt: skip
            for one in found:
                rows, near = one[i]
                assert list(zip(near.tolist(), rows.tolist(), strict=True)) == expected
                assert one.cut[i] == cut
        assert all(one.slides.tolist() == slides[one.rows].tolist() for one in found)

    def test_clustered_search_finds_true_neighbours_and_with_all_clusters_all(self, store: Store) -> None:
        _, codes, slides = self._plain(store)
        dice = np.random.default_rng(3)
        masks, which = _masks(store, 3, 6, dice)
        everything = ClusterParams(probes=10_000, margin=float("inf"), depth=1.0)
        request = Request(codes[5:11], masks=masks, which=which, k=9, radius=100)
        true, some, every = (
            store.nearest(replace(request, way=way, clustered=params))
            for way, params in (("exact", everything), ("clustered", ClusterParams(probes=2)), ("clustered", everything))
        )  # fmt: skip
        # Which of equally near patches are the last is not said.
        assert true.offsets.tolist() == every.offsets.tolist() and 0 < len(some.rows) < len(true.rows)
        assert true.distances.tolist() == every.distances.tolist()
        far = distance_matrix(codes, codes[5:11])
        for i, allowed in enumerate(_allowed(store, slides, masks, which, 6)):
            rows, near = some[i]
            assert near.tolist() == far[rows, i].tolist() and allowed[rows].all() and (near <= 100).all()

    def test_a_batch_answers_as_one_by_one(self, store: Store) -> None:
        keys, codes, _ = self._plain(store)
        masks, which = _masks(store, 3, 12, np.random.default_rng(4))
        assert masks is not None and which is not None
        for way in ("exact", "clustered", "guided"):
            request = Request(codes[:12], way, masks, which, k=5, keys=keys[:12], threads=2)
            alone = [
                store.nearest(
                    replace(
                        request,
                        barcodes=codes[i : i + 1],
                        keys=keys[i : i + 1],
                        masks=masks[which[i]],
                        which=None,
                    )
                )
                for i in range(12)
            ]
            assert _same(store.nearest(request), NeighbourLists.joined(alone))

    def test_how_far_slides_are_is_how_far_their_nearest_patches_are(self, store: Store) -> None:
        asked = SLIDES[6].barcodes[:3]
        numbers = [store.slides.number(f"s{i}") for i in (4, 0, 1)]
        true = [distance_matrix(KEPT[i].barcodes, asked).min(axis=0).tolist() for i in (4, 0, 1)]
        assert store.slide_distances(numbers, asked).tolist() == true

    def test_costs_grow_with_what_is_asked_and_say_what_cannot_be_answered(self, store: Store) -> None:
        few, many = SLIDES[6].barcodes[:2], SLIDES[6].barcodes
        for way in ("exact", "clustered", "guided"):
            cost = store.cost(Request(few, way))
            assert 0 < cost < store.cost(Request(many, way)) < float("inf")
            assert store.cost(Request(few, way, threads=2)) < cost
        only = np.zeros(len(store.slides), np.bool_)
        only[store.slides.number("s0")] = True
        assert store.cost(Request(few, masks=only)) < store.cost(Request(few))

    def test_random_pairs_are_of_slides_that_are_there_and_their_distances_are_true(
        self, store: Store
    ) -> None:
        drawn = store.random_pairs(400, np.random.default_rng(1))
        again = store.random_pairs(400, np.random.default_rng(1))
        assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
        codes = {store.slides.number(slide.record.slide): slide.barcodes for slide in KEPT}
        assert set(drawn.left.tolist()) == set(drawn.right.tolist()) == set(codes)
        for left, right, distance in zip(*(column.tolist() for column in drawn), strict=True):
            assert distance in distance_matrix(codes[left], codes[right])

    def test_no_slide_is_taken_for_a_copy_of_another(self, store: Store) -> None:
        copies = store.copies()[np.flatnonzero(store.slides.alive)]
        assert len(np.unique(copies)) == len(KEPT)

    def test_a_threshold_is_measured_as_in_memory(self, store: Store) -> None:
        # Rows have other numbers, so other pairs are drawn.
        here, there = (calibrate(one, pairs=20_000) for one in (store, MemoryStore(4, KEPT)))
        assert here.histogram.sum() == there.histogram.sum() == 20_000
        bits = np.arange(len(here.histogram))
        assert abs(here.histogram @ bits - there.histogram @ bits) < 20_000

    @pytest.mark.parametrize("mode", MODES)
    def test_every_mode_answers_as_in_memory(self, store: Store, mode: Mode) -> None:
        in_order = [slide for slide in KEPT if slide is not REPLACED] + [REPLACED]
        assert answers(store, mode) == answers_in_memory(in_order, mode)

    @pytest.mark.parametrize(
        ("params", "queries", "most"),
        [
            (SearchParams(mode="exact"), 1, 4),
            (SearchParams(mode="clustered"), 1, 4),
            (SearchParams(mode="guided"), 1, 4),
            (SearchParams(mode="guided", index="veb"), 1, 4),
            (SearchParams(mode="exact", where=("site=kidney", "stain!=PAS")), 1, 4),
            (SearchParams(mode="auto", fill=False), 1, 5),
            (SearchParams(mode="exact", ranking="label-free"), 1, 6),
            (SearchParams(mode="exact", k=50, threshold=1, fill=True), 1, 9),
            (SearchParams(mode="exact"), 4, 13),
        ],
    )  # fmt: skip
    def test_a_search_makes_a_handful_of_calls(
        self, store: Store, params: SearchParams, queries: int, most: int
    ) -> None:
        calls: Counter[str] = Counter()
        asked = [
            Query(s.record.name, s.keys, s.barcodes, s.boxes, s.record.slide, s.record.patient)
            for s in KEPT[:queries]
        ]
        params = replace(params, threshold=params.threshold or 140)
        found = search_many(Spy(store, calls), asked, params)  # type: ignore[arg-type]
        assert all(results.hits for results in found)
        columns = [name for name in calls if "numbered" in name]
        assert len(columns) <= 4
        assert sum(n for name, n in calls.items() if name not in columns) <= most, dict(calls)
        if params.ranking != "label-free" and not params.fill:
            assert calls["nearest"] == 1


class CatalogueTests(StoreTests):
    """What builds, care and everybody who opens a database may rely on besides."""

    @abstractmethod
    def create(self, place: Path) -> None:
        """Make an empty database of 4-word barcodes."""

    @abstractmethod
    def open(self, place: Path, *, writer: bool = False) -> CataloguedStore:
        """Open it."""

    def make(self, place: Path) -> CataloguedStore:
        """Make a database with some of its slides added, replaced and removed since it was compacted."""
        self.create(place)
        with self.open(place, writer=True) as store:
            for slide in (shorter(REPLACED), REMOVED, *(one for one in KEPT[:4] if one is not REPLACED)):
                store.catalogue.commit(slide)
            store.refresh()
            store.compact()
            for slide in (*KEPT[4:], REPLACED):
                store.catalogue.commit(slide)
            store.catalogue.remove([REMOVED.record.slide])
        return self.open(place)

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        """An empty database."""
        self.create(tmp_path / "b ü.fish")
        return tmp_path / "b ü.fish"

    def test_any_history_leaves_what_a_plain_model_says(self, tmp_path: Path) -> None:
        places = (tmp_path / f"{i}.fish" for i in count())
        run_state_machine_as_test(
            type("Machine", (History,), {"tests": self, "places": places}),
            settings=settings(max_examples=20, stateful_step_count=16, deadline=None),
        )

    def test_a_reader_sees_what_a_writer_adds_when_it_looks_again(self, place: Path) -> None:
        with self.open(place, writer=True) as writer:
            for slide in SLIDES[:6]:
                writer.catalogue.commit(slide)
            with self.open(place) as reader:
                assert not reader.refresh()
                writer.catalogue.commit(SLIDES[6])
                writer.catalogue.remove(["s1"])
                assert len(reader) == 72
                assert reader.refresh()
                assert answers(reader, "exact") == answers_in_memory([SLIDES[0], *SLIDES[2:7]], "exact")
                assert reader.slides.number("s1") is None

    def test_another_process_opens_it_by_its_location(self, place: Path) -> None:
        with self.open(place, writer=True) as store:
            store.catalogue.commit(SLIDES[0])
            where = pickle.dumps(absolute(store.catalogue.location))
            asked = (
                "import pickle, sys; from napari_fish.store import open_store; "
                "store = open_store(pickle.loads(bytes.fromhex(sys.argv[1]))); print(store.digest()); store.close()"
            )
            said = subprocess.run(
                [sys.executable, "-c", asked, where.hex()],
                check=True,
                capture_output=True,
                text=True,
                cwd="/",
            )
            assert said.stdout.strip() == store.digest()

    def test_there_is_one_writer_at_a_time(self, place: Path) -> None:
        with self.open(place, writer=True), pytest.raises(DatabaseError, match="another program is writing"):
            self.open(place, writer=True)
        self.open(place, writer=True).close()

    def test_a_change_is_made_wholly_or_not_at_all(self, place: Path) -> None:
        with self.open(place, writer=True) as store:
            catalogue = store.catalogue
            catalogue.commit(SLIDES[0])
            before = catalogue.generation, catalogue.slides()
            with pytest.raises(DatabaseError, match="not there"):
                catalogue.remove(["s0", "not there"])
            with pytest.raises(DatabaseError, match="not there"):
                catalogue.relabel(
                    [replace(SLIDES[0].record, diagnosis="x"), replace(SLIDES[1].record, slide="not there")]
                )
            with pytest.raises(DatabaseError, match="do not fit"):
                catalogue.commit(replace(SLIDES[1], barcodes=np.zeros((12, 16), np.uint64)))
            assert (catalogue.generation, catalogue.slides()) == before

    def test_quarantine_keeps_the_reason_until_the_slide_is_there(self, place: Path) -> None:
        with self.open(place, writer=True) as store:
            bad = [Quarantined("s0", "x/s0.svs", "torn"), Quarantined("zz", "x/zz.svs", "gone")]
            for one in bad:
                store.catalogue.quarantine(one)
            assert store.catalogue.quarantined == bad
            store.catalogue.commit(SLIDES[0])
            assert store.catalogue.quarantined == bad[1:]
            store.catalogue.release(["zz"])
            assert store.catalogue.quarantined == []

    def test_columns_and_calibration_come_from_the_catalogue(self, place: Path) -> None:
        with self.open(place, writer=True) as store:
            for slide in SLIDES[:6]:
                store.catalogue.commit(slide)
            store.refresh()
            store.calibration = calibrate(store, pairs=500)
            store.compact()
            store.catalogue.remove(["s0"])
            store.refresh()
            codes, values = store.slides.numbered("STAIN")
            assert values == ["H&E", "PAS"] and codes[0] == -1 and (codes[1:] >= 0).all()
            assert store.slides.columns == ["slide", "name", "patient", "site", "diagnosis", "stain"]
            assert [record.slide for record in store.slides] == ["", "s1", "s2", "s3", "s4", "s5"]
        with self.open(place) as store:
            assert store.calibration is not None and store.calibration.histogram.sum() == 500


class History(RuleBasedStateMachine):
    """Whatever happens to a database, it holds what a dict of slides holds, and answers like it."""

    tests: CatalogueTests
    places: Iterator[Path]

    @initialize()
    def begin(self) -> None:
        self.place = next(self.places)
        self.tests.create(self.place)
        self.store = self.tests.open(self.place, writer=True)
        self.left: dict[str, EncodedSlide] = {}

    @rule(i=st.integers(0, 7), change=st.sampled_from([lambda slide: slide, shorter]))
    def commit(self, i: int, change: Callable[[EncodedSlide], EncodedSlide]) -> None:
        slide = change(SLIDES[i])
        self.store.catalogue.commit(slide)
        self.left.pop(slide.record.slide, None)
        self.left[slide.record.slide] = slide

    @precondition(lambda self: self.left)
    @rule(i=st.integers(0, 7))
    def remove(self, i: int) -> None:
        name = list(self.left)[i % len(self.left)]
        self.store.catalogue.remove([name])
        del self.left[name]

    @precondition(lambda self: self.left)
    @rule(i=st.integers(0, 7), diagnosis=st.sampled_from(["", "KIRC", "new ü"]))
    def relabel(self, i: int, diagnosis: str) -> None:
        slide = list(self.left.values())[i % len(self.left)]
        record = replace(slide.record, diagnosis=diagnosis, labels={"Stain": "PAS"})
        self.store.catalogue.relabel([record])
        self.left[record.slide] = replace(slide, record=record)

    @rule()
    def compact(self) -> None:
        self.store.refresh()
        self.store.compact()

    @rule()
    def settle(self) -> None:
        self.store.settle()

    @rule(writer=st.booleans())
    def reopen(self, writer: bool) -> None:
        self.store.close()
        if not writer:
            with self.tests.open(self.place) as reader:
                self._compare(reader, "exact")
        self.store = self.tests.open(self.place, writer=True)

    @rule(mode=st.sampled_from(["exact", "clustered", "guided", "released"]))
    def search(self, mode: Mode) -> None:
        self.store.refresh()
        self._compare(self.store, mode)

    def _compare(self, store: Store, mode: Mode) -> None:
        left = list(self.left.values())
        assert content(store) == content_of(left)
        assert store.digest() == MemoryStore(4, left).digest()
        if mode == "clustered":
            # Clusters are those of when they were made, and may find others.
            assert {hit[2] for hit in answers(store, mode)} <= set(self.left)
        else:
            assert answers(store, mode) == answers_in_memory(left, mode)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            assert self.store.verify() == []
            self.store.close()
            with self.tests.open(self.place) as reader:
                self._compare(reader, "exact")


def _masks(
    store: Store, n_masks: int | None, n: int, dice: np.random.Generator
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return no mask, one for all, or a table of so many and which of them each query goes by."""
    if n_masks is None:
        return None, None
    if n_masks == 0:
        return dice.random(len(store.slides)) < 0.5, None
    return dice.random((n_masks, len(store.slides))) < 0.5, dice.integers(0, n_masks, n)


def _allowed_slides(
    store: Store, masks: np.ndarray | None, which: np.ndarray | None, n: int
) -> list[np.ndarray]:
    table = np.ones((1, len(store.slides)), np.bool_) if masks is None else np.atleast_2d(masks)
    return [table[0 if which is None else which[i]] & store.slides.alive for i in range(n)]


def _allowed(
    store: Store, slides: np.ndarray, masks: np.ndarray | None, which: np.ndarray | None, n: int
) -> list[np.ndarray]:
    """Return which rows each query may find."""
    return [allowed[slides] for allowed in _allowed_slides(store, masks, which, n)]


def _same(a: NeighbourLists, b: NeighbourLists) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("offsets", "rows", "distances", "slides")
    )
