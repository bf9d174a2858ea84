"""Decisions under known shares: they are met at the least cost, refused where they cannot be, refined over a graph."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons

from greenlabel import GreenClassifier
from greenlabel.datasets import digits, keep_labels
from greenlabel.errors import ParameterError
from greenlabel.labels.encoding import read_labels
from greenlabel.labels.shares import CLOSE_ENOUGH, MOMENTUM, ROUNDS, offsets, read_shares, refine, refinement_pays
from helpers import reference


@pytest.fixture
def labels():
    return read_labels(["a", "b", "b", "c", "", ""], 6, "test")


def shares_of(F, b):
    return np.bincount((F + b).argmax(axis=1), minlength=F.shape[1]) / len(F)


# What users give --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        ("labels", [0.25, 0.5, 0.25], [0.25, 0.5, 0.25]),
        ("balanced", [1 / 3] * 3, [1 / 3] * 3),
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ([0.2, 0.3, 0.505], np.array([0.2, 0.3, 0.505]) / 1.005, np.array([0.2, 0.3, 0.505]) / 1.005),
        ([(0.1, 0.4), 0.3, (0.2, 1)], [0.1, 0.3, 0.2], [0.4, 0.3, 1]),
        ({"b": 0.5}, [0, 0.5, 0], [1, 0.5, 1]),
        ({"a": (0.1, 0.2), "c": 0.5}, [0.1, 0, 0.5], [0.2, 1, 0.5]),
        (np.array([[0.1, 0.2], [0.3, 0.5], [0.2, 0.6]]), [0.1, 0.3, 0.2], [0.2, 0.5, 0.6]),
    ],
)
def test_shares_are_read(given, low, high, labels):
    found = read_shares(given, labels)
    assert_allclose(found, [low, high])


@pytest.mark.parametrize(
    ("given", "pattern"),
    [
        ("even", "'even' is unknown; give one of 'labels', 'balanced'"),
        (3, "3 holds no shares; give"),
        ([0.5, 0.5], "2 entries, y has 3 classes; give one share per class"),
        ([0.5, 0.3, 0.1], "sum to 0.9 at least and 0.9 at most; give"),
        ([0.5, 0.6, (0, 1)], "sum to 1.1 at least"),
        ([0.5, -0.1, 0.6], "-0.1; give a share from 0 to 1"),
        ([0.5, "many", 0.5], "'many'; give a share"),
        ([0.5, (0.4, 0.1), 0.5], "(0.4, 0.1); give a share"),
        ([0.5, float("nan"), 0.5], "nan; give a share"),
        ({"d": 0.5}, "'d', which no label has; give shares of 'a', 'b', 'c'"),
    ],
)
def test_shares_that_cannot_be_are_refused(given, pattern, labels):
    with pytest.raises(ParameterError, match=re.escape(pattern)):
        read_shares(given, labels)


# Offsets ----------------------------------------------------------------------------------------------------------


def test_offsets_meet_the_shares(rng):
    F = rng.normal(loc=[2, 0, 0, -1], size=(3000, 4))
    wanted = np.array([0.1, 0.2, 0.3, 0.4])
    assert np.abs(shares_of(F, offsets(F, wanted, wanted)) - wanted).sum() <= CLOSE_ENOUGH


def test_decisions_under_shares_have_the_largest_total_score(rng):
    F = rng.normal(loc=[1, 0, 0], size=(120, 3))
    b = offsets(F, np.full(3, 1 / 3), np.full(3, 1 / 3))
    decided = (F + b).argmax(axis=1)
    counts = np.bincount(decided, minlength=3)
    assert np.abs(counts - 40).sum() <= 1.5
    assert F[np.arange(120), decided].sum() == pytest.approx(reference.best_total(F, counts), rel=1e-9)


def test_shares_that_are_met_already_move_nothing(rng):
    F = rng.normal(size=(500, 3))
    assert_array_equal(offsets(F, np.zeros(3), np.ones(3)), np.zeros(3))
    now = shares_of(F, 0)
    assert_array_equal(offsets(F, now - 0.02, now + 0.02), np.zeros(3))


def test_a_range_is_met_at_its_nearer_end(rng):
    F = rng.normal(loc=[3, 0], size=(4000, 2))
    found = shares_of(F, offsets(F, np.array([0.0, 0.3]), np.array([1.0, 0.6])))
    assert found[1] == pytest.approx(0.3, abs=0.003)


def test_a_class_may_be_ruled_out(rng):
    F = rng.normal(size=(400, 3))
    found = shares_of(F, offsets(F, np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.5, 0.0])))
    assert_allclose(found, [0.5, 0.5, 0], atol=0.005)


def test_offsets_do_not_depend_on_a_constant_of_the_rows(rng):
    F, wanted = rng.normal(size=(600, 3)), np.array([0.2, 0.2, 0.6])
    shifted = F + rng.normal(size=(600, 1))
    assert_allclose(offsets(F, wanted, wanted), offsets(shifted, wanted, wanted), atol=1e-9)


# Refinement -------------------------------------------------------------------------------------------------------


def slow_refine(F, labels, wanted, G):
    """Every round spreads all decisions anew, by the dense operator."""
    b = offsets(F, wanted, wanted)
    last, before, start = None, None, np.zeros(F.shape[1])
    decided = (F + b).argmax(axis=1)
    for _ in range(ROUNDS):
        decided[labels.rows] = labels.codes
        if before is not None and (decided == before).all():
            break
        spread = G @ np.eye(F.shape[1])[decided]
        ahead = spread if last is None else spread + MOMENTUM * (spread - last)
        last, before = spread, decided
        start = offsets(ahead, wanted, wanted, start)
        decided = (ahead + start).argmax(axis=1)
    return before


def test_refinement_equals_spreading_all_decisions_anew():
    X, y = make_moons(150, noise=0.2, random_state=0)
    model = GreenClassifier().fit(X, keep_labels(y, 2, random_state=0))
    G = reference.green(model.graph_.S.toarray(), model.mu_)
    wanted = np.full(2, 0.5)
    found = refine(model.scores_, model.fitted_.labels, wanted, wanted, model.operator_.solve)
    assert_array_equal(found, slow_refine(model.scores_, model.fitted_.labels, wanted, G))


@pytest.mark.slow
def test_refinement_needs_few_digits(rng):
    X, y = digits()
    model = GreenClassifier(solver="cg").fit(X, keep_labels(y, 2, random_state=0))
    wanted = np.bincount(y) / len(y)

    def exact(Y, tolerance):
        return model.operator_.solve(Y)

    rough = refine(model.scores_, model.fitted_.labels, wanted, wanted, model.operator_.solve)
    assert (rough == refine(model.scores_, model.fitted_.labels, wanted, wanted, exact)).mean() > 0.99


@pytest.mark.slow
def test_refinement_is_right_more_often_on_digits():
    X, y = digits()
    model, wanted = GreenClassifier().fit(X, keep_labels(y, 1, random_state=0)), np.bincount(y) / len(y)
    plain, refined = [], []
    for seed in range(5):
        model.relabel(keep_labels(y, 1, random_state=seed))
        plain.append((model.transduction_ == y).mean())
        refined.append((refine(model.scores_, model.fitted_.labels, wanted, wanted, model.operator_.solve) == y).mean())
    assert np.mean(refined) > np.mean(plain) + 0.03


def pays(X, y, per_class, fold=None):
    model = GreenClassifier().fit(X, keep_labels(y, per_class, random_state=0))
    wanted = np.bincount(y) / len(y)
    fold = np.arange(len(model.fitted_.labels.rows)) if fold is None else fold
    return refinement_pays(model.fitted_.labels, fold, wanted, wanted, model.operator_.solve)


@pytest.mark.slow
def test_refinement_pays_on_digits_and_not_on_blurred_moons():
    assert pays(*digits(), 10)
    assert not pays(*make_moons(1000, noise=0.25, random_state=0), 20)


def test_refinement_is_taken_to_pay_where_nothing_can_be_left_out():
    assert pays(*make_moons(200, noise=0.2, random_state=0), 1, fold=np.full(2, -1))


def test_labelled_rows_keep_their_label_in_refinement():
    X, y = make_moons(150, noise=0.2, random_state=0)
    few = keep_labels(y, 3, random_state=1)
    model = GreenClassifier().fit(X, few)
    found = refine(model.scores_, model.fitted_.labels, np.full(2, 0.5), np.full(2, 0.5), model.operator_.solve)
    assert_array_equal(found[few != -1], few[few != -1])
