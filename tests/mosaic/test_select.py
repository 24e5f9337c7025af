"""Two-stage K-means: deterministic, and right at the small end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from napari_fish.mosaic.select import colour_clusters, kmeans, representatives


def histograms(count: int, kinds: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.random((kinds, 768)) * 1000
    return (centres[rng.integers(kinds, size=count)] + rng.random((count, 768)) * 30).astype(np.float32)


def test_any_number_of_threads_gives_the_same_clusters() -> None:
    values = histograms(1500)
    results = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            results.append(kmeans(values, 9, 10, 0))
    for labels, centres in results[1:]:
        assert np.array_equal(labels, results[0][0])
        assert np.array_equal(centres, results[0][1])


def test_colour_clusters_are_numbered_from_the_largest() -> None:
    counts = np.bincount(colour_clusters(histograms(200), 4, 10, 0))
    assert len(counts) == 4
    assert list(counts) == sorted(counts, reverse=True)


@pytest.mark.parametrize("count", range(1, 9))
def test_fewer_patches_than_clusters_are_a_cluster_each(count: int) -> None:
    labels = colour_clusters(histograms(count, kinds=8), 9, 10, 0)
    assert sorted(labels) == list(range(count))


def test_equal_patches_share_a_cluster_without_a_warning() -> None:
    assert set(colour_clusters(np.ones((5, 768), np.float32), 9, 10, 0)) == {0}


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 70), st.integers(0, 1000))
def test_a_twentieth_of_a_cluster_is_chosen_or_all_of_a_small_one(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.permutation(400)[:count]
    corners = np.stack([cells % 20, cells // 20], axis=1) * 1024
    members, centres = representatives(corners, 0.05, 10, 0)
    assert len(members) == len(centres) == (count if count < 20 else count // 20)
    assert len(set(members.tolist())) == len(members)


def test_the_member_nearest_to_each_centre_is_chosen() -> None:
    corners = np.array([(x, y) for x in range(5) for y in range(4)]) * 1024
    (member,), (centre,) = representatives(corners, 0.05, 10, 0)
    assert centre.tolist() == [2048, 1536]
    assert corners[member].tolist() in ([2048, 1024], [2048, 2048])


def test_a_doubtful_patch_is_chosen_only_where_there_is_no_other() -> None:
    corners = np.array([(x, y) for x in range(5) for y in range(4)]) * 1024
    (usual,), _ = representatives(corners, 0.05, 10, 0)
    doubts = np.zeros(20, bool)
    doubts[usual] = True
    (other,), _ = representatives(corners, 0.05, 10, 0, doubts)
    assert other != usual
    assert representatives(corners, 0.05, 10, 0, np.ones(20, bool))[0].tolist() == [usual]
    # Where all are taken, nothing is left out for a doubt.
    assert representatives(corners[:3], 0.05, 10, 0, np.array([False, True, False]))[0].tolist() == [0, 1, 2]
