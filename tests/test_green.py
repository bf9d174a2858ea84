"""Every operator against the one dense reference."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

import greenlabel.operators.classics
import greenlabel.operators.conjugate_gradients
from greenlabel import ConsistencyClassifier, GreenClassifier
from greenlabel.datasets import keep_labels
from greenlabel.errors import GraphError, MemoryLimitError
from greenlabel.graph.anchors import mixing_matrix
from greenlabel.graph.neighbors import exact_search, graph_search
from greenlabel.graph.similarity import anchor_components, knn_graph, make_graph
from greenlabel.labels.encoding import read_labels
from greenlabel.operators.anchored import AnchoredGreen
from greenlabel.operators.classics import ConsistencyOperator, harmonic_scores
from greenlabel.operators.conjugate_gradients import SparseSystem
from greenlabel.operators.green import SOLVERS, DirectGreen, EigenGreen, SparseGreen
from helpers import reference

MUS = [1e-6, 1e-3, 0.1]


def one_hot(codes, n, c):
    Y = np.zeros((n, c))
    Y[np.arange(len(codes)), codes] = 1
    return Y


@pytest.fixture
def graph(clouds):
    graph = knn_graph(graph_search(clouds[0], np.random.default_rng(0)), 8, "adaptive", 1.0)
    assert graph.n_components == 1
    return graph


@pytest.fixture
def anchored(clouds):
    X, _ = clouds
    Z = mixing_matrix(X, exact_search(X[::10], len(X)), 3)
    return Z, anchor_components(sp.csr_array(Z.T @ Z))[1]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mu", MUS)
def test_scores_on_a_connected_graph_equal_the_dense_formula(graph, solver, mu, rng):
    Y = one_hot(rng.integers(0, 4, 12), graph.n, 4)
    F = SOLVERS[solver](graph, graph.n * mu).solve(Y)
    expected = reference.green(graph.S.toarray(), mu) @ Y
    assert_allclose(F, expected, atol=1e-8 * abs(expected).max())


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mu", MUS)
def test_scores_on_a_disconnected_graph_equal_the_dense_formula(two_islands, solver, mu, rng):
    Y = one_hot(rng.integers(0, 3, 9), 50, 3)
    F = SOLVERS[solver](make_graph(sp.csr_array(two_islands)), 50 * mu).solve(Y)
    expected = reference.green(two_islands, mu) @ Y
    assert_allclose(F, expected, atol=1e-8 * abs(expected).max())


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_mu_a_connected_graph_has_the_original_scores(graph, solver):
    Y = one_hot([0, 1, 2], graph.n, 3)
    F = SOLVERS[solver](graph, 0.0).solve(Y)
    assert_allclose(F, reference.original_green(graph.S.toarray()) @ Y, atol=1e-8)


def test_eigen_without_mu_is_the_pseudo_inverse_on_a_disconnected_graph(two_islands):
    Y = one_hot([0, 1], 50, 2)
    F = EigenGreen(make_graph(sp.csr_array(two_islands)), 0.0).solve(Y)
    assert_allclose(F, reference.original_green(two_islands) @ Y, atol=1e-10)


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_without_mu_a_disconnected_graph_is_refused(two_islands, solver):
    with pytest.raises(GraphError, match=r"2 components.*mu > 0.*mu='auto'"):
        SOLVERS[solver](make_graph(sp.csr_array(two_islands)), 0.0)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1])
def test_anchored_scores_equal_the_dense_formula(anchored, mu, rng):
    Z, n_components = anchored
    Y = one_hot(rng.integers(0, 4, 12), Z.shape[0], 4)
    F = AnchoredGreen.of(Z, Z.shape[0] * mu, n_components).solve(Y)
    Zd = Z.toarray()
    expected = reference.green(Zd / Zd.sum(axis=0) @ Zd.T, mu) @ Y
    assert_allclose(F, expected, atol=1e-9 * abs(expected).max())


def test_anchored_scores_equal_the_printed_equation(anchored, rng):
    Z, n_components = anchored
    Y = one_hot(rng.integers(0, 4, 12), Z.shape[0], 4)
    F = AnchoredGreen.of(Z, Z.shape[0] * 1e-3, n_components).solve(Y)
    assert_allclose(F, reference.bordered(Z.toarray(), 1e-3, Y), atol=1e-9)


def test_the_printed_eta_tends_to_the_exact_scores(two_islands):
    Y = one_hot([0, 1, 1, 0], 50, 2)
    exact = DirectGreen(make_graph(sp.csr_array(two_islands)), 50 * 1e-3).solve(Y)
    gaps = [abs(reference.elimination(two_islands, 1e-3, eta, Y) - exact).max() for eta in (1, 1e3, 1e6)]
    assert gaps[0] > 100 * gaps[1] > 100 * gaps[2]
    assert gaps[2] < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_columns_and_diagonal_are_those_of_the_operator(two_islands, solver):
    operator = SOLVERS[solver](make_graph(sp.csr_array(two_islands)), 0.05)
    G, rows = reference.green(two_islands, 0.05 / 50), np.array([3, 17, 44])
    assert_allclose(operator.columns(rows), G[:, rows], atol=1e-7)
    assert_allclose(operator.diagonal(rows), G[rows, rows], atol=1e-7)


def test_anchored_columns_and_diagonal_are_those_of_the_operator(anchored):
    Z, n_components = anchored
    Zd, rows = Z.toarray(), np.array([3, 17, 144])
    G = reference.green(Zd / Zd.sum(axis=0) @ Zd.T, 1e-3)
    operator = AnchoredGreen.of(Z, Z.shape[0] * 1e-3, n_components)
    assert_allclose(operator.columns(rows), G[:, rows], atol=1e-9)
    assert_allclose(operator.diagonal(rows), G[rows, rows], atol=1e-9)


def test_an_anchor_that_no_row_uses_changes_nothing(anchored):
    Z, n_components = anchored
    Y = one_hot([0, 1], Z.shape[0], 2)
    wider = sp.hstack([Z, sp.csr_array((Z.shape[0], 1))]).tocsr()
    F = AnchoredGreen.of(wider, 0.1, n_components).solve(Y)
    assert_allclose(F, AnchoredGreen.of(Z, 0.1, n_components).solve(Y), atol=1e-12)


@pytest.mark.parametrize("operator", [EigenGreen, DirectGreen, SparseGreen])
def test_sparse_and_dense_labels_give_the_same_scores(graph, operator):
    Y = one_hot([0, 1, 2], graph.n, 3)
    green = operator(graph, 0.1)
    assert_allclose(green.solve(sp.csr_array(Y)), green.solve(Y), atol=1e-14)


@pytest.mark.parametrize("max_direct", [0, 10_000])
@pytest.mark.parametrize("gamma", [0.01, 0.5])
def test_llgc_scores_equal_the_dense_formula(graph, rng, monkeypatch, max_direct, gamma):
    monkeypatch.setattr(greenlabel.operators.classics, "DIRECT_ROWS", max_direct)
    Y = one_hot(rng.integers(0, 4, 12), graph.n, 4)
    F = ConsistencyOperator(graph, gamma).solve(Y)
    expected = reference.consistency(graph.S.toarray(), gamma, Y)
    assert_allclose(F, expected, atol=1e-10 * expected.max())


@pytest.mark.parametrize("max_direct", [0, 10_000])
def test_llgc_keeps_the_digits_of_scores_far_from_all_labels(monkeypatch, max_direct):
    """On a path the score falls by the same factor from row to row, however small it is."""
    monkeypatch.setattr(greenlabel.operators.classics, "DIRECT_ROWS", max_direct)
    n = 200
    S = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).tocsr()
    F = ConsistencyOperator(make_graph(S), 1.0).solve(one_hot([0], n, 1))[:, 0]
    assert F[150] < 1e-50
    assert_allclose(F[101:150] / F[100:149], (3 - np.sqrt(5)) / 2, rtol=1e-9)


def test_harmonic_scores_equal_the_dense_formula(graph, rng):
    y = np.full(graph.n, -1)
    y[rng.permutation(graph.n)[:12]] = np.repeat([0, 1, 2], 4)
    known = read_labels(y, graph.n, "test")
    F = harmonic_scores(graph, known.Y, np.ones(graph.n, bool))
    assert_allclose(F, reference.harmonic(graph.S.toarray(), known.Y.toarray(), y != -1), atol=1e-7)


def test_conjugate_gradients_solve_the_system_for_columns_of_any_size(graph, rng):
    B = rng.normal(size=(graph.n, 5)) * np.array([1e-12, 1, 1e12, 0, 1])
    X = SparseSystem(graph.S, graph.degree + 0.01, "no advice").solve(B)
    residual = np.linalg.norm((graph.degree + 0.01)[:, None] * X - graph.S @ X - B, axis=0)
    assert (residual <= 1e-7 * np.linalg.norm(B, axis=0)).all()


@pytest.mark.parametrize("weight", [1e-60, 1, 1e60])
def test_rough_scores_are_within_their_tolerance_whatever_the_size_of_weights(graph, rng, weight):
    """They are found in single precision, in which squares of such weights do not exist."""
    B = rng.normal(size=(graph.n, 5)) * np.array([1e-12, 1, 1e12, 0, 1])
    S, diagonal = graph.S * weight, (graph.degree + 0.01) * weight
    X = SparseSystem(S, diagonal, "no advice").solve(B, 1e-3)
    root = np.sqrt(diagonal)[:, None]
    residual = np.linalg.norm((diagonal[:, None] * X - S @ X - B) / root, axis=0)
    assert (residual <= 1.01e-3 * np.linalg.norm(B / root, axis=0)).all()
    assert X.dtype == np.float64


def test_a_solve_overwrites_nothing_but_what_it_was_given_for_that(graph, rng):
    Y = rng.normal(size=(graph.n, 3))
    given = Y.copy()
    SparseGreen(graph, 0.01).solve(Y)
    assert_array_equal(Y, given)
    system = SparseSystem(graph.S, graph.degree + 0.01, "no advice")
    X = system.solve(Y)
    assert_array_equal(Y, given)
    assert system.solve(Y, overwrite_b=True) is Y
    assert_array_equal(Y, X)


@pytest.mark.parametrize("tolerance", [1e-13, 1e-8, 1e-3])
def test_the_scores_of_a_class_do_not_depend_on_other_classes_to_the_bit(graph, rng, tolerance):
    operator = SparseGreen(graph, 0.01)
    Y = (rng.uniform(size=(graph.n, 9)) < 0.1).astype(float)
    F = operator.solve(Y, tolerance)
    for columns in ([0], [3], [2, 5], [8, 1, 4], list(range(8))):
        assert_array_equal(operator.solve(Y[:, columns], tolerance), F[:, columns])


@pytest.mark.slow
@pytest.mark.parametrize("per_class", [1, 3])
def test_classes_far_from_all_labels_do_not_depend_on_the_solver(per_class):
    """Scores fall along the moons, over hundreds of edges; the sparse solver must still tell their signs."""
    X, y = make_moons(4000, noise=0.05, random_state=0)
    few = keep_labels(y, per_class, random_state=0)
    sparse, dense = (GreenClassifier(solver=solver).fit(X, few) for solver in ("cg", "direct"))
    assert (sparse.transduction_ == dense.transduction_).mean() > 0.999


@pytest.mark.slow
def test_llgc_leaves_no_row_of_a_large_graph_without_a_score():
    X, y = make_moons(4000, noise=0.05, random_state=0)
    model = ConsistencyClassifier().fit(X, keep_labels(y, 1, random_state=0))
    assert (model.scores_.max(axis=1) > 0).all()
    assert (model.transduction_ == y).mean() > 0.99


def test_conjugate_gradients_name_the_residual_when_they_do_not_converge(graph, rng, monkeypatch):
    monkeypatch.setattr(greenlabel.operators.conjugate_gradients, "MAX_ROUNDS", 3)
    with pytest.warns(ConvergenceWarning, match=r"after 3 rounds at a relative residual of \d\.\de.*no advice"):
        SparseSystem(graph.S, graph.degree + 0.01, "no advice").solve(rng.normal(size=(graph.n, 2)))


@pytest.mark.parametrize("operator", [EigenGreen, DirectGreen])
def test_dense_operators_refuse_what_does_not_fit(operator):
    n = 2_000_000
    graph = make_graph(sp.csr_array((n, n)))
    with pytest.raises(MemoryLimitError, match=r"2,000,000 rows needs \d+\.\d GiB.*use solver='cg'"):
        operator(graph, 0.1)
