"""The van Emde Boas tree and the directory over sorted keys find what a sorted list finds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_fish.index.guided.sorted_keys import directory_of, lower_bound
from napari_fish.index.veb.tree import VebTree, contains, predecessor, successor
from napari_fish.index.veb.words import BITS

UNIVERSE = 1 << 50
# Crowded and far apart at once: neighbours inside a word, inside a cluster, across the root.
keys = st.one_of(
    st.integers(0, 200),
    st.integers(UNIVERSE - 100, UNIVERSE - 1),
    st.builds(lambda a, b: a << 24 | b, st.integers(0, 5), st.integers(0, 70)),
    st.integers(0, UNIVERSE - 1),
)


def after(tree: VebTree, key: int) -> int:
    return int(successor(tree.arrays, 0, BITS, key))


def before(tree: VebTree, key: int) -> int:
    return int(predecessor(tree.arrays, 0, BITS, key))


@settings(max_examples=60, deadline=None)
@given(batches=st.lists(st.lists(keys, max_size=40), max_size=4), asked=st.lists(keys, max_size=10))
def test_a_tree_agrees_with_a_sorted_list(batches: list[list[int]], asked: list[int]) -> None:
    tree = VebTree()
    for batch in batches:
        tree.insert(batch)
    plain = sorted({key for batch in batches for key in batch})
    assert len(tree) == len(plain)
    for key in [*asked, *plain, 0, UNIVERSE - 1]:
        above, below = bisect_right(plain, key), bisect_left(plain, key)
        assert after(tree, key) == (plain[above] if above < len(plain) else -1)
        assert before(tree, key) == (plain[below - 1] if below else -1)
        assert bool(contains(tree.arrays, key)) == (key in plain)


@settings(max_examples=60, deadline=None)
@given(many=st.lists(keys, max_size=80, unique=True), asked=st.lists(keys, max_size=10))
def test_a_walk_over_sorted_keys_begins_where_a_sorted_list_says(many: list[int], asked: list[int]) -> None:
    plain = sorted(many)
    table = np.array(plain, np.int64)
    directory = directory_of(table)
    for key in [*asked, *plain, *(k + 1 for k in plain), 0, UNIVERSE - 1, UNIVERSE]:
        assert lower_bound(table, directory, key) == bisect_left(plain, key)


def test_a_large_tree_is_walked_from_end_to_end() -> None:
    many = np.random.default_rng(1).integers(0, UNIVERSE, 30_000)
    tree, plain = VebTree(many), sorted(set(many.tolist()))
    found = [plain[0]]
    while (key := after(tree, found[-1])) >= 0:
        found.append(key)
    assert found == plain


@pytest.mark.parametrize("key", [-1, UNIVERSE])
def test_keys_outside_the_universe_are_refused(key: int) -> None:
    with pytest.raises(ValueError, match=r"2\^50"):
        VebTree([5, key])
