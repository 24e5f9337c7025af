"""Distances, and exact neighbours, against counting bits the obvious way."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from napari_fish.errors import DatabaseError
from napari_fish.index import ClusteredIndex, ClusterParams, Segment, SplitBarcodes, exact_neighbours
from napari_fish.index.exact import search as exact
from napari_fish.index.hamming import distances, near_rows, pair_distances, row_distance
from tests.index.archives import Archive, plain_distances, plain_neighbours, random_archive


@settings(max_examples=40, deadline=None)
@given(words=st.integers(1, 33), n=st.integers(0, 40), seed=st.integers(0, 2**32 - 1))
def test_distances_are_counted_bit_by_bit_for_any_width(words: int, n: int, seed: int) -> None:
    dice = np.random.default_rng(seed)
    rows = dice.integers(0, 2**64, (n, words), np.uint64)
    queries = dice.integers(0, 2**64, (3, words), np.uint64)
    for query in queries:
        expected = plain_distances(rows, query)
        assert np.array_equal(distances(rows, query), expected)
        assert np.array_equal(pair_distances(rows, np.tile(query, (n, 1))), expected)


@settings(max_examples=60, deadline=None)
@given(
    words=st.sampled_from([3, 8, 16, 20]),
    start=st.integers(0, 9),
    n=st.integers(0, 200),
    most=st.integers(-1, 1100),
    seed=st.integers(0, 2**32 - 1),
)
def test_near_rows_are_those_within_the_limit_wherever_a_block_begins_or_ends(
    words: int, start: int, n: int, most: int, seed: int
) -> None:
    dice = np.random.default_rng(seed)
    rows = dice.integers(0, 2**64, (start + n + 3, words), np.uint64)
    # Some copies with a few bits changed, so that some are near.
    rows[::3] = rows[0]
    rows[::3, 0] ^= dice.integers(0, 2**64, len(rows[::3]), np.uint64)
    near, hits = np.full(n + 1, -7, np.int32), np.full(n + 1, -7, np.int32)
    found = near_rows(rows, start, start + n, np.append(rows[0, :1], rows[0]), 1, most, near, hits)
    expected = plain_distances(rows[start : start + n], rows[0])
    assert np.array_equal(near[:n], expected)
    assert near[n] == -7
    assert np.array_equal(hits[:found], np.flatnonzero(expected <= most))


def test_the_row_loop_is_vectorised() -> None:
    if not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("only checked where the processor has vectors")
    # Compiled afresh: code from the cache cannot be inspected.
    compiled = njit(row_distance.py_func)
    rows = np.ones((4, 16), np.uint64)
    assert compiled(rows, 2, np.zeros(16, np.uint64)) == 16
    assembly = compiled.inspect_asm(compiled.signatures[0])
    assert "ymm" in assembly or "zmm" in assembly


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 700),
    k=st.integers(1, 30),
    radius=st.one_of(st.none(), st.integers(0, 70)),
    split=st.floats(0, 1),
    threads=st.integers(1, 3),
    masks=st.sampled_from(["none", "one", "each"]),
    words=st.sampled_from([1, 2, 16]),
    in_two=st.booleans(),
    asked=st.sampled_from([1, 3, 10]),
)
def test_exact_search_returns_the_true_neighbours(
    seed: int,
    n: int,
    k: int,
    radius: int | None,
    split: float,
    threads: int,
    masks: str,
    words: int,
    in_two: bool,
    asked: int,
) -> None:
    dice = np.random.default_rng(seed)
    archive = random_archive(dice, n, words=words)
    queries = archive.barcodes[dice.integers(0, n, asked)]
    table = dice.random((3, 6)) < 0.5
    mask = {"none": None, "one": table[0], "each": table}[masks]
    which = dice.integers(0, 3, asked) if masks == "each" else None
    at = int(split * n)
    first = SplitBarcodes.whole(archive.barcodes[:at])
    if in_two:
        first = first.split(dice.permutation(at).astype(np.int32))
    blocks = [(first, archive.slides[:at]), (archive.barcodes[at:], archive.slides[at:])]
    found = exact_neighbours(blocks, queries, k=k, radius=radius, mask=mask, which=which, threads=threads)
    for i, (rows, near) in enumerate(found):
        allowed = (
            None if mask is None else np.atleast_2d(mask)[0 if which is None else which[i]][archive.slides]
        )
        expected = plain_neighbours(archive.barcodes, queries[i], k, radius, allowed)
        assert (rows.tolist(), near.tolist()) == expected


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 900),
    k=st.integers(1, 30),
    radius=st.one_of(st.none(), st.integers(0, 300), st.just(2**30)),
    words=st.sampled_from([1, 2, 5, 16]),
    clusters=st.integers(1, 30),
    masks=st.sampled_from(["none", "one", "each"]),
    asked=st.sampled_from([1, 3, 10]),
    threads=st.integers(1, 3),
    narrow=st.sampled_from([0.0, 0.9]),
)
def test_leaving_out_what_cannot_be_near_leaves_out_no_neighbour(
    seed: int,
    n: int,
    k: int,
    radius: int | None,
    words: int,
    clusters: int,
    masks: str,
    asked: int,
    threads: int,
    narrow: float,
) -> None:
    dice = np.random.default_rng(seed)
    archive = random_archive(dice, n, words=words, families=5)
    # Some of the queries are near something, some are not.
    queries = dice.integers(0, 2**64, (asked, words), np.uint64)
    queries[: asked // 2] = archive.barcodes[dice.integers(0, n, asked // 2)] if n else 0
    table = dice.random((3, 6)) < 0.5
    mask = {"none": None, "one": table[0], "each": table}[masks]
    which = dice.integers(0, 3, asked) if masks == "each" else None
    segment, order = Segment.from_rows(archive.keys, archive.barcodes, archive.slides)
    index = ClusteredIndex.train(segment, ClusterParams(clusters=clusters, rounds=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "ROWS_A_THREAD", 100)
        patch.setattr(exact, "AWAY", 50)
        patch.setattr(exact, "NARROW", narrow)
        found = exact_neighbours(
            [index.block], queries, k=k, radius=radius, mask=mask, which=which, threads=threads
        )
    barcodes, slides = archive.barcodes[order], archive.slides[order]
    for i, (rows, near) in enumerate(found):
        allowed = None if mask is None else np.atleast_2d(mask)[0 if which is None else which[i]][slides]
        assert (rows.tolist(), near.tolist()) == plain_neighbours(barcodes, queries[i], k, radius, allowed)


@pytest.mark.parametrize("words", [1, 5, 16])
def test_barcodes_in_two_pieces_are_those_in_one(words: int) -> None:
    archive = random_archive(np.random.default_rng(4), 200, words=words)
    whole = SplitBarcodes.whole(archive.barcodes)
    orders = [np.random.default_rng(i).permutation(200).astype(np.int32) for i in range(2)]
    split = whole.split(orders[0])
    again = split.split(orders[1])
    assert again.head is split.head and np.array_equal(again.tail, split.tail[split.place[orders[1]]])
    for rows in (slice(None), slice(10, 150, 7), slice(5, 5), [3, 199, 3], np.empty(0, np.int64)):
        for codes in (whole, split, again):
            assert np.array_equal(codes[rows], archive.barcodes[rows])
    for codes in (whole, split):
        for wrong in (np.ones(200, np.bool_), [200], [-1], 7):
            with pytest.raises(IndexError):
                codes[wrong]
    for array in (split.head, split.tail):
        assert not array.size or array.ctypes.data % 64 == 0, "a half of 8 words is one line of memory"


def test_many_threads_change_nothing(archive: Archive, segment: Segment) -> None:
    many = [(np.tile(segment.codes[:], (8, 1)), np.tile(segment.slides, 8))]
    one = exact_neighbours(many, archive.barcodes[:20], k=15, threads=1)
    three = exact_neighbours(many, archive.barcodes[:20], k=15, threads=3)
    assert np.array_equal(one.rows, three.rows) and np.array_equal(one.distances, three.distances)


def test_barcodes_of_another_width_are_refused_with_the_reason(segment: Segment) -> None:
    with pytest.raises(DatabaseError, match="same encoder"):
        exact_neighbours([segment.block], np.zeros((1, 16), np.uint64))
