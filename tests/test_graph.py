import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from greenlabel.graph.neighbors import graph_search
from greenlabel.graph.similarity import (
    WEIGHTS,
    anchor_components,
    check_similarity,
    edge_weights_of_new_rows,
    equal_pairs,
    gaussian_width,
    knn_graph,
    make_graph,
    mean_of_neighbours,
    reached_components,
)
from helpers import reference


@pytest.mark.parametrize("weights", WEIGHTS)
def test_graphs_are_those_of_the_formulas(clouds, weights, rng):
    X, _ = clouds
    graph = knn_graph(graph_search(X, rng), 7, weights, gaussian_width(X))
    assert_allclose(graph.S.toarray(), reference.knn_similarity(X, 7, weights), atol=1e-12)
    assert_array_equal(graph.S.diagonal(), 0)
    assert_allclose(graph.degree, graph.S.toarray().sum(axis=1))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_all_other_rows_can_be_neighbours(rng, weights):
    X = rng.normal(size=(6, 2))
    S = knn_graph(graph_search(X, rng), 5, weights, 1.0).S.toarray()
    assert_allclose(S, S.T)
    assert (S.sum(axis=1) > 0).all()


def test_the_gaussian_width_needs_no_pairs(rng):
    X = rng.normal(size=(80, 3)) * [1, 10, 100] + 1000
    X = np.vstack([X, X[:25], X[:5]])  # pairs of equal rows are left out
    assert_allclose(gaussian_width(X), reference.gaussian_width(X), rtol=1e-9)
    assert_allclose(gaussian_width(sp.csr_array(X)), reference.gaussian_width(X), rtol=1e-9)


def test_the_gaussian_width_is_positive_where_the_rule_gives_none():
    assert gaussian_width(np.ones((5, 2))) > 0
    assert gaussian_width(np.array([[0.0], [1.0]])) > 0


def test_equal_pairs_are_counted_with_both_signs_of_zero():
    assert equal_pairs(np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0]])) == 5


def test_components_are_counted(two_islands):
    graph = make_graph(sp.csr_array(two_islands))
    assert graph.n_components == 2
    assert len(set(graph.component[:30])) == len(set(graph.component[30:])) == 1


def test_similarities_of_zero_are_no_edges():
    S = sp.csr_array(([0.0, 0.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert make_graph(S).n_components == 2


def test_anchor_components_are_those_of_the_rows_they_join():
    Z = sp.csr_array(np.array([[0.5, 0.5, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0.5, 0.5, 0]]))
    component, n_components = anchor_components(sp.csr_array(Z.T @ Z))
    assert n_components == 2
    assert component[0] == component[1] != component[2] == component[3]
    assert component[4] == -1


def test_components_with_a_label_are_reached():
    assert_array_equal(reached_components(np.array([0, 0, 1, 2]), 3, np.array([1, 3])), [True, False, True, False])


@pytest.mark.parametrize("weights", WEIGHTS)
def test_edge_weights_of_new_rows_sum_to_one_however_far_they_are(clouds, weights, rng):
    X, _ = clouds
    edges = edge_weights_of_new_rows(
        graph_search(X, rng), np.vstack([X[:5] + 0.1, X[:5] + 1e6]), 7, weights, gaussian_width(X)
    )
    assert_allclose(edges.sum(axis=1), 1)
    assert (np.diff(edges.indptr) == 7).all()


def test_unreached_neighbours_do_not_count():
    edges = sp.csr_array(np.array([[0.5, 0.5, 0], [0, 0.2, 0.8], [0, 0, 1]]))
    mean, total = mean_of_neighbours(edges, np.array([[1.0], [3.0], [100.0]]), np.array([True, True, False]))
    assert_allclose(mean, [[2], [3], [0]])
    assert_allclose(total, [1, 0.2, 0])


def test_the_diagonal_of_a_given_graph_does_not_count(two_islands):
    assert_allclose(check_similarity(two_islands + np.eye(50)).toarray(), two_islands)
