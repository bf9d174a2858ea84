import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from greenlabel.graph import distances
from greenlabel.graph.anchors import (
    ANCHORS,
    ROWS_PER_ANCHOR,
    anchor_rows,
    bkhk_groups,
    group_means,
    halve,
    mixing_matrix,
    mixing_weights,
)
from greenlabel.graph.neighbors import exact_search
from greenlabel.graph.projection import principal_axes
from helpers import reference
from helpers.sparse import sparse_rows


def find(how, X, m, axes, rng):
    return ANCHORS[how](X, anchor_rows(how, X.shape[0], m, rng), m, axes, rng)


def test_mixing_weights_are_those_of_the_equation(rng):
    X, P = rng.normal(size=(60, 3)), rng.normal(size=(15, 3))
    Z = mixing_matrix(X, exact_search(P, 60), 4)
    assert_allclose(Z.toarray(), reference.mixing_matrix(X, P, 4), atol=1e-12)
    assert_allclose(Z.sum(axis=1), 1)


def test_mixing_weights_do_not_depend_on_the_scale(rng):
    dist2 = np.sort(rng.random((20, 6)), axis=1)
    assert_allclose(mixing_weights(1e6 * dist2), mixing_weights(dist2))


def test_equal_distances_give_equal_weights():
    assert_array_equal(mixing_weights(np.full((2, 5), 3.0)), np.full((2, 4), 0.25))


@pytest.mark.parametrize("m", [1, 2, 3, 7, 16, 37, 100, 213])
def test_bkhk_makes_any_number_of_groups_of_nearly_equal_size(rng, m):
    groups = bkhk_groups(rng.normal(size=(213, 3)), m, rng)
    sizes = np.bincount(groups, minlength=m)
    assert len(sizes) == m
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= max(1, np.ceil(np.log2(m)))


def test_a_split_ends_where_balanced_2_means_stands_still(rng):
    """One round more, done naively from the two centres, moves no row."""
    Q = rng.normal(size=(101, 2)) * [3, 1]
    rows = halve(Q, np.arange(101)[None], 50)[0]
    left, right = Q[rows[:50]], Q[rows[50:]]
    gap = ((Q - left.mean(axis=0)) ** 2).sum(axis=1) - ((Q - right.mean(axis=0)) ** 2).sum(axis=1)
    assert set(np.argsort(gap)[:50]) == set(rows[:50])


def test_bkhk_finds_groups_that_are_there(rng):
    centres = np.array([[0, 0], [10, 0], [0, 10], [10, 10]])
    Q = np.repeat(centres, 25, axis=0) + rng.normal(scale=0.1, size=(100, 2))
    groups = bkhk_groups(Q, 4, rng)
    assert all(len(set(groups[start : start + 25])) == 1 for start in range(0, 100, 25))
    assert len(set(groups)) == 4


@pytest.mark.parametrize("how", ANCHORS)
def test_anchors_are_the_same_under_the_same_seed(rng, how):
    X = rng.normal(size=(500, 40)).astype(np.float32)
    axes = principal_axes(X, 32)
    first, second = (find(how, X, 24, axes, np.random.default_rng(7)) for _ in range(2))
    assert first.shape == (24, 40)
    assert_array_equal(first, second)


@pytest.mark.parametrize("how", ["bkhk", "kmeans"])
def test_anchors_stand_closer_to_the_rows_than_rows_drawn_at_random(clouds, how):
    X, _ = clouds
    error = {}
    for name in (how, "random"):
        P = find(name, X, 16, None, np.random.default_rng(0))
        error[name] = reference.squared_distances(X, P).min(axis=1).mean()
    assert error[how] < 0.8 * error["random"]


def test_as_many_anchors_as_rows_are_the_rows(rng):
    X = rng.normal(size=(37, 4))
    P = find("bkhk", X, 37, None, rng)
    assert_allclose(np.sort(P, axis=0), np.sort(X, axis=0))


def test_sparse_rows_have_the_anchors_of_dense_ones(rng):
    X = sparse_rows(300, 20, 0.2, rng)
    sparse, dense = (find("bkhk", A, 10, None, np.random.default_rng(0)) for A in (X, X.toarray()))
    assert_allclose(sparse.toarray(), dense, atol=1e-12)


def test_wide_sparse_rows_have_anchors(rng):
    X = sparse_rows(300, 500, 0.02, rng)
    assert find("bkhk", X, 10, None, rng).shape == (10, 500)


def test_group_means_are_means_and_an_empty_group_takes_a_row(rng):
    X, rows, group = rng.normal(size=(9, 2)), np.arange(9), np.array([0, 0, 0, 0, 0, 2, 2, 2, 2])
    P = group_means(X, rows, group.copy(), 3)
    assert_allclose(P[2], X[5:].mean(axis=0))
    assert_allclose(P[0], X[1:5].mean(axis=0))
    assert_allclose(P[1], X[0])


def test_many_rows_are_sampled(rng):
    X = rng.normal(size=(3 * ROWS_PER_ANCHOR, 2))
    asked = []

    class Watched(np.ndarray):
        def __getitem__(self, rows):
            asked.append(rows)
            return np.asarray(super().__getitem__(rows))

    find("bkhk", X.view(Watched), 2, None, rng)
    assert max(len(np.atleast_1d(rows)) for rows in asked if isinstance(rows, np.ndarray)) == 2 * ROWS_PER_ANCHOR


def test_a_narrow_group_far_from_the_origin_is_first_cut_along_its_longest_side(rng, monkeypatch):
    monkeypatch.setattr("greenlabel.graph.anchors.SPLIT_ROUNDS", 0)
    along = rng.permutation(64) / 64
    Q = np.column_stack([1e9 + 1e-3 * rng.random(64), along, np.full(64, -1e9)])
    rows = halve(Q, np.arange(64)[None], 32)
    assert along[rows[0, :32]].max() < along[rows[0, 32:]].min()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int64, bool])
def test_rows_taken_on_all_threads_are_those_of_the_array(monkeypatch, rng, dtype):
    monkeypatch.setattr(distances, "BLOCK_VALUES", 64 * 7)  # many blocks
    X = (10 * rng.random((50, 3))).astype(dtype)
    rows = rng.permutation(50)[:33]
    found = distances.taken(X, rows)
    assert_array_equal(found, X[rows])
    assert found.dtype == distances.working(X).dtype
