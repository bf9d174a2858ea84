"""Nearest points by products, and the clusters that are found with them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from greenlabel.graph import products
from greenlabel.graph.clusters import NearestCentres
from greenlabel.graph.kmeans import TRAINING, cluster_centres
from greenlabel.graph.products import bound_reached, nearest_point, nearest_points, with_half_norms
from helpers import reference


@pytest.mark.parametrize(("m", "w"), [(1, 1), (3, 3), (50, 4), (500, 1), (500, 7), (503, 40), (503, 503)])
@pytest.mark.parametrize("values", [products.PRODUCT_VALUES, 2000, 10])
@pytest.mark.parametrize("at_once", [products.POINTS_AT_ONCE, 60])
def test_the_nearest_points_are_those_of_all_distances(rng, monkeypatch, m, w, values, at_once):
    monkeypatch.setattr(products, "PRODUCT_VALUES", values)
    monkeypatch.setattr(products, "POINTS_AT_ONCE", at_once)
    Q, P = rng.normal(size=(37, 5)), rng.normal(size=(m, 5))
    dist2, index = nearest_points(Q, with_half_norms(P), w)
    exact = reference.squared_distances(Q, P)
    assert_array_equal(index, reference.nearest(exact, w))
    assert_allclose(dist2, np.sort(exact, axis=1)[:, :w], atol=1e-12)
    assert_array_equal(nearest_point(Q, with_half_norms(P)), exact.argmin(axis=1))


def test_few_pairs_are_sorted_however_many_points_there_are(rng, monkeypatch):
    """And products have rows enough: with many points, or many wanted, they are cut along the points."""
    monkeypatch.setattr(products, "PRODUCT_VALUES", 2**14)
    monkeypatch.setattr(products, "POINTS_AT_ONCE", 128)
    sizes, keys = [], products.sort_keys
    monkeypatch.setattr(products, "sort_keys", lambda row, *rest: sizes.append(len(row)) or keys(row, *rest))
    Q, P = rng.normal(size=(256, 5)), rng.normal(size=(4000, 5))
    for w in (3, 100):
        sizes.clear()
        nearest_points(Q, with_half_norms(P), w)
        assert sum(sizes) < 256 * 20 * w  # of 4,000 for each row
    assert len(sizes) == 7  # 2^14 // 400 rows each


def test_equal_points_come_in_their_order():
    P = np.repeat(np.arange(60.0), 5)[:, None]
    _, index = nearest_points(np.array([[7.0], [59.0]]), with_half_norms(P), 5)
    assert_array_equal(index, [[35, 36, 37, 38, 39], [295, 296, 297, 298, 299]])


@pytest.mark.parametrize("shape", [(20, 40), (20, 400), (20, 403)])
@pytest.mark.parametrize("w", [1, 5, 24])
def test_a_bound_is_reached_by_enough_entries_and_not_by_many(rng, shape, w):
    g = rng.normal(size=shape)
    reached = (g >= bound_reached(g, w)[:, None]).sum(axis=1)
    assert (reached >= w).all()
    assert reached.mean() <= 1.5 * w


def test_the_nearest_of_many_centres_is_nearly_always_found(rng):
    C = rng.normal(size=(1200, 6))
    nearest = NearestCentres(C)
    Q = rng.normal(size=(3000, 6))
    exact = nearest_point(Q, with_half_norms(C))
    found = nearest.of(Q)
    assert (found == exact).mean() > 0.97
    near = reference.squared_distances(Q, C)
    assert np.median(near[np.arange(3000), found] / near.min(axis=1)) == 1
    assert (near[np.arange(3000), found] <= np.sort(near, axis=1)[:, 20]).all()


def test_whole_coordinates_find_the_same_centre_in_any_company(rng):
    nearest = NearestCentres(rng.integers(-4, 5, (1200, 3)).astype(float))  # many centres are equally near
    Q = rng.integers(-4, 5, (500, 3)).astype(float)
    together = nearest.of(Q)
    assert_array_equal(np.concatenate([nearest.of(Q[i : i + 7]) for i in range(0, 500, 7)]), together)


# k-means


def test_the_centres_of_clouds_far_apart_are_their_means(rng):
    Q = np.repeat(100.0 * np.eye(3), 400, axis=0) + rng.normal(size=(1200, 3))
    C = cluster_centres(Q, 70, seed=0)
    assert C.shape == (70, 3)
    cloud = C.argmax(axis=1)
    assert set(cloud) == {0, 1, 2}
    spread = np.linalg.norm(C - 100 * np.eye(3)[cloud], axis=1)
    assert spread.max() < 4


def test_clusters_lie_closer_to_their_points_than_a_sample_does(rng):
    Q = rng.normal(size=(4000, 3))
    C = cluster_centres(Q, 120, seed=0)
    sample = Q[rng.choice(4000, len(C), replace=False)]
    found, drawn = (reference.squared_distances(Q, P).min(axis=1).mean() for P in (C, sample))
    assert found < 0.8 * drawn


@pytest.mark.parametrize("n", [1, 2, 5, 300])
def test_equal_points_have_centres_where_they_are(n):
    C = cluster_centres(np.full((n, 2), 3.0), 5, seed=0)
    assert len(C) == min(n, 5)
    assert_array_equal(C, np.full_like(C, 3.0))


def test_centres_are_the_same_on_any_number_of_threads(rng):
    Q = rng.normal(size=(TRAINING * 200, 8))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(cluster_centres(Q, 200, seed=3))
    assert_array_equal(*found)
    assert not np.array_equal(found[0], cluster_centres(Q, 200, seed=4))
