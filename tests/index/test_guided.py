"""Guided search: sorted arrays, van Emde Boas tree and a literal transcription of the paper agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_fish.errors import DatabaseError
from napari_fish.index import (
    ClusteredIndex,
    GuidedIndex,
    GuidedParams,
    NeighbourLists,
    Segment,
    SplitBarcodes,
    VebIndex,
    exact_neighbours,
    warm_up,
)
from napari_fish.index.clustered import kernel as probing
from napari_fish.index.exact import kernel as bounded
from napari_fish.index.exact import search as exact
from napari_fish.index.guided import queries, slide_rows
from napari_fish.index.guided.slide_rows import SlideRows
from tests.index import reference
from tests.index.archives import Archive, as_ints, random_archive

params = st.builds(
    GuidedParams,
    variant=st.sampled_from(["paper", "released"]),
    step=st.sampled_from([3, 40, 10**6]),
    steps=st.integers(0, 5),
    limit=st.integers(1, 25),
    threshold=st.integers(0, 90),
    every_patch=st.booleans(),
    skips=st.integers(0, 3),
)


def pairs(found: NeighbourLists, i: int, order: np.ndarray | None = None) -> list[tuple[int, int]]:
    rows, near = found[i]
    return list(zip(near.tolist(), (rows if order is None else order[rows]).tolist(), strict=True))


@settings(max_examples=150, deadline=None)
@given(
    p=params,
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 250),
    spread=st.sampled_from([30, 400, 10**6, 2**48]),
    share_allowed=st.sampled_from([None, 0.0, 0.03, 0.2, 0.7]),
    slides=st.sampled_from([6, 60]),
    in_delta=st.sampled_from([0.0, 0.1, 1.0]),
    words=st.sampled_from([1, 2, 16]),
    in_two=st.booleans(),
    from_zero=st.booleans(),
)
def test_all_agree(
    p: GuidedParams,
    seed: int,
    n: int,
    spread: int,
    share_allowed: float | None,
    slides: int,
    in_delta: float,
    words: int,
    in_two: bool,
    from_zero: bool,
) -> None:
    dice = np.random.default_rng(seed)
    archive = random_archive(dice, n, words=words, slides=slides, spread=spread, families=3)
    if from_zero:  # seeds below the universe
        archive = replace(archive, keys=archive.keys - archive.keys.min())
    codes = as_ints(archive.barcodes)
    plain = reference.Archive.of(archive.keys.tolist(), codes, archive.slides.tolist())
    mask = None if share_allowed is None else dice.random(slides) < share_allowed
    asked = dice.integers(0, n, 4)
    keys = np.clip(archive.keys[asked] + np.array([0, 0, 1, -2]), 0, 2**50 - 1)

    cut = n - int(in_delta * n)
    main, first = Segment.from_rows(archive.keys[:cut], archive.barcodes[:cut], archive.slides[:cut])
    delta, then = Segment.from_rows(archive.keys[cut:], archive.barcodes[cut:], archive.slides[cut:])
    order = np.concatenate([first, then + cut])
    if in_two:
        main = main.split(dice.permutation(cut).astype(np.int32))
    fast = GuidedIndex(main, delta).search(keys, archive.barcodes[asked], p, mask=mask, threads=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slide_rows, "ONE_IN", 1)
        index = GuidedIndex(main, delta, SlideRows.of(main.slides))
        by_list = index.search(keys, archive.barcodes[asked], p, mask=mask)
        alone = [
            index.search(keys[i : i + 1], archive.barcodes[row], p, mask=mask) for i, row in enumerate(asked)
        ]
    tree = VebIndex(main, delta).search(keys, archive.barcodes[asked], p, mask=mask, threads=2)

    for i, row in enumerate(asked.tolist()):
        expected, walks_cut = reference.guided(
            plain,
            int(keys[i]),
            codes[row],
            released=p.variant == "released",
            step=p.step,
            steps=p.steps,
            k=p.limit,
            threshold=p.threshold,
            allowed=None if mask is None else mask.tolist(),
            every=p.every_patch,
            skips=p.skips,
        )
        assert pairs(fast, i, order) == pairs(by_list, i, order) == pairs(alone[i], 0, order) == expected
        assert pairs(tree, i, order) == expected
        assert tree.cut[i] == fast.cut[i] == by_list.cut[i] == alone[i].cut[0] == walks_cut


def test_of_several_masks_those_that_leave_few_rows_are_listed(archive: Archive, segment: Segment) -> None:
    n = int(segment.slides.max()) + 1
    masks = np.zeros((4, n), np.bool_)
    masks[0, 3], masks[1, :], masks[3, [5, n - 1]] = True, True, True
    by_slide = SlideRows.of(segment.slides)
    listed, spans = by_slide.lists(masks)
    assert (spans[1] == -1).all() and spans[2, 0] == spans[2, 1] >= 0
    for mask, (begin, end) in ((masks[0], spans[0]), (masks[3], spans[3])):
        assert listed[begin:end].tolist() == np.flatnonzero(mask[segment.slides]).tolist() != []
    which, p = np.arange(40) % 4, GuidedParams(limit=20)
    asked = archive.keys[:40], archive.barcodes[:40], p
    fast = GuidedIndex(segment, by_slide=by_slide).search(*asked, mask=masks, which=which, threads=2)
    slow = GuidedIndex(segment).search(*asked, mask=masks, which=which)
    assert fast.rows.tolist() == slow.rows.tolist() and fast.cut.tolist() == slow.cut.tolist()
    assert fast.cut.any() and fast.lengths[which == 0].any() and fast.lengths[which == 3].any()


def test_an_indexed_mosaic_finds_itself_in_the_paper_but_not_in_the_released_program() -> None:
    m = 10**14
    crowd, _ = Segment.from_rows([m - 1, m, m + 1], np.zeros((3, 16), np.uint64), [0, 0, 0])
    zeros = np.zeros(16, np.uint64)
    paper = GuidedIndex(crowd).search([m], zeros, GuidedParams(limit=1))
    released = GuidedIndex(crowd).search([m], zeros, GuidedParams("released", limit=1))
    assert paper.rows.tolist() == [1]
    assert released.rows.tolist() == [0, 2]


def test_keys_just_below_the_query_are_the_papers_blind_spot() -> None:
    """Walks go up from m and down from m - C: nothing in [m - C, m) is ever visited."""
    m = 4 * 10**14
    below, _ = Segment.from_rows([m - 1, m - 50 * 10**11], np.zeros((2, 16), np.uint64), [0, 0])
    zeros = np.zeros(16, np.uint64)
    assert GuidedIndex(below).search([m], zeros).rows.tolist() == []
    assert GuidedIndex(below).search([m], zeros, GuidedParams("released")).rows.tolist() == [1, 0]


def test_the_threshold_is_exclusive_in_the_paper_and_inclusive_in_the_released_program() -> None:
    code = np.zeros(16, np.uint64)
    code[:2] = np.uint64(2**64 - 1)
    at_128, _ = Segment.from_rows([10**14 + 1], code[None], [0])
    zeros = np.zeros(16, np.uint64)
    assert len(GuidedIndex(at_128).search([10**14], zeros).rows) == 0
    assert GuidedIndex(at_128).search([10**14], zeros, GuidedParams("released")).distances.tolist() == [128]


def test_a_filter_with_few_matches_does_not_scan_everything_and_says_so() -> None:
    n = 5000
    slides = np.zeros(n, np.int32)
    slides[-1] = 1
    segment, _ = Segment.from_rows(np.arange(n), np.zeros((n, 2), np.uint64), slides)
    few = GuidedParams(limit=10)
    cut = GuidedIndex(segment).search([0], np.zeros(2, np.uint64), few, mask=np.array([False, True]))
    assert len(cut.rows) == 0 and cut.cut.tolist() == [1]
    wide = GuidedParams(limit=10, skips=500)
    found = GuidedIndex(segment).search([0], np.zeros(2, np.uint64), wide, mask=np.array([False, True]))
    assert found.rows.tolist() == [n - 1] and found.cut.tolist() == [0]


def test_memory_mapped_arrays_are_searched_in_place(
    tmp_path: Path, archive: Archive, segment: Segment
) -> None:
    split = segment.split(np.arange(len(segment), dtype=np.int32)[::-1])

    def mapped_array(name: str, array: np.ndarray) -> np.ndarray:
        np.save(tmp_path / f"{name}.npy", array)
        return np.load(tmp_path / f"{name}.npy", mmap_mode="r")

    codes = SplitBarcodes(
        *(mapped_array(name, getattr(split.codes, name)) for name in ("head", "tail", "place"))
    )
    keys, offsets, slides = (
        mapped_array(name, getattr(split, name)) for name in ("keys", "offsets", "slides")
    )
    mapped = Segment(keys, offsets, codes, slides)
    assert all(np.shares_memory(array, array.base) for array in mapped.codes.arrays)
    a = GuidedIndex(mapped).search(archive.keys[:5], archive.barcodes[:5])
    b = GuidedIndex(segment).search(archive.keys[:5], archive.barcodes[:5])
    assert np.array_equal(a.rows, b.rows)


def test_arrays_that_do_not_fit_are_refused(segment: Segment) -> None:
    with pytest.raises(DatabaseError, match="fit"):
        Segment(segment.keys[:-1], segment.offsets, segment.codes, segment.slides)


def test_warming_up_leaves_nothing_to_compile_for_the_first_query(archive: Archive, segment: Segment) -> None:
    warm_up(words=4)
    kernels = (
        queries.search_single, queries.search_many, exact.k_best, bounded.k_best_in_clusters, probing.search_many
    )  # fmt: skip
    compiled = [len(kernel.signatures) for kernel in kernels]
    assert min(compiled) >= 1
    GuidedIndex(segment).search(archive.keys[:1], archive.barcodes[:1])
    GuidedIndex(segment).search(archive.keys[:3], archive.barcodes[:3], mask=np.ones(60, bool))
    index = ClusteredIndex.train(segment)
    index.search(archive.barcodes[:3])
    exact_neighbours([index.block, segment.block], archive.barcodes[:3])
    assert [len(kernel.signatures) for kernel in kernels] == compiled


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(0, 300), top=st.sampled_from([1, 5000, 2**24, 2**31 - 1])
)
def test_rows_that_a_filter_leaves_are_listed_in_ascending_order(seed: int, n: int, top: int) -> None:
    dice = np.random.default_rng(seed)
    rows, counts = dice.integers(0, top, n).astype(np.int32), dice.multinomial(n, np.full(5, 0.2))
    by_slide = SlideRows(rows, np.concatenate([[0], np.cumsum(counts)]))
    mask = dice.random((2, 5)) < 0.5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slide_rows, "ONE_IN", 1)
        patch.setattr(slide_rows, "MOST_LISTED", n)
        listed, spans = by_slide.lists(mask)
    of_slide = np.repeat(np.arange(5), counts)
    for one, (begin, end) in zip(mask, spans, strict=True):
        assert begin >= 0 and listed[begin:end].tolist() == sorted(rows[one[of_slide]].tolist())


@pytest.mark.parametrize("smallest", [0, 5])
def test_a_released_seed_below_zero_is_walked_forward_from_the_smallest_key(smallest: int) -> None:
    # Only the walk from below zero can see the first key: the query lies far above it, and walks visit one key each.
    keys = np.array([smallest, 10_000, 20_000], np.int64)
    barcodes, slides = np.zeros((3, 1), np.uint64), np.arange(3, dtype=np.int32)
    main, _ = Segment.from_rows(keys, barcodes, slides)
    tree = VebIndex(main)
    released = GuidedParams("released", step=15_500, steps=2, limit=1)
    for found in (
        GuidedIndex(main).search([15_000], barcodes[:1], released),
        tree.search([15_000], barcodes[:1], released),
    ):
        assert sorted(found.rows.tolist()) == [0, 1, 2]
    paper = GuidedParams("paper", step=15_500, steps=2, limit=1)
    for found in (
        GuidedIndex(main).search([15_000], barcodes[:1], paper),
        tree.search([15_000], barcodes[:1], paper),
    ):
        assert 0 not in found.rows.tolist()
