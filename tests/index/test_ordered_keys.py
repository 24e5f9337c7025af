"""The van Emde Boas tree and the directory over sorted keys find what a sorted list finds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_fish.index import VebTree
from napari_fish.index.guided.sorted_keys import directory_of, lower_bound

UNIVERSE = 1 << 50
# Crowded and far apart at once: neighbours inside a word, inside a cluster, across the root.
keys = st.one_of(
    st.integers(0, 200),
    st.integers(UNIVERSE - 100, UNIVERSE - 1),
    st.builds(lambda a, b: a << 24 | b, st.integers(0, 5), st.integers(0, 70)),
    st.integers(0, UNIVERSE - 1),
)
steps = st.lists(st.tuples(st.sampled_from(["insert", "insert", "delete"]), keys), max_size=80)


@settings(max_examples=60, deadline=None)
@given(steps=steps, asked=st.lists(keys, max_size=10))
def test_a_tree_agrees_with_a_sorted_list(steps: list[tuple[str, int]], asked: list[int]) -> None:
    index, plain = VebTree(), list[int]()
    for verb, key in steps:
        there = key in plain
        if verb == "insert":
            assert index.insert(key) is not there
            if not there:
                insort(plain, key)
        else:
            assert index.delete(key) is there
            if there:
                plain.remove(key)
    assert len(index) == len(plain)
    assert index.min == (plain[0] if plain else None)
    assert index.max == (plain[-1] if plain else None)
    for key in [*asked, *plain, 0, UNIVERSE - 1]:
        after, before = bisect_right(plain, key), bisect_left(plain, key)
        assert index.successor(key) == (plain[after] if after < len(plain) else None)
        assert index.predecessor(key) == (plain[before - 1] if before else None)
        assert (key in index) == (key in plain)
    assert index.successor(-1) == index.min
    assert index.predecessor(UNIVERSE) == index.max


@settings(max_examples=60, deadline=None)
@given(many=st.lists(keys, max_size=80, unique=True), asked=st.lists(keys, max_size=10))
def test_a_walk_over_sorted_keys_begins_where_a_sorted_list_says(many: list[int], asked: list[int]) -> None:
    plain = sorted(many)
    table = np.array(plain, np.int64)
    directory = directory_of(table)
    for key in [*asked, *plain, *(k + 1 for k in plain), 0, UNIVERSE - 1, UNIVERSE]:
        assert lower_bound(table, directory, key) == bisect_left(plain, key)


def test_a_tree_grows_shrinks_and_grows_again() -> None:
    many = np.random.default_rng(1).integers(0, UNIVERSE, 30_000)
    tree = VebTree(many)
    assert list(tree) == sorted(set(many.tolist()))
    for key in many.tolist():
        tree.delete(key)
    assert len(tree) == 0 and tree.min is None
    size = tree.nbytes
    tree.insert_many(many)
    assert list(tree) == sorted(set(many.tolist()))
    assert tree.nbytes == size, "emptied nodes are used again"


@pytest.mark.parametrize("key", [-1, UNIVERSE])
def test_keys_outside_the_universe_are_refused(key: int) -> None:
    with pytest.raises(ValueError, match=r"2\^50"):
        VebTree().insert(key)
    with pytest.raises(ValueError, match=r"2\^50"):
        VebTree([key])
