"""An operator that remembers gives the scores of the one it stands for, and has it solve only what is new."""

import pickle

import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from greenlabel.graph.neighbors import graph_search
from greenlabel.graph.similarity import knn_graph
from greenlabel.operators import remembered
from greenlabel.operators.green import SparseGreen
from greenlabel.operators.remembered import Remembering


class Counting(SparseGreen):
    """Says how many columns it was asked for."""

    def solve(self, Y, tolerance=1e-13):
        self.asked = Y.shape[1]
        return super().solve(Y, tolerance)


@pytest.fixture
def operator(rng):
    X = rng.normal(size=(200, 3))
    return Remembering(Counting(knn_graph(graph_search(X, rng), 5, "adaptive", 1.0), 0.01))


@pytest.fixture
def Y(rng):
    return sp.csr_array((rng.uniform(size=(200, 6)) < 0.1).astype(float))


def changed(Y, column):
    Y = sp.lil_array(Y)
    Y[7, column] += 1
    return sp.csr_array(Y)


def test_only_columns_that_changed_are_solved(operator, Y):
    operator.solve(Y)
    other = changed(Y, 4)
    found = operator.solve(other)
    assert operator.operator.asked == 1
    assert_array_equal(found, operator.operator.solve(other))


def test_columns_are_recognised_in_any_order_and_what_is_changed_outside_stays_known(operator, Y):
    first = operator.solve(Y)
    expected = first.copy()
    first[:] = 0
    operator.operator.asked = 0
    assert_array_equal(operator.solve(Y[:, [3, 0]]), expected[:, [3, 0]])
    assert operator.operator.asked == 0


def test_numbers_on_all_rows_are_not_kept(operator, Y, rng):
    dense = rng.normal(size=(200, 3))
    assert_array_equal(operator.solve(dense), operator.operator.solve(dense))
    assert operator.n_kept == 0


def test_other_tolerances_and_values_are_other_columns(operator, Y):
    operator.solve(Y)
    assert_array_equal(operator.solve(Y, 1e-3), operator.operator.solve(Y, 1e-3))
    assert_array_equal(operator.solve(2 * Y), operator.operator.solve(2 * Y))


def test_no_more_is_kept_than_there_is_memory_for(operator, Y, monkeypatch):
    monkeypatch.setattr(remembered, "KEPT_VALUES", 4 * 200)
    expected = operator.operator.solve(Y)
    for _ in range(3):
        assert_array_equal(operator.solve(Y), expected)
        assert operator.n_kept <= 4
    operator.solve(Y[:, :3])
    operator.operator.asked = 0
    operator.solve(Y[:, :3])
    assert operator.operator.asked == 0


def test_another_shift_starts_with_nothing_known(operator, Y, rng):
    operator.solve(Y)
    graph = knn_graph(graph_search(rng.normal(size=(200, 3)), rng), 5, "adaptive", 1.0)
    other = operator.with_shift(graph, 0.1)
    assert_array_equal(other.solve(Y), SparseGreen(graph, 0.1).solve(Y))


def test_a_pickle_takes_no_columns_along(operator, Y):
    operator.solve(Y)
    again = pickle.loads(pickle.dumps(operator))
    assert again.n_kept == 0
    assert operator.n_kept == 6
    assert_array_equal(again.solve(Y), operator.solve(Y))
