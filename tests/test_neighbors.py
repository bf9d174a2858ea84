"""Every search against all distances in double precision."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from greenlabel.graph import clusters, compiled_search, distances, neighbors
from greenlabel.graph.compiled_search import clustered_points
from greenlabel.graph.distances import pair_distances, row_blocks, working
from greenlabel.graph.neighbors import (
    ClusterSearch,
    FlatSearch,
    Float64Search,
    ReducedSearch,
    copy_numbers,
    exact_search,
    graph_search,
)
from greenlabel.graph.projection import principal_axes
from helpers import reference

pytestmark = pytest.mark.usefixtures("way")


def exact_searches(P):
    yield Float64Search(P)
    yield FlatSearch(P)
    yield ReducedSearch(P, principal_axes(P, min(4, P.shape[1])))
    yield Float64Search(sp.csr_array(P))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_exact_search_finds_the_nearest_points_and_their_distances(rng, dtype):
    X, P = rng.normal(size=(300, 12)).astype(dtype), rng.normal(size=(80, 12)).astype(dtype)
    expected = reference.squared_distances(X, P)
    for search in exact_searches(P):
        dist2, index = search.nearest(X, 5)
        assert_array_equal(index, reference.nearest(expected, 5), err_msg=type(search).__name__)
        assert_allclose(dist2, np.sort(expected, axis=1)[:, :5], rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_blocks_of_rows_change_nothing(rng, monkeypatch):
    X, P = rng.normal(size=(300, 12)), rng.normal(size=(80, 12))
    whole = [search.nearest(X, 5) for search in exact_searches(P)]
    monkeypatch.setattr(distances, "BLOCK_VALUES", 700)
    for search, (dist2, index) in zip(exact_searches(P), whole, strict=True):
        in_blocks = search.nearest(X, 5)
        assert_array_equal(in_blocks[1], index)
        assert_allclose(in_blocks[0], dist2, rtol=1e-14)


def test_a_row_is_dropped_by_its_number_not_by_its_place(rng):
    X = np.repeat(rng.normal(size=(20, 3)), 6, axis=0)  # every row six times
    for search in exact_searches(X):
        dist2, index = search.nearest_to_own(5)
        assert (index != np.arange(len(X))[:, None]).all()
        assert_array_equal(index // 6, np.repeat(np.arange(len(X)) // 6, 5).reshape(-1, 5))
        assert (dist2 == 0).all()


@pytest.mark.slow
def test_of_points_equally_far_the_first_ones_are_taken(rng, monkeypatch):
    """On a grid most distances occur many times; neither rounding nor the number of candidates may choose."""
    X = rng.integers(0, 4, size=(700, 4)).astype(np.float32)
    dist2 = reference.squared_distances(X, X)
    np.fill_diagonal(dist2, np.inf)
    for many in (256, 8):  # with so many spare candidates double precision is needed seldom, and nearly always
        monkeypatch.setattr(neighbors, "MANY_SPARE", many)
        for search in exact_searches(X):
            assert_array_equal(search.nearest_to_own(7)[1], reference.nearest(dist2, 7), err_msg=type(search).__name__)


def test_copies_are_counted_in_their_order():
    P = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0], [-0.0, 1.0], [1.0, 2.0], [5.0, 5.0]])
    assert_array_equal(copy_numbers(P), [0, 0, 1, 1, 2, 0])


def test_more_duplicates_than_candidates_still_leave_the_row_itself_out():
    X = np.zeros((50, 3))
    for search in exact_searches(X):
        dist2, index = search.nearest_to_own(5)
        assert (index != np.arange(50)[:, None]).all()
        assert (dist2 == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_distances_survive_large_features(rng, dtype):
    """Two groups 50,000 apart, rows 0.1 apart within them: float32 products see neither."""
    X = (rng.normal(scale=0.1, size=(400, 8)) + np.repeat([0, 50_000], 200)[:, None]).astype(dtype)
    expected = reference.squared_distances(X, X)
    np.fill_diagonal(expected, np.inf)
    for search in exact_searches(X):
        dist2, index = search.nearest_to_own(6)
        assert_array_equal(index, reference.nearest(expected, 6), err_msg=type(search).__name__)
        assert_allclose(dist2, np.sort(expected, axis=1)[:, :6], rtol=1e-5)


def test_the_reduced_search_is_exact_even_when_its_axes_hold_nothing(rng):
    """Axes of the wrong data prove little; what they do not prove is searched in full."""
    X, P = rng.normal(size=(200, 40)).astype(np.float32), rng.normal(size=(150, 40)).astype(np.float32)
    flat_axes = np.zeros((100, 40), np.float32)
    flat_axes[:, :2] = rng.normal(size=(100, 2))
    search = ReducedSearch(P, principal_axes(flat_axes, 2))
    assert_array_equal(search.nearest(X, 4)[1], reference.nearest(reference.squared_distances(X, P), 4))


@pytest.mark.slow
def test_the_reduced_search_proves_most_rows_when_a_few_axes_hold_the_distances(rng, monkeypatch):
    mix = rng.normal(size=(6, 300))
    X, P = (rng.normal(size=(n, 6)) @ mix + 0.01 * rng.normal(size=(n, 300)) for n in (500, 300))
    handed_on = []
    search = ReducedSearch(working(P), principal_axes(P, 8))
    nearest = search.flat.nearest
    monkeypatch.setattr(search.flat, "nearest", lambda X, k, own: handed_on.append(len(X)) or nearest(X, k, own))
    assert_array_equal(search.nearest(X, 4)[1], reference.nearest(reference.squared_distances(X, P), 4))
    assert sum(handed_on) < 50


@pytest.mark.slow
def test_the_cluster_search_finds_nearly_all_neighbours_and_exact_distances(rng):
    X = (rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 30))).astype(np.float32)
    search = ClusterSearch(X, principal_axes(X, 6), seed=0)
    dist2, index = search.nearest_to_own(8)
    _, exact = FlatSearch(X).nearest_to_own(8)
    shared = [len(np.intersect1d(a, b)) for a, b in zip(index, exact, strict=True)]
    assert np.mean(shared) / 8 > 0.97
    assert (index != np.arange(len(X))[:, None]).all()
    assert_allclose(dist2[:50], np.take_along_axis(reference.squared_distances(X[:50], X), index[:50], 1), rtol=1e-4)


@pytest.mark.parametrize("wanted", [1, 7, 40])
def test_rows_that_look_into_all_clusters_find_the_nearest_of_all_points(rng, monkeypatch, wanted):
    monkeypatch.setattr(compiled_search, "ROWS_AT_ONCE", 64)
    monkeypatch.setattr(clusters, "CLUSTERS_PROBED", 14)
    Q = rng.normal(size=(300, 4)).astype(np.float32)
    centres, group = Q[:14].copy(), rng.integers(0, 13, 300)  # no clusters at all, and one without points
    rows = clustered_points(Q, clusters.NearestCentres(centres), group)
    found = rows.candidates(Q[rows.order], group[rows.order], wanted)
    dist2 = reference.squared_distances(Q, Q)
    assert_allclose(
        np.take_along_axis(dist2[rows.order], found, axis=1), np.sort(dist2[rows.order])[:, :wanted], atol=1e-5
    )
    assert_array_equal(found[:, 0], rows.order)


def test_rows_in_clusters_of_few_points_have_fewer_candidates(rng, monkeypatch):
    monkeypatch.setattr(clusters, "CLUSTERS_PROBED", 2)
    Q = (np.arange(30)[:, None] // 3 * 100 + rng.uniform(size=(30, 2))).astype(np.float32)  # ten clusters of three
    rows = clustered_points(Q, clusters.NearestCentres(Q[::3].copy()), np.arange(30) // 3)
    found = rows.candidates(Q, np.arange(30) // 3, 10)
    assert (found[:, :6] >= 0).all()
    assert (found[:, 6:] == -1).all()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_points_find_each_other_as_well_as_rows_one_by_one(rng, monkeypatch, n_threads):
    monkeypatch.setattr(clusters.ByProducts, "rows_of_block", 512)
    monkeypatch.setattr(compiled_search.CompiledClusters, "rows_of_block", 512)
    X = (rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 30)) + 0.1 * rng.normal(size=(4000, 30))).astype(np.float32)
    exact = FlatSearch(X).nearest_to_own(10)[1]
    search = ClusterSearch(X, principal_axes(X, 8), seed=0)
    with threadpool_limits(n_threads):
        dist2, index = search.nearest_to_own(10)
    one_by_one = search.nearest(X, 10, np.arange(len(X)))[1]
    share, share_one = (
        np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)]) for found in (index, one_by_one)
    )
    assert share > max(0.97, share_one - 0.005)
    assert (index != np.arange(len(X))[:, None]).all()
    assert_allclose(dist2, pair_distances(X, X, index), rtol=1e-6)
    again = search.nearest_to_own(10)
    assert_array_equal(again[0], dist2)
    assert_array_equal(again[1], index)


def test_the_cluster_search_survives_pickling(rng):
    X = rng.normal(size=(2000, 8)).astype(np.float32)
    search = ClusterSearch(X, principal_axes(X, 8), seed=0)
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.nearest(X[:100], 5)[1], search.nearest(X[:100], 5)[1])


def test_rows_whose_clusters_hold_too_few_points_are_searched_in_full(rng):
    X = rng.normal(size=(500, 4)).astype(np.float32)
    search = ClusterSearch(X, principal_axes(X, 4), seed=0)
    dist2, index = search.nearest(X[:20], 400)
    assert np.isfinite(dist2).all()
    assert all(len(set(row)) == 400 for row in index)


def test_a_search_in_full_is_made_only_where_a_row_needs_it(rng):
    X = rng.normal(size=(2000, 8)).astype(np.float32)
    search = ClusterSearch(X, principal_axes(X, 4), seed=0)
    search.nearest_to_own(5)
    assert "flat" not in vars(search)
    search.nearest_to_own(1500)
    assert "flat" in vars(search)


@pytest.mark.parametrize("d", [64, 256, 300])
def test_sums_whose_errors_all_point_one_way_prove_nothing(rng, d):
    """Columns that are all alike: rounding adds up as it does in no usual data."""
    size = (1 + rng.uniform(-0.5, 0.5, (4000, 1))) * np.sign(rng.normal(size=(4000, 1)))
    P = (size * np.ones((1, d))).astype(np.float32)
    own = np.arange(100)
    expected = Float64Search(P).nearest(P[:100], 5, own)[0]
    assert_allclose(FlatSearch(P).nearest(P[:100], 5, own)[0], expected, rtol=1e-3)


def test_where_no_product_can_be_taken_double_precision_finds_the_neighbours(rng):
    P = rng.normal(size=(200, 8)) * 1e22
    assert_array_equal(FlatSearch(P).nearest(P[:3], 3)[1], Float64Search(P).nearest(P[:3], 3)[1])


def test_narrow_rows_make_blocks_for_all_threads(rng, monkeypatch):
    X = rng.normal(size=(10_000, 2)).astype(np.float32)
    search, sizes = FlatSearch(X[:300]), []
    monkeypatch.setattr(
        "greenlabel.graph.search.in_parallel", lambda work, blocks: sizes.extend(b.stop - b.start for b in blocks)
    )
    search.nearest(X, 3)
    assert sum(sizes) == 10_000
    assert max(sizes) <= 4096


def test_the_engine_fits_the_size(rng, monkeypatch):
    P = rng.normal(size=(300, 200)).astype(np.float32)
    axes = principal_axes(P, 96)
    assert isinstance(exact_search(P, 100), Float64Search)
    assert isinstance(exact_search(sp.csr_array(P), 10**6), Float64Search)
    assert isinstance(exact_search(P, 10**6), FlatSearch)
    assert isinstance(exact_search(P, 10**6, axes), ReducedSearch)
    assert isinstance(graph_search(P, rng), Float64Search)
    monkeypatch.setattr(neighbors, "EXACT_OPERATIONS", 1)
    assert isinstance(graph_search(P, rng), ClusterSearch)


def test_pair_distances_lose_no_digit_in_double_precision(rng):
    X = rng.normal(size=(30, 5)) + 1e8
    index = rng.integers(0, 30, (30, 4))
    assert_allclose(pair_distances(X, X, index), np.take_along_axis(reference.squared_distances(X, X), index, 1))


def test_row_blocks_cover_all_rows_once():
    rows = np.concatenate([np.arange(1_000_000)[block] for block in row_blocks(1_000_000, 64)])
    assert_array_equal(rows, np.arange(1_000_000))


@pytest.mark.parametrize(
    ("given", "kept"), [("uint8", "float32"), ("float32", "float32"), ("int64", "float64"), ("bool", "float32")]
)
def test_features_are_worked_on_in_a_type_that_holds_them(given, kept):
    assert working(np.ones((2, 2), dtype=given)).dtype == kept
