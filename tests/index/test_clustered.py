"""Clustered search: complete when all clusters are probed, and good when few are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_fish.index import ClusteredIndex, ClusterParams, Segment, exact_neighbours
from napari_fish.index.clustered.search import reaches
from napari_fish.index.kmeans import ClusterFinder, binary_kmeans
from tests.index.archives import Archive, distance_matrix, random_archive


@pytest.fixture(scope="module")
def clustered(segment: Segment) -> ClusteredIndex:
    return ClusteredIndex.train(segment, ClusterParams(clusters=40))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    words=st.integers(1, 18),
    n=st.integers(1, 300),
    k=st.integers(1, 20),
    radius=st.one_of(st.none(), st.integers(0, 200)),
    masked=st.booleans(),
    in_delta=st.sampled_from([0.0, 0.2]),
)
def test_probing_every_cluster_and_comparing_every_row_is_exact(
    seed: int, words: int, n: int, k: int, radius: int | None, masked: bool, in_delta: float
) -> None:
    dice = np.random.default_rng(seed)
    archive = random_archive(dice, n, words=words, families=4)
    mask = dice.random(6) < 0.5 if masked else None
    cut = n - int(in_delta * n)
    main, _ = Segment.from_rows(archive.keys[:cut], archive.barcodes[:cut], archive.slides[:cut])
    delta, _ = Segment.from_rows(archive.keys[cut:], archive.barcodes[cut:], archive.slides[cut:])
    index = ClusteredIndex.train(main, ClusterParams(clusters=7, rounds=2)).with_delta(delta)
    queries = archive.barcodes[:3]
    found = index.search(queries, k=k, radius=radius, probes=10**6, margin=np.inf, mask=mask)
    exact = exact_neighbours([main.block, delta.block], queries, k=k, radius=radius, mask=mask)
    # Rows at the same distance as the last may be any of them.
    assert np.array_equal(found.offsets, exact.offsets)
    assert np.array_equal(found.distances, exact.distances)
    slides = np.concatenate([main.slides, delta.slides])
    assert mask is None or mask[slides[found.rows]].all()


def test_a_few_clusters_find_most_neighbours(
    archive: Archive, clustered: ClusteredIndex, segment: Segment
) -> None:
    queries = archive.barcodes[:100]
    exact = exact_neighbours([segment.block], queries, k=10)
    furthest = exact.distances.reshape(100, 10)[:, -1]
    found = clustered.search(queries, k=10, probes=8)
    recall = np.mean([(near <= far).sum() / 10 for (_, near), far in zip(found, furthest, strict=True)])
    assert recall > 0.9


def test_a_few_words_of_centres_lead_to_the_nearest_clusters() -> None:
    archive = random_archive(np.random.default_rng(8), 6000, words=16, families=300)
    main, _ = Segment.from_rows(archive.keys, archive.barcodes, archive.slides)
    index = ClusteredIndex.train(main, ClusterParams(clusters=400, rounds=2))
    queries, part = archive.barcodes[:60], index.clusters
    found = index.search(queries, k=5, probes=3, margin=np.inf)
    same = 0
    for i, centres_away in enumerate(distance_matrix(queries, index.centres)):
        nearest = np.argsort(centres_away, kind="stable")[:3]
        rows = np.concatenate([part.rows[part.starts[c] : part.starts[c + 1]] for c in nearest])
        near = np.sort(distance_matrix(main.codes[rows], queries[i])[:, 0])[:5]
        same += found[i][1].tolist() == near.tolist()
    assert same >= 57


def test_a_wider_margin_reaches_further_and_an_infinite_one_everywhere() -> None:
    narrow, wide, all_rows = (reaches(1024, 256, 4.0, margin) for margin in (0.0, 2.0, np.inf))
    assert narrow.tolist() == [d // 4 for d in range(1025)]
    assert (np.diff(wide) >= 0).all() and (wide >= narrow).all() and wide[200] > narrow[200]
    assert (all_rows == 256).all()


def test_the_farthest_rows_of_a_cluster_are_left_out_unless_everything_is_wanted(
    clustered: ClusteredIndex,
) -> None:
    clusters, far = clustered.clusters, clustered.clusters.far.astype(int)
    for cluster in range(len(clustered.centres)):
        mine = slice(clusters.starts[cluster], clusters.starts[cluster + 1])
        true = distance_matrix(
            clustered.main.codes[clusters.rows[mine]], clustered.centres[cluster : cluster + 1]
        )[:, 0]
        assert far[mine].tolist() == sorted(true.tolist(), reverse=True)
    query = clustered.centres[:1]
    half, all_rows = (clustered.search(query, k=10**4, probes=16, margin=m, depth=0.5) for m in (100, np.inf))
    in_clusters = np.argsort(distance_matrix(query, clustered.centres)[0], kind="stable")[:16]
    sizes = np.diff(clusters.starts)[in_clusters]
    assert len(all_rows.rows) == sizes.sum() and len(half.rows) == (sizes - sizes // 2).sum()


def test_training_twice_gives_the_same_clusters(segment: Segment, clustered: ClusteredIndex) -> None:
    again = ClusteredIndex.train(segment, ClusterParams(clusters=40), threads=2)
    assert np.array_equal(again.centres, clustered.centres)
    assert np.array_equal(again.clusters.rows, clustered.clusters.rows)
    assert np.array_equal(again.main.codes.tail, clustered.main.codes.tail)


def test_every_row_lies_in_one_cluster(clustered: ClusteredIndex, segment: Segment) -> None:
    assert sorted(clustered.clusters.rows.tolist()) == list(range(len(segment)))
    assert clustered.clusters.starts[-1] == len(segment)


def test_clusters_are_the_nearest_when_few_and_nearly_so_when_many() -> None:
    archive = random_archive(np.random.default_rng(3), 4000, words=4, families=200)
    few = binary_kmeans(archive.barcodes, 30, rounds=3)
    cluster, near = ClusterFinder(few)(archive.barcodes)
    table = distance_matrix(archive.barcodes, few)
    assert np.array_equal(near, table.min(axis=1)) and np.array_equal(cluster, table.argmin(axis=1))
    many = archive.barcodes[:700]
    _, near = ClusterFinder(many)(archive.barcodes)
    truth = distance_matrix(archive.barcodes, many).min(axis=1)
    assert (near == truth).mean() > 0.9


def test_more_clusters_than_barcodes_are_not_made() -> None:
    same = np.zeros((50, 2), np.uint64)
    assert len(binary_kmeans(same, 10)) <= 10
    main, _ = Segment.from_rows(np.arange(50), same, np.zeros(50))
    found = ClusteredIndex.train(main).search(same[:1], k=50, probes=50, margin=np.inf)
    assert len(found.rows) == 50


def test_an_index_without_rows_finds_nothing() -> None:
    found = ClusteredIndex.train(Segment.empty(4)).search(np.zeros((2, 4), np.uint64))
    assert found.lengths.tolist() == [0, 0]
