"""Columns of different units come on one scale; columns of one unit, sparse ones and new rows stay what they are."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from greenlabel.datasets import digits
from greenlabel.graph.scaling import find_scaling, units_differ


def scaling_of(X):
    return find_scaling(X, np.random.default_rng(0))


@pytest.fixture
def mixed_units(rng):
    """Milliseconds with a heavy tail, metres, and a share."""
    return np.column_stack([rng.lognormal(7, 1.5, 400), rng.normal(1.8, 0.1, 400), rng.uniform(size=400)])


def test_pixels_are_all_divided_by_one_number():
    X, _ = digits()
    scaling = scaling_of(X)
    assert not scaling.units_differ
    Z = scaling.apply(X)
    ratio = (Z[:, 1:] - Z[0, 1:])[1:5] * scaling.spread[0]
    assert_allclose(ratio, (X[:, scaling.kept][:, 1:] - X[0, scaling.kept][1:])[1:5], atol=1e-9)
    assert Z.var(axis=0).mean() == pytest.approx(1)


def test_columns_of_different_units_get_the_same_spread(mixed_units):
    scaling = scaling_of(mixed_units)
    assert scaling.units_differ
    Z = scaling.apply(mixed_units)
    assert_allclose(Z.std(axis=0), 1, rtol=1e-9)
    assert_allclose(Z.mean(axis=0), 0, atol=1e-9)


def test_tails_of_columns_of_different_units_are_cut_off(mixed_units):
    mixed_units[0, 0] = 1e9
    Z = scaling_of(mixed_units).apply(mixed_units)
    assert np.abs(Z).max() < 10


def test_a_rare_value_of_a_column_is_not_cut_off(mixed_units):
    rare = np.zeros(400)
    rare[3] = 1.0
    Z = scaling_of(np.column_stack([mixed_units, rare])).apply(np.column_stack([mixed_units, rare]))
    assert Z[3, 3] > Z[4, 3]


@pytest.mark.parametrize(
    ("ranges", "differ"),
    [([1.0, 1.0, 2.0], False), ([1.0, 3.0, 9.0], False), ([1.0, 1.0, 1.0, 20.0], True), ([0.01] * 3 + [1.0] * 7, True)],
)
def test_units_differ_where_ranges_lie_tenfold_apart(ranges, differ):
    assert units_differ(np.array(ranges)) is differ


def test_columns_that_never_vary_are_dropped(rng):
    X = np.column_stack([np.full(50, 3.0), rng.normal(size=50), np.zeros(50), rng.normal(size=50)])
    scaling = scaling_of(X)
    assert_array_equal(scaling.kept, [1, 3])
    assert_allclose(scaling.apply(X), scaling_of(X[:, [1, 3]]).apply(X[:, [1, 3]]))


def test_rows_that_are_all_equal_work():
    Z = scaling_of(np.full((10, 3), 7.0)).apply(np.full((10, 3), 7.0))
    assert_array_equal(Z, np.zeros((10, 1)))


def test_sparse_features_stay_sparse_and_are_divided_only(rng):
    X = rng.uniform(size=(60, 5)) * (rng.uniform(size=(60, 5)) < 0.4) * [1, 1, 1, 1, 1000]
    scaling = scaling_of(sp.csr_array(X))
    Z = scaling.apply(sp.csr_array(X))
    assert sp.issparse(Z)
    assert Z.nnz == np.count_nonzero(X)
    assert_allclose(Z.toarray(), X / scaling.spread)
    assert_allclose(scaling.apply(X), X / scaling.spread)  # new rows may come dense


def test_dense_scaling_takes_sparse_new_rows(mixed_units):
    scaling = scaling_of(mixed_units)
    assert_allclose(scaling.apply(sp.csr_array(mixed_units[:5])), scaling.apply(mixed_units[:5]))


def test_a_row_is_scaled_alike_alone_and_among_others(mixed_units):
    scaling = scaling_of(mixed_units)
    alone = np.concatenate([scaling.apply(row[None]) for row in mixed_units[:9]])
    assert_array_equal(alone, scaling.apply(mixed_units)[:9])


def test_what_is_scaled_is_not_written_to(mixed_units):
    before = mixed_units.copy()
    scaling_of(mixed_units).apply(mixed_units)
    assert_array_equal(mixed_units, before)
    short = mixed_units.astype(np.float32)
    scaling_of(short).apply(short)
    assert_array_equal(short, before.astype(np.float32))
