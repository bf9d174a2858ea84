"""Theorems 1 and 2 and Conclusions 1 to 5 of the paper, on graphs small enough to check them densely."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from greenlabel import ConsistencyClassifier, GreenClassifier
from greenlabel.datasets import digits, keep_labels, two_rings
from greenlabel.graph.similarity import make_graph
from greenlabel.labels.encoding import read_labels, signed
from greenlabel.metrics import label_margin
from greenlabel.operators.green import SOLVERS, DirectGreen, EigenGreen
from helpers import reference


def objective(L, F, Y):
    return np.trace(F.T @ L @ F) - 2 * np.trace(F.T @ Y)


@pytest.fixture
def labels(rng):
    Y = np.zeros((50, 3))
    Y[rng.permutation(50)[:9], np.repeat([0, 1, 2], 3)] = 1
    return Y


def test_theorem_1_unconstrained_the_objective_falls_without_bound_along_the_null_space(two_islands, labels):
    L = reference.laplacian(two_islands)
    null = np.repeat([1.0, 0.0], [30, 20])[:, None] * (null_part := labels[:30].sum(axis=0))
    assert null_part.any()
    values = [objective(L, t * null, labels) for t in (1, 10, 100)]
    assert values[0] > values[1] > values[2]
    assert_allclose(values[2], 100 * values[0])


def test_theorem_2_on_the_complement_of_the_null_space_the_scores_are_the_only_minimum(two_islands, labels, rng):
    L = reference.laplacian(two_islands)
    F = EigenGreen(make_graph(sp.csr_array(two_islands)), 0.0).solve(labels)
    islands = np.repeat(np.eye(2), [30, 20], axis=0)
    assert_allclose(islands.T @ F, 0, atol=1e-9)
    for _ in range(20):
        step = rng.normal(size=F.shape)
        step -= islands @ (islands.T @ step / islands.sum(axis=0)[:, None])
        assert objective(L, F + 0.01 * step, labels) > objective(L, F, labels)


@pytest.mark.parametrize("solver", SOLVERS)
def test_conclusion_1_scores_of_each_class_are_balanced_around_zero(two_islands, labels, solver):
    F = SOLVERS[solver](make_graph(sp.csr_array(two_islands)), 0.05).solve(labels)
    assert_allclose(F.sum(axis=0), 0, atol=1e-7 * abs(F).max())


def test_conclusion_1_elimination_gives_the_scores_of_the_eigendecomposition(moons):
    X, y = moons
    few = keep_labels(y, 5, random_state=0)
    eigen, direct = (GreenClassifier(solver=solver, mu=1e-5).fit(X, few) for solver in ("eigen", "direct"))
    assert_allclose(direct.scores_, eigen.scores_, rtol=1e-8)


@pytest.mark.parametrize("mu", [1e-5, 1e-3])
def test_conclusion_2_both_codings_give_the_same_classes(two_islands, mu, rng):
    y = np.full(50, -1)
    y[rng.permutation(50)[:12]] = rng.permutation(np.repeat([0, 1, 2], 4))
    known = read_labels(y, 50, "test")
    green = DirectGreen(make_graph(sp.csr_array(two_islands)), 50 * mu)
    one_hot, plus_minus = green.solve(known.Y), green.solve(signed(known))
    assert_allclose(plus_minus - 2 * one_hot, np.tile((plus_minus - 2 * one_hot)[:, :1], 3), atol=1e-7)
    assert (one_hot.argmax(axis=1) == plus_minus.argmax(axis=1)).all()


def test_conclusion_3_the_original_method_balances_every_component_and_so_splits_it(two_islands, labels):
    graph = make_graph(sp.csr_array(two_islands))
    original, improved = EigenGreen(graph, 0.0).solve(labels), EigenGreen(graph, 0.05).solve(labels)
    for island in (slice(0, 30), slice(30, 50)):
        assert_allclose(original[island].mean(axis=0), 0, atol=1e-10)
        assert abs(improved[island].mean(axis=0)).max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["adaptive", "gaussian", "binary"])
def test_conclusion_3_on_two_rings_the_improved_method_is_right_and_the_original_is_not(weights):
    X, y = two_rings()
    for seed in range(5):
        few = keep_labels(y, 10, random_state=seed)
        improved = GreenClassifier(20, weights=weights).fit(X, few)
        assert improved.n_components_ == 2
        assert (improved.transduction_ == y).all()
        original = GreenClassifier(20, weights=weights, solver="eigen", mu=0.0).fit(X, few)
        assert (original.transduction_ == y).mean() < 0.8


@pytest.mark.slow
def test_on_connected_rings_both_methods_work():
    X, y = two_rings(connected=True)
    few = keep_labels(y, 10, random_state=0)
    for options in ({"mu": 1e-5}, {"solver": "eigen", "mu": 0.0}):
        model = GreenClassifier(20, weights="gaussian", **options).fit(X, few)
        assert model.n_components_ == 1
        assert (model.transduction_ == y).mean() > 0.95


def test_conclusion_4_label_margins_exceed_those_of_llgc():
    X, y = digits()
    few = keep_labels(y, 10, random_state=0)
    given = few != -1
    options = {"n_neighbors": 20, "weights": "gaussian"}
    green = GreenClassifier(mu=1e-5, **options).fit(X, few)
    llgc = ConsistencyClassifier(gamma=1.0, **options).fit(X, few)
    for rows in (given, ~given):
        assert label_margin(green.scores_[rows], y[rows], green.classes_) > label_margin(
            llgc.scores_[rows], y[rows], llgc.classes_
        )


def test_conclusion_5_llgc_at_gamma_n_mu_differs_by_a_constant_when_classes_have_equally_many_labels(moons):
    X, y = moons
    few = keep_labels(y, 5, random_state=0)
    mu = 1e-4
    green = GreenClassifier(mu=mu).fit(X, few)
    llgc = ConsistencyClassifier(gamma=len(X) * mu).fit(X, few)
    gap = llgc.scores_ - green.scores_
    assert_allclose(gap, gap[0, 0], rtol=1e-6)
    assert_allclose(gap[0, 0], 5 / (len(X) * len(X) * mu), rtol=1e-6)
    assert (llgc.transduction_ == green.transduction_).all()
